"""``perfdb compare``: is one group of records better or worse than another?"""

from __future__ import annotations

from typing import Literal, get_args

import click

from perfdb_git.cli.console import Console, write_out
from perfdb_git.cli.judging import parse_directions, parse_share
from perfdb_git.cli.options import (
    SnapshotChoice,
    json_option,
    reading_options,
    snapshot_messages,
)
from perfdb_git.comparison.compare import (
    ComparisonRequest,
    compare_commits,
    compare_sides,
)
from perfdb_git.comparison.results import Comparison
from perfdb_git.comparison.rules import ALPHA, THRESHOLD, Rules, UnitChoice
from perfdb_git.comparison.selections import (
    EVERYTHING,
    parse_choice,
    parse_range,
    parse_selection,
)
from perfdb_git.database import DatabaseSnapshot, PerformanceDatabase
from perfdb_git.errors import UsageError
from perfdb_git.model.result import Message
from perfdb_git.reports.comparing import comparison_lines, comparison_markdown
from perfdb_git.reports.envelope import Status, encoded

_HELP = """Judge one group of records against another, context by context.

A is the base and B is judged: worse, better, same, or cannot tell. Each is a record (3f2a91c0#17),
a record set (3f2a91c0), several of them with commas, or KEY=VALUE pairs with commas; session=NAME
and kind=KIND are such pairs too. BASE..NEW compares the records that the commit NEW adds with those
at BASE.

Only equal contexts and environments are compared; what the two selections say differently may
differ, and so may what --across names. A verdict takes a significant rank test (corrected for all
tests made) and an interval of the ratio beyond the threshold. Where runs come in several sessions,
the session is the unit of the test, not the sample.

\b
Examples:
  perfdb compare main..my-branch --fail-on worse:5%
  perfdb compare 3f2a91c0#17 77b0c4de#17
  perfdb compare device=a100,dtype=fp16 device=h100,dtype=fp16 --where operation=gemm
  perfdb compare runtime=vllm runtime=sglang --metric throughput --format markdown
  perfdb compare main..HEAD --across implementation_revision

The exit status is 1 only with --fail-on; 4 where no context is on both sides.
"""


@click.command("compare", help=_HELP, short_help="Judge one group of records against another.")
@click.argument("sides", nargs=-1, required=True, metavar="A B | BASE..NEW")
@click.option("--where", multiple=True, metavar="KEY=VALUE", help="Narrow both sides.")
@click.option("--across", multiple=True, metavar="DIM", help="Let the sides differ in this.")
@click.option("--metric", "metrics", multiple=True, metavar="NAME", help="Compare only this.")
@click.option(
    "--unit",
    type=click.Choice(get_args(UnitChoice)),
    default="auto",
    show_default=True,
    help="What counts as one independent value; auto is the outermost level with several.",
)
@click.option(
    "--threshold",
    default=f"{THRESHOLD:.0%}",
    show_default=True,
    metavar="SHARE",
    help="Smallest difference that matters.",
)
@click.option(
    "--alpha",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=ALPHA,
    show_default=True,
    help="Probability of any false better or worse.",
)
@click.option(
    "--direction",
    "directions",
    multiple=True,
    metavar="METRIC=lower|higher",
    help="State which way a metric is better, where its name does not.",
)
@click.option("--accept-throttled", is_flag=True, help="Judge samples under a lowered clock too.")
@click.option(
    "--bootstrap",
    "bootstrap_seed",
    type=click.IntRange(min=0),
    metavar="SEED",
    help="Bound each side's median by resampling its records or sessions too.",
)
@click.option(
    "--fail-on",
    metavar="worse[:SHARE]",
    help="End in status 1 if any context is worse, by more than this share.",
)
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    default=20,
    show_default=True,
    help="Pairs to show; --json has all of them.",
)
@click.option(
    "--format",
    "output",
    type=click.Choice(["text", "markdown", "json"]),
    default="text",
    show_default=True,
    help="Text, Markdown for a pull request, or the same as --json.",
)
@reading_options
@json_option
@click.pass_obj
def compare(
    console: Console,
    choice: SnapshotChoice,
    sides: tuple[str, ...],
    where: tuple[str, ...],
    across: tuple[str, ...],
    metrics: tuple[str, ...],
    unit: UnitChoice,
    threshold: str,
    alpha: float,
    directions: tuple[str, ...],
    accept_throttled: bool,
    bootstrap_seed: int | None,
    fail_on: str | None,
    limit: int,
    output: Literal["text", "markdown", "json"],
) -> int:
    """Build the request, compare, and render."""
    console.json = console.json or output == "json"
    limits = parse_share("--threshold", threshold)
    rules = Rules(
        alpha=alpha,
        threshold=limits,
        unit=unit,
        accept_throttled=accept_throttled,
        bootstrap_seed=bootstrap_seed,
        directions=parse_directions(directions),
        gate=None if fail_on is None else _gate(fail_on, limits),
    )
    revisions = _range(sides)
    with console.progress("comparing") as progress:
        if revisions is None:
            snapshot = choice.open(progress)
            request = _request(snapshot, sides, where, across, metrics, rules, whole=False)
            comparison = compare_sides(snapshot, request, progress)
        else:
            base, snapshot = _commits(choice, revisions)
            request = _request(snapshot, revisions, where, across, metrics, rules, whole=True)
            comparison = compare_commits(base, snapshot, request, progress)
    if output == "markdown" and not console.json:
        write_out(comparison_markdown(comparison, limit=limit))
    return console.answer(
        data=encoded(comparison) if console.json else {},
        lines=comparison_lines(comparison, limit=limit) if output == "text" else (),
        status=_status(comparison, is_range=revisions is not None),
        messages=(*snapshot_messages(snapshot), *_messages(comparison)),
    )


def _range(sides: tuple[str, ...]) -> tuple[str, str] | None:
    """Return both revisions of a range, or None for two sides of one snapshot."""
    found = parse_range(sides[0]) if len(sides) == 1 else None
    if found is None and len(sides) != 2:
        raise UsageError(
            "two sides are compared, or one range of commits",
            code="bad-side",
            remedy="write 'perfdb compare A B' or 'perfdb compare BASE..NEW'",
        )
    return found


def _commits(
    choice: SnapshotChoice, revisions: tuple[str, str]
) -> tuple[DatabaseSnapshot, DatabaseSnapshot]:
    if choice.revision is not None or choice.worktree:
        raise UsageError(
            "a range of commits says itself what to read",
            code="conflicting-options",
            remedy="leave out --at and --worktree",
        )
    database = PerformanceDatabase.open(choice.repository)
    return database.at(revisions[0]), database.at(revisions[1])


def _request(
    snapshot: DatabaseSnapshot,
    sides: tuple[str, ...],
    where: tuple[str, ...],
    across: tuple[str, ...],
    metrics: tuple[str, ...],
    rules: Rules,
    *,
    whole: bool,
) -> ComparisonRequest:
    """Read the sides; those of a range are everything at its commits."""
    vocabulary = snapshot.vocabulary
    base, new = (EVERYTHING if whole else parse_choice(side, vocabulary) for side in sides)
    return ComparisonRequest(
        base=base,
        new=new,
        texts=(sides[0], sides[1]),
        where=parse_selection(where, vocabulary),
        across=across,
        metrics=metrics,
        rules=rules,
    )


def _gate(text: str, threshold: float) -> float:
    word, colon, share = text.partition(":")
    if word != "worse":
        raise UsageError(
            f"--fail-on {text!r} is no gate", code="bad-gate", remedy="write worse or worse:5%"
        )
    return parse_share("--fail-on", share) if colon else threshold


def _status(comparison: Comparison, *, is_range: bool) -> Status:
    if comparison.gate is not None and comparison.gate.failed:
        return "findings"
    if comparison.pairs or (is_range and not comparison.new.records):
        return "ok"
    return "no-evidence"


def _messages(comparison: Comparison) -> list[Message]:
    if comparison.pairs:
        return []
    empty = [
        side
        for side, reference in (("A", comparison.base), ("B", comparison.new))
        if not reference.records
    ]
    text = "no context is on both sides"
    if empty:
        text = f"side {' and side '.join(empty)} has no records"
    return [Message(level="warning", code="nothing-compared", text=text)]

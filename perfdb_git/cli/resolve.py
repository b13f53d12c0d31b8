"""``perfdb resolve``: one question, one answer with its proof."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import click

from perfdb_git.cli.console import Console
from perfdb_git.cli.options import (
    SnapshotChoice,
    json_option,
    reading_options,
    snapshot_messages,
)
from perfdb_git.database import DEFAULT_POLICY, DatabaseSnapshot, PolicyInForce
from perfdb_git.errors import UsageError
from perfdb_git.model.estimate import Method
from perfdb_git.model.query import CostQuery
from perfdb_git.model.result import Resolution
from perfdb_git.operations.queries import parse_pairs
from perfdb_git.reports.envelope import encoded
from perfdb_git.reports.resolution import record_sets_of, resolution_lines
from perfdb_git.reports.screen import Line

_HELP = """Answer one question from the evidence at a commit.

A question is an operation with its shape, on a device: KEY=VALUE pairs of the vocabulary, where
aliases such as fp16 or a100 will do, and KEY=null states that a value is unknown. `perfdb list
--what operations` shows the operations and their shapes.

The answer names the value and its interval, how it was obtained, the records and the commit
behind it, and why each other source lost. Without admissible evidence the exit status is 4, and
the nearest contexts that do have an answer are named.

\b
Examples:
  perfdb resolve operation=gemm device=a100 dtype=fp16 m=128 n=10240 k=8192
  perfdb resolve operation=all_reduce device=h100 participants=8 message_bytes=16777216
  perfdb resolve --query question.yaml --at 4f1c2ab --json
  perfdb resolve operation=gemm device=a100 dtype=fp16 m=1 n=8 k=8 --method measured --explain
"""


@click.command("resolve", help=_HELP, short_help="Answer one question, with its proof.")
@click.argument("pairs", nargs=-1, metavar="KEY=VALUE...")
@click.option(
    "--query",
    "query_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Read the question from a query document, JSON or YAML.",
)
@reading_options
@click.option("--policy", "policy_name", metavar="NAME", help="Resolver policy of the snapshot.")
@click.option(
    "--policy-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Resolver policy from outside the snapshot; the answer is marked.",
)
@click.option(
    "--provider",
    "providers",
    multiple=True,
    metavar="NAME",
    help="Ask only this one, such as recorded.",
)
@click.option(
    "--method",
    "methods",
    multiple=True,
    type=click.Choice(get_args(Method)),
    help="Accept only this kind of answer; may be repeated, like --provider.",
)
@click.option("--max-age-days", type=click.FloatRange(min=0), help="Oldest evidence to accept.")
@click.option(
    "--max-relative-uncertainty",
    type=click.FloatRange(min=0),
    help="Greatest half width of the interval, relative to the value.",
)
@click.option(
    "--max-extrapolation-octaves",
    type=click.FloatRange(min=0),
    help="Greatest distance from the evidence.",
)
@click.option("--no-fallback", is_flag=True, help="Accept no declared fallback bound.")
@click.option("--explain", is_flag=True, help="Add each source's own account, step by step.")
@json_option
@click.pass_obj
def resolve(
    console: Console,
    /,
    choice: SnapshotChoice,
    pairs: tuple[str, ...],
    query_file: Path | None,
    policy_name: str | None,
    policy_file: Path | None,
    explain: bool,
    **limits: Any,
) -> int:
    """Build the query, resolve it, and render the outcome."""
    if query_file is not None and pairs:
        raise UsageError("--query and KEY=VALUE exclude each other", code="conflicting-options")
    with console.progress("indexing") as progress:
        snapshot = choice.open(progress)
        query = _query(snapshot, pairs, query_file)
        query = _limited(query, **limits)
        policy = _policy(snapshot, policy_name, policy_file)
        resolution = snapshot.resolve(query, policy=policy, explain=explain)
    return console.answer(
        data=encoded(resolution),
        lines=() if console.json else _lines(resolution, snapshot),
        status="ok" if resolution.estimate is not None else "no-evidence",
        messages=snapshot_messages(snapshot),
    )


def _query(
    snapshot: DatabaseSnapshot, pairs: tuple[str, ...], query_file: Path | None
) -> CostQuery:
    if query_file is not None:
        return snapshot.query_from_file(query_file)
    return snapshot.query(parse_pairs(pairs, snapshot.vocabulary))


def _limited(
    query: CostQuery,
    *,
    providers: tuple[str, ...],
    methods: tuple[Method, ...],
    no_fallback: bool,
    **bounds: float | None,
) -> CostQuery:
    """Put the limits of the command line in the place of those that a query document states."""
    given: dict[str, Any] = {name: bound for name, bound in bounds.items() if bound is not None}
    if providers:
        given["providers"] = tuple(dict.fromkeys(providers))
    if methods:
        given["methods"] = tuple(dict.fromkeys(methods))
    if no_fallback:
        given["fallback_allowed"] = False
    return replace(query, evidence_policy=replace(query.evidence_policy, **given))


def _policy(snapshot: DatabaseSnapshot, name: str | None, file: Path | None) -> PolicyInForce:
    if file is None:
        return snapshot.policy(name or DEFAULT_POLICY)
    if name is not None:
        raise UsageError(
            "--policy and --policy-file exclude each other", code="conflicting-options"
        )
    return snapshot.policy_from_file(file)


def _lines(resolution: Resolution, snapshot: DatabaseSnapshot) -> list[Line]:
    evidence = snapshot.evidence
    sessions = {
        sha256: evidence.find_record_set(sha256).header.session
        for sha256 in record_sets_of(resolution)
    }
    return resolution_lines(resolution, sessions=sessions)

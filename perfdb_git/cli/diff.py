"""``perfdb diff``: what a change does to evidence and to answers."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import click

from perfdb_git.cli.console import Console, write_out
from perfdb_git.cli.options import json_option, repository_option
from perfdb_git.database import DEFAULT_POLICY, DEFAULT_REVISION, PerformanceDatabase
from perfdb_git.errors import InvalidInputError, UsageError
from perfdb_git.model.result import Message
from perfdb_git.plans.tracked import plan_names, tracked_queries
from perfdb_git.reports.envelope import Status, encoded
from perfdb_git.reports.reviewing import review_lines
from perfdb_git.reports.reviewing_html import review_html
from perfdb_git.reports.reviewing_markdown import review_markdown
from perfdb_git.reports.written_files import replacing, require_writable
from perfdb_git.review.changes import DEFAULT_QUERIES, ChangeReviewer, Review
from perfdb_git.review.plot_points import series_points
from perfdb_git.review.tracked import TrackedQuery

Format = Literal["text", "json", "markdown", "html"]

_HELP = """Show what a change does: to the evidence, and to answers.

BASE..HEAD compares two commits, BASE...HEAD the merge base of the two with HEAD; two arguments
are BASE and HEAD, and one alone, or an empty side, means HEAD.

Listed are documents, records by series and context with their noise and coverage, and new records
that disagree with old ones. Then queries are answered before and after the change: those of the
plans at HEAD, and a sample of points around what changed. Answers that differ are shown with the
reason, which is found by taking one part of the change at a time.

The exit status is 0 whatever differs; with --exit-code it is 1 where an answer differs.

\b
Examples:
  perfdb diff origin/main...HEAD
  perfdb diff v1.0 v1.1 --format html --output review.html
  perfdb diff "$BASE..$HEAD" --format markdown --output comment.md
  perfdb diff HEAD~1..HEAD --json --exit-code
"""


@click.command("diff", help=_HELP, short_help="Show what a change does to evidence and answers.")
@click.argument("revisions", nargs=-1, metavar="BASE..HEAD")
@click.option(
    "--queries",
    type=click.IntRange(min=0, max=100_000),
    default=DEFAULT_QUERIES,
    show_default=True,
    help="Queries to answer before and after the change.",
)
@click.option(
    "--policy",
    metavar="NAME",
    default=DEFAULT_POLICY,
    show_default=True,
    help="Resolver policy, each side's own one of that name.",
)
@click.option(
    "--format",
    "output_format",
    type=click.Choice(["text", "json", "markdown", "html"]),
    default="text",
    show_default=True,
    help="Text, the same as --json, a pull-request comment, or a page with plots.",
)
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write Markdown or HTML to a file instead of standard output.",
)
@click.option("--exit-code", is_flag=True, help="End with status 1 where an answer differs.")
@repository_option
@json_option
@click.pass_obj
def diff(
    console: Console,
    /,
    revisions: tuple[str, ...],
    repository: Path,
    queries: int,
    policy: str,
    output_format: Format,
    output: Path | None,
    exit_code: bool,
) -> int:
    """Compare the two commits and render the review."""
    console.json = console.json or output_format == "json"
    _require_place(console, output_format, output)
    base, head, from_merge_base = parse_range(revisions)
    with console.progress("indexing") as indexing, console.progress("asking") as asking:
        database = PerformanceDatabase.open(repository, progress=indexing)
        reviewer = ChangeReviewer(
            database, base, head, from_merge_base=from_merge_base, policy=policy
        )
        tracked, remarks = _plan_queries(reviewer)
        review = reviewer.review(tracked, queries=queries, progress=asking)
    status: Status = "findings" if exit_code and review.impact.changes else "ok"
    text = _document(reviewer, review, output_format)
    messages = (*_messages(reviewer), *remarks)
    if text is not None and output is not None:
        with replacing(output) as file:
            file.write_text(text, encoding="utf-8", newline="\n")
        messages += (Message(level="note", code="written", text=f"{output} was written"),)
        text = ""
    if text is not None and not console.json:
        write_out(text)
    return console.answer(
        data=encoded(review),
        lines=review_lines(review) if text is None and not console.json else (),
        status=status,
        messages=messages,
    )


def parse_range(revisions: tuple[str, ...]) -> tuple[str, str, bool]:
    """Return base, head, and whether the base is the merge base of the two.

    Raises
    ------
    UsageError
        'bad-range' for none or more than two revisions.
    """
    if len(revisions) == 2 and not any(".." in text for text in revisions):
        return revisions[0], revisions[1], False
    if len(revisions) != 1 or not revisions[0]:
        raise UsageError(
            "a change has a base and a head",
            code="bad-range",
            remedy="write BASE..HEAD, BASE...HEAD, or BASE HEAD",
        )
    for separator in ("...", ".."):
        base, found, head = revisions[0].partition(separator)
        if found:
            return base or DEFAULT_REVISION, head or DEFAULT_REVISION, separator == "..."
    return revisions[0], DEFAULT_REVISION, False


def _require_place(console: Console, output_format: Format, output: Path | None) -> None:
    """Refuse an output that cannot be, before anything is computed."""
    is_document = output_format in ("markdown", "html")
    if output is not None and not is_document:
        raise UsageError(
            "--output is for --format markdown and --format html", code="conflicting-options"
        )
    if console.json and is_document and output is None:
        raise UsageError(
            f"--json and --format {output_format} both want standard output",
            code="conflicting-options",
            remedy="add --output FILE",
        )
    if output is not None:
        require_writable(output)


def _document(reviewer: ChangeReviewer, review: Review, output_format: Format) -> str | None:
    if output_format == "markdown":
        return review_markdown(review)
    if output_format != "html":
        return None
    vocabulary = reviewer.vocabulary
    points = () if vocabulary is None else series_points(reviewer.touched(), vocabulary)
    return review_html(review, points)


def _plan_queries(reviewer: ChangeReviewer) -> tuple[list[TrackedQuery], list[Message]]:
    """Return the queries of the head's plans, and what keeps a plan from being asked."""
    if reviewer.vocabulary is None:
        return [], []
    tracked: list[TrackedQuery] = []
    remarks: list[Message] = []
    for name in plan_names(reviewer.head):
        try:
            found = tracked_queries(reviewer.head, name)
        except InvalidInputError as error:
            text = f"plan {name} is left out: {error.message}"
            remarks.append(Message(level="warning", code=error.code, text=text))
        else:
            tracked += map(TrackedQuery.from_plan, found)
    return tracked, remarks


def _messages(reviewer: ChangeReviewer) -> tuple[Message, ...]:
    revision = reviewer.head.revision
    texts = [*reviewer.warnings, *(() if revision is None else revision.warnings)]
    remarks = (Message(level="warning", code="revision", text=text) for text in texts)
    return (*remarks, *reviewer.head.evidence.warnings)

"""``perfdb plan sensitivity``: which evidence a plan's number depends on most."""

from __future__ import annotations

import click

from perfdb_git.cli.console import Console
from perfdb_git.cli.options import (
    SnapshotChoice,
    json_option,
    reading_options,
    snapshot_messages,
)
from perfdb_git.plans.answer_sources import Grouping
from perfdb_git.plans.resolving import resolve_plan
from perfdb_git.plans.sensitivity import plan_sensitivity
from perfdb_git.reports.envelope import encoded
from perfdb_git.reports.sensitivity import sensitivity_lines

_HELP = """Show which evidence a plan's total depends on most.

Each source of an answer (record set, calibration, profile, component of a pipeline) is changed by
1 % alone: of a sum, records are pooled again and everything is added up; a pipeline is simulated
again. The source with the largest effect comes first. A plan with a required query that has no
answer has no total to depend on anything (status 4).

\b
Examples:
  perfdb plan sensitivity llama-2-70b-decode-100-a100
  perfdb plan sensitivity llama-2-70b-decode-100-a100 --by session --at v1.0 --json
"""


@click.command("sensitivity", help=_HELP, short_help="Show what a plan depends on most.")
@click.argument("plan", metavar="PLAN")
@click.option(
    "--by",
    type=click.Choice(["record-set", "session"]),
    default="record-set",
    help="Change records by record set, or all of a session.",
)
@reading_options
@json_option
@click.pass_obj
def sensitivity(console: Console, choice: SnapshotChoice, plan: str, by: Grouping) -> int:
    """Resolve, change, compare."""
    with console.progress("indexing") as indexing, console.progress("resolving") as progress:
        snapshot = choice.open(indexing)
        resolved = resolve_plan(snapshot, plan, progress=progress)
    found = plan_sensitivity(resolved, by=by)
    return console.answer(
        data=encoded(found),
        lines=() if console.json else sensitivity_lines(found),
        messages=snapshot_messages(snapshot),
    )

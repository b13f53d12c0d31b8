"""``perfdb list``: what a snapshot holds."""

from __future__ import annotations

from typing import get_args

import click

from perfdb_git.cli.console import Console
from perfdb_git.cli.options import (
    SnapshotChoice,
    json_option,
    reading_options,
    snapshot_messages,
)
from perfdb_git.operations.queries import parse_pairs
from perfdb_git.reports.envelope import encoded
from perfdb_git.reports.listing import Listed, listing_lines, make_listing

_HELP = """List what a snapshot holds.

By default all series: one line for each device, operation and kind of record. Dates are those
that the sources state; most state none.

\b
Examples:
  perfdb list
  perfdb list --device h200 --at v1.0
  perfdb list --what sets --operation gemm --json
  perfdb list --what operations
  perfdb list --what pipelines --at v1.0
"""


@click.command("list", help=_HELP, short_help="List what a snapshot holds.")
@click.option(
    "--what",
    type=click.Choice(get_args(Listed)),
    default="series",
    show_default=True,
    help="What to list.",
)
@click.option("--device", metavar="DEVICE", help="Only records of this device.")
@click.option("--operation", metavar="OPERATION", help="Only records of this operation.")
@reading_options
@json_option
@click.pass_obj
def list_command(
    console: Console,
    choice: SnapshotChoice,
    what: Listed,
    device: str | None,
    operation: str | None,
) -> int:
    """Collect the entries and render them."""
    given = {"device": device, "operation": operation}
    with console.progress("indexing") as progress:
        snapshot = choice.open(progress)
        pairs = [f"{name}={text}" for name, text in given.items() if text is not None]
        typed = parse_pairs(pairs, snapshot.vocabulary)
        wanted = {name: value for name, value in typed.items() if value is not None}
        listing = make_listing(snapshot, what, wanted)
    return console.answer(
        data=encoded(listing),
        lines=() if console.json else listing_lines(listing),
        messages=snapshot_messages(snapshot),
    )

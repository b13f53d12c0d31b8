"""``perfdb show``: one thing of a snapshot."""

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
from perfdb_git.reports.envelope import encoded
from perfdb_git.reports.showing import ShownKind, find_shown, shown_lines
from perfdb_git.storage.index import IndexRebuiltError

_HELP = """Show one record, document, operation or dimension.

Documents are record sets, manifests, retractions, policies, gates, profiles of systems and of
timing, pipelines and plans; a plan's lock is shown with --kind plan-lock.

ID is a record (the id of its record set, `#`, and its row from 0), a digest, or a name; four
digits of a digest will do where no other one begins with them.

\b
Examples:
  perfdb show 3f2a91c0#17
  perfdb show 3f2a91c0 --rows 50
  perfdb show h200-141g-datasheet --json
  perfdb show default --kind policy
"""


@click.command("show", help=_HELP, short_help="Show one record, document or name.")
@click.argument("identifier", metavar="ID")
@click.option("--kind", type=click.Choice(get_args(ShownKind)), help="Look only for this kind.")
@click.option(
    "--rows",
    type=click.IntRange(min=0),
    default=10,
    show_default=True,
    help="Rows of a record set to show.",
)
@reading_options
@json_option
@click.pass_obj
def show(
    console: Console, choice: SnapshotChoice, identifier: str, kind: ShownKind | None, rows: int
) -> int:
    """Find it and render it."""
    with console.progress("indexing") as progress:
        snapshot = choice.open(progress)
        try:
            shown = find_shown(snapshot, identifier, kind, rows=rows)
        except IndexRebuiltError:
            # The index was wrong and is gone: the second try reads Git alone.
            shown = find_shown(snapshot, identifier, kind, rows=rows)
    return console.answer(
        data=encoded(shown),
        lines=() if console.json else shown_lines(shown),
        messages=snapshot_messages(snapshot),
    )

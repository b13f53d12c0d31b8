"""``perfdb retract``: a statement that records are wrong."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import click

from perfdb_git.cli.console import Console
from perfdb_git.cli.options import json_option, repository_option, work_tree
from perfdb_git.database import PerformanceDatabase
from perfdb_git.errors import PerfdbError
from perfdb_git.reports.screen import Line, fact
from perfdb_git.storage.append import write_new_files
from perfdb_git.storage.retractions import build_retraction

_HELP = """State that a record set, or one record of it, is wrong.

Evidence is never deleted: the retraction is a document of its own, and applies from the commit
that adds it. It is written to the work tree; --commit also commits it.

\b
Examples:
  perfdb retract 3f2a91c0#17 --reason "clock was throttled" --commit
  perfdb retract 3f2a91c0 --reason "wrong device label" --replacement 77d0c1e2
"""


@click.command(
    "retract", help=_HELP, short_help="State that records are wrong; nothing is deleted."
)
@click.argument("identifier", metavar="ID")
@click.option("--reason", required=True, metavar="TEXT", help="Why the records are wrong.")
@click.option("--replacement", metavar="ID", help="Record or record set that is right.")
@click.option("--commit", is_flag=True, help="Commit the retraction on the current branch.")
@repository_option
@json_option
@click.pass_obj
def retract(
    console: Console,
    repository: Path,
    identifier: str,
    reason: str,
    replacement: str | None,
    commit: bool,
) -> int:
    """Build the retraction, write it, and say where it is."""
    with console.progress("indexing") as progress:
        database = PerformanceDatabase.open(repository, progress=progress)
        root = work_tree(database)
        path, content = build_retraction(
            database.worktree().evidence,
            identifier,
            reason,
            replacement=replacement,
            retracted_on=datetime.now(UTC).date().isoformat(),
        )
    written = write_new_files(root, {path: content})
    committed = None
    if commit:
        message = f"Retract {identifier}\n\n{reason}\n"
        try:
            committed = database.store.commit_files({path: content}, message=message)
        except PerfdbError:
            # A command that fails changes nothing.
            for name in written:
                (root / name).unlink(missing_ok=True)
            raise
    lines = [Line(f"retracted {identifier}", "good"), *fact("written", path)]
    lines += fact("commit", committed or "none: commit the file for the retraction to apply")
    return console.answer(data={"path": path, "commit": committed}, lines=lines)

"""``perfdb import``: other tools' files become record sets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import click

from perfdb_git.cli.console import Console
from perfdb_git.cli.groups import CommandPlace, LazyGroup
from perfdb_git.cli.options import json_option, repository_option, work_tree
from perfdb_git.database import PerformanceDatabase
from perfdb_git.importers.requests import ImportReport, ImportRequest
from perfdb_git.importers.table import import_table
from perfdb_git.importers.vidur import VidurProfileImporter
from perfdb_git.reports.envelope import encoded
from perfdb_git.reports.importing import import_lines, import_messages

R = TypeVar("R")

import_group = LazyGroup(
    {
        "table": CommandPlace(__name__, "table", "Import tables by a mapping document."),
        "vidur": CommandPlace(__name__, "vidur", "Import a whole Vidur profiling folder."),
        "calculon-system": CommandPlace(
            "perfdb_git.cli.import_calculon",
            "calculon_system",
            "Import a Calculon system file as a system profile.",
        ),
    },
    name="import",
    help="Bring measurements in from other tools' files: repeatable, all or nothing.",
)

_TABLE_HELP = """Import tables (CSV, TSV, JSON Lines, Parquet) by a mapping document.

A mapping states what every column means; nothing is guessed. MAPPING is the name of a shipped one
or the path of a document. All files are imported or none; a row that is there already is not added
again, and a bad row stops the import unless --skip-bad-rows lists it in the record set instead.

The record sets are written to the work tree; Git's index and history change only with --commit.

\b
Examples:
  perfdb import table --mapping vidur-mlp --source-root vidur --source-revision 7d47513 \\
      vidur/data/profiling/compute/a100/meta-llama/Llama-2-70b-hf/mlp.csv
  perfdb import table --mapping my-mapping.yaml --dry-run results.csv
"""

_VIDUR_HELP = """Import every table of a Vidur profiling folder.

ROOT is the folder data/profiling of a Vidur checkout.

\b
Example:
  perfdb import vidur vidur/data/profiling --source-root vidur --source-revision 7d47513 --commit
"""


def _import_options(command: Callable[..., R]) -> Callable[..., R]:
    options = (
        click.option(
            "--source-root",
            type=click.Path(exists=True, file_okay=False, path_type=Path),
            metavar="DIR",
            help="Folder that recorded file names start from, usually the upstream checkout.",
        ),
        click.option(
            "--source-revision",
            metavar="REV",
            help="Upstream revision of the files; left out, it is recorded as unknown.",
        ),
        click.option(
            "--skip-bad-rows",
            is_flag=True,
            help="Import the good rows and list the others in the record sets.",
        ),
        click.option(
            "--dry-run", is_flag=True, help="Report what would be written; write nothing."
        ),
        click.option("--commit", is_flag=True, help="Commit the new files on the current branch."),
        repository_option,
        json_option,
        click.pass_obj,
    )
    for option in reversed(options):
        command = option(command)
    return command


@click.command("table", help=_TABLE_HELP, short_help="Import tables by a mapping document.")
@click.option(
    "--mapping", required=True, metavar="MAPPING", help="A shipped mapping, or a document."
)
@click.argument(
    "files", nargs=-1, required=True, metavar="FILE...", type=click.Path(path_type=Path)
)
@_import_options
def table(
    console: Console,
    repository: Path,
    mapping: str,
    files: tuple[Path, ...],
    source_root: Path | None,
    source_revision: str | None,
    skip_bad_rows: bool,
    dry_run: bool,
    commit: bool,
) -> int:
    """Build the request, import, and render the report."""
    request = ImportRequest(
        repository=work_tree(PerformanceDatabase.open(repository)),
        mapping=mapping,
        files=files,
        source_root=source_root,
        source_revision=source_revision,
        skip_bad_rows=skip_bad_rows,
        dry_run=dry_run,
        commit=commit,
    )
    with console.progress("importing") as progress:
        report = import_table(request, progress=progress)
    return _answer(console, [report])


@click.command("vidur", help=_VIDUR_HELP, short_help="Import a whole Vidur profiling folder.")
@click.argument(
    "root", metavar="ROOT", type=click.Path(exists=True, file_okay=False, path_type=Path)
)
@_import_options
def vidur(
    console: Console,
    repository: Path,
    root: Path,
    source_root: Path | None,
    source_revision: str | None,
    skip_bad_rows: bool,
    dry_run: bool,
    commit: bool,
) -> int:
    """Build the importer, import, and render the reports."""
    importer = VidurProfileImporter(
        profiling_root=root, source_revision=source_revision, source_root=source_root
    )
    with console.progress("importing") as progress:
        done = importer.import_into(
            work_tree(PerformanceDatabase.open(repository)),
            skip_bad_rows=skip_bad_rows,
            dry_run=dry_run,
            commit=commit,
            progress=progress,
        )
    return _answer(console, done.reports)


def _answer(console: Console, reports: Sequence[ImportReport]) -> int:
    return console.answer(
        data={
            "records": sum(report.records for report in reports),
            "known": sum(report.known for report in reports),
            "imports": [encoded(report) for report in reports],
        },
        lines=() if console.json else import_lines(reports),
        messages=import_messages(reports),
    )

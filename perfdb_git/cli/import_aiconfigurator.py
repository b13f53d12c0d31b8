"""``perfdb import aiconfigurator``: a whole database of a wheel or folder becomes evidence."""

from __future__ import annotations

from pathlib import Path

import click

from perfdb_git.cli.console import Console
from perfdb_git.cli.options import json_option, repository_option, work_tree
from perfdb_git.database import PerformanceDatabase
from perfdb_git.importers.aiconfigurator.database_import import import_database
from perfdb_git.importers.aiconfigurator.report import DatabaseImportRequest
from perfdb_git.reports.aiconfigurator_imports import (
    database_import_data,
    database_import_lines,
    database_import_messages,
)

_HELP = """Import every table of an aiconfigurator database.

DATABASE is a wheel of aiconfigurator-core, which is read in place, or a folder with systems/data
below it. Tables of every known kind are imported, value for value: repeats stay separate records,
labels that contradict their path are kept beside the path's, and what sidecars state of the
collection goes along. Duplicates, contradictions and times below the roofline are reported, none
is left out. All tables are imported or none; what is there already is not added again.

The record sets are written to the work tree; Git's index and history change only with --commit.

\b
Examples:
  pip download --no-deps aiconfigurator-core==0.12.0
  perfdb import aiconfigurator --dry-run aiconfigurator_core-0.12.0-*.whl
  perfdb import aiconfigurator --commit aiconfigurator_core-0.12.0-*.whl
"""


@click.command("aiconfigurator", help=_HELP, short_help="Import a whole aiconfigurator database.")
@click.argument("database", metavar="DATABASE", type=click.Path(exists=True, path_type=Path))
@click.option(
    "--source-revision",
    metavar="REV",
    help="Upstream revision; by default the distribution's name and version.",
)
@click.option(
    "--skip-bad-rows",
    is_flag=True,
    help="Import the good rows and list the others in the record sets.",
)
@click.option("--dry-run", is_flag=True, help="Report what would be written; write nothing.")
@click.option("--commit", is_flag=True, help="Commit the new files on the current branch.")
@repository_option
@json_option
@click.pass_obj
def aiconfigurator(
    console: Console,
    repository: Path,
    database: Path,
    source_revision: str | None,
    skip_bad_rows: bool,
    dry_run: bool,
    commit: bool,
) -> int:
    """Build the request, import, and render the report."""
    request = DatabaseImportRequest(
        repository=work_tree(PerformanceDatabase.open(repository)),
        database=database,
        source_revision=source_revision,
        skip_bad_rows=skip_bad_rows,
        dry_run=dry_run,
        commit=commit,
    )
    with console.progress("importing") as progress:
        report = import_database(request, progress=progress)
    return console.answer(
        data=database_import_data(report),
        lines=() if console.json else database_import_lines(report),
        messages=database_import_messages(report),
    )

"""``perfdb import``: other tools' files become record sets."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from perfdb_git.cli.console import Console
from perfdb_git.cli.groups import CommandPlace, LazyGroup
from perfdb_git.cli.import_options import import_options
from perfdb_git.cli.options import work_tree
from perfdb_git.database import PerformanceDatabase
from perfdb_git.importers.requests import ImportReport, ImportRequest
from perfdb_git.importers.table import import_table
from perfdb_git.importers.tool_registry import AUTO, importer_names
from perfdb_git.importers.vidur import VidurProfileImporter
from perfdb_git.reports.envelope import encoded
from perfdb_git.reports.importing import import_lines, import_messages


class ImportGroup(LazyGroup):
    """The commands of this package, and one for each importer that is installed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands, importers last."""
        return [*super().list_commands(ctx), *_importer_names()]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command, made from an importer where there is no other of that name."""
        command = super().get_command(ctx, cmd_name)
        if command is None and cmd_name in _importer_names():
            # Late: no other command needs it.
            from perfdb_git.cli.import_tools import tool_command

            command = tool_command(cmd_name)
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete importers too."""
        names = [CompletionItem(name) for name in _importer_names() if name.startswith(incomplete)]
        return [*names, *super().shell_complete(ctx, incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands, then the importers' names."""
        super().format_commands(ctx, formatter)
        with formatter.section("Tools, each a command like auto"):
            formatter.write_text(", ".join(name for name in _importer_names() if name != AUTO))


def _importer_names() -> tuple[str, ...]:
    return (AUTO, *importer_names())


import_group = ImportGroup(
    {
        "table": CommandPlace(__name__, "table", "Import tables by a mapping document."),
        "vidur": CommandPlace(__name__, "vidur", "Import a whole Vidur profiling folder."),
        "aiconfigurator": CommandPlace(
            "perfdb_git.cli.import_aiconfigurator",
            "aiconfigurator",
            "Import a whole aiconfigurator database.",
        ),
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


@click.command("table", help=_TABLE_HELP, short_help="Import tables by a mapping document.")
@click.option(
    "--mapping", required=True, metavar="MAPPING", help="A shipped mapping, or a document."
)
@click.argument(
    "files", nargs=-1, required=True, metavar="FILE...", type=click.Path(path_type=Path)
)
@import_options
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
@import_options
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

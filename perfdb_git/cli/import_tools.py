"""``perfdb import auto`` and one command a tool: files of benchmarks, profilers, simulators."""

from __future__ import annotations

from pathlib import Path

import click

from perfdb_git.cli.console import Console
from perfdb_git.cli.import_options import import_options
from perfdb_git.cli.options import work_tree
from perfdb_git.database import PerformanceDatabase
from perfdb_git.importers.tool_import import ToolImportRequest, import_tool_files
from perfdb_git.importers.tool_registry import AUTO, importer
from perfdb_git.reports.envelope import encoded
from perfdb_git.reports.tool_imports import tool_import_lines, tool_import_messages

_HELP = """{summary}

What the files do not say is stated with --set KEY=VALUE: a dimension of the vocabulary (device,
dtype, participants …), a fact of the protocol (warmup, repetitions, synchronization, clock_state,
power_state), or environment (a manifest's digest or file), measured_at, zone, session, license,
tool_version. A fact that contradicts the file is refused, and so is a file that lacks a needed one.
All files are imported or none; what is there already is not added again.

\b
Example:
  perfdb import {name} --set device=a100 --dry-run {example}
"""


def tool_command(name: str) -> click.Command:
    """Return the command of one importer, or of ``auto``."""
    if name == AUTO:
        summary = "Import files of any known tool, and say what each was taken for."
        text = _HELP.format(name=name, summary=summary, example="results.json")
    else:
        summary = importer(name).summary
        text = _HELP.format(name=name, summary=summary, example="FILE")

    @click.command(name, help=text, short_help=summary)
    @click.argument(
        "files", nargs=-1, required=True, metavar="FILE...", type=click.Path(path_type=Path)
    )
    @click.option(
        "--set",
        "stated",
        multiple=True,
        metavar="KEY=VALUE",
        help="A fact that the files lack; may be given several times.",
    )
    @import_options
    def command(
        console: Console,
        repository: Path,
        files: tuple[Path, ...],
        stated: tuple[str, ...],
        source_root: Path | None,
        source_revision: str | None,
        skip_bad_rows: bool,
        dry_run: bool,
        commit: bool,
    ) -> int:
        request = ToolImportRequest(
            repository=work_tree(PerformanceDatabase.open(repository)),
            tool=name,
            files=files,
            stated=stated,
            source_root=source_root,
            source_revision=source_revision,
            skip_bad_rows=skip_bad_rows,
            dry_run=dry_run,
            commit=commit,
        )
        with console.progress("importing") as progress:
            report = import_tool_files(request, progress=progress)
        return console.answer(
            data={
                "records": report.records,
                "known": report.known,
                "imports": [encoded(report)],
            },
            lines=() if console.json else tool_import_lines(report),
            messages=tool_import_messages(report),
        )

    return command

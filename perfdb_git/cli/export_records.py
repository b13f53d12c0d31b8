"""``perfdb export --format``: the records of a snapshot as one table."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from perfdb_git.cli.console import Console
from perfdb_git.cli.options import SnapshotChoice, snapshot_messages
from perfdb_git.cli.table_output import (
    STANDARD_OUTPUT,
    csv_escape,
    output_stream,
    require_output,
)
from perfdb_git.comparison.selections import parse_choice
from perfdb_git.database import DatabaseSnapshot
from perfdb_git.errors import EXIT_FINE, UsageError
from perfdb_git.exports.arrow_files import ArrowEncoder, ArrowWriter
from perfdb_git.exports.columns import UnitChoice
from perfdb_git.exports.csv_files import CsvEncoder
from perfdb_git.exports.export import ExportFormat, ExportRequest, Progress, RecordExport
from perfdb_git.exports.row_writers import RowWriter, TextWriter
from perfdb_git.model.result import Message
from perfdb_git.model.values import JsonValue
from perfdb_git.reports.envelope import Status, envelope_text
from perfdb_git.reports.screen import Line
from perfdb_git.reports.written_files import replacing, require_writable


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportOptions:
    """What was typed."""

    form: ExportFormat
    selections: tuple[str, ...]
    output: Path
    metadata: Path | None
    units: UnitChoice
    retracted: bool


def export_records(console: Console, choice: SnapshotChoice, options: ExportOptions) -> int:
    """Build the request, write the table, and say what was written."""
    _require_possible(console, options)
    is_whole = False
    with console.progress("indexing") as indexing, console.progress("exporting") as exporting:
        snapshot = choice.open(indexing)
        export = RecordExport(snapshot, _request(options, snapshot))
        with output_stream(options.output) as stream:
            _write(stream, export, options, exporting)
            is_whole = True
    if not is_whole:
        return EXIT_FINE  # Who read standard output has seen enough.
    messages = (*snapshot_messages(snapshot), *_messages(export))
    status: Status = "ok" if export.row_count else "no-evidence"
    data: dict[str, JsonValue] = {
        "format": options.form,
        "rows": export.row_count,
        **export.metadata,
    }
    if options.metadata is not None:
        with replacing(options.metadata) as path:
            path.write_text(
                envelope_text(console.command or "export", status, data, messages), encoding="ascii"
            )
    return console.answer(
        data=data, lines=_lines(export, options), status=status, messages=messages
    )


def _require_possible(console: Console, options: ExportOptions) -> None:
    """Refuse what could not be written before anything is read."""
    require_output(
        console,
        options.output,
        options.form,
        remedy="write the table to a file with --output, or use --metadata for the JSON",
    )
    if options.metadata is not None and options.metadata.resolve() == options.output.resolve():
        raise UsageError("--output and --metadata name the same file", code="conflicting-options")
    if options.metadata is not None:
        require_writable(options.metadata)


def _request(options: ExportOptions, snapshot: DatabaseSnapshot) -> ExportRequest:
    return ExportRequest(
        choices=tuple(parse_choice(text, snapshot.vocabulary) for text in options.selections),
        texts=options.selections,
        units=options.units,
        retracted=options.retracted,
    )


def _write(
    stream: BinaryIO, export: RecordExport, options: ExportOptions, progress: Progress
) -> None:
    writer: RowWriter
    if options.form == "csv":
        text = CsvEncoder(export.columns, csv_escape(options.output))
        writer = TextWriter(stream, text)
        export.write(text, writer, progress)
    else:
        batches = ArrowEncoder(export.columns, export.metadata)
        writer = ArrowWriter(stream, batches, parquet=options.form == "parquet")
        export.write(batches, writer, progress)
    writer.close()


def _lines(export: RecordExport, options: ExportOptions) -> list[Line]:
    if options.output == STANDARD_OUTPUT:
        return []
    count = f"{export.row_count} records, {len(export.columns)} columns"
    return [Line(f"{options.output}: {count}")]


def _messages(export: RecordExport) -> list[Message]:
    if export.row_count:
        return []
    text = "no record of this commit fits the selection"
    return [Message(level="warning", code="nothing-selected", text=text)]

"""What an import of tools' files did, or would do."""

from __future__ import annotations

from collections.abc import Sequence

from perfdb_git.importers.tool_import import ImportedToolFile, ToolImportReport
from perfdb_git.model.result import Message
from perfdb_git.reports.quantities import counted, size
from perfdb_git.reports.screen import Line, fact, table

_MOST_SETS = 20
_MOST_RECORDS = 40
_MOST_REMARKS = 20
_SHORT_DIGEST = 12


def tool_import_lines(report: ToolImportReport) -> list[Line]:
    """Return an import for people; a dry run shows the records themselves."""
    lines: list[Line] = []
    for file in report.files:
        lines += _file_lines(file, dry_run=report.dry_run)
        lines.append(Line())
    if report.commit is not None:
        lines += fact("commit", report.commit)
    return [*lines, _total(report)]


def _file_lines(file: ImportedToolFile, *, dry_run: bool) -> list[Line]:
    version = "of unknown version" if file.tool_version is None else file.tool_version
    taken = "taken for a file of" if file.sniffed else "a file of"
    lines = [Line(f"{file.file}: {taken} {file.tool} {version}", "strong")]
    lines += fact("measured", file.measured_at or "at an unknown time")
    rows = [
        [
            item.sha256[:_SHORT_DIGEST],
            item.device,
            item.operation,
            f"{item.rows:,}",
            size(item.size),
        ]
        for item in file.record_sets[:_MOST_SETS]
    ]
    if rows:
        lines += table(["record set", "device", "operation", "rows", "size"], rows, right=("rows",))
    if len(file.record_sets) > _MOST_SETS:
        lines.append(Line(f"and {len(file.record_sets) - _MOST_SETS} more record sets", "faint"))
    if dry_run:
        lines += _records(file)
    return lines


def _records(file: ImportedToolFile) -> list[Line]:
    lines = []
    for item in file.records[:_MOST_RECORDS]:
        lines += fact(item.operation, f"{item.about}: {item.metrics}")
    if len(file.records) > _MOST_RECORDS:
        more = len(file.records) - _MOST_RECORDS
        lines.append(Line(f"and {more} more records; --json lists all of them", "faint"))
    return lines


def _total(report: ToolImportReport) -> Line:
    written = len(report.written)
    parts = [
        f"{counted(report.records, 'new record')}",
        f"{report.known:,} known already",
        f"{counted(written, 'file')} {'would be ' if report.dry_run else ''}written",
    ]
    return Line(", ".join(parts), "good" if report.records else "plain")


def tool_import_messages(report: ToolImportReport) -> tuple[Message, ...]:
    """Return what the user must know: what was left out, flagged or redacted."""
    messages: list[Message] = []
    for file in report.files:
        texts = [(remark.code, f"{file.file}: {remark.text}") for remark in file.remarks]
        texts += [("not-imported", f"{file.file}: {row}") for row in file.skipped]
        messages += _limited(texts)
        if file.redactions:
            text = f"{file.file}: {counted(file.redactions, 'text')} redacted before storing"
            messages.append(Message(level="note", code="redacted", text=text))
    return tuple(messages)


def _limited(texts: Sequence[tuple[str, str]]) -> list[Message]:
    messages = [
        Message(level="warning", code=code, text=text) for code, text in texts[:_MOST_REMARKS]
    ]
    if len(texts) > _MOST_REMARKS:
        more = f"and {len(texts) - _MOST_REMARKS} more; --json lists all of them"
        messages.append(Message(level="note", code="more-remarks", text=more))
    return messages

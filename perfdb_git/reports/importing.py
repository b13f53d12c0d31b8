"""What an import did, or would do."""

from __future__ import annotations

from collections.abc import Sequence

from perfdb_git.importers.requests import ImportedFile, ImportReport
from perfdb_git.model.result import Message
from perfdb_git.reports.quantities import counted, size
from perfdb_git.reports.screen import Line, fact, facts, table

_MOST_SETS = 20
_MOST_REMARKS = 20
_SHORT_DIGEST = 12


def import_lines(reports: Sequence[ImportReport]) -> list[Line]:
    """Return imports for people: the record sets, what was known, and where it went."""
    lines: list[Line] = []
    for report in reports:
        lines += _report_lines(report)
        lines.append(Line())
    return [*lines, _total(reports)]


def _report_lines(report: ImportReport) -> list[Line]:
    lines = [Line(f"{report.mapping}: {counted(len(report.files), 'file')}", "strong")]
    sets = report.record_sets
    rows = [
        [
            item.sha256[:_SHORT_DIGEST],
            item.device,
            item.operation,
            f"{item.rows:,}",
            size(item.size),
            item.session,
        ]
        for item in sets[:_MOST_SETS]
    ]
    if rows:
        titles = ["record set", "device", "operation", "rows", "size", "session"]
        lines += table(titles, rows, right=("rows", "size"))
    if len(sets) > _MOST_SETS:
        lines.append(Line(f"and {len(sets) - _MOST_SETS} more record sets", "faint"))
    absent = [_absent(file) for file in report.files if file.absent]
    lines += facts("absent", absent, most=_MOST_REMARKS)
    if report.commit is not None:
        lines += fact("commit", report.commit)
    return lines


def _absent(file: ImportedFile) -> str:
    return f"{file.file} has no columns for {', '.join(file.absent)}"


def _total(reports: Sequence[ImportReport]) -> Line:
    dry = any(report.dry_run for report in reports)
    records = sum(report.records for report in reports)
    known = sum(report.known for report in reports)
    written = sum(len(report.written) for report in reports)
    bad = sum(len(report.bad_rows) for report in reports)
    parts = [
        f"{counted(records, 'new record')}",
        f"{known:,} known already",
        f"{counted(written, 'file')} {'would be ' if dry else ''}written",
    ]
    if bad:
        parts.append(f"{counted(bad, 'bad row')} left out")
    return Line(", ".join(parts), "good" if records else "plain")


def import_messages(reports: Sequence[ImportReport]) -> tuple[Message, ...]:
    """Return what the importer's user must know: contradicting labels, rows left out, clocks."""
    return tuple(
        message
        for report in reports
        for message in (
            *_limited("label-conflict", [str(item) for item in report.conflicts]),
            *_limited("bad-row", [str(row) for row in report.bad_rows]),
            *_limited(
                "throttled",
                [f"{file.file}: {text}" for file in report.files for text in file.throttled],
            ),
        )
    )


def _limited(code: str, texts: Sequence[str]) -> list[Message]:
    messages = [Message(level="warning", code=code, text=text) for text in texts[:_MOST_REMARKS]]
    if len(texts) > _MOST_REMARKS:
        more = f"and {len(texts) - _MOST_REMARKS} more; --json lists all of them"
        messages.append(Message(level="note", code=code, text=more))
    return messages

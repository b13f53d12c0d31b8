"""What an import of an aiconfigurator database did, or would do."""

from __future__ import annotations

from collections import Counter

from perfdb_git.importers.aiconfigurator.report import DatabaseImportReport, ImportedTable
from perfdb_git.model.result import Message
from perfdb_git.model.values import JsonValue
from perfdb_git.reports.envelope import encoded
from perfdb_git.reports.quantities import counted, size
from perfdb_git.reports.screen import Line, fact, table

_MOST_EXAMPLES = 5
_COLUMNS = ("kind", "tables", "rows", "new", "known", "sets", "repeats", "labels", "below roofline")
_LABELS = {
    "directory_version": "version",
    "device_label": "device",
    "directory_framework": "framework",
}


def database_import_lines(report: DatabaseImportReport) -> list[Line]:
    """Return the import for people: the counts of each kind of table, and examples."""
    rows = [
        [
            kind.kind,
            f"{kind.tables:,}",
            f"{kind.rows:,}",
            f"{kind.records:,}",
            f"{kind.known:,}",
            f"{kind.record_sets:,}",
            f"{kind.repeated_rows:,}",
            f"{kind.mislabelled_rows:,}",
            f"{kind.below_roofline:,}" if kind.judged_rows else "not judged",
        ]
        for kind in report.kinds
    ]
    lines = [Line(f"aiconfigurator, {report.source_revision or 'unknown revision'}", "strong")]
    lines += table(list(_COLUMNS), rows, right=_COLUMNS[1:])
    lines.append(Line())
    for part in (_statuses, _repeats, _labels, _roofline, _zeros):
        lines += part(report)
    if report.commit is not None:
        lines += fact("commit", report.commit)
    return [*lines, _total(report)]


def _statuses(report: DatabaseImportReport) -> list[Line]:
    counts = Counter(item.status or "without a status" for item in report.tables)
    stated = [f"{count:,} {status}" for status, count in sorted(counts.items())]
    return fact("sidecars", f"tables by what they state: {', '.join(stated)}")


def _repeats(report: DatabaseImportReport) -> list[Line]:
    rows = sum(item.repeated_rows for item in report.tables)
    if not rows:
        return []
    most = _largest(report, "repeated_rows")
    text = f"{counted(rows, 'row')} of a key that another row has too, each kept as a record; most "
    return fact("repeats", f"{text}in {most.file} ({most.repeated_rows:,} of {most.rows:,})")


def _largest(report: DatabaseImportReport, name: str) -> ImportedTable:
    return max(report.tables, key=lambda item: (getattr(item, name), item.file))


def _labels(report: DatabaseImportReport) -> list[Line]:
    lines: list[Line] = []
    for label, (rows, tables) in report.mislabelled.items():
        examples = [
            f"{item.rows:,} rows of {one.file} say {item.rows_say!r}, its path {item.path_says!r}"
            for one in report.tables
            for item in one.mislabelled
            if item.label == label
        ]
        lines += fact(
            _LABELS.get(label, label),
            f"{rows:,} of the rows, in {counted(tables, 'table')}, contradict their path; both "
            "labels are kept",
        )
        lines += [Line(f"    {example}", "faint") for example in examples[:_MOST_EXAMPLES]]
        if len(examples) > _MOST_EXAMPLES:
            lines.append(Line(f"    and {len(examples) - _MOST_EXAMPLES} more", "faint"))
    return lines


def _roofline(report: DatabaseImportReport) -> list[Line]:
    judged = sum(item.roofline.judged for item in report.tables)
    if not judged:
        return fact("roofline", "not judged: no data sheet stands beside the tables")
    below = sum(item.roofline.below for item in report.tables)
    others = report.records + report.known - judged
    lines = fact(
        "roofline",
        f"{below:,} of {judged:,} records take less time than the data sheet allows; "
        f"{others:,} not judged, their work or peak rate is unknown",
    )
    furthest = sorted(
        (item.roofline for item in report.tables if item.roofline.example is not None),
        key=lambda roofline: roofline.ratio,
    )
    return lines + [Line(f"    {item.example}", "faint") for item in furthest[:_MOST_EXAMPLES]]


def _zeros(report: DatabaseImportReport) -> list[Line]:
    zeros = sum(item.unresolved_times for item in report.tables)
    if not zeros:
        return []
    return fact("zeros", f"{counted(zeros, 'time')} of 0 are stored as null, with the reason")


def _total(report: DatabaseImportReport) -> Line:
    parts = [
        counted(report.records, "new record"),
        f"{report.known:,} known already",
        f"{counted(report.written, 'file')} {'would be ' if report.dry_run else ''}written "
        f"({size(report.size)})",
    ]
    return Line(", ".join(parts), "good" if report.records else "plain")


def database_import_messages(report: DatabaseImportReport) -> tuple[Message, ...]:
    """Return what the user must know: tables and rows left out, and columns of unknown meaning."""
    messages = [
        Message(
            level="warning",
            code="unknown-table",
            text=f"{name}: not imported, no such kind of table is known",
        )
        for name in report.unknown_tables
    ]
    for item in report.tables:
        messages += [
            Message(
                level="warning",
                code="unknown-column",
                text=f"{item.file}: the meaning of {name!r} is unknown, kept as a source column",
            )
            for name in item.unstated_columns
        ]
    messages += [
        Message(level="warning", code="not-imported", text=str(fault))
        for item in report.tables
        for fault in item.faults
    ]
    return tuple(messages)


def database_import_data(report: DatabaseImportReport) -> dict[str, JsonValue]:
    """Return the import for programs."""
    return {
        "records": report.records,
        "known": report.known,
        "kinds": [encoded(kind) for kind in report.kinds],
        "import": encoded(report),
    }

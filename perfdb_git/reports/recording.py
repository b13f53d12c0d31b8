"""What a recording stored."""

from __future__ import annotations

from statistics import median

from perfdb_git.model.values import JsonValue
from perfdb_git.recording.requests import RecordReport
from perfdb_git.reports.envelope import encoded
from perfdb_git.reports.quantities import counted
from perfdb_git.reports.screen import Line, fact, facts, table

_SHORT = 12


def report_lines(report: RecordReport) -> list[Line]:
    """Return a recording for people: what ran, how long, and what was stored."""
    lines = [Line(f"session {report.session}", "strong"), *fact("command", report.command)]
    seconds = sorted(report.seconds)
    lines += fact(
        "wall time",
        f"{median(seconds):.4g} s median of {counted(len(seconds), 'run')}, "
        f"{seconds[0]:.4g} to {seconds[-1]:.4g} s, process start and end included",
    )
    lines += fact("environment", report.environment.sha256)
    unknown = [f"{name}: {reason}" for name, reason in report.environment.unknown.items()]
    if unknown:
        lines += facts("unknown", unknown, most=len(unknown))
    rows = [
        [item.sha256[:_SHORT], item.device, item.operation, str(item.rows), str(item.samples)]
        for item in report.record_sets
    ]
    titles = ["record set", "device", "operation", "rows", "samples"]
    lines += table(titles, rows, right=("rows", "samples"))
    label = "not written" if report.dry_run else "written"
    return lines + facts(label, report.written, most=len(report.written) or 1)


def report_data(report: RecordReport) -> dict[str, JsonValue]:
    """Return the same for programs."""
    return {
        "session": report.session,
        "command": report.command,
        "seconds": list(report.seconds),
        "record_sets": [encoded(item) for item in report.record_sets],
        "manifest": report.environment.sha256,
        "unknown": dict(report.environment.unknown),
        "written": list(report.written),
        "dry_run": report.dry_run,
    }

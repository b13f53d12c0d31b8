"""Findings as text and as workflow annotations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

from perfdb_git.model.findings import Finding
from perfdb_git.reports.escaping import for_workflow_message, for_workflow_property
from perfdb_git.reports.quantities import counted
from perfdb_git.reports.screen import Line, Style, wrapped

Severity: TypeAlias = Literal["error", "warning", "note"]

_STYLES: Mapping[str, Style] = {"error": "bad", "warning": "warn", "note": "faint"}
_WORKFLOW_COMMANDS = {"error": "error", "warning": "warning", "note": "notice"}
_FIRST_LINE = 1


def has_errors(findings: Sequence[Finding]) -> bool:
    """Tell whether any finding is an error."""
    return any(finding.severity == "error" for finding in findings)


def finding_lines(
    findings: Sequence[Finding], commit: str | None, *, merge_base: str | None = None
) -> list[Line]:
    """Return findings for people, and their count.

    Parameters
    ----------
    findings : sequence of Finding
        In the order in which they are shown.
    commit : str or None
        What was judged; None for uncommitted files.
    merge_base : str or None
        What it was compared with.
    """
    lines: list[Line] = []
    for finding in findings:
        head = f"{finding.severity}: {_where(finding)}: {finding.message} [{finding.code}]"
        lines += wrapped(head, style=_STYLES[finding.severity])
        if finding.remedy is not None:
            lines += wrapped(finding.remedy, head="  ")
    where = commit or "uncommitted files of the work tree"
    if merge_base is not None:
        where += f", as a change of {merge_base}"
    if not findings:
        return [Line(f"no findings at {where}", "good")]
    counts = Counter(finding.severity for finding in findings)
    order: tuple[Severity, ...] = ("error", "warning", "note")
    text = ", ".join(counted(counts[level], level) for level in order if counts[level])
    return [*lines, Line(f"{text} at {where}", "strong")]


def _where(finding: Finding) -> str:
    where = finding.document
    if finding.row is not None:
        where += f" row {finding.row}"
    if finding.pointer is not None:
        where += f" at {finding.pointer or '/'}"
    return where


def workflow_commands(findings: Sequence[Finding]) -> str:
    """Return findings as ``::error file=…,line=…,title=…::…`` lines of a GitHub workflow."""
    return "".join(_workflow_command(finding) for finding in findings)


def _workflow_command(finding: Finding) -> str:
    properties = {
        "file": finding.document,
        # Without a line the annotation would not be shown.
        "line": str(finding.line or _FIRST_LINE),
        "title": f"perfdb {finding.code}",
    }
    stated = ",".join(f"{name}={for_workflow_property(v)}" for name, v in properties.items())
    message = finding.message
    if finding.pointer is not None or finding.row is not None:
        message = f"{_where(finding)}: {message}"
    if finding.remedy is not None:
        message += f"\n{finding.remedy}"
    command = _WORKFLOW_COMMANDS[finding.severity]
    return f"::{command} {stated}::{for_workflow_message(message)}\n"

"""Where findings stand in their files, so that a review shows them beside the right line."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from perfdb_git.checks.checked_snapshot import CheckedDocument, CheckedSnapshot
from perfdb_git.formats.pointer_lines import json_line, row_line, yaml_line
from perfdb_git.model.findings import Finding
from perfdb_git.storage import layout


def with_lines(findings: Iterable[Finding], snapshot: CheckedSnapshot) -> list[Finding]:
    """Return findings with the lines that their rows and pointers stand on.

    A finding that knows its line keeps it; one of a file that is not there, or that could not be
    read as a document, has none.

    Parameters
    ----------
    findings : iterable of Finding
        Best sorted by document, since rows of only one record set are kept.
    snapshot : CheckedSnapshot
        Holds the documents.
    """
    files = {file.path: file for file in snapshot.files}
    found = []
    for finding in findings:
        wanted = finding.row is not None or finding.pointer
        if finding.line is None and wanted and finding.document in files:
            line = _line(snapshot.document(files[finding.document]), finding)
            finding = finding if line is None else replace(finding, line=line)
        found.append(finding)
    return found


def _line(document: CheckedDocument, finding: Finding) -> int | None:
    if document.content is None or document.fault is not None or document.place is None:
        return None
    if finding.row is not None:
        line = row_line(document.content, finding.row)
        if line is not None:
            return line
    pointer = finding.pointer or ""
    if document.path.endswith(layout.YAML_SUFFIX):
        return yaml_line(document.content, pointer)
    return json_line(document.content, pointer)

"""Findings as text and as annotations that evidence cannot forge."""

from __future__ import annotations

from perfdb_git.model.findings import Finding
from perfdb_git.reports.findings import finding_lines, has_errors, workflow_commands
from perfdb_git.reports.screen import print_lines

FINDINGS = (
    Finding(
        code="wrong-digest",
        severity="error",
        document="evidence/records/a,b:c.json",
        message="100% wrong\n::error::forged",
        remedy="restore it",
        pointer="",
        row=3,
    ),
    Finding(code="large-file", severity="note", document="x", message="large"),
)


def test_annotations() -> None:
    assert workflow_commands(FINDINGS).splitlines() == [
        "::error file=evidence/records/a%2Cb%3Ac.json,line=1,title=perfdb wrong-digest::"
        "evidence/records/a,b:c.json row 3 at /: 100%25 wrong%0A::error::forged%0Arestore it",
        "::notice file=x,line=1,title=perfdb large-file::large",
    ]


def test_text() -> None:
    text = print_lines(finding_lines(FINDINGS, "c" * 40), colour=False)
    first, *_, last = text.splitlines()
    assert first.startswith("error: evidence/records/a,b:c.json row 3 at /: 100% wrong\\x0a::error")
    assert last == f"1 error, 1 note at {'c' * 40}"
    assert finding_lines((), None)[0].text == "no findings at uncommitted files of the work tree"
    compared = finding_lines((), "c" * 40, merge_base="d" * 40)[0].text
    assert compared == f"no findings at {'c' * 40}, as a change of {'d' * 40}"
    assert has_errors(FINDINGS)
    assert not has_errors(FINDINGS[1:])

"""Write the sections of docs/checks.md that the table of checks makes: run it after a change there.

python tests/docs/checks_page.py
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from perfdb_git.checks.registry import CHECKS
from perfdb_git.checks.rules import Check

PAGE = Path(__file__).parents[2] / "docs/checks.md"
BEGIN = "<!-- made by tests/docs/checks_page.py from here on -->\n"


def sections() -> str:
    """Return one section a check, with one entry a rule; a rule of several stands at the first."""
    seen: dict[str, str] = {}
    return "\n".join(line for check in CHECKS for line in _section(check, seen)) + "\n"


def _section(check: Check, seen: dict[str, str]) -> Iterator[str]:
    yield f"\n## {check.id}\n"
    yield check.documentation
    kinds = [
        name
        for name, judge in (
            ("every document", check.judge_document),
            ("the whole snapshot", check.judge_snapshot),
            ("every document that comes in (with `--base`)", check.judge_addition),
            ("the whole change (with `--base`)", check.judge_change),
        )
        if judge is not None
    ]
    yield f"Judges {' and '.join(kinds)}."
    for rule in check.rules:
        if rule.code in seen:
            yield f"\nAlso [{rule.code}](#{rule.code})."
            continue
        seen[rule.code] = check.id
        yield f"\n### {rule.code}\n"
        yield f"{rule.severity.capitalize()}. {rule.documentation}\n"
        yield f"What to do: {rule.remedy}."


def page() -> str:
    """Return what the page should be: its text by hand, and the sections."""
    head, _, _ = PAGE.read_text().partition(BEGIN)
    return head + BEGIN + sections()


if __name__ == "__main__":
    PAGE.write_text(page())

"""A review as readable text."""

from __future__ import annotations

from collections.abc import Sequence

from perfdb_git.reports.quantities import counted
from perfdb_git.reports.review_sections import Section, review_sections, summary_facts
from perfdb_git.reports.screen import Line, Style, fact, table, wrapped
from perfdb_git.review.changes import Review

MOST_ROWS = 20
"""Rows of one section; ``--json`` and the other formats show more."""

_RIGHT = ("disagreement", "before", "added", "removed", "record sets", "records")
_INDENT = "  "


def review_lines(review: Review) -> list[Line]:
    """Return a review for people, most important first."""
    lines = [Line("what the change does", "strong")]
    for label, text in summary_facts(review):
        style: Style = "bad" if label == "lost" else "warn" if label == "conflicts" else "plain"
        lines += fact(label, text, style)
    for section in review_sections(review):
        lines += [Line(), Line(_title(section), "strong")]
        if section.intro:
            lines += wrapped(section.intro, head=_INDENT, style="faint")
        rows = section.rows[:MOST_ROWS]
        if section.name in ("answers", "conflicts"):
            lines += _blocks(section.columns, rows)
        else:
            right = [title for title in section.columns if title in _RIGHT]
            lines += table(section.columns, rows, right=right, wrap=True)
        more = len(section.rows) - len(rows) + section.left_out
        if more:
            lines += wrapped(f"and {more:,} more: see --format html or --json", head=_INDENT)
    if not review.impact.changes:
        lines += [Line(), Line("no answer differs", "good")]
    return lines


def _title(section: Section) -> str:
    count = len(section.rows) + section.left_out
    return f"{section.title.lower()} ({counted(count, 'row')})"


def _blocks(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[Line]:
    """Return rows with long cells, each as a few lines of its own."""
    lines: list[Line] = []
    for first, second, *others in rows:
        lines += wrapped(second, head=f"{_INDENT}{first:>9}  ", style="strong")
        for title, cell in zip(columns[2:], others, strict=True):
            lines += wrapped(cell, head=f"{_INDENT}{'':>9}  {title:<11}  ")
    return lines

"""A review as Markdown for a pull-request comment, within the size that forges accept."""

from __future__ import annotations

from collections.abc import Sequence

from perfdb_git.reports.escaping import for_markdown
from perfdb_git.reports.quantities import counted
from perfdb_git.reports.review_sections import Section, review_sections, summary_facts
from perfdb_git.review.changes import Review

MOST_BYTES = 60_000
"""GitHub refuses comments above 65,536 characters."""

_RESERVED = 400
"""Bytes kept for the lines that end each further section."""

_OPEN_ROWS = 25
"""A longer table is folded."""


def review_markdown(review: Review, *, most_bytes: int = MOST_BYTES) -> str:
    """Return a review as Markdown of at most `most_bytes` bytes.

    Every piece of evidence stands in a code span, where neither mentions nor HTML work. Sections
    are in order of importance; what does not fit is counted.

    Parameters
    ----------
    review : Review
        The review.
    most_bytes : int
        Size of the text in UTF-8; at least 8,000.
    """
    sections = review_sections(review)
    text = _head(review)
    for place, section in enumerate(sections):
        reserved = _RESERVED * (len(sections) - place)
        text += _section(section, most_bytes - len(text.encode()) - reserved)
    if not review.impact.changes:
        text += "\nNo answer differs.\n"
    return text


def _head(review: Review) -> str:
    lines = ["### What this change does to evidence and answers", ""]
    lines += [f"- **{label}**: {for_markdown(text)}" for label, text in summary_facts(review)]
    return "\n".join(lines) + "\n"


def _section(section: Section, room: int) -> str:
    """Return a section with as many rows as there is room for, and how many were left out."""
    rows = [_row(row) for row in section.rows]
    head = _section_head(section)
    used = len(head.encode())
    kept = 0
    while kept < len(rows) and used + len(rows[kept].encode()) <= room:
        used += len(rows[kept].encode())
        kept += 1
    missing = len(rows) - kept + section.left_out
    if not kept:
        return f"\n**{section.title}**: {counted(missing, 'row')} left out, the text is full.\n"
    text = head + "".join(rows[:kept])
    if len(section.rows) > _OPEN_ROWS:
        text += "\n</details>\n"
    if missing:
        text += f"\n… and {counted(missing, 'row')} more, left out of this text.\n"
    return text


def _section_head(section: Section) -> str:
    count = len(section.rows) + section.left_out
    title = f"{section.title} ({count:,})"
    lines = [""]
    if len(section.rows) > _OPEN_ROWS:
        lines += [f"<details><summary><b>{title}</b></summary>", ""]
    else:
        lines += [f"#### {title}", ""]
    if section.intro:
        lines += [section.intro, ""]
    lines += [_line(section.columns), _line(["---"] * len(section.columns))]
    return "\n".join(lines) + "\n"


def _row(cells: Sequence[str]) -> str:
    return _line([for_markdown(cell, in_table=True) for cell in cells]) + "\n"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"

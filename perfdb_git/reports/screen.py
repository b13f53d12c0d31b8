"""Lines of text for a terminal: wrapped, aligned, and coloured only at the very end.

Renderers return lines of plain text, evidence included; `print_lines` alone escapes and colours
them, so no renderer can forget to.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from perfdb_git.reports.escaping import for_terminal

WIDTH = 100
"""No line that is not one long word is wider."""

LABEL_WIDTH = 12
_INDENT = "  "
_GAP = "  "

Style: TypeAlias = Literal["plain", "strong", "faint", "good", "bad", "warn"]

_CODES: dict[Style, str] = {
    "strong": "1",
    "faint": "2",
    "good": "1;32",
    "bad": "1;31",
    "warn": "33",
}


@dataclass(frozen=True, slots=True)
class Line:
    """One line of plain text, without its end."""

    text: str = ""
    style: Style = "plain"


def print_lines(lines: Iterable[Line], *, colour: bool) -> str:
    """Return the text to write: every line escaped, then coloured where asked for."""
    return "".join(f"{_painted(line, colour)}\n" for line in lines)


def _painted(line: Line, colour: bool) -> str:
    text = for_terminal(line.text)
    code = _CODES.get(line.style) if colour else None
    return text if code is None or not text else f"\x1b[{code}m{text}\x1b[0m"


def fact(label: str, text: str, style: Style = "plain") -> list[Line]:
    """Return a label and its text, wrapped under itself."""
    head = f"{_INDENT}{label:<{LABEL_WIDTH}} "
    return wrapped(text, head=head, style=style)


def wrapped(text: str, *, head: str = "", style: Style = "plain") -> list[Line]:
    """Return text after `head`, further lines indented as deep as `head` is long."""
    room = max(20, WIDTH - len(head))
    parts = textwrap.wrap(for_terminal(text), room, break_long_words=False, break_on_hyphens=False)
    margin = " " * len(head)
    return [
        Line(f"{margin if index else head}{part}".rstrip(), style)
        for index, part in enumerate(parts or [""])
    ]


def facts(label: str, texts: Sequence[str], *, most: int, style: Style = "plain") -> list[Line]:
    """Return several texts under one label, cut off after `most` of them."""
    shown = list(texts[:most])
    if len(texts) > most:
        shown.append(f"and {len(texts) - most} more")
    lines: list[Line] = []
    for index, text in enumerate(shown):
        lines += fact("" if index else label, text, style)
    return lines


def table(
    titles: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    right: Sequence[str] = (),
    wrap: bool = False,
) -> list[Line]:
    """Return a table; its last column takes what room is left.

    Parameters
    ----------
    titles : sequence of str
        Column titles.
    rows : sequence of sequences of str
        As many cells as titles each.
    right : sequence of str
        Titles of the columns that align to the right.
    wrap : bool
        Whether the last column goes on below instead of being cut off.
    """
    cells = [[for_terminal(cell) for cell in row] for row in rows]
    widths = [
        max(len(title), *(len(row[place]) for row in cells)) if cells else len(title)
        for place, title in enumerate(titles)
    ]
    taken = sum(widths[:-1]) + len(_GAP) * (len(titles) - 1)
    widths[-1] = min(widths[-1], max(len(titles[-1]), WIDTH - taken))

    def line(row: Sequence[str]) -> str:
        parts = [
            _cut(cell, width).rjust(width) if title in right else _cut(cell, width).ljust(width)
            for cell, width, title in zip(row, widths, titles, strict=True)
        ]
        return _GAP.join(parts).rstrip()

    lines = [Line(line(titles), "strong")]
    for row in cells:
        if wrap:
            head = line([*row[:-1], ""]).ljust(taken)
            lines += wrapped(row[-1], head=head)
        else:
            lines.append(Line(line(row)))
    return lines


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}…"

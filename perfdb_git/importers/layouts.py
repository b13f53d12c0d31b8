"""Numbers, units and names in the texts of benchmark tools."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence

from perfdb_git.importers.source_text import refuse

_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_SAFE = 2**53 - 1
_NO_NUMBER = frozenset(
    {
        *("", "-", "--", "n/a", "na", "null", "none"),
        *(f"{sign}{word}" for sign in ("", "+", "-") for word in ("nan", "inf", "infinity")),
        *("nan(ind)", "-nan(ind)", "1.#inf", "-1.#ind"),
    }
)
_RANK_TAG = re.compile(r"^(?:\[[^\]]*\]\s?<std(?:out|err)>:\s?|\s*\d+:\s)")
"""What mpirun (--tag-output) and srun (--label) put before every line of a rank."""


def number(text: str) -> float | None:
    """Return a plain number, or None for anything else, NaN and infinities among it."""
    if _NUMBER.fullmatch(text) is None:
        return None
    value = float(text)
    return value if math.isfinite(value) else None


def number_fault(text: str) -> str | None:
    """Say why a cell is neither a number nor one of the spellings of having none; else None."""
    if number(text) is not None or text.strip().lower() in _NO_NUMBER:
        return None
    hint = ", which may have a decimal comma" if re.fullmatch(r"[+-]?\d+,\d+", text) else ""
    return f"{text!r} is no number{hint}"


def integer(text: str) -> int | None:
    """Return a plain non-negative integer, or None for anything else."""
    return int(text) if text.isdigit() and int(text) <= _SAFE else None


def grouped_number(text: str) -> float | None:
    """Return a number whose thousands may be grouped by commas, as profilers print them."""
    plain = text.replace(",", "") if re.fullmatch(r"\d{1,3}(,\d{3})+(\.\d+)?", text) else text
    return number(plain)


def snake_case(text: str) -> str:
    """Return a name as metrics are spelt: ``hit ratio`` to ``hit_ratio``."""
    name = re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")
    return name if name[:1].isalpha() else f"counter_{name}"


def without_rank_tags(lines: Iterable[str]) -> list[str]:
    """Return lines without the tag of the rank that printed them."""
    return [_RANK_TAG.sub("", line) for line in lines]


def hides_row(words: Sequence[str], width: int) -> bool:
    """Return whether a line ends in a whole row of numbers behind the message of another rank.

    Parameters
    ----------
    words : sequence of str
        The words of a line that does not begin with a number.
    width : int
        How many numbers a row has.
    """
    row = words[-width:]
    is_row = len(words) > width and integer(row[0]) is not None
    return is_row and all(number(text) is not None for text in row)


def require_distinct_columns(header: Sequence[str], document: str, line: int) -> None:
    """Refuse a table in which two columns have one title: one of them would be lost.

    Raises
    ------
    InvalidInputError
        'duplicate-column'.
    """
    titles = [title.strip() for title in header]
    for title in titles:
        if titles.count(title) > 1:
            refuse(document, f"has two columns {title!r}", "duplicate-column", line=line)


def require_distinct(places: Iterable[tuple[str, str]], document: str) -> None:
    """Refuse two things of one name, which would be taken for repeats of each other.

    Names that differ in case or white space alone are one: people, file systems and dashboards
    take them for one.

    Parameters
    ----------
    places : iterable of (str, str)
        Name and place of each.

    Raises
    ------
    InvalidInputError
        'duplicate-name', with both places.
    """
    seen: dict[str, tuple[str, str]] = {}
    for name, place in places:
        other, there = seen.setdefault(folded_name(name), (name, place))
        if (other, there) == (name, place):
            continue
        text = f"{name!r} stands at {there} and at {place}: two benchmarks of one name"
        if other != name:
            where = f"{other!r} stands at {there} and {name!r} at {place}"
            text = f"{where}: names that differ in case or white space alone"
        refuse(
            document,
            text,
            "duplicate-name",
            remedy="give them different names, and run them again",
        )


def folded_name(name: str) -> str:
    """Return what two names that people take for one have in common."""
    return " ".join(name.casefold().split())

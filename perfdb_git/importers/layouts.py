"""Numbers, units and names in the texts of benchmark tools."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

from perfdb_git.importers.source_text import refuse

_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_SAFE = 2**53 - 1


def number(text: str) -> float | None:
    """Return a plain number, or None for anything else, NaN and infinities among it."""
    if _NUMBER.fullmatch(text) is None:
        return None
    value = float(text)
    return value if math.isfinite(value) else None


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


def require_distinct(places: Iterable[tuple[str, str]], document: str) -> None:
    """Refuse two things of one name, which would be taken for repeats of each other.

    Parameters
    ----------
    places : iterable of (str, str)
        Name and place of each.

    Raises
    ------
    InvalidInputError
        'duplicate-name', with both places.
    """
    seen: dict[str, str] = {}
    for name, place in places:
        if name in seen:
            refuse(
                document,
                f"{name!r} stands at {seen[name]} and at {place}: two benchmarks of one name",
                "duplicate-name",
                remedy="give them different names, and run them again",
            )
        seen[name] = place

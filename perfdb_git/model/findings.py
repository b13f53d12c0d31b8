"""Faults in data as values, so that a check can report all of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One fault of one document.

    ``pointer`` is a JSON pointer, ``row`` a record row from 0, ``line`` a line of the file from 1;
    each may be ``None``.
    """

    code: str
    severity: Literal["error", "warning", "note"]
    document: str
    message: str
    remedy: str | None = None
    pointer: str | None = None
    row: int | None = None
    line: int | None = None

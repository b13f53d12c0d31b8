"""Cells of foreign tables: what they may hold, and how a number is read from one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from perfdb_git.formats.json_value import (
    MAX_SAFE_INTEGER,
    NUMBER,
    NumberFaultError,
    read_float,
    read_integer,
)

RawCell: TypeAlias = "int | float | str | None"
"""A cell as the file holds it; ``None`` is an empty one."""


_SAFE_LENGTH = 15


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a cell, or a value worked out from it, cannot be used."""

    column: str
    reason: str


Cell: TypeAlias = "int | float | str | Fault | None"
"""A cell on its way to becoming a value."""


def text_of(cell: RawCell) -> str:
    """Return the text that conditions, lookups and splits compare; an empty cell gives ``""``."""
    if cell is None:
        return ""
    return cell if type(cell) is str else str(cell)


def numbers_of(column: str, cells: Iterable[RawCell], *, is_text: bool) -> list[Cell]:
    """Read a column as numbers, by JSON's grammar where the file holds text.

    Parameters
    ----------
    column : str
        Its name, for faults.
    cells : Iterable[RawCell]
        The raw cells.
    is_text : bool
        Whether the format has no numbers of its own (CSV, TSV). In the others a text is no
        number, whatever it looks like.

    Returns
    -------
    list[Cell]
        One int, float or `Fault` for each cell.
    """
    read = _text_number if is_text else _typed_number
    known: dict[RawCell, Cell] = {}
    result: list[Cell] = []
    for cell in cells:
        value = known.get(cell)
        if value is None:
            value = known[cell] = read(column, cell)
        result.append(value)
    return result


def _text_number(column: str, cell: RawCell) -> Cell:
    text = text_of(cell)
    if not text:
        return Fault(column, "is empty")
    match = NUMBER.fullmatch(text)
    if match is None:
        return Fault(column, f"{_shown(text)} is not a number")
    try:
        if match["fraction"] is None and match["exponent"] is None:
            return read_integer(text)
        return read_float(text)
    except NumberFaultError as fault:
        return Fault(column, str(fault))


def _typed_number(column: str, cell: RawCell) -> Cell:
    if cell is None:
        return Fault(column, "is empty")
    if isinstance(cell, str):
        return Fault(column, f"{_shown(cell)} is text, not a number")
    if not math.isfinite(cell):
        return Fault(column, f"{cell} is not finite")
    if isinstance(cell, int) and abs(cell) > MAX_SAFE_INTEGER:
        return Fault(column, f"integer {cell} is beyond ±(2**53 - 1)")
    return cell


def _shown(text: str) -> str:
    return repr(text if len(text) <= 40 else f"{text[:37]}...")


def verbatim(cells: Sequence[RawCell], *, is_text: bool) -> list[RawCell]:
    """Return a source column so that its decimal texts can be recovered.

    A column of plain integers becomes integers, one of decimals in float64's shortest form
    floats; any other column stays text (``007``, ``1.50``, integers mixed with decimals).
    """
    if not is_text:
        return [_storable(cell) for cell in cells]
    texts = {text_of(cell) for cell in cells if cell is not None}
    for convert in (_plain_integers, _plain_floats):
        known = convert(texts)
        if known is not None:
            return [None if cell is None else known[text_of(cell)] for cell in cells]
    return list(cells)


def _plain_integers(texts: set[str]) -> dict[str, RawCell] | None:
    known: dict[str, RawCell] = {}
    for text in texts:
        match = NUMBER.fullmatch(text)
        if match is None or match["fraction"] or match["exponent"] or text == "-0":
            return None
        if len(text) > _SAFE_LENGTH:
            return None
        known[text] = int(text)
    return known


def _plain_floats(texts: set[str]) -> dict[str, RawCell] | None:
    known: dict[str, RawCell] = {}
    for text in texts:
        if NUMBER.fullmatch(text) is None or repr(float(text)) != text:
            return None
        known[text] = float(text)
    # Canonical JSON writes 1.0 as 1: without a fraction beside it a reader would take the column
    # for integers.
    has_fraction = any(isinstance(v, float) and not v.is_integer() for v in known.values())
    return known if has_fraction else None


def _storable(cell: RawCell) -> RawCell:
    if isinstance(cell, float) and not math.isfinite(cell):
        return str(cell)
    if isinstance(cell, int) and abs(cell) > MAX_SAFE_INTEGER:
        return str(cell)
    return cell

"""Rows of a record set to columns of numbers, judging every cell on the way.

The schema judges the header; cells are judged here by column, because a schema validator needs
microseconds for each of them. Strictly read JSON holds no NaN and no infinity, so a number that
arrives here is finite.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from perfdb_git.model.findings import Finding
from perfdb_git.operations.units import METRIC_UNITS, UNITS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    FloatArray: TypeAlias = NDArray[np.float64]
    IntArray: TypeAlias = NDArray[np.int64]

RawColumn: TypeAlias = Mapping[str, Any]
"""A column of a header that the schema accepted."""

_NUMBERS = frozenset({int, float})
_NUMBERS_OR_NULL = frozenset({int, float, type(None)})
_SAMPLES = frozenset({int, float, type(None), list})
_SOURCE_CELLS = frozenset({str, int, float, bool, type(None)})

_SOURCE_REMEDY = "write text, a number, true, false or null"
_NUMBER_REMEDY = "write a number, or null where it is unknown"


class BadRowsError(Exception):
    """Some cell breaks its column's rules; `row_findings` says which."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnData:
    """The cells of one column as numbers.

    Attributes
    ----------
    values : array
        Without ``offsets`` one number a row, shape ``(n_rows,)``, NaN for null; else all raw
        samples, shape ``(n_samples,)``.
    offsets : array or None
        Shape ``(n_rows + 1,)``: samples ``offsets[i]:offsets[i + 1]`` are row i's; a null cell has
        none.
    """

    values: FloatArray
    offsets: IntArray | None = None


def read_columns(rows: Sequence[Any], columns: Sequence[RawColumn]) -> list[ColumnData | None]:
    """Return one entry a column: its numbers, or None for a source column.

    Parameters
    ----------
    rows : sequence
        Cells by row, as a strict reader gave them.
    columns : sequence of mapping
        From the header.

    Raises
    ------
    BadRowsError
        If any cell is wrong.
    """
    lists = set(map(type, rows)) <= {list}
    if not lists or not set(map(len, rows)) <= {len(columns)}:
        raise BadRowsError
    cells = list(zip(*rows, strict=True)) if rows else [()] * len(columns)
    return [_column(c, column) for c, column in zip(cells, columns, strict=True)]


def _column(cells: tuple[Any, ...], column: RawColumn) -> ColumnData | None:
    kinds = set(map(type, cells))
    if column["role"] == "source":
        if not kinds <= _SOURCE_CELLS:
            raise BadRowsError
        return None
    sampled = column.get("statistic") == "sample"
    if not kinds <= (_SAMPLES if sampled else _NUMBERS_OR_NULL):
        raise BadRowsError
    data = _ragged(cells) if list in kinds else ColumnData(values=_floats(cells))
    _require_range(data.values, column)
    return data


def _floats(cells: Sequence[Any]) -> FloatArray:
    from array import array

    import numpy as np

    try:
        # Twice as fast as numpy's own conversion, which looks at every cell first; booleans,
        # which it would take for numbers, were refused before.
        return np.frombuffer(array("d", cells), dtype=np.float64)
    except TypeError:
        return np.array(cells, dtype=np.float64)  # None becomes NaN


def _ragged(cells: Sequence[Any]) -> ColumnData:
    import numpy as np

    samples: list[Any] = []
    lengths = [0]
    for cell in cells:
        if isinstance(cell, list):
            if not cell:
                raise BadRowsError
            samples += cell
        elif cell is not None:
            samples.append(cell)
        lengths.append(len(samples))
    if not set(map(type, samples)) <= _NUMBERS:
        raise BadRowsError
    return ColumnData(values=_floats(samples), offsets=np.array(lengths, dtype=np.int64))


def _require_range(values: FloatArray, column: RawColumn) -> None:
    import numpy as np

    if column["role"] != "metric":
        return
    # Comparisons with NaN are false, so unknown cells pass.
    if bool((values < 0).any()):
        raise BadRowsError
    if column["statistic"] == "count":
        known = values[~np.isnan(values)]
        if bool((known < 1).any()) or bool((known != np.floor(known)).any()):
            raise BadRowsError


def column_findings(header: Mapping[str, Any], *, document: str) -> list[Finding]:
    """Return the faults of a header's columns that the schema cannot see.

    Parameters
    ----------
    header : mapping
        A header that the schema accepted.
    document : str
        Its file's name, for messages.
    """
    findings: list[Finding] = []
    seen: set[tuple[object, ...]] = set()

    def fault(number: int, code: str, message: str, remedy: str) -> None:
        findings.append(
            Finding(
                code=code,
                severity="error",
                document=document,
                message=message,
                remedy=remedy,
                pointer=f"/columns/{number}",
            )
        )

    for number, column in enumerate(header["columns"]):
        name, role = column["name"], column["role"]
        key = (role, name, column.get("statistic"))
        if key in seen:
            fault(number, "duplicate-column", f"column {name!r} occurs twice", "keep one of them")
        seen.add(key)
        if role == "dimension" and name in header["context"]:
            fault(
                number,
                "dimension-stated-twice",
                f"dimension {name!r} is a column and stands in the context too",
                "remove it from the context",
            )
        if role == "metric" and not _metric_unit_fits(column):
            fault(
                number,
                "wrong-unit",
                f"{column['statistic']} of {name!r} cannot be in {column['unit']!r}",
                f"use {_legal_units(column)}",
            )
    return findings


def _legal_units(column: RawColumn) -> str:
    if column["statistic"] == "count":
        return "'1'"
    si = METRIC_UNITS[column["name"]]
    return " or ".join(repr(unit) for unit, meaning in UNITS.items() if meaning.si == si)


def _metric_unit_fits(column: RawColumn) -> bool:
    if column["statistic"] == "count":
        return bool(column["unit"] == "1")
    si = METRIC_UNITS.get(column["name"])
    unit = UNITS.get(column["unit"])
    return si is None or (unit is not None and unit.si == si)


def row_findings(
    rows: Sequence[object], columns: Sequence[RawColumn], *, document: str
) -> list[Finding]:
    """Return every fault of every row, in order.

    Parameters
    ----------
    rows : sequence
        Cells by row, as a strict reader gave them.
    columns : sequence of mapping
        From a header that the schema accepted.
    document : str
        The file's name, for messages.
    """
    try:
        read_columns(rows, columns)
    except BadRowsError:
        return list(_scan(rows, columns, document))
    return []


def _scan(rows: Sequence[object], columns: Sequence[RawColumn], document: str) -> Iterator[Finding]:
    for number, row in enumerate(rows):
        if not isinstance(row, list) or len(row) != len(columns):
            found = f"{len(row)} cells" if isinstance(row, list) else "no array"
            yield Finding(
                code="row-length",
                severity="error",
                document=document,
                message=f"row {number} is {found}, not an array of {len(columns)} cells",
                remedy="write one cell a column",
                pointer=f"/rows/{number}",
                row=number,
            )
            continue
        for place, (cell, column) in enumerate(zip(row, columns, strict=True)):
            fault = _cell_fault(cell, column)
            if fault is not None:
                code, reason, remedy = fault
                yield Finding(
                    code=code,
                    severity="error",
                    document=document,
                    message=f"row {number}, column {column['name']!r}: {reason}",
                    remedy=remedy,
                    pointer=f"/rows/{number}/{place}",
                    row=number,
                )


def _cell_fault(cell: object, column: RawColumn) -> tuple[str, str, str] | None:
    kind = type(cell)
    if column["role"] == "source":
        if kind in _SOURCE_CELLS:
            return None
        return "cell-type", "an array or object is no source value", _SOURCE_REMEDY
    if isinstance(cell, list) and column.get("statistic") == "sample":
        return _samples_fault(cell)
    if kind not in _NUMBERS_OR_NULL:
        return "cell-type", f"{_shown(cell)} is not a number", _NUMBER_REMEDY
    return _number_fault(cell, column)


def _samples_fault(cell: list[Any]) -> tuple[str, str, str] | None:
    if not cell:
        return "no-samples", "an empty array holds no sample", "write null where none is known"
    for sample in cell:
        if type(sample) not in _NUMBERS:
            return "cell-type", f"{_shown(sample)} is not a sample", "write numbers only"
        if sample < 0:
            return "negative-metric", f"{sample} is negative", _NUMBER_REMEDY
    return None


def _number_fault(cell: Any, column: RawColumn) -> tuple[str, str, str] | None:
    if cell is None or column["role"] != "metric":
        return None
    if cell < 0:
        return "negative-metric", f"{cell} is negative", _NUMBER_REMEDY
    if column["statistic"] == "count" and (cell < 1 or cell != int(cell)):
        return "wrong-count", f"{cell} is not a positive integer", _NUMBER_REMEDY
    return None


def _shown(cell: object) -> str:
    text = repr(cell)
    return text if len(text) <= 40 else f"{text[:37]}..."

"""Record sets as blocks of cells, one sequence a column of the exported table.

Rows are read from Git, not from the index, and one record set is in memory at a time.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from perfdb_git.errors import InvalidInputError
from perfdb_git.exports.columns import ExportColumn, MetricKey, UnitChoice, metric_key
from perfdb_git.model.records import Column, Quantity, RecordSetHeader
from perfdb_git.operations.units import UNITS
from perfdb_git.storage.record_sets import IndexedRecordSet

BLOCK_ROWS = 65_536

# ASCII: control characters of upstream texts stay escapes.
_ENCODER = json.JSONEncoder(separators=(",", ":"), allow_nan=False)

Cells: TypeAlias = "Sequence[Any] | Constant"


@dataclass(frozen=True, slots=True)
class Constant:
    """The same cell in every row."""

    value: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class RowBlock:
    """Some rows of one record set: for each column of the table its cells."""

    row_count: int
    cells: tuple[Cells, ...]


class RecordSetRows:
    """Cells of one record set's rows, for the columns of a table.

    Parameters
    ----------
    view : IndexedRecordSet
        The record set, as the index has it.
    header : RecordSetHeader
        Its header, from Git.
    rows : sequence of list
        Its rows, from Git.
    columns : sequence of ExportColumn
        The columns of the table.
    units : str
        Units of the metrics.
    """

    def __init__(
        self,
        view: IndexedRecordSet,
        header: RecordSetHeader,
        rows: Sequence[list[Any]],
        columns: Sequence[ExportColumn],
        units: UnitChoice,
    ) -> None:
        self._view = view
        self._header = header
        self._rows = rows
        self._columns = columns
        self._metrics: dict[MetricKey, int] = {}
        self._dimensions: dict[str, int] = {}
        self._sources: dict[str, int] = {}
        for place, column in enumerate(header.columns):
            if column.role == "metric":
                stated = view.entry.header["columns"][place]
                self._metrics[metric_key(stated, units)] = place
            else:
                kept = self._dimensions if column.role == "dimension" else self._sources
                kept[column.name] = place
        self._facts = _facts(view, header)

    def blocks(self, numbers: Sequence[int]) -> Iterator[RowBlock]:
        """Yield the rows of these numbers, in their order."""
        for start in range(0, len(numbers), BLOCK_ROWS):
            chosen = numbers[start : start + BLOCK_ROWS]
            by_column = list(zip(*(self._rows[number] for number in chosen), strict=True))
            yield RowBlock(
                row_count=len(chosen),
                cells=tuple(self._cells(column, chosen, by_column) for column in self._columns),
            )

    def _cells(
        self, column: ExportColumn, numbers: Sequence[int], by_column: Sequence[Sequence[Any]]
    ) -> Cells:
        if column.role == "dimension":
            return self._dimension(column, by_column)
        if column.role == "metric":
            return self._metric(column, by_column)
        if column.name == "record_id":
            return [f"{self._view.sha256}#{number}" for number in numbers]
        if column.name == "row":
            return numbers
        if column.name == "retracted":
            return self._retracted(numbers)
        if column.name == "unknown_dimensions":
            return self._unknown(by_column)
        if column.name == "source_keys":
            return self._source_keys(by_column)
        return Constant(self._facts[column.name])

    def _dimension(self, column: ExportColumn, by_column: Sequence[Sequence[Any]]) -> Cells:
        assert column.of is not None
        place = self._dimensions.get(column.of)
        if place is None:
            stated = self._header.context.get(column.of)
            (value,) = self._typed(column, [stated])
            return Constant(value)
        return self._typed(column, by_column[place])

    def _metric(self, column: ExportColumn, by_column: Sequence[Sequence[Any]]) -> Cells:
        assert column.of is not None and column.statistic is not None and column.unit is not None
        place = self._metrics.get((column.of, column.statistic, column.unit))
        if place is None:
            return Constant(None)
        if column.type == "integer":
            return self._typed(column, by_column[place])
        return _converted(by_column[place], self._header.columns[place], column)

    def _typed(self, column: ExportColumn, cells: Sequence[Any]) -> Sequence[Any]:
        kinds = set(map(type, cells)) - {type(None)}
        if column.type == "text":
            fits, typed = kinds <= {str}, cells
        elif column.type == "number":
            fits = kinds <= {int, float}
            typed = [None if cell is None else float(cell) for cell in cells] if fits else cells
        elif kinds <= {int}:
            fits, typed = True, cells
        else:
            known = [cell for cell in cells if cell is not None]
            fits = kinds <= {int, float} and all(cell == int(cell) for cell in known)
            typed = [None if cell is None else int(cell) for cell in cells] if fits else cells
        if not fits:
            raise InvalidInputError(
                f"a value of {column.of!r} has another type than the vocabulary says",
                code="wrong-type",
                document=self._view.path,
                remedy="run 'perfdb check' to see all faults",
            )
        return typed

    def _retracted(self, numbers: Sequence[int]) -> Cells:
        retracted = self._view.entry.retracted
        if not retracted:
            return Constant(retracted is None)
        gone = frozenset(retracted)
        return [number in gone for number in numbers]

    def _unknown(self, by_column: Sequence[Sequence[Any]]) -> Cells:
        stated = [name for name, value in self._header.context.items() if value is None]
        open_columns = {
            name: place for name, place in self._dimensions.items() if None in by_column[place]
        }
        if not open_columns:
            return Constant(sorted(stated))
        cells = zip(*(by_column[place] for place in open_columns.values()), strict=True)
        return [
            sorted(
                [*stated, *(n for n, cell in zip(open_columns, row, strict=True) if cell is None)]
            )
            for row in cells
        ]

    def _source_keys(self, by_column: Sequence[Sequence[Any]]) -> Cells:
        shared = dict(self._header.source.keys)
        if not self._sources:
            return Constant(_json(shared))
        cells = zip(*(by_column[place] for place in self._sources.values()), strict=True)
        return [_json({**shared, **dict(zip(self._sources, row, strict=True))}) for row in cells]


def _converted(cells: Sequence[Any], stated: Column, column: ExportColumn) -> Sequence[Any]:
    """Return the cells of a metric in the unit of the table's column."""
    assert stated.unit is not None
    to_si = UNITS[stated.unit].to_si
    convert = float if stated.unit == column.unit else lambda cell: to_si(float(cell))
    if column.type == "numbers":
        return [
            None if cell is None else [convert(one) for one in _as_list(cell)] for cell in cells
        ]
    return [None if cell is None else convert(cell) for cell in cells]


def _as_list(cell: Any) -> list[Any]:
    return cell if isinstance(cell, list) else [cell]


def _facts(view: IndexedRecordSet, header: RecordSetHeader) -> Mapping[str, Any]:
    """Return what is the same for all records of a set, by column."""
    protocol, source = header.protocol, header.source
    return {
        "kind": header.kind,
        "session": header.session,
        "measured_at": source.measured_at,
        "environment": header.environment,
        "protocol_grade": protocol.grade.removeprefix("protocol-"),
        "warmup": protocol.warmup,
        "repetitions": protocol.repetitions,
        "synchronization": protocol.synchronization,
        **_quantity("timer_resolution", protocol.timer_resolution),
        "clock_state": protocol.clock_state,
        "power_state": protocol.power_state,
        **_quantity("measurement_error", protocol.measurement_error),
        "tool": source.tool,
        "source_revision": source.revision,
        "source_file": source.file,
        "source_sha256": source.sha256,
        "source_license": source.license,
        "source_labels": _json(source.labels),
        "importer": source.importer,
        "record_set": view.sha256,
        "path": view.path,
    }


def _quantity(name: str, quantity: Quantity | None) -> dict[str, Any]:
    if quantity is None:
        return {name: None, f"{name}_unit": None}
    return {name: float(quantity.value), f"{name}_unit": quantity.unit}


def _json(value: Mapping[str, Any]) -> str:
    return _ENCODER.encode(dict(value))

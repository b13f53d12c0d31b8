"""From a table to the observations of each operation: values, or every reason why not."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from perfdb_git.errors import InvalidInputError
from perfdb_git.importers.cells import Cell, Fault, RawCell, text_of, verbatim
from perfdb_git.importers.frames import Frame, translated
from perfdb_git.importers.mapping_documents import dimensions_of, upstream_columns
from perfdb_git.importers.repeated_names import repeated_name_faults
from perfdb_git.model.mapping import DimensionSource, MetricSource, OperationMapping, TableMapping
from perfdb_git.model.values import Scalar
from perfdb_git.model.vocabulary import Dimension, Vocabulary
from perfdb_git.operations.queries import value_fault

Item = TypeVar("Item")

_SPREADS = ("std", "population_std")
_POSITIVE_METRICS = ("latency", "energy", "bandwidth", "throughput", "power")


@dataclass(frozen=True, slots=True, kw_only=True)
class BadRow:
    """One reason why one row of a file cannot be imported."""

    file: str
    position: int
    position_word: str
    column: str | None
    reason: str

    def __str__(self) -> str:
        column = "" if self.column is None else f" column {self.column!r}:"
        return f"{self.file}: {self.position_word} {self.position}:{column} {self.reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Observations:
    """Good rows of one operation as parallel columns.

    ``context`` holds what the mapping states for all rows, ``terms`` the string-valued
    dimensions of each row, ``labels`` the upstream cells behind those, ``dimensions`` the
    numeric ones, ``sources`` the source columns, ``bad_rows`` what was left out.
    """

    operation: OperationMapping
    context: Mapping[str, Scalar | None]
    terms: Mapping[str, Sequence[Scalar | None]]
    labels: Mapping[str, Sequence[RawCell]]
    dimensions: Mapping[str, Sequence[Scalar | None]]
    metrics: Sequence[Sequence[int | float]]
    sources: Mapping[str, Sequence[RawCell]]
    row_numbers: Sequence[int]
    bad_rows: Sequence[BadRow]

    def __len__(self) -> int:
        return len(self.row_numbers)

    def select(self, indices: Sequence[int]) -> Observations:
        """Return the observations at these indices, in this order."""

        def of(columns: Mapping[str, Sequence[RawCell]]) -> dict[str, Sequence[RawCell]]:
            return {name: _pick(column, indices) for name, column in columns.items()}

        return replace(
            self,
            terms=of(self.terms),
            labels=of(self.labels),
            dimensions=of(self.dimensions),
            metrics=[_pick(column, indices) for column in self.metrics],
            sources=of(self.sources),
            row_numbers=_pick(self.row_numbers, indices),
        )


def _pick(column: Sequence[Item], indices: Sequence[int]) -> list[Item]:
    return [column[index] for index in indices]


@dataclass(frozen=True, slots=True, kw_only=True)
class Extraction:
    """What one file holds: observations by operation, all bad rows, absent operations."""

    observations: tuple[Observations, ...]
    bad_rows: tuple[BadRow, ...]
    absent: tuple[str, ...]


def extract(mapping: TableMapping, frame: Frame, vocabulary: Vocabulary) -> Extraction:
    """Turn a table into observations.

    Raises
    ------
    InvalidInputError
        A column that the mapping names is missing, one that it does not name is there, or a
        path variable gives an illegal value. Bad rows are returned, not raised.
    """
    present = _present_operations(mapping, frame)
    frame = frame.with_derived(mapping.derived)
    everywhere = _uncovered(mapping, present, frame)
    results = [
        _Reader(mapping, operation, frame, vocabulary).read(everywhere) for operation in present
    ]
    bad_rows = dict.fromkeys(everywhere)
    for result in results:
        bad_rows.update(dict.fromkeys(result.bad_rows))
    absent = tuple(_name(o) for o in mapping.operations if o not in present)
    ordered = sorted(bad_rows, key=lambda row: row.position)
    return Extraction(observations=tuple(results), bad_rows=tuple(ordered), absent=absent)


def _name(operation: OperationMapping) -> str:
    keys = ", ".join(str(value) for value in operation.keys.values())
    return f"{operation.operation} ({keys})" if keys else operation.operation


def _present_operations(mapping: TableMapping, frame: Frame) -> list[OperationMapping]:
    """Return the operations whose columns are there; refuse missing and unmentioned columns."""
    columns = frame.table.columns.keys()
    present: list[OperationMapping] = []
    missing = {name for name in mapping.source_columns if name not in columns}
    mentioned = set(mapping.source_columns)
    for operation in mapping.operations:
        needed = upstream_columns(mapping, operation)
        mentioned |= needed
        own = {metric.column for metric in operation.metrics}
        if operation.optional and not own & columns:
            continue
        present.append(operation)
        missing |= needed - columns
    if missing:
        shown = ", ".join(repr(name) for name in sorted(missing))
        raise InvalidInputError(
            f"lacks the columns {shown} that mapping {mapping.name!r} names",
            code="missing-column",
            document=frame.table.document,
            remedy="use the mapping that was made for this table",
        )
    unmentioned = [name for name in columns if name not in mentioned]
    if unmentioned:
        shown = ", ".join(repr(name) for name in unmentioned)
        raise InvalidInputError(
            f"has the columns {shown} that mapping {mapping.name!r} does not mention",
            code="unmentioned-column",
            document=frame.table.document,
            remedy="map them, or list them in source_columns or ignored_columns",
        )
    return present


def _rows_of(operation: OperationMapping, frame: Frame) -> list[int]:
    """Return the indices of the rows that are observations of an operation."""
    rows: Iterable[int] = range(len(frame))
    for name, text in operation.when.items():
        cells = frame.raw(name)
        rows = [row for row in rows if text_of(cells[row]) == text]
    for name in operation.when_present:
        cells = frame.raw(name)
        rows = [row for row in rows if cells[row] is not None]
    return list(rows)


def _bad_row(frame: Frame, index: int, column: str | None, reason: str) -> BadRow:
    table = frame.table
    position = table.positions[index]
    return BadRow(
        file=table.document,
        position=position,
        position_word=table.position_word,
        column=column,
        reason=reason,
    )


def _uncovered(
    mapping: TableMapping, present: Sequence[OperationMapping], frame: Frame
) -> list[BadRow]:
    """Return broken rows, rows that no operation takes, and measurements that none takes."""
    table = frame.table
    bad_rows = [
        BadRow(
            file=table.document,
            position=broken.position,
            position_word=table.position_word,
            column=None,
            reason=broken.reason,
        )
        for broken in table.broken
    ]
    taken: set[int] = set()
    by_column: dict[str, set[int]] = {}
    for operation in present:
        rows = _rows_of(operation, frame)
        taken.update(rows)
        for metric in operation.metrics:
            by_column.setdefault(metric.column, set()).update(rows)
    for index in range(len(frame)) if len(taken) < len(frame) else ():
        if index not in taken:
            reason = "is an observation of no operation of the mapping"
            bad_rows.append(_bad_row(frame, index, None, reason))
    for column, rows_taken in by_column.items():
        if len(rows_taken) == len(frame) or column not in table.columns:
            continue
        for index, cell in enumerate(frame.raw(column)):
            if cell is not None and index in taken and index not in rows_taken:
                reason = "is not empty, but the row is no observation of its operation"
                bad_rows.append(_bad_row(frame, index, column, reason))
    return bad_rows


class _Reader:
    """Reads the observations of one operation."""

    def __init__(
        self,
        mapping: TableMapping,
        operation: OperationMapping,
        frame: Frame,
        vocabulary: Vocabulary,
    ) -> None:
        self._mapping = mapping
        self._operation = operation
        self._frame = frame.with_derived(operation.derived)
        self._vocabulary = vocabulary
        self._rows = _rows_of(operation, frame)
        self._faults: dict[tuple[int, Fault], None] = {}

    def read(self, everywhere: Sequence[BadRow]) -> Observations:
        """Return the good rows; ``everywhere`` are bad rows of the file that concern all."""
        context: dict[str, Scalar | None] = {"operation": self._operation.operation}
        terms: dict[str, list[Cell]] = {}
        labels: dict[str, Sequence[RawCell]] = {}
        dimensions: dict[str, list[Cell]] = {}
        sources = dimensions_of(self._mapping, self._operation)
        for name in self._order(sources):
            dimension, source = self._vocabulary.dimensions[name], sources[name]
            if source.column is None:
                context[name] = self._constant(name, dimension, source)
            elif dimension.type in ("integer", "number"):
                dimensions[name] = self._numeric(dimension, source)
            else:
                terms[name] = self._textual(dimension, source)
                labels.update(self._labels(source.column))
        metrics = [self._metric(metric) for metric in self._operation.metrics]
        row_sources = self._sources()
        self._note_repeated_names((terms, dimensions, row_sources))
        observations = Observations(
            operation=self._operation,
            context=context,
            terms=terms,  # type: ignore[arg-type]
            labels=labels,
            dimensions=dimensions,  # type: ignore[arg-type]
            metrics=metrics,  # type: ignore[arg-type]
            sources=row_sources,
            row_numbers=_pick(self._frame.table.row_numbers, self._rows),
            bad_rows=(*everywhere, *self._bad_rows()),
        )
        # From here on no column holds a fault: the rows with one are left out.
        return observations.select(self._good_indices()) if self._faults else observations

    def _note_repeated_names(self, columns: Sequence[Mapping[str, Sequence[object]]]) -> None:
        table = self._frame.table
        places = [f"{table.position_word} {table.positions[row]}" for row in self._rows]
        sources = dimensions_of(self._mapping, self._operation)
        for index, fault in repeated_name_faults(self._operation, sources, columns, places):
            self._faults[index, fault] = None

    def _order(self, sources: Mapping[str, DimensionSource]) -> list[str]:
        entry = self._vocabulary.operations[self._operation.operation]
        shape = [name for name in (*entry.shape, *entry.optional) if name in sources]
        return [*shape, *(name for name in sources if name not in shape)]

    def _constant(self, name: str, dimension: Dimension, source: DimensionSource) -> Scalar | None:
        if source.unknown:
            return None
        value = source.value
        if source.variable is not None:
            value = self._frame.variables[source.variable]
            if isinstance(value, str) and dimension.type in ("integer", "number"):
                number = self._frame.numbers(source.variable)[:1]
                value = number[0] if number and not isinstance(number[0], Fault) else value
        fault = None if value is None else value_fault(dimension, value)
        if value is None and name == "device":
            fault = "the device of evidence must be known"
        if fault is not None:
            raise InvalidInputError(
                f"its path gives {name} = {value!r}: {fault}",
                code="bad-path-value",
                document=self._frame.table.document,
            )
        return value

    def _numeric(self, dimension: Dimension, source: DimensionSource) -> list[Cell]:
        name = source.column or ""
        if source.table is not None:
            cells = self._translated(name, source.table)
        else:
            cells = _pick(self._frame.numbers(name), self._rows)
        return self._checked(name, cells, functools.partial(_dimension_fault, dimension))

    def _textual(self, dimension: Dimension, source: DimensionSource) -> list[Cell]:
        name = source.column or ""
        if source.table is not None:
            cells = self._translated(name, source.table)
        else:
            cells = self._any(name)
            if not self._frame.is_derived(name):
                # Only a formula or a table can state an unknown; an empty cell states nothing.
                cells = [Fault(name, "is empty") if cell is None else cell for cell in cells]
        return self._checked(name, cells, functools.partial(_dimension_fault, dimension))

    def _any(self, name: str) -> list[Cell]:
        if self._frame.is_derived(name):
            return _pick(self._frame.numbers(name), self._rows)
        return [None if c is None else text_of(c) for c in _pick(self._frame.raw(name), self._rows)]

    def _translated(self, name: str, table: Mapping[str, Scalar | None]) -> list[Cell]:
        return translated(name, self._any(name), table)

    def _labels(self, name: str) -> dict[str, Sequence[RawCell]]:
        if name in self._frame.table.columns:
            return {name: _pick(self._frame.raw(name), self._rows)}
        return {}

    def _metric(self, metric: MetricSource) -> list[Cell]:
        cells = _pick(self._frame.numbers(metric.column), self._rows)
        return self._checked(metric.column, cells, functools.partial(_metric_fault, metric))

    def _sources(self) -> dict[str, Sequence[RawCell]]:
        table = self._frame.table
        return {
            # Converted over the whole file, so that a set does not depend on its own rows alone.
            name: _pick(verbatim(table.columns[name], is_text=table.is_text), self._rows)
            for name in self._mapping.source_columns
        }

    def _checked(
        self, column: str, cells: list[Cell], judge: Callable[[Cell], str | None]
    ) -> list[Cell]:
        """Note the faults of a column, judging each distinct value once."""
        found: dict[Cell, Fault] = {}
        for cell in set(cells):
            if isinstance(cell, Fault):
                found[cell] = cell
                continue
            reason = None if cell is None else judge(cell)
            if reason is not None:
                found[cell] = Fault(column, reason)
        if found:
            for index, cell in enumerate(cells):
                fault = found.get(cell)
                if fault is not None:
                    self._faults[index, fault] = None
        return cells

    def _bad_rows(self) -> list[BadRow]:
        return [
            _bad_row(self._frame, self._rows[index], fault.column, fault.reason)
            for index, fault in self._faults
        ]

    def _good_indices(self) -> list[int]:
        bad = {index for index, _ in self._faults}
        return [index for index in range(len(self._rows)) if index not in bad]


def _dimension_fault(dimension: Dimension, value: Cell) -> str | None:
    return value_fault(dimension, value)


def _metric_fault(metric: MetricSource, value: Cell) -> str | None:
    if not isinstance(value, int | float):
        return "is not a number"
    if metric.statistic == "count":
        return None if isinstance(value, int) and value > 0 else f"{value} is no count"
    if metric.statistic in _SPREADS or metric.metric not in _POSITIVE_METRICS:
        return None if value >= 0 else f"{value} is negative"
    return None if value > 0 else f"{value} is not positive"

"""Live rows of several record sets side by side: their terms, their numbers, what they measured."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from perfdb_git.model.values import Scalar, plain_number
from perfdb_git.model.vocabulary import Vocabulary
from perfdb_git.operations.units import METRIC_UNITS, UNITS
from perfdb_git.providers.observations import CENTERS
from perfdb_git.storage.record_sets import IndexedRecordSet

if TYPE_CHECKING:
    from numpy.typing import NDArray

    FloatArray: TypeAlias = NDArray[np.float64]
    IntArray: TypeAlias = NDArray[np.int64]

Terms: TypeAlias = tuple[tuple[str, str], ...]
"""String-valued dimensions of a record set, sorted by name, without operation and device."""

_SERIES = frozenset({"operation", "device"})
_MAIN_METRIC = "latency"


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesRows:
    """Rows that count, of record sets of one operation on one device.

    Attributes
    ----------
    record_sets : tuple of IndexedRecordSet
        Where they stand.
    names : tuple of str
        Numeric dimensions, the columns of ``values``.
    terms : tuple of Terms
        Of each record set.
    values : array
        Shape ``(n_rows, n_names)``, NaN where unknown.
    set_of, row_of : array
        Shape ``(n_rows,)``: place in ``record_sets``, and row in that file.
    centers : array
        Shape ``(n_rows,)``: typical value of the main metric in SI units, NaN where unknown.
    spreads : array
        Shape ``(n_rows,)``: standard deviation over typical value, NaN where unknown.
    """

    record_sets: tuple[IndexedRecordSet, ...]
    names: tuple[str, ...]
    terms: tuple[Terms, ...]
    values: FloatArray
    set_of: IntArray
    row_of: IntArray
    centers: FloatArray
    spreads: FloatArray

    def __len__(self) -> int:
        return len(self.row_of)

    def session(self, place: int) -> str:
        """Return the session that measured a row."""
        return self.record_sets[int(self.set_of[place])].header.session

    def coordinates(self, place: int) -> dict[str, Scalar]:
        """Return the context of one row by flat dimension name, operation and device included."""
        header = self.record_sets[int(self.set_of[place])].header
        found: dict[str, Scalar] = {"operation": header.operation, "device": header.device}
        found.update(self.terms[int(self.set_of[place])])
        for name, value in zip(self.names, self.values[place].tolist(), strict=True):
            if value == value:
                found[name] = plain_number(value)
        return found


def numeric_names(
    record_sets: Iterable[IndexedRecordSet], vocabulary: Vocabulary
) -> tuple[str, ...]:
    """Return the numeric dimensions that record sets state, columns first as they stand."""
    found: dict[str, None] = {}
    for record_set in record_sets:
        for column in record_set.header.columns:
            if column.role == "dimension" and _is_matched(column.name, vocabulary):
                found.setdefault(column.name)
        for name, value in record_set.header.context.items():
            if isinstance(value, int | float) and _is_matched(name, vocabulary):
                found.setdefault(name)
    return tuple(found)


def read_rows(
    record_sets: Sequence[IndexedRecordSet],
    vocabulary: Vocabulary,
    *,
    names: Sequence[str] | None = None,
    retracted: bool = False,
) -> SeriesRows:
    """Read the rows of record sets from the index.

    Parameters
    ----------
    record_sets : sequence of IndexedRecordSet
        Of one operation on one device.
    vocabulary : Vocabulary
        Tells which dimensions are matched.
    names : sequence of str or None
        Numeric dimensions to read; ``None`` takes all of them.
    retracted : bool
        Whether to read the rows that do not count instead of those that do.
    """
    columns = numeric_names(record_sets, vocabulary) if names is None else tuple(names)
    parts = [_part(item, columns, retracted) for item in record_sets]
    empty = np.empty(0)
    return SeriesRows(
        record_sets=tuple(record_sets),
        names=columns,
        terms=tuple(terms_of(item, vocabulary) for item in record_sets),
        values=np.concatenate([part[1] for part in parts] or [np.empty((0, len(columns)))]),
        set_of=np.concatenate(
            [np.full(len(part[0]), place) for place, part in enumerate(parts)]
            or [np.empty(0, np.int64)]
        ),
        row_of=np.concatenate([part[0] for part in parts] or [np.empty(0, np.int64)]),
        centers=np.concatenate([part[2] for part in parts] or [empty]),
        spreads=np.concatenate([part[3] for part in parts] or [empty]),
    )


def terms_of(record_set: IndexedRecordSet, vocabulary: Vocabulary) -> Terms:
    """Return the string-valued dimensions that every row of a record set has."""
    context = record_set.header.context
    return tuple(
        sorted(
            (name, value)
            for name, value in context.items()
            if isinstance(value, str) and name not in _SERIES and _is_matched(name, vocabulary)
        )
    )


def main_metric(record_set: IndexedRecordSet) -> tuple[str, str] | None:
    """Return the latency, else the first metric, with the unit that its values are stated in."""
    units = {
        column.name: column.unit
        for column in reversed(record_set.header.columns)
        if column.role == "metric" and column.unit is not None and column.statistic != "count"
    }
    if not units:
        return None
    name = _MAIN_METRIC if _MAIN_METRIC in units else next(reversed(units))
    return name, units[name] or "1"


def si_unit(metric: str, unit: str) -> str:
    """Return the SI unit of a metric that is stated in a unit."""
    return METRIC_UNITS.get(metric, UNITS[unit].si)


def _part(
    record_set: IndexedRecordSet, names: Sequence[str], retracted: bool
) -> tuple[IntArray, FloatArray, FloatArray, FloatArray]:
    live = record_set.live()
    mask = np.ones(record_set.row_count, np.bool_) if live is None else live
    rows = np.flatnonzero(~mask if retracted else mask)
    values = np.full((len(rows), len(names)), np.nan)
    context = record_set.header.context
    for place, name in enumerate(names):
        column = record_set.dimension(name)
        stated = context.get(name)
        if column is not None:
            values[:, place] = column[rows]
        elif isinstance(stated, int | float):
            values[:, place] = stated
    centers, spreads = _measured(record_set)
    return rows, values, centers[rows], spreads[rows]


def _measured(record_set: IndexedRecordSet) -> tuple[FloatArray, FloatArray]:
    """Return typical value (SI) and relative spread of every row, retracted ones included."""
    unknown = np.full(record_set.row_count, np.nan)
    metric = main_metric(record_set)
    if metric is None:
        return unknown, unknown
    name, unit = metric
    statistics = {column.statistic for column in record_set.header.columns if column.name == name}
    if "sample" in statistics:
        centers, spreads = _sampled(record_set, name)
    else:
        centers, spreads = _summarised(record_set, name)
    to_si = UNITS[unit]
    return centers * to_si.numerator / to_si.denominator, spreads


def _summarised(record_set: IndexedRecordSet, name: str) -> tuple[FloatArray, FloatArray]:
    centers = np.full(record_set.row_count, np.nan)
    deviations = np.full(record_set.row_count, np.nan)
    for statistic in CENTERS:
        column = record_set.metric(name, statistic)  # type: ignore[arg-type]
        if column is not None:
            centers = np.where(np.isnan(centers), column, centers)
    for deviation in (record_set.metric(name, "std"), record_set.metric(name, "population_std")):
        if deviation is not None:
            deviations = np.where(np.isnan(deviations), deviation, deviations)
    with np.errstate(divide="ignore", invalid="ignore"):
        return centers, np.where(centers > 0, deviations / centers, np.nan)


def _sampled(record_set: IndexedRecordSet, name: str) -> tuple[FloatArray, FloatArray]:
    centers = np.full(record_set.row_count, np.nan)
    spreads = np.full(record_set.row_count, np.nan)
    for row in range(record_set.row_count):
        samples = record_set.samples(name, row)
        if samples is None or not len(samples):
            continue
        centers[row] = np.median(samples)
        if len(samples) > 1 and centers[row] > 0:
            spreads[row] = np.std(samples, ddof=1) / centers[row]
    return centers, spreads


def _is_matched(name: str, vocabulary: Vocabulary) -> bool:
    dimension = vocabulary.dimensions.get(name)
    return dimension is not None and dimension.matched and name not in _SERIES

"""Values and intervals of many records at once, each as `observations.pool` gives it for one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np

from perfdb_git.analysis.intervals import LARGEST_REACH, LOG_NORMAL_SUMMARY, log_variance
from perfdb_git.analysis.student_t import student_t_quantile
from perfdb_git.model.records import RecordSetHeader
from perfdb_git.operations.units import UNITS
from perfdb_git.providers.observations import CENTERS, quantum_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]

RULE = LOG_NORMAL_SUMMARY


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RecordedValues:
    """Of single records, ``(n,)``: value and bounds in SI units, NaN where there is none."""

    value: Floats
    lower: Floats
    upper: Floats
    count: Floats


def has_summaries_only(header: RecordSetHeader, metric: str) -> bool:
    """Whether rows state one metric only, without raw samples."""
    columns = [column for column in header.columns if column.role == "metric"]
    return all(item.name == metric and item.statistic != "sample" for item in columns)


def recorded_values(
    header: RecordSetHeader, cells: Sequence[tuple[Any, ...]], metric: str, level: float
) -> RecordedValues:
    """Return value and prediction interval of each row by itself.

    Parameters
    ----------
    header : RecordSetHeader
        One for which `has_summaries_only`.
    cells : sequence of tuple
        The rows as their Git object states them.
    metric : str
        Name of the metric.
    level : float
        Coverage asked of the intervals.

    Notes
    -----
    The same operations in the same order as `observe`, `pool` and `summary_prediction`, with the
    standard library's exponential and logarithm for each row: the results agree in every bit.
    """
    columns = list(zip(*cells, strict=True))
    found: dict[str, Floats] = {}
    unit = ""
    for place, column in enumerate(header.columns):
        if column.role == "metric" and column.name == metric and column.statistic is not None:
            found[column.statistic] = np.array(columns[place], np.float64)
            unit = column.unit if column.statistic != "count" and column.unit else unit
    nothing = np.full(len(cells), np.nan)
    value = np.asarray(UNITS[unit].to_si(cast(Any, _first(found, CENTERS, nothing))))
    count = found.get("count", nothing)
    stated = header.protocol.repetitions
    count = np.where(np.isnan(count), np.nan if stated is None else stated, count)
    variance = _variance(found, count, nothing)
    with np.errstate(invalid="ignore"):
        known = (count >= 2) & ~np.isnan(variance) & (value > 0)
    lower, upper = nothing.copy(), nothing.copy()
    some = np.flatnonzero(known)
    lower[some], upper[some] = _bounds(
        value[some], variance[some], count[some], level, quantum_of(header, metric)
    )
    return RecordedValues(
        value=value, lower=lower, upper=upper, count=np.where(known, count, np.nan)
    )


def _first(found: dict[str, Floats], names: Sequence[str], nothing: Floats) -> Floats:
    result = nothing
    for name in reversed(names):
        if name in found:
            result = np.where(np.isnan(found[name]), result, found[name])
    return result


def _variance(found: dict[str, Floats], count: Floats, nothing: Floats) -> Floats:
    mean = _first(found, ("mean", "median"), nothing)
    with np.errstate(divide="ignore", invalid="ignore"):
        population = found.get("population_std", nothing) * np.sqrt(count / (count - 1))
        deviation = found.get("std", nothing)
        deviation = np.where(np.isnan(deviation), population, deviation)
        usable = (count >= 2) & (mean > 0) & ~np.isnan(deviation)
    result = nothing.copy()
    pairs = zip(deviation[usable].tolist(), mean[usable].tolist(), strict=True)
    result[usable] = [log_variance(*pair) for pair in pairs]
    return result


def _bounds(
    center: Floats, variance: Floats, count: Floats, level: float, quantum: float | None
) -> tuple[Floats, Floats]:
    distinct, places = np.unique(count, return_inverse=True)
    factors = np.array([student_t_quantile((1 + level) / 2, int(n) - 1) for n in distinct])
    reach = factors[places] * np.sqrt(variance * (1 + 1 / count))
    reach = np.minimum(reach, LARGEST_REACH)
    half = quantum / 2 if quantum is not None else 0.0
    lower = np.minimum(center * _exponentials(-reach), center - half)
    upper = np.maximum(center * _exponentials(reach), center + half)
    return np.maximum(0.0, lower), upper


def _exponentials(values: Floats) -> Floats:
    return np.array([math.exp(value) for value in values.tolist()], np.float64)

"""Verified rows as observations of one metric, and their pooling over repeats and sessions."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from perfdb_git.analysis.intervals import (
    LOG_NORMAL_REPEATS,
    LOG_NORMAL_TWO_LEVEL,
    grouped_prediction,
    log_variance,
    order_statistics_prediction,
    summary_prediction,
)
from perfdb_git.analysis.mean_intervals import two_level_mean
from perfdb_git.model.estimate import MetricEstimate, Uncertainty
from perfdb_git.model.records import RecordSetHeader
from perfdb_git.model.values import JsonValue
from perfdb_git.operations.units import METRIC_UNITS, UNITS

CENTERS = ("median", "mean", "p50", "min")
"""Statistics that can stand for the typical value, best first; ``min`` is a last resort."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What one record says of one metric, in SI units.

    ``variance`` is the sample variance of ln x over the record's own runs, where known.
    """

    session: str
    center: float
    statistic: str
    samples: tuple[float, ...]
    count: int | None
    variance: float | None
    quantum: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pooled:
    """One metric over all matching records.

    ``levels`` says that samples of several records, such as processes, were pooled, and where their
    spread lies.
    """

    estimate: MetricEstimate
    session_centers: Mapping[str, float]
    statistics: tuple[str, ...]
    spread_known: bool
    notes: tuple[str, ...]
    levels: str | None = None

    @property
    def disagreement(self) -> float:
        """Largest over smallest session median, minus 1."""
        values = self.session_centers.values()
        smallest = min(values)
        return max(values) / smallest - 1 if smallest > 0 else math.inf


def metric_names(header: RecordSetHeader) -> list[str]:
    """Return the metrics of a record set, each once, in column order."""
    names = [column.name for column in header.columns if column.role == "metric"]
    return list(dict.fromkeys(names))


def observe(header: RecordSetHeader, cells: Sequence[JsonValue], metric: str) -> Observation | None:
    """Read one metric of one verified row; ``None`` where the row has no value for it.

    Parameters
    ----------
    header : RecordSetHeader
        Header of the row's record set.
    cells : Sequence[JsonValue]
        The row as its Git object states it, one cell a column.
    metric : str
        Name of the metric.
    """
    found: dict[str, JsonValue] = {}
    unit = ""
    for column, cell in zip(header.columns, cells, strict=True):
        if column.role == "metric" and column.name == metric and column.statistic is not None:
            found[column.statistic] = cell
            unit = column.unit if column.statistic != "count" and column.unit else unit
    to_si = UNITS[unit].to_si
    samples = tuple(to_si(value) for value in _numbers(found.get("sample")))
    statistic = next((name for name in CENTERS if found.get(name) is not None), None)
    if not samples and statistic is None:
        return None
    if samples:
        center, statistic = statistics.median(samples), "sample"
    else:
        assert statistic is not None
        center = to_si(_number(found[statistic]))
    count = len(samples) or _run_count(header, found)
    return Observation(
        session=header.session,
        center=center,
        statistic=statistic or "sample",
        samples=samples,
        count=count,
        variance=_summary_variance(found, count),
        quantum=quantum_of(header, metric),
    )


def _numbers(cell: JsonValue) -> list[float]:
    if cell is None:
        return []
    if isinstance(cell, list | tuple):
        return [_number(value) for value in cell]
    return [_number(cell)]


def _number(cell: JsonValue) -> float:
    if isinstance(cell, bool) or not isinstance(cell, int | float):
        raise TypeError(f"{cell!r} is not a number")
    return cell


def _run_count(header: RecordSetHeader, found: Mapping[str, JsonValue]) -> int | None:
    stated = found.get("count")
    if stated is not None:
        return int(_number(stated))
    return header.protocol.repetitions


def _summary_variance(found: Mapping[str, JsonValue], count: int | None) -> float | None:
    """Return the sample variance of ln x from a row's standard deviation, where it has one."""
    mean = next((found[name] for name in ("mean", "median") if found.get(name) is not None), None)
    if mean is None or count is None or count < 2 or _number(mean) <= 0:
        return None
    if found.get("std") is not None:
        return log_variance(_number(found["std"]), _number(mean))
    if found.get("population_std") is not None:
        deviation = _number(found["population_std"]) * math.sqrt(count / (count - 1))
        return log_variance(deviation, _number(mean))
    return None


def quantum_of(header: RecordSetHeader, metric: str) -> float | None:
    """Return the timer's resolution in seconds, where the metric is a time and it is known."""
    resolution = header.protocol.timer_resolution
    if resolution is None or metric != "latency":
        return None
    return UNITS[resolution.unit].to_si(resolution.value)


def pool(observations: Sequence[Observation], unit: str, level: float) -> Pooled:
    """Pool observations: the median of session medians, with one prediction interval.

    Parameters
    ----------
    observations : Sequence[Observation]
        At least one, over one or more sessions.
    unit : str
        SI unit of the metric.
    level : float
        Coverage asked of the interval.
    """
    sessions: dict[str, list[Observation]] = {}
    for observation in observations:
        sessions.setdefault(observation.session, []).append(observation)
    centers = {name: session_center(group) for name, group in sorted(sessions.items())}
    uncertainty, notes = _uncertainty(sessions, centers, level)
    value = statistics.median(centers.values())
    return Pooled(
        estimate=MetricEstimate(value=value, unit=unit, uncertainty=uncertainty),
        session_centers=centers,
        statistics=tuple(sorted({item.statistic for item in observations})),
        spread_known=uncertainty is not None,
        notes=notes,
        levels=_levels(sessions),
    )


def _levels(sessions: Mapping[str, Sequence[Observation]]) -> str | None:
    """Say how far samples of one record are from standing for others', in one session."""
    records = [item for group in sessions.values() for item in group]
    if len(sessions) > 1 or min(len(item.samples) for item in records) < 2:
        return None
    # The level is that of an interval which is not reported.
    found = two_level_mean([item.samples for item in records], 0.5)
    if found is None or found.mean <= 0:
        return None
    between, within = (
        math.sqrt(variance) / found.mean
        for variance in (found.between_variance, found.within_variance)
    )
    return (
        f"its interval takes the samples of {len(records)} records for independent; the spread "
        f"between records is {between:.2%} and within them {within:.2%}"
    )


def session_center(group: Sequence[Observation]) -> float:
    """Return the typical value of one session from its records of one metric, at least one."""
    samples = [sample for item in group for sample in item.samples]
    if samples and all(item.samples for item in group):
        return statistics.median(samples)
    return statistics.median(item.center for item in group)


def _uncertainty(
    sessions: Mapping[str, Sequence[Observation]], centers: Mapping[str, float], level: float
) -> tuple[Uncertainty | None, tuple[str, ...]]:
    everything = [item for group in sessions.values() for item in group]
    if min(centers.values()) <= 0:
        return None, ("a value of zero has no log-normal interval",)
    if len(sessions) > 1:
        return _grouped(list(centers.values()), everything, level, LOG_NORMAL_TWO_LEVEL)
    samples = [sample for item in everything for sample in item.samples]
    if samples and all(item.samples for item in everything):
        return order_statistics_prediction(samples, level), ()
    if len(everything) > 1:
        return _grouped([item.center for item in everything], everything, level, LOG_NORMAL_REPEATS)
    return _single(everything[0], level)


def _grouped(
    centers: Sequence[float], everything: Sequence[Observation], level: float, rule: str
) -> tuple[Uncertainty | None, tuple[str, ...]]:
    variances = [item.variance for item in everything if item.variance is not None]
    counts = [item.count for item in everything if item.count is not None]
    notes = () if variances else ("the spread of single runs is unknown; only repeats are counted",)
    uncertainty = grouped_prediction(
        centers,
        statistics.fmean(variances) if variances else 0.0,
        level,
        sample_count=sum(counts) if len(counts) == len(everything) else None,
        quantum=max(
            (item.quantum for item in everything if item.quantum is not None), default=None
        ),
        rule=rule,
    )
    return uncertainty, notes


def _single(observation: Observation, level: float) -> tuple[Uncertainty | None, tuple[str, ...]]:
    if observation.variance is None or observation.count is None:
        return None, ()
    uncertainty = summary_prediction(
        observation.center,
        observation.variance,
        observation.count,
        level,
        quantum=observation.quantum,
    )
    return uncertainty, ("runs are taken as log-normal around the recorded median",)


def si_unit(metric: str, header: RecordSetHeader) -> str:
    """Return the SI unit in which a metric is reported."""
    if metric in METRIC_UNITS:
        return METRIC_UNITS[metric]
    units = [column.unit for column in header.columns if column.name == metric and column.unit]
    return UNITS[units[0]].si

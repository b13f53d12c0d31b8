"""What benchmark frameworks share: a name, a latency, and samples or a summary of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean

from perfdb_git.importers.cells import RawCell
from perfdb_git.importers.source_text import refuse
from perfdb_git.importers.tool_results import (
    UNKNOWN_PROTOCOL,
    MetricCell,
    MetricColumn,
    Point,
    Remark,
    finite,
)
from perfdb_git.model.records import MeasurementProtocol
from perfdb_git.model.values import Scalar

CALL_RETURNS = "the call returns"
SUMMARY_ONLY = "summary-only"
_TOLERANCE = 1e-3


def samples_column(unit: str = "s", name: str = "latency") -> MetricColumn:
    """Return the column of raw samples."""
    return MetricColumn(name, "sample", unit)


def require_mean(samples: Sequence[float], mean: object, place: str, document: str) -> None:
    """Refuse samples that have another mean than the one stated beside them: another unit's.

    Raises
    ------
    InvalidInputError
        'contradiction'.
    """
    stated = finite(mean)
    if not samples or stated is None:
        return
    found = fmean(samples)
    if abs(found - stated) > _TOLERANCE * abs(stated):
        text = f"its samples have a mean of {found:.6g}, and it states {stated:.6g}"
        refuse(document, text, "contradiction", pointer=place)


def summary_metrics(
    found: Mapping[str, object], unit: str, *, name: str = "latency", count: int | None
) -> dict[MetricColumn, MetricCell]:
    """Return the columns of a summary without samples.

    Parameters
    ----------
    found : mapping
        Of mean, median, min, max and std, whatever is there.
    unit : str
        Their unit.
    name : str
        Of the metric.
    count : int or None
        Runs behind it. One run has no spread: a standard deviation of zero there says nothing.
    """
    metrics: dict[MetricColumn, MetricCell] = {}
    for statistic in ("mean", "median", "min", "max", "std"):
        if statistic in found:
            value = finite(found[statistic])
            if statistic == "std" and (count is None or count < 2):
                value = value or None
            metrics[MetricColumn(name, statistic, unit)] = value
    if count is not None:
        metrics[MetricColumn(name, "count", "1")] = count
    return metrics


def benchmark_point(
    place: str,
    name: str,
    metrics: Mapping[MetricColumn, MetricCell],
    *,
    protocol: MeasurementProtocol = UNKNOWN_PROTOCOL,
    dimensions: Mapping[str, Scalar | None] | None = None,
    sources: Mapping[str, RawCell] | None = None,
    null_reasons: Mapping[str, str] | None = None,
) -> Point:
    """Return the record of a named benchmark."""
    return Point(
        place=place,
        operation="benchmark",
        dimensions={"benchmark": name, **(dimensions or {})},
        metrics=metrics,
        sources=sources or {},
        protocol=protocol,
        null_reasons=null_reasons or {},
    )


def protocol_of(
    *, warmup: int | None, repetitions: int | None, notes: Sequence[str] = ()
) -> MeasurementProtocol:
    """Return the protocol of a benchmark that ends when its call returns."""
    return replace(
        UNKNOWN_PROTOCOL,
        warmup=warmup,
        repetitions=repetitions or None,
        synchronization=CALL_RETURNS,
        notes=tuple(notes),
    )


def summary_remark(places: Sequence[str]) -> tuple[Remark, ...]:
    """Return the remark that there are no samples, hence no interval from order statistics."""
    if not places:
        return ()
    text = f"{places[0]} and {len(places) - 1} more" if len(places) > 1 else places[0]
    return (Remark(code=SUMMARY_ONLY, text=f"{text}: a summary without samples"),)

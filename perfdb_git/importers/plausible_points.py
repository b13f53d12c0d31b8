"""What no tool can have measured, whatever its layout: read wrongly, or printed wrongly.

Every importer's points pass here. A negative value, and a summary out of order (a minimum above the
median), say that columns or units are not those that were taken for them: bad rows. A typical time
of zero is one that was not measured, and is stored as unknown with its reason.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from statistics import median

from perfdb_git.importers.tool_results import MetricCell, MetricColumn, Point, ToolResult

_ASCENDING = (
    ("min", "median"),
    ("min", "mean"),
    ("median", "max"),
    ("mean", "max"),
    ("min", "max"),
)
_PRINTED = 1e-3
"""Statistics of one row are rounded to different digits."""

_LARGEST = 2**53 - 1
_TIME = "latency"
_ZERO = "the tool states a time of zero, which is none that was measured"


def plausible(result: ToolResult) -> ToolResult:
    """Return a result with its impossible points among the bad rows, and no times of zero.

    Parameters
    ----------
    result : ToolResult
        As an importer reads it.

    Raises
    ------
    TypeError
        For a fact of the machine that is no text.
    """
    for name in ("driver", "kernel", "operating_system", "processor"):
        fact = getattr(result.environment, name)
        if fact is not None and not isinstance(fact, str):
            raise TypeError(f"the {name} is {fact!r}, no text")
    points: list[Point] = []
    bad: list[str] = []
    for point in result.points:
        fault = next(_faults(point.metrics), None)
        if fault is None:
            points.append(_without_zero(point))
        else:
            bad.append(f"{point.place}: {fault}")
    return replace(result, points=points, bad_rows=(*result.bad_rows, *bad))


def _faults(metrics: Mapping[MetricColumn, MetricCell]) -> Iterator[str]:
    stated: dict[str, dict[str, float]] = {}
    for column, cell in metrics.items():
        for value in _values(cell):
            if not math.isfinite(value) or (value > _LARGEST and column.statistic == "count"):
                yield f"{column.name} {column.statistic} is {value:g}: no number of evidence"
            if value < 0:
                yield f"{column.name} {column.statistic} is {value:g} {column.unit}: negative"
        if isinstance(cell, int | float):
            stated.setdefault(column.name, {})[column.statistic] = cell
    for name, found in stated.items():
        for low, high in _ASCENDING:
            if low in found and high in found and found[low] > found[high] * (1 + _PRINTED):
                yield f"{name}: the {low} {found[low]:g} is above the {high} {found[high]:g}"


def _without_zero(point: Point) -> Point:
    times = {column: cell for column, cell in point.metrics.items() if column.name == _TIME}
    typical = [
        median(_values(cell))
        for column, cell in times.items()
        if column.statistic in ("sample", "mean", "median") and cell is not None
    ]
    if not typical or max(typical) > 0:
        return point
    return replace(
        point,
        metrics={**point.metrics, **dict.fromkeys(times)},
        null_reasons={**point.null_reasons, _TIME: _ZERO},
    )


def _values(cell: MetricCell) -> tuple[float, ...]:
    if cell is None:
        return ()
    return cell if isinstance(cell, tuple) else (cell,)

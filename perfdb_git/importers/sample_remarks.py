"""What is odd about imported samples and times: said at the import, and all of it kept."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median

from perfdb_git.analysis.sample_flags import (
    OUTLIER_SCORE,
    modes,
    modes_text,
    modified_z_scores,
    sample_flags,
)
from perfdb_git.importers.record_sets import NewRecordSet
from perfdb_git.importers.tool_results import MetricColumn, Point, Remark, ToolResult
from perfdb_git.providers.held_clocks import held_clocks_of_set


def time_remarks(result: ToolResult) -> list[Remark]:
    """Say that a time cannot be put in order, where its zone is unknown."""
    if result.time is None or result.time.utc is not None:
        return []
    text = f"the time {result.time.text!r} has no zone; --set zone=… makes an instant of it"
    return [Remark(code="zone-unknown", text=text)]


def sample_remarks(points: Sequence[Point]) -> list[Remark]:
    """Flag what is odd about samples; they are all kept."""
    remarks = _process_remarks(points)
    for point in points:
        for column, cell in point.metrics.items():
            if isinstance(cell, tuple) and len(cell) > 1:
                flags = sample_flags(cell)
                if _cold_first(cell, point):
                    text = "the first sample stands out most and the warm-up is unknown; it is kept"
                    remarks.append(Remark(code="cold-first", text=f"{point.place}: {text}"))
                remarks += [
                    Remark(
                        code="odd-samples",
                        text=f"{point.place}: {column.name}: {text}; all samples are kept",
                    )
                    for text in flags.texts(column.unit)
                ]
    return remarks


def clock_texts(record_sets: Iterable[NewRecordSet]) -> tuple[str, ...]:
    """Say of which record sets the device held its clock down, and how that is known."""
    return tuple(
        f"{item.header.operation}: {text}; all records are kept"
        for item in record_sets
        for text in held_clocks_of_set(item.sha256, item.header, item.rows)
    )


def _process_remarks(points: Sequence[Point]) -> list[Remark]:
    """Flag what is odd about repeats of one point, such as processes, by their medians."""
    repeats: dict[tuple[MetricColumn, tuple[str, ...]], list[float]] = {}
    for point in points:
        for column, cell in point.metrics.items():
            if isinstance(cell, tuple):
                key = column, tuple(sorted(map(str, point.dimensions.items())))
                repeats.setdefault(key, []).append(median(cell))
    remarks = []
    for (column, _), medians in repeats.items():
        found = modes(medians)
        if found is not None:
            text = f"{column.name}: {modes_text(found, 'records', column.unit)}; all are kept"
            remarks.append(Remark(code="two-modes", text=text))
    return remarks


def _cold_first(samples: Sequence[float], point: Point) -> bool:
    """Say whether the first sample is the furthest outlier and no warm-up is known."""
    scores = modified_z_scores(samples)
    if scores is None or point.protocol.warmup:
        return False
    furthest = max(abs(score) for score in scores)
    return furthest > OUTLIER_SCORE and abs(scores[0]) == furthest

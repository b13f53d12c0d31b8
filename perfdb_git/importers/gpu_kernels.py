"""What profilers of device kernels share: one record a kernel, profiled, never measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from perfdb_git.importers.cells import RawCell
from perfdb_git.importers.tool_results import (
    UNKNOWN_PROTOCOL,
    MetricCell,
    MetricColumn,
    Point,
    Remark,
)
from perfdb_git.model.values import Scalar

OVERHEAD = "a profiler was attached, which adds to the time"
_PROTOCOL = replace(
    UNKNOWN_PROTOCOL,
    synchronization="the profiler's device timestamps",
    notes=(OVERHEAD,),
)


def kernel_point(
    place: str,
    name: str,
    metrics: Mapping[MetricColumn, MetricCell],
    *,
    launch: Mapping[str, str | None] | None = None,
    sources: Mapping[str, RawCell] | None = None,
    null_reasons: Mapping[str, str] | None = None,
) -> Point:
    """Return the record of a kernel; ``launch`` are its grid and block, where they are known."""
    dimensions: dict[str, Scalar | None] = {"kernel": name}
    dimensions |= {key: text for key, text in (launch or {}).items() if text is not None}
    return Point(
        place=place,
        operation="gpu_kernel",
        dimensions=dimensions,
        metrics=metrics,
        sources=sources or {},
        protocol=_PROTOCOL,
        null_reasons=null_reasons or {},
    )


def overhead_remark(summary: bool) -> tuple[Remark, ...]:
    """Return what the user should know of times under a profiler."""
    remarks = [Remark(code="profiler-overhead", text=OVERHEAD)]
    if summary:
        text = "a summary without samples: no interval from order statistics"
        remarks.append(Remark(code="summary-only", text=text))
    return tuple(remarks)


def repeated_kernels(points: Sequence[Point]) -> Iterator[str]:
    """Yield the kernels that stand twice: a summary has one row a kernel."""
    first: dict[tuple[object, ...], str] = {}
    for point in points:
        key = tuple(point.dimensions.items())
        if first.setdefault(key, point.place) != point.place:
            yield (
                f"{point.place}: {point.dimensions['kernel']} stands at {first[key]} too: two "
                "kernels of one name, or two summaries"
            )


def extent(sizes: Sequence[object]) -> str | None:
    """Return ``x by y by z`` as text, or None where one of them is unknown."""
    if len(sizes) != 3 or not all(str(size).isdigit() for size in sizes):
        return None
    return "x".join(str(size) for size in sizes)

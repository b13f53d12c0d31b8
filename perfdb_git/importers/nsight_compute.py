"""Nsight Compute's ``--csv`` table of details: one line for each launch and metric.

By default the tool locks the clocks at their base, so its times are not those of free runs; whether
it did is not in the file. Progress lines may stand around the table, numbers may be grouped.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from perfdb_git.importers.gpu_kernels import extent, kernel_point, overhead_remark
from perfdb_git.importers.layouts import grouped_number
from perfdb_git.importers.source_text import SourceText, refuse
from perfdb_git.importers.tool_results import (
    Environment,
    MetricCell,
    MetricColumn,
    Point,
    ReadingFacts,
    Remark,
    ToolImporter,
    ToolResult,
)

_NEEDED = ("ID", "Kernel Name", "Metric Name", "Metric Unit", "Metric Value")
_DURATIONS = ("Duration", "gpu__time_duration.sum")
_CLOCKS = ("SM Frequency", "smsp__cycles_elapsed.avg.per_second")
_TIME_UNITS: Mapping[str, int] = {
    "nsecond": 1,
    "ns": 1,
    "usecond": 10**3,
    "us": 10**3,
    "msecond": 10**6,
    "ms": 10**6,
    "second": 10**9,
    "s": 10**9,
}
_CLOCK_UNITS: Mapping[str, float] = {
    "cycle/nsecond": 1e9,
    "cycle/usecond": 1e6,
    "cycle/second": 1.0,
    "Ghz": 1e9,
    "GHz": 1e9,
    "Mhz": 1e6,
    "MHz": 1e6,
    "hz": 1.0,
    "Hz": 1.0,
}
_LATENCY = MetricColumn("latency", "sample", "ns")
_CLOCK = MetricColumn("sm_clock", "sample", "Hz")


@dataclass(slots=True, kw_only=True)
class _Launch:
    line: int
    name: str
    grid: str | None
    block: str | None
    duration: float | None = None
    clock: float | None = None
    others: set[str] = field(default_factory=set)


def _top(source: SourceText) -> int | None:
    for place, line in enumerate(source.head.split("\n")):
        cells = [cell.strip().strip('"') for cell in line.split(",")]
        if set(_NEEDED) <= set(cells):
            return place
    return None


def _recognises(source: SourceText) -> bool:
    return '"Kernel Name"' in source.head and _top(source) is not None


def _read(source: SourceText, facts: ReadingFacts) -> ToolResult:
    top = _top(source)
    if top is None:
        refuse(
            source.document,
            "has no table of metrics",
            "unknown-layout",
            remedy="write it with ncu --csv --page details",
        )
    rows = source.csv_rows(top)
    header = rows[0][1]
    launches: dict[str, _Launch] = {}
    hosts: set[str] = set()
    for line, cells in rows[1:]:
        if len(cells) != len(header) or not cells[0].isdigit():
            continue  # progress, which stands around the table
        row = dict(zip(header, cells, strict=True))
        hosts.add(row.get("Host Name", ""))
        item = launches.setdefault(
            row["ID"],
            _Launch(
                line=line,
                name=row["Kernel Name"],
                grid=_extent(row.get("Grid Size", "")),
                block=_extent(row.get("Block Size", "")),
            ),
        )
        _take(item, row, source.document, line)
    points, skipped = _points(list(launches.values()))
    others = {name for item in launches.values() for name in item.others}
    clocks = "whether the clocks were locked at their base is not in the file"
    return ToolResult(
        tool="nsight-compute",
        revision=None,
        kind="profiled",
        points=points,
        environment=Environment(hosts=tuple(sorted(hosts - {""}))),
        skipped=tuple(skipped),
        remarks=(
            *overhead_remark(summary=False),
            Remark(code="clock-control", text=clocks),
            Remark(code="metrics-left-out", text=f"{len(others)} other metrics are not stored"),
        ),
    )


def _extent(text: str) -> str | None:
    return extent(re.findall(r"\d+", text))


def _take(item: _Launch, row: Mapping[str, str], document: str, line: int) -> None:
    name, unit = row["Metric Name"], row["Metric Unit"]
    value = grouped_number(row["Metric Value"])
    if name in _DURATIONS:
        factor = _TIME_UNITS.get(unit)
        if factor is None:
            refuse(document, f"states {name} in {unit!r}", "unknown-units", line=line)
        item.duration = None if value is None else value * factor
    elif name in _CLOCKS and unit in _CLOCK_UNITS:
        item.clock = None if value is None else value * _CLOCK_UNITS[unit]
    else:
        item.others.add(name)


def _points(launches: Sequence[_Launch]) -> tuple[list[Point], list[str]]:
    """Gather launches of one kernel, grid and block in the order of their run."""
    found: dict[tuple[str, str | None, str | None], list[_Launch]] = {}
    skipped: list[str] = []
    for item in launches:
        if item.duration:
            found.setdefault((item.name, item.grid, item.block), []).append(item)
        else:
            skipped.append(f"line {item.line}: {item.name} has no duration")
    points = []
    for (name, grid, block), items in found.items():
        metrics: dict[MetricColumn, MetricCell] = {
            _LATENCY: tuple(item.duration for item in items if item.duration is not None)
        }
        clocks = tuple(item.clock for item in items if item.clock is not None)
        if len(clocks) == len(items):
            metrics[_CLOCK] = clocks
        launch = {"grid": grid, "block": block}
        points.append(kernel_point(f"line {items[0].line}", name, metrics, launch=launch))
    return points, skipped


NSIGHT_COMPUTE = ToolImporter(
    name="nsight-compute",
    version=1,
    summary="Import kernel durations of Nsight Compute: CSV of the details page.",
    recognises=_recognises,
    read=_read,
)

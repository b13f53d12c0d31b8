"""rocprof and rocprofv3: kernel traces with every launch, and kernel statistics.

Times are in ns, which the traces do not say. Grids are counted in work-items and become blocks; the
first rocprof prints them flattened, so its launches are told apart by that number alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from perfdb_git.importers.gpu_kernels import (
    extent,
    kernel_point,
    overhead_remark,
    repeated_kernels,
)
from perfdb_git.importers.layouts import integer, number, require_distinct_columns
from perfdb_git.importers.source_text import SourceText, refuse
from perfdb_git.importers.tool_results import (
    MetricCell,
    MetricColumn,
    Point,
    ReadingFacts,
    ToolImporter,
    ToolResult,
)

_TRACE = frozenset({"Kind", "Kernel_Name", "Start_Timestamp", "End_Timestamp"})
_OLD_TRACE = frozenset({"KernelName", "BeginNs", "EndNs", "grd", "wgr"})
_STATISTICS = ["Name", "Calls", "TotalDurationNs", "AverageNs", "Percentage"]
_AXES = ("X", "Y", "Z")
_SAMPLES = MetricColumn("latency", "sample", "ns")
_INTERFACES = ("hip", "hsa_", "roctx", "rocm")
_TOLERANCE = 0.01


def _header(source: SourceText) -> list[str]:
    line = source.head.split("\n")[0]
    return [cell.strip().strip('"') for cell in line.split(",")]


def _recognises(source: SourceText) -> bool:
    header = _header(source)
    return set(header) >= _TRACE or set(header) >= _OLD_TRACE or header[:5] == _STATISTICS


def _read(source: SourceText, facts: ReadingFacts) -> ToolResult:
    header = _header(source)
    if not _recognises(source):
        refuse(source.document, "is no CSV of rocprof", "unknown-layout")
    require_distinct_columns(header, source.document, 1)
    rows: list[tuple[int, dict[str, str]]] = []
    bad: list[str] = []
    for line, cells in source.csv_rows()[1:]:
        if len(cells) == len(header):
            rows.append((line, dict(zip(header, cells, strict=True))))
        else:
            bad.append(f"line {line}: has {len(cells)} cells, the header {len(header)}")
    is_trace = set(header) >= _TRACE or set(header) >= _OLD_TRACE
    if is_trace:
        points, more = _launches([(line, _as_trace(row)) for line, row in rows])
    else:
        points, more = _summaries(rows, source.document)
        more += repeated_kernels(points)
    return ToolResult(
        tool="rocprof",
        revision=None,
        kind="profiled",
        points=points,
        bad_rows=(*bad, *more),
        remarks=overhead_remark(summary=not is_trace),
    )


def _as_trace(row: Mapping[str, str]) -> Mapping[str, str]:
    """Return a row of the first rocprof with the titles of rocprofv3."""
    if "KernelName" not in row:
        return row
    return {
        "Kind": "KERNEL_DISPATCH",
        "Kernel_Name": row["KernelName"],
        "Start_Timestamp": row["BeginNs"],
        "End_Timestamp": row["EndNs"],
        "Agent_Id": row.get("gpu-id", ""),
        "Work_Items": row["grd"],
        "Work_Group": row["wgr"],
    }


def _launches(rows: Sequence[tuple[int, Mapping[str, str]]]) -> tuple[list[Point], list[str]]:
    """Gather the launches of each kernel, grid, block and agent, in order of their start."""
    found: dict[tuple[str | None, ...], list[tuple[int, int, int]]] = {}
    bad: list[str] = []
    for line, row in rows:
        if row["Kind"] != "KERNEL_DISPATCH":
            continue
        start, end = integer(row["Start_Timestamp"]), integer(row["End_Timestamp"])
        if start is None or end is None or end <= start:
            bad.append(f"line {line}: ends at {row['End_Timestamp']}, not after its start")
            continue
        flat = (row.get("Work_Items"), row.get("Work_Group"))
        key = (row["Kernel_Name"], *_extents(row), row.get("Agent_Id"), *flat)
        found.setdefault(key, []).append((start, end - start, line))
    points = []
    for (name, grid, block, agent, items, group), launches in found.items():
        launches.sort()
        sources = {"agent": agent, "work_items": items, "work_group": group}
        points.append(
            kernel_point(
                f"line {min(line for _, _, line in launches)}",
                str(name),
                {_SAMPLES: tuple(float(duration) for _, duration, _ in launches)},
                launch={"grid": grid, "block": block},
                sources={key: text for key, text in sources.items() if text is not None},
            )
        )
    return points, bad


def _extents(row: Mapping[str, str]) -> tuple[str | None, str | None]:
    items = [integer(row.get(f"Grid_Size_{axis}", "")) for axis in _AXES]
    block = [integer(row.get(f"Workgroup_Size_{axis}", "")) for axis in _AXES]
    grid: list[object] = []
    for count, size in zip(items, block, strict=True):
        # A last block that is not full has no whole number of blocks before it.
        grid.append(count // size if count and size and count % size == 0 else None)
    return extent(grid), extent(block)


def _summaries(
    rows: Sequence[tuple[int, Mapping[str, str]]], document: str
) -> tuple[list[Point], list[str]]:
    names = [row["Name"] for _, row in rows]
    if names and all(name.startswith(_INTERFACES) for name in names):
        refuse(
            document,
            "has the times of calls of the host, not of kernels",
            "unknown-layout",
            remedy="import the statistics of kernels",
        )
    points: list[Point] = []
    bad: list[str] = []
    for line, row in rows:
        count, total = integer(row["Calls"]), number(row["TotalDurationNs"])
        mean = number(row["AverageNs"])
        if not count or not total or not mean or abs(mean * count / total - 1) > _TOLERANCE:
            bad.append(f"line {line}: calls times average is not the total duration")
            continue
        metrics: dict[MetricColumn, MetricCell] = {MetricColumn("latency", "mean", "ns"): mean}
        for title, statistic in (("MinNs", "min"), ("MaxNs", "max")):
            if title in row:
                column = MetricColumn("latency", statistic, "ns")  # type: ignore[arg-type]
                metrics[column] = number(row[title])
        metrics[MetricColumn("latency", "count", "1")] = count
        # Which divisor StdDev has is not documented, so it is no statistic of the record.
        sources = {"StdDev": row["StdDev"]} if "StdDev" in row else {}
        points.append(kernel_point(f"line {line}", row["Name"], metrics, sources=sources))
    return points, bad


ROCPROF = ToolImporter(
    name="rocprof",
    version=1,
    summary="Import kernels of rocprof and rocprofv3: traces or statistics, CSV.",
    recognises=_recognises,
    read=_read,
)

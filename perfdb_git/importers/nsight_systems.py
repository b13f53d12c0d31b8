"""Nsight Systems' kernel summary (``nsys stats``, CSV), by its header.

Column names and units changed between versions and with ``--timeunit``; columns without a unit have
that of the total. Lines before the header are progress messages.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from perfdb_git.importers.gpu_kernels import (
    extent,
    kernel_point,
    overhead_remark,
    repeated_kernels,
)
from perfdb_git.importers.layouts import grouped_number, integer, require_distinct_columns
from perfdb_git.importers.source_text import SourceText, refuse
from perfdb_git.importers.tool_results import (
    MetricCell,
    MetricColumn,
    Point,
    ReadingFacts,
    ToolImporter,
    ToolResult,
)
from perfdb_git.model.records import Statistic

_UNITS = ("ns", "us", "ms", "s")
_TITLE = re.compile(r"^(.*?)\s*(?:\(([^)]*)\))?$")
_STATISTICS: Mapping[str, Statistic] = {
    "Average": "mean",
    "Avg": "mean",
    "Med": "median",
    "Minimum": "min",
    "Min": "min",
    "Maximum": "max",
    "Max": "max",
    "StdDev": "std",
}
_KNOWN = frozenset({*_STATISTICS, "Time", "Total Time", "Instances", "GridXYZ", "BlockXYZ", "Name"})
_TOLERANCE = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class _Header:
    titles: tuple[str, ...]
    unit: str


def _is_header(line: str) -> bool:
    return line.startswith("Time") and "Total Time" in line and "Instances" in line


def _recognises(source: SourceText) -> bool:
    return any(_is_header(line) for line in source.head.split("\n"))


def _read(source: SourceText, facts: ReadingFacts) -> ToolResult:
    tops = [place for place, line in enumerate(source.lines) if _is_header(line)]
    if len(tops) != 1:
        refuse(
            source.document,
            f"holds {len(tops)} kernel summaries",
            "several-runs" if tops else "unknown-layout",
            remedy="write one report: nsys stats --report cuda_gpu_kern_sum --format csv",
        )
    rows = source.csv_rows(tops[0])
    header = _header(rows[0][1], source.document, tops[0] + 1)
    points: list[Point] = []
    bad: list[str] = []
    skipped: list[str] = []
    for line, cells in rows[1:]:
        if len(cells) != len(header.titles):
            bad.append(f"line {line}: has {len(cells)} cells, the header {len(header.titles)}")
            continue
        row = dict(zip(header.titles, cells, strict=True))
        fault = _fault(row)
        if fault is not None:
            bad.append(f"line {line}: {fault}")
        elif integer(row["Instances"]) == 0:
            skipped.append(f"line {line}: {row['Name']} was never launched")
        else:
            points.append(_point(row, header.unit, f"line {line}"))
    return ToolResult(
        tool="nsight-systems",
        revision=None,
        kind="profiled",
        points=points,
        skipped=tuple(skipped),
        bad_rows=(*bad, *repeated_kernels(points)),
        remarks=overhead_remark(summary=True),
    )


def _header(cells: Sequence[str], document: str, line: int) -> _Header:
    matches = [_TITLE.match(cell.strip()) for cell in cells]
    parts = [(match[1], match[2]) for match in matches if match]
    titles = tuple(title for title, _ in parts)
    total = dict(parts).get("Total Time")
    require_distinct_columns(titles, document, line)
    units = {unit for title, unit in parts if title in _STATISTICS and unit is not None}
    if not set(titles) <= _KNOWN or total not in _UNITS or not units <= {total}:
        refuse(
            document,
            f"has columns or units of no known layout: {', '.join(cells)}",
            "unknown-layout",
            line=line,
        )
    return _Header(titles=titles, unit=str(total))


def _fault(row: Mapping[str, str]) -> str | None:
    for title in ("Total Time", "Instances", *(t for t in row if t in _STATISTICS)):
        if grouped_number(row[title]) is None:
            return f"column {title}: {row[title]!r} is not a number"
    total, count = grouped_number(row["Total Time"]), grouped_number(row["Instances"])
    mean = grouped_number(row.get("Average", row.get("Avg", "")))
    if mean and total and count and abs(mean * count / total - 1) > _TOLERANCE:
        return f"mean times instances is {mean * count:.6g}, the total is {total:.6g}"
    return None


def _point(row: Mapping[str, str], unit: str, place: str) -> Point:
    count = int(grouped_number(row["Instances"]) or 0)
    metrics: dict[MetricColumn, MetricCell] = {}
    for title, statistic in _STATISTICS.items():
        if title in row:
            value = grouped_number(row[title])
            # The spread of one run is printed as 0.
            known = not (statistic == "std" and count < 2)
            metrics[MetricColumn("latency", statistic, unit)] = value if known else None
    reasons = {}
    for title in ("Med", "StdDev"):
        if title not in row:
            metrics[MetricColumn("latency", _STATISTICS[title], unit)] = None
            reasons["latency"] = "this version prints no median and no standard deviation"
    metrics[MetricColumn("latency", "count", "1")] = count or None
    launch = {
        "grid": extent(row["GridXYZ"].split()) if "GridXYZ" in row else None,
        "block": extent(row["BlockXYZ"].split()) if "BlockXYZ" in row else None,
    }
    return kernel_point(place, row["Name"], metrics, launch=launch, null_reasons=reasons)


NSIGHT_SYSTEMS = ToolImporter(
    name="nsight-systems",
    version=1,
    summary="Import the kernel summary of Nsight Systems: CSV of nsys stats.",
    recognises=_recognises,
    read=_read,
)

"""STREAM's output, and BabelStream's CSV or text: best rates and times of each kernel.

MB/s is 10⁶ bytes; BabelStream's header follows the unit it was told. Both leave out the first pass.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from perfdb_git.importers.layouts import integer, number
from perfdb_git.importers.source_text import SourceText, refuse
from perfdb_git.importers.tool_results import (
    UNKNOWN_PROTOCOL,
    Environment,
    MetricCell,
    MetricColumn,
    Point,
    ReadingFacts,
    Remark,
    ToolImporter,
    ToolResult,
)
from perfdb_git.model.values import Scalar
from perfdb_git.operations.units import UNITS

_KINDS = {
    "copy": "copy",
    "mul": "scale",
    "scale": "scale",
    "add": "add",
    "triad": "triad",
    "dot": "dot",
}
_ARRAYS = {"copy": 2, "scale": 2, "add": 3, "triad": 3, "dot": 2}
_TYPES = {8: "float64", 4: "float32", 2: "float16"}
_RATE_UNITS = {
    "mbytes": "MB/s",
    "mibytes": "MiB/s",
    "gbytes": "GB/s",
    "gibytes": "GiB/s",
}
_STREAM_ROW = re.compile(r"^(Copy|Scale|Add|Triad):\s+(\S+)\s+(\S+)\s+(\S+)\s+(\S+)\s*$")
_STREAM_HEADER = re.compile(
    r"Function\s+(?:Best Rate MB/s|Rate \(MB/s\))\s+Avg time\s+Min time\s+Max time"
)
_CSV_HEADER = re.compile(
    r"function,num_times,n_elements,sizeof,max_(\w+)_per_sec,min_runtime,max_runtime,avg_runtime"
)
_TEXT_HEADER = re.compile(r"Function\s+(\w+)/sec\s+Min \(sec\)\s+Max\s+Average")
_TOLERANCE = 0.02


def _is_stream(source: SourceText) -> bool:
    return _STREAM_HEADER.search(source.head) is not None


def _is_babel(source: SourceText) -> bool:
    head = source.head
    return _CSV_HEADER.search(head) is not None or _TEXT_HEADER.search(head) is not None


def _found(pattern: str, text: str) -> str | None:
    match = re.search(pattern, text)
    return None if match is None else match[1]


def _point(
    place: str,
    kind: str,
    dimensions: Mapping[str, Scalar | None],
    rate: tuple[str | None, str],
    times: Mapping[str, str],
    passes: int | None,
) -> Point:
    metrics: dict[MetricColumn, MetricCell] = {
        MetricColumn("bandwidth", "max", rate[1]): number(rate[0] or ""),
        **{
            MetricColumn("latency", statistic, "s"): number(text)  # type: ignore[arg-type]
            for statistic, text in times.items()
        },
    }
    return Point(
        place=place,
        operation="stream_kernel",
        dimensions={"stream_kind": kind, **dimensions},
        metrics=metrics,
        protocol=replace(
            UNKNOWN_PROTOCOL,
            warmup=1,
            repetitions=passes - 1 if passes is not None and passes > 1 else None,
            synchronization="host clock around each pass",
        ),
    )


def _fault(point: Point) -> str | None:
    """Say why rate and shortest time are not of the same bytes, or None."""
    cells = {(column.name, column.statistic): cell for column, cell in point.metrics.items()}
    rate, time = cells["bandwidth", "max"], cells["latency", "min"]
    if not isinstance(rate, float) or not isinstance(time, float):
        return "has a rate or time that is not a number"
    unit = next(column.unit for column in point.metrics if column.name == "bandwidth")
    elements, dtype = point.dimensions.get("elements"), point.dimensions.get("dtype")
    sizes = {name: size for size, name in _TYPES.items()}
    if isinstance(elements, int) and dtype in sizes and time > 0:
        moved = _ARRAYS[str(point.dimensions["stream_kind"])] * elements * sizes[str(dtype)]
        if abs(moved / time / UNITS[unit].to_si(rate) - 1) > _TOLERANCE:
            return f"rate and time do not belong to arrays of {elements} elements"
    return None


def _checked(points: Sequence[Point]) -> tuple[list[Point], tuple[str, ...]]:
    faults = [(point, _fault(point)) for point in points]
    good = [point for point, fault in faults if fault is None]
    return good, tuple(f"{point.place}: {fault}" for point, fault in faults if fault is not None)


def _read_stream(source: SourceText, facts: ReadingFacts) -> ToolResult:
    text = source.text
    if not _is_stream(source):
        refuse(source.document, "has no table of STREAM", "unknown-layout")
    if re.search(r"(?i)failed validation", text):
        refuse(source.document, "failed its own validation", "failed-run")
    size = integer(_found(r"uses (\d+) bytes per", text) or "")
    elements = integer(_found(r"Array size = (\d+)", text) or "")
    passes = integer(_found(r"(?:executed|run) (\d+) times", text) or "")
    threads = integer(_found(r"Number of Threads counted = (\d+)", text) or "")
    dimensions: dict[str, Scalar | None] = {"concurrency": threads}
    if size in _TYPES:
        dimensions["dtype"] = _TYPES[size]
    if elements is not None:
        dimensions["elements"] = elements
    points = []
    for line, found in enumerate(map(_STREAM_ROW.match, source.lines), start=1):
        if found:
            times = {"mean": found[3], "min": found[4], "max": found[5]}
            kind = _KINDS[found[1].lower()]
            rate = (found[2], "MB/s")
            points.append(_point(f"line {line}", kind, dimensions, rate, times, passes))
    good, bad = _checked(points)
    validated = "Solution Validates" in text
    return ToolResult(
        tool="stream",
        revision=_found(r"STREAM version \$Revision: (\S+)", text),
        points=good,
        bad_rows=bad,
        remarks=()
        if validated
        else (Remark(code="not-validated", text="the file has no line 'Solution Validates'"),),
    )


def _read_babel(source: SourceText, facts: ReadingFacts) -> ToolResult:
    text = source.text
    csv = _CSV_HEADER.search(text)
    table = _TEXT_HEADER.search(text)
    header = csv or table
    if header is None:
        refuse(source.document, "has no table of BabelStream", "unknown-layout")
    unit = _RATE_UNITS.get(header[1].lower())
    if unit is None:
        refuse(source.document, f"states the unit {header[1]!r}", "unknown-units")
    if "Validation failed" in text:
        refuse(source.document, "failed its own validation", "failed-run")
    points, skipped = (_csv_points if csv else _text_points)(source, unit)
    good, bad = _checked(points)
    device = _found(r"Using \w+ device:? (.+)", text)
    return ToolResult(
        tool="babelstream",
        revision=_found(r"(?m)^Version: (\S+)", text),
        points=good,
        environment=Environment(
            device_names=() if device is None else (device.strip(),),
            driver=_found(r"(?m)^Driver: (\S+)", text),
        ),
        skipped=tuple(skipped),
        bad_rows=bad,
    )


def _csv_points(source: SourceText, unit: str) -> tuple[list[Point], list[str]]:
    top = next(i for i, line in enumerate(source.lines) if _CSV_HEADER.search(line))
    points: list[Point] = []
    skipped: list[str] = []
    for line, cells in source.csv_rows(top + 1):
        if len(cells) != 8:
            continue
        kind = _KINDS.get(cells[0].lower())
        if kind is None:
            skipped.append(f"line {line}: {cells[0]} is no kernel of the vocabulary")
            continue
        size = integer(cells[3])
        dimensions: dict[str, Scalar | None] = {"elements": integer(cells[2])}
        if size in _TYPES:
            dimensions["dtype"] = _TYPES[size]
        times = {"min": cells[5], "max": cells[6], "mean": cells[7]}
        rate = (cells[4], unit)
        points.append(_point(f"line {line}", kind, dimensions, rate, times, integer(cells[1])))
    return points, skipped


def _text_points(source: SourceText, unit: str) -> tuple[list[Point], list[str]]:
    # The array's size is printed in rounded megabytes, so the elements must be stated.
    passes = integer(_found(r"Running (?:\w+ )*?(\d+) times", source.text) or "")
    precision = _found(r"Precision: (\w+)", source.text)
    names = {"double": "float64", "float": "float32"}
    dimensions: dict[str, Scalar | None] = {}
    if precision in names:
        dimensions["dtype"] = names[precision]
    top = next(i for i, line in enumerate(source.lines) if _TEXT_HEADER.search(line))
    points: list[Point] = []
    skipped: list[str] = []
    for place in range(top + 1, len(source.lines)):
        words = source.lines[place].split()
        if len(words) != 5:
            continue
        kind = _KINDS.get(words[0].lower())
        if kind is None:
            skipped.append(f"line {place + 1}: {words[0]} is no kernel of the vocabulary")
            continue
        times = {"min": words[2], "max": words[3], "mean": words[4]}
        rate = (words[1], unit)
        points.append(_point(f"line {place + 1}", kind, dimensions, rate, times, passes))
    return points, skipped


STREAM = ToolImporter(
    name="stream",
    version=1,
    summary="Import memory bandwidths of STREAM.",
    recognises=_is_stream,
    read=_read_stream,
)
BABELSTREAM = ToolImporter(
    name="babelstream",
    version=1,
    summary="Import memory bandwidths of BabelStream: its CSV or text.",
    recognises=_is_babel,
    read=_read_babel,
)

"""The CSV of Google Benchmark: its samples, or its aggregates where there are none.

It states no machine. The CSV of 1.7 prints a wrong coefficient of variation, so ``cv`` is not read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from perfdb_git.importers.google_benchmark_rows import (
    AGGREGATES,
    NOT_FINITE,
    SCALING_REMARK,
    UNITS,
    aggregate_in,
    debug_remark,
    samples_of,
)
from perfdb_git.importers.layouts import (
    number,
    number_fault,
    require_distinct,
    require_distinct_columns,
)
from perfdb_git.importers.named_benchmarks import (
    benchmark_point,
    protocol_of,
    samples_column,
    summary_metrics,
    summary_remark,
)
from perfdb_git.importers.source_text import SourceText, refuse
from perfdb_git.importers.timestamps import StatedTime, stated_time
from perfdb_git.importers.tool_results import (
    MetricCell,
    MetricColumn,
    Point,
    ReadingFacts,
    Remark,
    ToolResult,
)

_CSV_HEADER = ["name", "iterations", "real_time", "cpu_time", "time_unit"]
_DATE = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d")

_CsvRows: TypeAlias = Sequence[tuple[int, Mapping[str, str]]]


def is_csv_header(line: str) -> bool:
    """Return whether a line is the header of the CSV."""
    return line.rstrip("\r").split(",")[:5] == _CSV_HEADER


def _preamble(
    lines: Sequence[str], document: str, facts: ReadingFacts
) -> tuple[StatedTime | None, tuple[Remark, ...]]:
    """Read the lines that ``--benchmark_out`` puts before the header: the time, and warnings."""
    remarks = []
    if any("Library was built as DEBUG" in line for line in lines):
        remarks.append(debug_remark("debug"))
    if any("CPU scaling is enabled" in line for line in lines):
        remarks.append(SCALING_REMARK)
    date = next((line.strip() for line in lines if _DATE.match(line)), None)
    time = None if date is None else stated_time(date, document=document, zone=facts.zone)
    return time, tuple(remarks)


def read_csv(source: SourceText, facts: ReadingFacts) -> ToolResult:
    """Read the rows of a CSV, which states no machine; aggregates are left out."""
    top = next((place for place, line in enumerate(source.lines) if is_csv_header(line)), None)
    if top is None:
        refuse(source.document, "has no header of Google Benchmark", "unknown-layout")
    time, remarks = _preamble(source.lines[:top], source.document, facts)
    rows = source.csv_rows(top)
    header = rows[0][1]
    require_distinct_columns(header, source.document, rows[0][0])
    named: dict[str, list[tuple[int, Mapping[str, str]]]] = {}
    failed: list[str] = []
    for line, cells in rows[1:]:
        if len(cells) != len(header):
            refuse(source.document, "has a row of another width", "broken-table", line=line)
        row = dict(zip(header, cells, strict=True))
        if row.get("error_occurred") == "true":
            failed.append(f"line {line}: {row['name']} failed: {row.get('error_message')}")
        else:
            named.setdefault(row["name"], []).append((line, row))
    points = _csv_points(named, source.document)
    return ToolResult(
        tool="google-benchmark",
        revision=None,
        points=points,
        time=time,
        skipped=tuple(failed),
        remarks=(*remarks, *summary_remark([p.place for p in points if _is_summary(p)])),
    )


def _csv_points(named: Mapping[str, _CsvRows], document: str) -> list[Point]:
    """Return the records of a CSV; aggregates count where there are no samples."""
    samples: dict[str, _CsvRows] = {}
    aggregates: dict[str, dict[str, _CsvRows]] = {}
    for name, found in named.items():
        base, aggregate = aggregate_in(name, named)
        if aggregate is None:
            samples[name] = found
        else:
            aggregates.setdefault(base, {})[aggregate] = found
    require_distinct([(name, f"line {found[0][0]}") for name, found in samples.items()], document)
    for name, found in samples.items():
        lines = [line for line, _ in found]
        # Repetitions stand together, and are always followed by their aggregates.
        if name not in aggregates or lines != list(range(lines[0], lines[0] + len(lines))):
            require_distinct([(name, f"line {line}") for line in lines], document)
    return [
        *(_csv_point(name, found, document) for name, found in samples.items()),
        *(
            _csv_summary(name, found, document)
            for name, found in aggregates.items()
            if name not in samples
        ),
    ]


def _csv_unit(name: str, found: _CsvRows, document: str) -> str:
    units = {row["time_unit"] for _, row in found}
    unit = units.pop() if len(units) == 1 else None
    if unit not in UNITS:
        refuse(document, f"{name} states the time unit {unit!r}", "unknown-units", line=found[0][0])
    return str(unit)


def _csv_point(name: str, found: _CsvRows, document: str) -> Point:
    lines = [line for line, _ in found]
    unit = _csv_unit(name, found, document)
    metrics: dict[MetricColumn, MetricCell] = {
        samples_column(unit, metric): samples_of(
            [_csv_number(row[key], line, document) for line, row in found]
        )
        for metric, key in (("latency", "real_time"), ("cpu_time", "cpu_time"))
    }
    reasons = {column.name: NOT_FINITE for column, cell in metrics.items() if cell is None}
    protocol = protocol_of(warmup=None, repetitions=len(found))
    return benchmark_point(
        f"line {lines[0]}", name, metrics, protocol=protocol, null_reasons=reasons
    )


def _csv_summary(name: str, found: Mapping[str, _CsvRows], document: str) -> Point:
    """Return the summary of a benchmark without samples; of how many runs, no column says."""
    rows = {aggregate: rows[0] for aggregate, rows in found.items()}
    unit = _csv_unit(name, [row for key, row in rows.items() if key != "cv"], document)
    metrics: dict[MetricColumn, MetricCell] = {}
    for metric, key in (("latency", "real_time"), ("cpu_time", "cpu_time")):
        cells = {
            AGGREGATES[aggregate]: _csv_number(row[key], line, document)
            for aggregate, (line, row) in rows.items()
            if aggregate in AGGREGATES
        }
        metrics |= summary_metrics(cells, unit, name=metric, count=None)
    place = f"line {min(line for line, _ in rows.values())}"
    return benchmark_point(
        place, name, metrics, protocol=protocol_of(warmup=None, repetitions=None)
    )


def _is_summary(point: Point) -> bool:
    return all(column.statistic != "sample" for column in point.metrics)


def _csv_number(text: str, line: int, document: str) -> float | None:
    fault = number_fault(text)
    if fault is not None:
        refuse(document, fault, "bad-number", line=line)
    return number(text)

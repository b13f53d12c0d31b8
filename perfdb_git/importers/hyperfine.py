"""hyperfine: ``--export-json`` with its samples, ``--export-csv`` with a summary.

Neither says on which machine, when, or after how many warm-up runs; those stay unknown. One run has
no spread: JSON has null there, CSV prints 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from perfdb_git.importers.cells import RawCell
from perfdb_git.importers.layouts import (
    number,
    number_fault,
    require_distinct,
    require_distinct_columns,
)
from perfdb_git.importers.named_benchmarks import (
    benchmark_point,
    protocol_of,
    require_mean,
    samples_column,
    summary_metrics,
    summary_remark,
)
from perfdb_git.importers.source_text import SourceText, refuse
from perfdb_git.importers.tool_results import (
    MetricCell,
    MetricColumn,
    Point,
    ReadingFacts,
    ToolImporter,
    ToolResult,
    finite,
)

_CSV_COLUMNS = ("mean", "stddev", "median", "user", "system", "min", "max")
_SINCE_1_10 = frozenset({"median"})
_USER = MetricColumn("user_time", "mean", "s")
_SYSTEM = MetricColumn("system_time", "mean", "s")


def _recognises(source: SourceText) -> bool:
    value = source.json_object()
    if value is not None:
        results = value.get("results")
        return (
            isinstance(results, list)
            and bool(results)
            and isinstance(results[0], dict)
            and {"command", "mean", "user", "system"} <= results[0].keys()
        )
    command, *titles = source.head.split("\n")[0].split(",")
    known = [title for title in titles if not title.startswith("parameter_")]
    return command == "command" and known in (
        [*_CSV_COLUMNS],
        [title for title in _CSV_COLUMNS if title not in _SINCE_1_10],
    )


def _read(source: SourceText, facts: ReadingFacts) -> ToolResult:
    if not _recognises(source):
        refuse(source.document, "is no export of hyperfine", "unknown-layout")
    if source.json_object() is None:
        return _read_csv(source)
    points: list[Point] = []
    failed: list[str] = []
    named: list[tuple[str, str]] = []
    for index, item in enumerate(source.json()["results"]):
        place = f"/results/{index}"
        command = str(item["command"])
        named.append((_name(command, item.get("parameters") or {}), place))
        codes = [code for code in item.get("exit_codes") or () if code != 0]
        if codes:
            failed.append(f"{place}: {command}: {len(codes)} runs failed, as with {codes[0]}")
        else:
            points.append(_point(item, named[-1][0], place, source.document))
    require_distinct(named, source.document)
    return ToolResult(tool="hyperfine", revision=None, points=points, skipped=tuple(failed))


def _name(command: str, parameters: Mapping[str, Any]) -> str:
    # The command has its parameters filled in; those that it does not use tell runs apart.
    unused = [f"{name}={value}" for name, value in parameters.items() if str(value) not in command]
    return " ".join([command, *unused])


def _point(item: Mapping[str, Any], name: str, place: str, document: str) -> Point:
    times = tuple(time for time in map(finite, item.get("times") or ()) if time is not None)
    metrics: dict[MetricColumn, MetricCell] = {}
    require_mean(times, item.get("mean"), place, document)
    if times:
        metrics[samples_column()] = times
    else:
        found = {key: item.get(key) for key in ("mean", "median", "min", "max")}
        metrics |= summary_metrics({**found, "std": item.get("stddev")}, "s", count=None)
    metrics[_USER] = finite(item.get("user"))
    metrics[_SYSTEM] = finite(item.get("system"))
    memory = tuple(
        value for value in map(finite, item.get("memory_usage_byte") or ()) if value is not None
    )
    if memory:
        metrics[MetricColumn("peak_memory", "sample", "B")] = memory
    sources: dict[str, RawCell] = {
        f"parameter {key}": str(value) for key, value in (item.get("parameters") or {}).items()
    }
    return benchmark_point(
        place,
        name,
        metrics,
        protocol=protocol_of(warmup=None, repetitions=len(times) or None),
        sources=sources,
    )


def _read_csv(source: SourceText) -> ToolResult:
    rows = source.csv_rows()
    header = rows[0][1]
    require_distinct_columns(header, source.document, rows[0][0])
    points: list[Point] = []
    for line, cells in rows[1:]:
        if len(cells) != len(header):
            refuse(source.document, "has a row of another width", "broken-table", line=line)
        row = dict(zip(header, cells, strict=True))
        fault = next(filter(None, (number_fault(row.get(key, "")) for key in _CSV_COLUMNS)), None)
        if fault is not None:
            refuse(source.document, fault, "bad-number", line=line)
        found: dict[str, float | None] = {
            key: number(row[key]) for key in ("mean", "median", "min", "max") if key in row
        }
        # A spread of exactly zero is what the CSV prints for a single run.
        metrics = summary_metrics({**found, "std": number(row["stddev"]) or None}, "s", count=None)
        metrics |= {_USER: number(row["user"]), _SYSTEM: number(row["system"])}
        sources: dict[str, RawCell] = {
            name: cell for name, cell in row.items() if name.startswith("parameter_")
        }
        name = _name(row["command"], {k.removeprefix("parameter_"): v for k, v in sources.items()})
        points.append(
            benchmark_point(
                f"line {line}",
                name,
                metrics,
                protocol=protocol_of(warmup=None, repetitions=None),
                sources=sources,
            )
        )
    names = [(str(point.dimensions["benchmark"]), point.place) for point in points]
    require_distinct(names, source.document)
    return ToolResult(
        tool="hyperfine",
        revision=None,
        points=points,
        remarks=summary_remark([point.place for point in points]),
    )


HYPERFINE = ToolImporter(
    name="hyperfine",
    version=1,
    summary="Import command times of hyperfine: its JSON or CSV export.",
    recognises=_recognises,
    read=_read,
)

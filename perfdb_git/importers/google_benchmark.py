"""Google Benchmark: its JSON, and the samples of its CSV.

Aggregates stand among the samples and are never taken for some; ``cv`` carries a time unit that
means nothing, and the CSV of 1.7 prints a wrong one, so it is not read at all. Counters may be bare
NaN or Infinity. Times are per iteration.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from perfdb_git.importers.layouts import number, require_distinct, snake_case
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
    Environment,
    MetricCell,
    MetricColumn,
    Point,
    ReadingFacts,
    Remark,
    ToolImporter,
    ToolResult,
    finite,
)

_UNITS = ("ns", "us", "ms", "s")
_AGGREGATES = {"mean": "mean", "median": "median", "stddev": "std"}
_OWN_KEYS = frozenset(
    {
        "name",
        "run_name",
        "run_type",
        "family_index",
        "per_family_instance_index",
        "repetitions",
        "repetition_index",
        "threads",
        "iterations",
        "real_time",
        "cpu_time",
        "time_unit",
        "aggregate_name",
        "aggregate_unit",
        "label",
        "error_occurred",
        "error_message",
        "skipped",
        "skip_message",
        "big_o",
        "rms",
        "cpu_coefficient",
        "real_coefficient",
        "allocs_per_iter",
        "max_bytes_used",
        "total_allocated_bytes",
        "net_heap_growth",
    }
)
_RATES = {
    "bytes_per_second": ("bandwidth", "B/s"),
    "items_per_second": ("item_throughput", "ops/s"),
}
_CSV_HEADER = ["name", "iterations", "real_time", "cpu_time", "time_unit"]
_DATE = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d")
_SCALING_REMARK = Remark(code="cpu-scaling", text="CPU frequency scaling was on")
_NOT_FINITE = "the tool printed a value that is not finite"


@dataclass(slots=True, kw_only=True)
class _Benchmark:
    """All rows of one benchmark: its repetitions, and its aggregates by name."""

    name: str
    place: str
    family: tuple[Any, Any]
    rows: list[Mapping[str, Any]] = field(default_factory=list)
    aggregates: dict[str, Mapping[str, Any]] = field(default_factory=dict)


def _recognises(source: SourceText) -> bool:
    value = source.json_object()
    if value is not None:
        context = value.get("context")
        return isinstance(context, dict) and "benchmarks" in value and "num_cpus" in context
    return any(map(_is_csv_header, source.head.split("\n")))


def _is_csv_header(line: str) -> bool:
    return line.rstrip("\r").split(",")[:5] == _CSV_HEADER


def _read(source: SourceText, facts: ReadingFacts) -> ToolResult:
    if not source.looks_like_json:
        return _read_csv(source, facts)
    value = source.json()
    if not _recognises(source):
        refuse(source.document, "is no JSON of Google Benchmark", "unknown-layout")
    context = value["context"]
    found, failed = _benchmarks(value["benchmarks"], source.document)
    points = [_point(item, source.document) for item in found]
    date = context.get("date")
    host = context.get("host_name")
    build = context.get("library_build_type")
    remarks = list(summary_remark([item.name for item in found if not item.rows]))
    if build not in (None, "release"):
        remarks.append(_debug_remark(build))
    if context.get("cpu_scaling_enabled") is True:
        remarks.append(_SCALING_REMARK)
    return ToolResult(
        tool="google-benchmark",
        revision=context.get("library_version"),
        points=points,
        time=None
        if date is None
        else stated_time(str(date), document=source.document, zone=facts.zone),
        environment=Environment(hosts=() if host is None else (str(host),)),
        observed={
            name: context[name]
            for name in (
                "num_cpus",
                "mhz_per_cpu",
                "cpu_scaling_enabled",
                "aslr_enabled",
                "load_avg",
                "library_build_type",
            )
            if name in context
        },
        skipped=tuple(failed),
        remarks=tuple(remarks),
    )


def _benchmarks(
    rows: Sequence[Mapping[str, Any]], document: str
) -> tuple[list[_Benchmark], list[str]]:
    """Sort rows by benchmark, refusing two of one name; failed ones come back as texts."""
    found: dict[tuple[str, Any, Any], _Benchmark] = {}
    failed: list[str] = []
    seen: set[tuple[Any, ...]] = set()
    places: list[tuple[str, str]] = []
    for index, row in enumerate(rows):
        place = f"/benchmarks/{index}"
        name = str(row.get("run_name", row.get("name")))
        if row.get("error_occurred") or row.get("skipped"):
            reason = row.get("error_message") or row.get("skip_message") or "no reason stated"
            failed.append(f"{place}: {name} failed: {reason}")
            continue
        family = row.get("family_index"), row.get("per_family_instance_index")
        key = (name, *family)
        item = found.get(key)
        if item is None:
            item = found[key] = _Benchmark(name=name, place=place, family=family)
            places.append((name, place))
        if row.get("run_type", "iteration") == "aggregate":
            item.aggregates[str(row.get("aggregate_name"))] = row
            continue
        repeat = (*key, row.get("repetition_index"), row.get("threads"))
        if row.get("repetition_index") is not None and repeat in seen:
            places.append((name, place))
        seen.add(repeat)
        item.rows.append(row)
    require_distinct(places, document)
    return list(found.values()), failed


def _unit(row: Mapping[str, Any], document: str) -> str:
    unit = row.get("time_unit")
    if unit not in _UNITS:
        refuse(document, f"states the time unit {unit!r}", "unknown-units")
    return str(unit)


def _point(item: _Benchmark, document: str) -> Point:
    if not item.rows:
        return _summary_point(item, document)
    first = item.rows[0]
    unit = _unit(first, document)
    if any(row.get("time_unit") != unit for row in item.rows):
        refuse(document, f"{item.name} changes its time unit", "unknown-units")
    metrics: dict[MetricColumn, MetricCell] = {
        samples_column(unit): _samples([row.get("real_time") for row in item.rows]),
        samples_column(unit, "cpu_time"): _samples([row.get("cpu_time") for row in item.rows]),
    }
    reasons: dict[str, str] = {}
    for key in dict.fromkeys(name for row in item.rows for name in row if name not in _OWN_KEYS):
        name, unit_ = _RATES.get(key, (snake_case(key), "1"))
        cell = _samples([row.get(key) for row in item.rows])
        metrics[samples_column(unit_, name)] = cell
        if cell is None:
            reasons[name] = _NOT_FINITE
    iterations = {row.get("iterations") for row in item.rows}
    sources = {"iterations": iterations.pop()} if len(iterations) == 1 else {}
    if first.get("label"):
        sources["label"] = str(first["label"])
    return benchmark_point(
        item.place,
        item.name,
        metrics,
        protocol=protocol_of(warmup=None, repetitions=len(item.rows)),
        dimensions={"concurrency": first.get("threads", 1)},
        sources=sources,
        null_reasons=reasons,
    )


def _samples(values: Sequence[Any]) -> tuple[float, ...] | None:
    """Return samples, or None where one of them is no number that evidence can hold."""
    found = [finite(value) for value in values]
    known = [value for value in found if value is not None and value >= 0]
    return tuple(known) if len(known) == len(found) else None


def _summary_point(item: _Benchmark, document: str) -> Point:
    first = next(iter(item.aggregates.values()))
    unit = _unit(first, document)
    repetitions = first.get("repetitions")
    metrics: dict[MetricColumn, MetricCell] = {}
    for name, key in (("latency", "real_time"), ("cpu_time", "cpu_time")):
        found = {
            statistic: item.aggregates[own].get(key)
            for own, statistic in _AGGREGATES.items()
            if own in item.aggregates
        }
        metrics |= summary_metrics(found, unit, name=name, count=repetitions)
    return benchmark_point(
        item.place,
        item.name,
        metrics,
        protocol=protocol_of(warmup=None, repetitions=repetitions),
        dimensions={"concurrency": first.get("threads", 1)},
    )


def _debug_remark(build: str) -> Remark:
    return Remark(code="debug-build", text=f"the benchmark library was built as {build}")


def _preamble(
    lines: Sequence[str], document: str, facts: ReadingFacts
) -> tuple[StatedTime | None, tuple[Remark, ...]]:
    """Read the lines that ``--benchmark_out`` puts before the header: the time, and warnings."""
    remarks = []
    if any("Library was built as DEBUG" in line for line in lines):
        remarks.append(_debug_remark("debug"))
    if any("CPU scaling is enabled" in line for line in lines):
        remarks.append(_SCALING_REMARK)
    date = next((line.strip() for line in lines if _DATE.match(line)), None)
    time = None if date is None else stated_time(date, document=document, zone=facts.zone)
    return time, tuple(remarks)


def _read_csv(source: SourceText, facts: ReadingFacts) -> ToolResult:
    """Read the rows of a CSV, which states no machine; aggregates are left out."""
    top = next((place for place, line in enumerate(source.lines) if _is_csv_header(line)), None)
    if top is None:
        refuse(source.document, "has no header of Google Benchmark", "unknown-layout")
    time, remarks = _preamble(source.lines[:top], source.document, facts)
    rows = source.csv_rows(top)
    header = rows[0][1]
    named: dict[str, list[tuple[int, dict[str, str]]]] = {}
    failed: list[str] = []
    for line, cells in rows[1:]:
        row = dict(zip(header, cells, strict=False))
        if row.get("error_occurred") == "true":
            failed.append(f"line {line}: {row['name']} failed: {row.get('error_message')}")
        else:
            named.setdefault(row["name"], []).append((line, row))
    points = [
        _csv_point(name, found, source.document)
        for name, found in named.items()
        if not _is_aggregate(name, named)
    ]
    return ToolResult(
        tool="google-benchmark",
        revision=None,
        points=points,
        time=time,
        skipped=tuple(failed),
        remarks=remarks,
    )


def _is_aggregate(name: str, named: Mapping[str, object]) -> bool:
    base, _, suffix = name.rpartition("_")
    return suffix in (*_AGGREGATES, "cv") and base in named


def _csv_point(name: str, found: Sequence[tuple[int, Mapping[str, str]]], document: str) -> Point:
    lines = [line for line, _ in found]
    units = {row["time_unit"] for _, row in found}
    unit = units.pop() if len(units) == 1 else None
    if unit not in _UNITS:
        refuse(document, f"{name} states the time unit {unit!r}", "unknown-units", line=lines[0])
    if lines != list(range(lines[0], lines[0] + len(lines))):
        # Repetitions stand together; elsewhere it is another benchmark of the same name.
        places = [(name, f"line {line}") for line in lines]
        require_distinct(places, document)
    metrics: dict[MetricColumn, MetricCell] = {
        samples_column(unit, metric): _samples([number(row[key]) for _, row in found])
        for metric, key in (("latency", "real_time"), ("cpu_time", "cpu_time"))
    }
    protocol = protocol_of(warmup=None, repetitions=len(found))
    return benchmark_point(f"line {lines[0]}", name, metrics, protocol=protocol)


GOOGLE_BENCHMARK = ToolImporter(
    name="google-benchmark",
    version=1,
    summary="Import benchmarks of Google Benchmark: its JSON or CSV.",
    recognises=_recognises,
    read=_read,
)

"""Google Benchmark: its JSON, and the samples of its CSV.

Aggregates stand among the samples and are never taken for some; ``cv`` carries a time unit that
means nothing, and the CSV of 1.7 prints a wrong one, so it is not read at all. Counters may be bare
NaN or Infinity. Times are per iteration.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from perfdb_git.importers.google_benchmark_csv import is_csv_header, read_csv
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
    require_distinct,
    snake_case,
)
from perfdb_git.importers.named_benchmarks import (
    benchmark_point,
    protocol_of,
    samples_column,
    summary_metrics,
    summary_remark,
)
from perfdb_git.importers.source_text import SourceText, refuse
from perfdb_git.importers.timestamps import stated_time
from perfdb_git.importers.tool_results import (
    Environment,
    MetricCell,
    MetricColumn,
    Point,
    ReadingFacts,
    ToolImporter,
    ToolResult,
)

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


@dataclass(slots=True, kw_only=True)
class _Benchmark:
    """All rows of one benchmark: its repetitions, and its aggregates by name."""

    name: str
    place: str
    family: tuple[Any, Any]
    rows: list[Mapping[str, Any]] = field(default_factory=list)
    row_places: list[str] = field(default_factory=list)
    aggregates: dict[str, Mapping[str, Any]] = field(default_factory=dict)


def _recognises(source: SourceText) -> bool:
    value = source.json_object()
    if value is not None:
        context = value.get("context")
        return isinstance(context, dict) and "benchmarks" in value and "num_cpus" in context
    return any(map(is_csv_header, source.head.split("\n")))


def _read(source: SourceText, facts: ReadingFacts) -> ToolResult:
    if not source.looks_like_json:
        return read_csv(source, facts)
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
        remarks.append(debug_remark(build))
    if context.get("cpu_scaling_enabled") is True:
        remarks.append(SCALING_REMARK)
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
    names = {str(row.get("name")) for row in rows}
    for index, row in enumerate(rows):
        place = f"/benchmarks/{index}"
        name, aggregate = _name_of(row, names)
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
        if aggregate is not None:
            item.aggregates[aggregate] = row
            continue
        repeat = (*key, row.get("repetition_index"), row.get("threads"))
        if row.get("repetition_index") is not None and repeat in seen:
            places.append((name, place))
        seen.add(repeat)
        item.rows.append(row)
        item.row_places.append(place)
        if len(item.rows) > (row.get("repetitions") or len(item.rows)):
            places.append((name, place))
    require_distinct(places, document)
    for item in found.values():
        # Repetitions are always followed by their aggregates; without them a name stands twice.
        if item.rows and item.rows[0].get("repetition_index") is None and not item.aggregates:
            require_distinct([(item.name, place) for place in item.row_places], document)
    return list(found.values()), failed


def _name_of(row: Mapping[str, Any], names: Collection[str]) -> tuple[str, str | None]:
    """Return the benchmark of a row, and which aggregate it is; before 1.5 only names tell."""
    name = str(row.get("run_name", row.get("name")))
    if "run_type" in row:
        is_aggregate = row["run_type"] == "aggregate"
        return name, str(row.get("aggregate_name")) if is_aggregate else None
    base, aggregate = aggregate_in(name, names)
    return (name, None) if aggregate is None else (base, aggregate)


def _unit(row: Mapping[str, Any], document: str) -> str:
    unit = row.get("time_unit")
    if unit not in UNITS:
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
        samples_column(unit): samples_of([row.get("real_time") for row in item.rows]),
        samples_column(unit, "cpu_time"): samples_of([row.get("cpu_time") for row in item.rows]),
    }
    reasons = {column.name: NOT_FINITE for column, cell in metrics.items() if cell is None}
    for key in dict.fromkeys(name for row in item.rows for name in row if name not in _OWN_KEYS):
        name, unit_ = _RATES.get(key, (snake_case(key), "1"))
        cell = samples_of([row.get(key) for row in item.rows])
        metrics[samples_column(unit_, name)] = cell
        if cell is None:
            reasons[name] = NOT_FINITE
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


def _summary_point(item: _Benchmark, document: str) -> Point:
    first = next(iter(item.aggregates.values()))
    unit = _unit(first, document)
    if any(row.get("time_unit") != unit for row in item.aggregates.values()):
        refuse(document, f"{item.name} changes its time unit", "unknown-units")
    repetitions = first.get("repetitions")
    metrics: dict[MetricColumn, MetricCell] = {}
    for name, key in (("latency", "real_time"), ("cpu_time", "cpu_time")):
        found = {
            statistic: item.aggregates[own].get(key)
            for own, statistic in AGGREGATES.items()
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


GOOGLE_BENCHMARK = ToolImporter(
    name="google-benchmark",
    version=2,
    summary="Import benchmarks of Google Benchmark: its JSON or CSV.",
    recognises=_recognises,
    read=_read,
)

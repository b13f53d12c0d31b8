"""pytest-benchmark's JSON: seconds, each already divided by the iterations of its round.

Samples are there with --benchmark-json and --benchmark-save-data; older files hold a summary.
The standard deviation of a single round is printed as 0 and means nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from perfdb_git.importers.layouts import require_distinct
from perfdb_git.importers.named_benchmarks import (
    benchmark_point,
    protocol_of,
    require_mean,
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
    finite,
)


def _recognises(source: SourceText) -> bool:
    value = source.json_object()
    return value is not None and {"machine_info", "benchmarks", "datetime"} <= value.keys()


def _read(source: SourceText, facts: ReadingFacts) -> ToolResult:
    if not _recognises(source):
        refuse(source.document, "is no JSON of pytest-benchmark", "unknown-layout")
    value = source.json()
    points: list[Point] = []
    failed: list[str] = []
    names: list[tuple[str, str]] = []
    summaries: list[str] = []
    for index, item in enumerate(value["benchmarks"]):
        place = f"/benchmarks/{index}"
        name = str(item.get("fullname") or item["name"])
        names.append((name, place))
        stats = item.get("stats") or item
        if item.get("has_error") or finite(stats.get("min")) is None:
            failed.append(f"{place}: {name} failed")
            continue
        if not stats.get("data"):
            summaries.append(place)
        points.append(_point(item, stats, name, place))
        require_mean(_data(stats), stats.get("mean"), place, source.document)
    require_distinct(names, source.document)
    machine = value["machine_info"] or {}
    return ToolResult(
        tool="pytest-benchmark",
        revision=value.get("version"),
        points=points,
        time=stated_time(str(value["datetime"]), document=source.document, zone=facts.zone),
        environment=_environment(machine),
        observed=_observed(value),
        skipped=tuple(failed),
        remarks=summary_remark(summaries),
    )


def _point(item: Mapping[str, Any], stats: Mapping[str, Any], name: str, place: str) -> Point:
    data = _data(stats)
    rounds = stats.get("rounds")
    metrics: dict[MetricColumn, MetricCell]
    if data:
        metrics = {samples_column(): data}
    else:
        found = {key: stats.get(key) for key in ("mean", "median", "min", "max")}
        metrics = summary_metrics(
            {**found, "std": stats.get("stddev")}, "s", count=rounds if rounds else None
        )
    options = item.get("options") or {}
    notes = [f"{key} {options[key]}" for key in ("timer", "warmup", "disable_gc") if key in options]
    return benchmark_point(
        place,
        name,
        metrics,
        # Whether there was a warm-up is said, of how many rounds is not.
        protocol=protocol_of(warmup=None, repetitions=rounds, notes=notes),
        sources={"iterations": stats.get("iterations"), "group": item.get("group")},
    )


def _data(stats: Mapping[str, Any]) -> tuple[float, ...]:
    return tuple(value for value in map(finite, stats.get("data") or ()) if value is not None)


def _environment(machine: Mapping[str, Any]) -> Environment:
    cpu = machine.get("cpu") or {}
    processor = cpu.get("brand_raw") or cpu.get("brand") or machine.get("processor") or None
    python = machine.get("python_version")
    release = machine.get("release")
    node = machine.get("node")
    return Environment(
        runtimes={} if python is None else {"python": str(python)},
        kernel=None if release is None else f"{machine.get('system', '')} {release}".strip(),
        processor=processor,
        hosts=() if node is None else (str(node),),
    )


def _observed(value: Mapping[str, Any]) -> dict[str, Any]:
    commit = value.get("commit_info") or {}
    return {
        f"commit_{key}": commit[key]
        for key in ("id", "dirty", "branch")
        if commit.get(key) is not None
    }


PYTEST_BENCHMARK = ToolImporter(
    name="pytest-benchmark",
    version=1,
    summary="Import pytest-benchmark's JSON.",
    recognises=_recognises,
    read=_read,
)

"""pyperf's JSON: one record a process, since the values within one are not independent.

Values are per loop. Calibration runs hold warm-ups only and are no samples; dates have no zone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from perfdb_git.importers.layouts import require_distinct
from perfdb_git.importers.named_benchmarks import benchmark_point, protocol_of
from perfdb_git.importers.source_text import SourceText, refuse
from perfdb_git.importers.timestamps import stated_time
from perfdb_git.importers.tool_results import (
    Environment,
    MetricColumn,
    Point,
    ReadingFacts,
    ToolImporter,
    ToolResult,
    finite,
)
from perfdb_git.model.values import JsonValue

_METRICS = {
    "second": MetricColumn("latency", "sample", "s"),
    "byte": MetricColumn("memory", "sample", "B"),
    "integer": MetricColumn("value", "sample", "1"),
}
_OBSERVED = (
    "aslr",
    "boot_time",
    "cpu_affinity",
    "cpu_config",
    "cpu_count",
    "cpu_freq",
    "cpu_temp",
    "load_avg_1min",
    "loops",
    "python_compiler",
    "timer",
)


def _recognises(source: SourceText) -> bool:
    value = source.json_object()
    if value is None or not isinstance(value.get("benchmarks"), list) or "version" not in value:
        return False
    items = value["benchmarks"]
    return bool(items) and isinstance(items[0], dict) and "runs" in items[0]


def _read(source: SourceText, facts: ReadingFacts) -> ToolResult:
    if not _recognises(source):
        refuse(source.document, "is no JSON of pyperf", "unknown-layout")
    value = source.json()
    if str(value["version"]) not in ("1.0", "1"):
        refuse(source.document, f"is of format {value['version']}", "unknown-layout")
    shared = value.get("metadata") or {}
    points: list[Point] = []
    skipped: list[str] = []
    names: list[tuple[str, str]] = []
    for index, item in enumerate(value["benchmarks"]):
        metadata = {**shared, **(item.get("metadata") or {})}
        names.append((str(metadata.get("name")), f"/benchmarks/{index}"))
        if metadata.get("name") is None:
            refuse(source.document, "has a benchmark without a name", "missing-fact")
        found = _runs(item["runs"], metadata, f"/benchmarks/{index}", source.document)
        points += found
        if not found:
            skipped.append(f"{names[-1][1]}: {names[-1][0]} has no values")
    require_distinct(names, source.document)
    return _result(points, tuple(skipped), value, shared, source.document, facts)


def _result(
    points: list[Point],
    skipped: tuple[str, ...],
    value: Mapping[str, Any],
    shared: Mapping[str, Any],
    document: str,
    facts: ReadingFacts,
) -> ToolResult:
    first = value["benchmarks"][0]
    metadata = {**shared, **(first.get("metadata") or {})}
    dates = [
        run["metadata"]["date"]
        for item in value["benchmarks"]
        for run in item["runs"]
        if (run.get("metadata") or {}).get("date")
    ]
    observed: dict[str, JsonValue] = {
        name: metadata[name] for name in _OBSERVED if name in metadata
    }
    python = metadata.get("python_version")
    host = metadata.get("hostname")
    version = metadata.get("perf_version")
    return ToolResult(
        tool="pyperf",
        revision=None if version is None else str(version),
        points=points,
        time=stated_time(min(dates), document=document, zone=facts.zone) if dates else None,
        environment=Environment(
            runtimes={} if python is None else {"python": str(python).partition(" (")[0]},
            kernel=metadata.get("platform"),
            processor=metadata.get("cpu_model_name"),
            hosts=() if host is None else (str(host),),
        ),
        observed=observed,
        skipped=skipped,
    )


def _runs(
    runs: list[Mapping[str, Any]], metadata: Mapping[str, Any], place: str, document: str
) -> list[Point]:
    unit = str(metadata.get("unit", "second"))
    column = _METRICS.get(unit)
    if column is None:
        refuse(document, f"{metadata['name']} is in {unit!r}", "unknown-units", pointer=place)
    points: list[Point] = []
    for index, run in enumerate(runs):
        values = [finite(value) for value in run.get("values") or ()]
        if not values:
            continue  # calibration
        if any(value is None or value < 0 for value in values):
            refuse(document, "has a value that is no number", "bad-value", pointer=place)
        warmups = run.get("warmups")
        points.append(
            benchmark_point(
                f"{place}/runs/{index}",
                str(metadata["name"]),
                {column: tuple(value for value in values if value is not None)},
                protocol=protocol_of(
                    warmup=None if warmups is None else len(warmups), repetitions=len(values)
                ),
                sources={"process": index},
            )
        )
    return points


PYPERF = ToolImporter(
    name="pyperf",
    version=1,
    summary="Import pyperf's JSON, gzip or not: one record a process.",
    recognises=_recognises,
    read=_read,
)

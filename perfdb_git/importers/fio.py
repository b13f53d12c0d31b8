"""fio's JSON, versions 2 and 3, one record for each job and direction that was used.

fio 2 counts latencies in us and ``io_bytes`` in KiB, fio 3 in ns and bytes; ``bw`` is KiB/s in
both. Bytes are held against bandwidth times run time, so a file that mixes the two is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from perfdb_git.importers.source_text import SourceText, leading_json, refuse
from perfdb_git.importers.timestamps import StatedTime, stated_time
from perfdb_git.importers.tool_results import (
    UNKNOWN_PROTOCOL,
    MetricCell,
    MetricColumn,
    Point,
    ReadingFacts,
    ToolImporter,
    ToolResult,
    finite,
)
from perfdb_git.model.records import MeasurementProtocol, Statistic
from perfdb_git.model.values import Scalar

_DIRECTIONS = ("read", "write", "trim")
_PERCENTILES: Mapping[str, Statistic] = {
    "50.000000": "median",
    "90.000000": "p90",
    "95.000000": "p95",
    "99.000000": "p99",
    "99.900000": "p999",
}
_LATENCIES = {"lat": "latency", "clat": "completion_latency", "slat": "submission_latency"}
_SUFFIXES = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30}
_DEFAULT_BLOCK = "4k"
_SHORT_RUN_MS = 100
_TOLERANCE = 0.05


def _value(source: SourceText) -> Mapping[str, Any] | None:
    # Warnings may stand before the JSON.
    value = source.json_object() or leading_json(source.text if source.head else "")
    return value if isinstance(value, dict) else None


def _recognises(source: SourceText) -> bool:
    if '"fio version"' not in source.head:
        return False
    value = _value(source)
    return value is not None and "fio version" in value and "jobs" in value


def _read(source: SourceText, facts: ReadingFacts) -> ToolResult:
    if not _recognises(source):
        refuse(source.document, "is no JSON of fio", "unknown-layout")
    value = _value(source)
    assert value is not None
    points: list[Point] = []
    skipped: list[str] = []
    bad: list[str] = []
    for index, job in enumerate(value["jobs"]):
        place = f"/jobs/{index}"
        if job.get("error"):
            skipped.append(f"{place}: job {job.get('jobname')} failed with error {job['error']}")
            continue
        options = {**(value.get("global options") or {}), **(job.get("job options") or {})}
        for direction in _used(job):
            fault = _fault(job[direction])
            if fault is not None:
                bad.append(f"{place}/{direction}: {fault}")
            else:
                points.append(_point(job, direction, options, f"{place}/{direction}", index))
    return ToolResult(
        tool="fio",
        revision=str(value["fio version"]).removeprefix("fio-"),
        points=points,
        time=_time(value, source.document, facts),
        skipped=tuple(skipped),
        bad_rows=tuple(bad),
    )


def _time(value: Mapping[str, Any], document: str, facts: ReadingFacts) -> StatedTime | None:
    epoch = finite(value.get("timestamp_ms"))
    if epoch is None and finite(value.get("timestamp")) is not None:
        epoch = 1000 * float(value["timestamp"])
    text = value.get("time")
    if text is None and epoch is None:
        return None
    return stated_time(str(text), document=document, epoch_ms=epoch, zone=facts.zone)


def _used(job: Mapping[str, Any]) -> Iterator[str]:
    """Yield the directions that did anything; fio prints the others as zeros."""
    for direction in _DIRECTIONS:
        found = job.get(direction) or {}
        if found.get("total_ios") or found.get("io_bytes"):
            yield direction


def _moved(found: Mapping[str, Any]) -> float:
    # Only versions that count bytes print io_kbytes beside them.
    return float(found["io_bytes"]) * (1 if "io_kbytes" in found else 1024)


def _bandwidth(found: Mapping[str, Any]) -> float:
    return float(found["bw_bytes"] if "bw_bytes" in found else found["bw"] * 1024)


def _fault(found: Mapping[str, Any]) -> str | None:
    """Say why bytes, bandwidth and run time cannot all be right, or None."""
    runtime = found.get("runtime") or 0
    if any(finite(found.get(name)) is None for name in ("io_bytes", "bw")):
        return "has no bytes or no bandwidth"
    if runtime < _SHORT_RUN_MS:
        return None
    moved, expected = _moved(found), _bandwidth(found) * runtime / 1000
    if expected and abs(moved / expected - 1) > _TOLERANCE:
        return f"moved {moved:.6g} B, but bandwidth times run time is {expected:.6g} B"
    return None


def _point(
    job: Mapping[str, Any], direction: str, options: Mapping[str, Any], place: str, index: int
) -> Point:
    found = job[direction]
    metrics: dict[MetricColumn, MetricCell] = {}
    for own, name in _LATENCIES.items():
        metrics |= _latency(found, own, name)
    metrics[MetricColumn("bandwidth", "mean", "B/s")] = _bandwidth(found)
    metrics[MetricColumn("io_throughput", "mean", "ops/s")] = finite(found.get("iops"))
    metrics[MetricColumn("moved_bytes", "sample", "B")] = _moved(found)
    sources: dict[str, Any] = {"job": index, "jobname": str(job.get("jobname"))}
    sources |= {
        name: str(options[name]) for name in ("ioengine", "direct", "rw") if name in options
    }
    return Point(
        place=place,
        operation="storage_io",
        dimensions=_dimensions(direction, options),
        metrics=metrics,
        sources=sources,
        protocol=_protocol(options),
    )


def _latency(found: Mapping[str, Any], own: str, name: str) -> dict[MetricColumn, MetricCell]:
    unit = "ns" if f"{own}_ns" in found else "us"
    body = found.get(f"{own}_ns", found.get(own))
    if not body or not body.get("max"):
        return {}
    cells: dict[MetricColumn, MetricCell] = {}
    for key, statistic in (("mean", "mean"), ("min", "min"), ("max", "max"), ("stddev", "std")):
        cells[MetricColumn(name, statistic, unit)] = finite(body.get(key))  # type: ignore[arg-type]
    for key, percentile in _PERCENTILES.items():
        if key in (body.get("percentile") or {}):
            cells[MetricColumn(name, percentile, unit)] = finite(body["percentile"][key])
    count = body.get("N", found.get("total_ios"))
    cells[MetricColumn(name, "count", "1")] = count or None
    return cells


def _dimensions(direction: str, options: Mapping[str, Any]) -> dict[str, Scalar | None]:
    dimensions: dict[str, Scalar | None] = {"io_direction": direction}
    if not options:
        # Old versions do not print them; without them nothing is known of the requests.
        return dimensions
    pattern = str(options.get("rw", options.get("readwrite", "read")))
    dimensions["access_pattern"] = "random" if pattern.startswith("rand") else "sequential"
    dimensions["block_bytes"] = _block(direction, options)
    for option, name in (("iodepth", "queue_depth"), ("numjobs", "concurrency")):
        text = str(options.get(option, "1"))
        dimensions[name] = int(text) if text.isdigit() else None
    return dimensions


def _block(direction: str, options: Mapping[str, Any]) -> int | None:
    """Return the bytes of a request, or None where they vary or the prefix is not certain."""
    if {"bsrange", "blocksize_range", "bssplit", "kb_base"} & options.keys():
        return None
    parts = str(options.get("bs", options.get("blocksize", _DEFAULT_BLOCK))).lower().split(",")
    text = parts[min(_DIRECTIONS.index(direction), len(parts) - 1)] or parts[0]
    digits = text.rstrip("kmgib")
    suffix = text[len(digits) :].removesuffix("ib").removesuffix("b")
    if not digits.isdigit() or suffix not in _SUFFIXES:
        return None
    return int(digits) * _SUFFIXES[suffix]


def _protocol(options: Mapping[str, Any]) -> MeasurementProtocol:
    notes = [f"{name} {options[name]}" for name in ("ramp_time", "runtime") if name in options]
    return replace(UNKNOWN_PROTOCOL, synchronization="each request completes", notes=tuple(notes))


FIO = ToolImporter(
    name="fio",
    version=1,
    summary="Import storage runs of fio 2 and 3: its JSON.",
    recognises=_recognises,
    read=_read,
)

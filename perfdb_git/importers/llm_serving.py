"""Serving results of vLLM (``bench serve``) and SGLang (``bench_serving``).

Summaries are in ms, detail lists in s with 0.0 for failed requests, which are no samples. Standard
deviations are numpy's, over n. Prompts and generated texts are not stored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any

from perfdb_git.importers.cells import RawCell
from perfdb_git.importers.source_text import SourceText, json_lines, refuse
from perfdb_git.importers.timestamps import StatedTime, stated_time
from perfdb_git.importers.tool_results import (
    UNKNOWN_PROTOCOL,
    MetricCell,
    MetricColumn,
    Point,
    ReadingFacts,
    Remark,
    ToolImporter,
    ToolResult,
    finite,
)
from perfdb_git.model.records import Statistic
from perfdb_git.model.values import Scalar

_NAMES: Mapping[str, tuple[str, ...]] = {
    "first_token_latency": ("ttft",),
    "per_output_token_latency": ("tpot",),
    "inter_token_latency": ("itl",),
    "end_to_end_latency": ("e2el", "e2e_latency"),
}
_STATISTICS: Mapping[str, Statistic] = {
    "mean": "mean",
    "median": "median",
    "std": "population_std",
    "p90": "p90",
    "p95": "p95",
    "p99": "p99",
}
_THROUGHPUTS: Mapping[str, tuple[str, str]] = {
    "request_throughput": ("request_throughput", "ops/s"),
    "output_throughput": ("output_throughput", "tokens/s"),
    "input_throughput": ("input_throughput", "tokens/s"),
    "total_token_throughput": ("total_throughput", "tokens/s"),
    "total_throughput": ("total_throughput", "tokens/s"),
}
_NEEDED = frozenset({"request_throughput", "completed", "mean_ttft_ms", "duration"})
_TOLERANCE = 0.01
_KEPT = ("num_prompts", "dataset_name", "endpoint_type", "burstiness", "duration", "completed")


def _rows(source: SourceText) -> Sequence[Mapping[str, Any]] | None:
    value = source.json_object()
    found = [value] if value is not None else json_lines(source.text)
    if not found or not all(isinstance(row, dict) and row.keys() >= _NEEDED for row in found):
        return None
    return found


def _recognises(source: SourceText) -> bool:
    head = source.head
    return head.lstrip().startswith("{") and not source.is_trace and _rows(source) is not None


def _read(source: SourceText, facts: ReadingFacts) -> ToolResult:
    rows = _rows(source)
    if rows is None:
        refuse(source.document, "is no serving result of vLLM or SGLang", "unknown-layout")
    points: list[Point] = []
    skipped: list[str] = []
    bad: list[str] = []
    remarks: list[Remark] = []
    for index, row in enumerate(rows):
        place = f"row {index}"
        if not row["completed"]:
            skipped.append(f"{place}: no request was completed")
            continue
        fault = _fault(row)
        if fault is not None:
            bad.append(f"{place}: {fault}")
            continue
        points.append(_point(row, place))
        failed = _failed(row)
        if failed:
            text = f"{place}: {failed} requests failed, and are no samples"
            remarks.append(Remark(code="failed-requests", text=text))
    return ToolResult(
        tool=_tool(rows[0]),
        revision=None,
        points=points,
        time=_time(rows, source.document, facts),
        skipped=tuple(skipped),
        bad_rows=tuple(bad),
        remarks=tuple(remarks),
    )


def _fault(row: Mapping[str, Any]) -> str | None:
    """Say which figures contradict each other, as they do where a unit is another one."""
    rate, duration = finite(row["request_throughput"]), finite(row["duration"])
    if rate and duration and abs(rate * duration / row["completed"] - 1) > _TOLERANCE:
        return f"{row['completed']} requests in {duration:g} s are not {rate:g} requests a second"
    mean = finite(row["mean_ttft_ms"])
    for samples in _samples(row).values():
        if mean and isinstance(samples, tuple) and abs(fmean(samples) / mean - 1) > _TOLERANCE:
            return f"its ttfts have a mean of {fmean(samples):g} ms, and it states {mean:g} ms"
    return None


def _tool(row: Mapping[str, Any]) -> str:
    return "vllm-bench" if "model_id" in row or "endpoint_type" in row else "sglang-bench"


def _time(
    rows: Sequence[Mapping[str, Any]], document: str, facts: ReadingFacts
) -> StatedTime | None:
    text = rows[0].get("date")
    return None if text is None else stated_time(str(text), document=document, zone=facts.zone)


def _failed(row: Mapping[str, Any]) -> int:
    if isinstance(row.get("failed"), int):
        return int(row["failed"])
    total = row.get("num_prompts")
    return total - row["completed"] if isinstance(total, int) else 0


def _point(row: Mapping[str, Any], place: str) -> Point:
    metrics: dict[MetricColumn, MetricCell] = {}
    for key, (name, unit) in _THROUGHPUTS.items():
        if key in row:
            metrics[MetricColumn(name, "mean", unit)] = finite(row[key])
    for name, keys in _NAMES.items():
        for statistic in _STATISTICS:
            for key in keys:
                value = row.get(f"{statistic}_{key}_ms")
                if value is not None:
                    column = MetricColumn(name, _STATISTICS[statistic], "ms")
                    metrics[column] = finite(value)
    metrics |= _samples(row)
    rate = finite(row.get("request_rate"))
    dimensions: dict[str, Scalar | None] = {
        "request_rate": rate,
        "concurrency": row.get("max_concurrency"),
    }
    if row.get("model_id"):
        dimensions["model"] = str(row["model_id"])
    backend = row.get("backend")
    if backend:
        dimensions["runtime"] = str(backend)
    sources: dict[str, RawCell] = {key: row[key] for key in _KEPT if key in row}
    # "inf" sends all requests at once.
    sources["request_rate"] = str(row.get("request_rate"))
    for key in ("total_input_tokens", "total_output_tokens"):
        sources[key] = row.get(key)
    return Point(
        place=place,
        operation="llm_serving",
        dimensions=dimensions,
        metrics=metrics,
        sources=sources,
        protocol=replace(UNKNOWN_PROTOCOL, synchronization="the client receives the tokens"),
    )


def _samples(row: Mapping[str, Any]) -> dict[MetricColumn, MetricCell]:
    """Return the first-token times of the requests that succeeded, in ms like the summary."""
    times, errors = row.get("ttfts"), row.get("errors")
    if not isinstance(times, list):
        return {}
    failed = errors if isinstance(errors, list) and len(errors) == len(times) else [""] * len(times)
    known = [
        value * 1000
        for value, error in zip(map(finite, times), failed, strict=True)
        if value and not error
    ]
    if not known:
        return {}
    return {MetricColumn("first_token_latency", "sample", "ms"): tuple(known)}


LLM_SERVING = ToolImporter(
    name="llm-serving",
    version=1,
    summary="Import serving results of vLLM and SGLang: JSON or JSON Lines.",
    recognises=_recognises,
    read=_read,
)

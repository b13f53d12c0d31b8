"""llama-bench: JSON, JSON Lines and CSV; samples stand in the first two only.

A row is a prompt (``n_prompt``) or a generation (``n_gen``); one of both has no operation. Columns
grow often, so the ones that are not known here are kept as they stand, less the model's path.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from perfdb_git.importers.cells import RawCell
from perfdb_git.importers.layouts import integer, number
from perfdb_git.importers.named_benchmarks import protocol_of, summary_remark
from perfdb_git.importers.source_text import SourceText, json_lines, refuse
from perfdb_git.importers.timestamps import StatedTime, stated_time
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
from perfdb_git.model.values import Scalar

_KEYS = frozenset({"build_commit", "model_type", "n_prompt", "n_gen", "avg_ts"})
_LATENCY = MetricColumn("latency", "sample", "ns")
_THROUGHPUT = MetricColumn("throughput", "sample", "tokens/s")
_READ = frozenset(
    {
        "build_commit",
        "cpu_info",
        "gpu_info",
        "model_filename",
        "model_type",
        "n_prompt",
        "n_gen",
        "n_depth",
        "test_time",
        "avg_ns",
        "stddev_ns",
        "avg_ts",
        "stddev_ts",
        "samples_ns",
        "samples_ts",
    }
)
_TOLERANCE = 0.01


def _rows(source: SourceText) -> Sequence[Mapping[str, Any]] | None:
    """Return the rows, or None for a file of another tool; CSV cells become numbers."""
    head = source.head.lstrip()
    if '"build_commit"' not in head and not head.startswith("build_commit,"):
        return None
    if head.startswith("["):
        found: Any = source.json()
    elif head.startswith("{"):
        found = json_lines(source.text)
    else:
        lines = source.csv_rows()
        found = [
            {name: _cell(cell) for name, cell in zip(lines[0][1], cells, strict=True)}
            for _, cells in lines[1:]
            if len(cells) == len(lines[0][1])
        ]
    if not isinstance(found, list) or not found:
        return None
    return found if all(isinstance(row, dict) and row.keys() >= _KEYS for row in found) else None


def _cell(text: str) -> int | float | str:
    whole = integer(text)
    value = number(text) if whole is None else whole
    return text if value is None else value


def _recognises(source: SourceText) -> bool:
    head = source.head
    return "build_commit" in head and "n_prompt" in head and "avg_ts" in head


def _read(source: SourceText, facts: ReadingFacts) -> ToolResult:
    rows = _rows(source)
    if rows is None:
        refuse(source.document, "is no JSON or CSV of llama-bench", "unknown-layout")
    points: list[Point] = []
    skipped: list[str] = []
    bad: list[str] = []
    for index, row in enumerate(rows):
        place = f"row {index}"
        fault = _fault(row)
        if row["n_prompt"] and row["n_gen"]:
            skipped.append(f"{place}: prompt and generation together are no one operation")
        elif fault is not None:
            bad.append(f"{place}: {fault}")
        else:
            points.append(_point(row, place))
    first = rows[0]
    return ToolResult(
        tool="llama-bench",
        revision=str(first["build_commit"]),
        points=points,
        time=_time(rows, source.document, facts),
        environment=Environment(
            device_names=tuple(dict.fromkeys(_devices(rows))),
            runtimes={"llama.cpp": str(first["build_commit"])},
            processor=str(first.get("cpu_info") or "") or None,
        ),
        skipped=tuple(skipped),
        bad_rows=tuple(bad),
        remarks=summary_remark(
            [f"row {index}" for index, row in enumerate(rows) if not row.get("samples_ns")]
        ),
    )


def _devices(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    found = [str(row.get("gpu_info") or "") for row in rows]
    return [name.strip() for text in found for name in text.split(",") if name.strip()]


def _time(
    rows: Sequence[Mapping[str, Any]], document: str, facts: ReadingFacts
) -> StatedTime | None:
    times = [str(row["test_time"]) for row in rows if row.get("test_time")]
    return stated_time(min(times), document=document, zone=facts.zone) if times else None


def _fault(row: Mapping[str, Any]) -> str | None:
    """Say why time and tokens a second do not belong together, or None."""
    tokens = row["n_prompt"] or row["n_gen"]
    time, rate = finite(row.get("avg_ns")), finite(row.get("avg_ts"))
    if not isinstance(tokens, int) or not rate or not time:
        return "has no tokens, time or rate"
    # The mean of rates is a little above the rate of the mean.
    spread = (finite(row.get("stddev_ts")) or 0) / rate
    if abs(tokens / time * 1e9 / rate - 1) > _TOLERANCE + spread**2:
        return f"{tokens} tokens in {time:.6g} ns are not {rate:.6g} tokens/s"
    times, rates = row.get("samples_ns") or (), row.get("samples_ts") or ()
    if times and rates and len(times) != len(rates):
        return f"has {len(times)} times and {len(rates)} rates"
    return None


def _point(row: Mapping[str, Any], place: str) -> Point:
    is_prompt = bool(row["n_prompt"])
    times = tuple(t for t in map(finite, row.get("samples_ns") or ()) if t is not None)
    rates = tuple(r for r in map(finite, row.get("samples_ts") or ()) if r is not None)
    metrics: dict[MetricColumn, MetricCell] = {}
    if times:
        metrics = {_LATENCY: times, _THROUGHPUT: rates or None}
    else:
        for name, key, unit in (("latency", "ns", "ns"), ("throughput", "ts", "tokens/s")):
            metrics[MetricColumn(name, "mean", unit)] = finite(row[f"avg_{key}"])
            metrics[MetricColumn(name, "std", unit)] = finite(row.get(f"stddev_{key}")) or None
    shape = "prompt_tokens" if is_prompt else "output_tokens"
    dimensions: dict[str, Scalar | None] = {
        "model": str(row["model_type"]),
        shape: row["n_prompt"] or row["n_gen"],
        "context_tokens": row.get("n_depth"),
        "runtime": "llama.cpp",
        "runtime_revision": str(row["build_commit"]),
    }
    sources: dict[str, RawCell] = {
        name: cell if isinstance(cell, str | int | float | None) else str(cell)
        for name, cell in row.items()
        if name not in _READ
    }
    return Point(
        place=place,
        operation="llm_prefill" if is_prompt else "llm_decode",
        dimensions=dimensions,
        metrics=metrics,
        sources={name: _plain(cell) for name, cell in sources.items()},
        protocol=protocol_of(warmup=None, repetitions=len(times) or None),
    )


def _plain(cell: RawCell) -> RawCell:
    # Booleans may be true, 1 or -1 by version, and big sizes are no float64 integers.
    if isinstance(cell, bool):
        return str(cell).lower()
    return str(cell) if isinstance(cell, int) and abs(cell) > 2**53 - 1 else cell


LLAMA_BENCH = ToolImporter(
    name="llama-bench",
    version=1,
    summary="Import prompt and generation rates of llama-bench: JSON, JSON Lines or CSV.",
    recognises=_recognises,
    read=_read,
)

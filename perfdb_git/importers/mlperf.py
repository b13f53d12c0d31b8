"""MLPerf inference: the summary that loadgen writes (``mlperf_log_summary.txt``).

Only valid performance runs are records. The summary does not name the model, which must be stated;
seeds exceed 2⁵³ and are not read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from perfdb_git.importers.cells import RawCell
from perfdb_git.importers.layouts import integer, number, snake_case
from perfdb_git.importers.source_text import SourceText, refuse
from perfdb_git.importers.tool_results import (
    UNKNOWN_PROTOCOL,
    MetricCell,
    MetricColumn,
    Point,
    ReadingFacts,
    ToolImporter,
    ToolResult,
)

_TITLE = "MLPerf Results Summary"
_ENTRY = re.compile(r"^\s*([^:]+?)\s*:\s*(.*?)\s*$")
_LATENCIES: Mapping[str, str] = {
    "Min latency (ns)": "min",
    "Max latency (ns)": "max",
    "Mean latency (ns)": "mean",
    "50.00 percentile latency (ns)": "median",
    "90.00 percentile latency (ns)": "p90",
    "95.00 percentile latency (ns)": "p95",
    "99.00 percentile latency (ns)": "p99",
    "99.90 percentile latency (ns)": "p999",
}
_TOKENS: Mapping[str, str] = {
    "first_token_latency": "First Token latency",
    "per_output_token_latency": "Time to Output Token",
}
"""Since version 4, of models that generate text; percentiles begin in lower case."""

_RATES: Mapping[str, tuple[str, str]] = {
    "Samples per second": ("sample_throughput", "ops/s"),
    "Completed samples per second": ("sample_throughput", "ops/s"),
    "Scheduled samples per second": ("scheduled_throughput", "ops/s"),
    "Tokens per second": ("throughput", "tokens/s"),
    "Completed tokens per second": ("throughput", "tokens/s"),
}
_SCENARIOS = {
    "SingleStream": "single_stream",
    "Single Stream": "single_stream",
    "MultiStream": "multi_stream",
    "Multi Stream": "multi_stream",
    "Server": "server",
    "Offline": "offline",
}
_PARAMETERS = ("samples_per_query", "target_qps", "min_duration (ms)", "min_query_count")


def _recognises(source: SourceText) -> bool:
    return f"\n{_TITLE}\n" in f"\n{source.head}"


def _read(source: SourceText, facts: ReadingFacts) -> ToolResult:
    if not _recognises(source) or source.text.count(_TITLE) != 1:
        refuse(source.document, "is not the summary of one run of loadgen", "unknown-layout")
    matches = map(_ENTRY.match, source.lines)
    found: dict[str, str] = {match[1]: match[2] for match in matches if match}
    scenario = _SCENARIOS.get(found.get("Scenario", ""))
    if scenario is None:
        refuse(source.document, f"is of scenario {found.get('Scenario')!r}", "unknown-layout")
    mode = found.get("Mode", "")
    if not mode.startswith("Performance"):
        refuse(source.document, f"is a run for {mode!r}, not for performance", "failed-run")
    if found.get("Result is") != "VALID":
        refuse(
            source.document,
            f"is a run whose result is {found.get('Result is')}",
            "failed-run",
            remedy="only valid runs are evidence",
        )
    metrics: dict[MetricColumn, MetricCell] = {}
    for title, statistic in _LATENCIES.items():
        named = {"latency": title}
        named |= {name: _token_title(title, words) for name, words in _TOKENS.items()}
        for name, own in named.items():
            if own in found:
                column = MetricColumn(name, statistic, "ns")  # type: ignore[arg-type]
                metrics[column] = number(found[own])
    for title, (name, unit) in _RATES.items():
        if title in found:
            metrics[MetricColumn(name, "mean", unit)] = number(found[title])
    if not metrics:
        refuse(source.document, "has no latencies and no rates", "unknown-layout")
    sources: dict[str, RawCell] = {
        snake_case(name): integer(found[name]) if integer(found[name]) is not None else found[name]
        for name in _PARAMETERS
        if name in found
    }
    point = Point(
        place="summary",
        operation="inference_run",
        dimensions={"scenario": scenario},
        metrics=metrics,
        sources={"sut": found.get("SUT name"), **sources},
        protocol=replace(UNKNOWN_PROTOCOL, synchronization="loadgen receives the response"),
    )
    return ToolResult(tool="mlperf-loadgen", revision=None, points=[point])


def _token_title(title: str, words: str) -> str:
    """Return the title of a token's time like that of a whole latency."""
    own = words if title.startswith(("Min", "Max", "Mean")) else words.lower()
    return title.replace("latency", own, 1)


MLPERF = ToolImporter(
    name="mlperf",
    version=1,
    summary="Import valid performance runs of MLPerf inference: loadgen's summary.",
    recognises=_recognises,
    read=_read,
)

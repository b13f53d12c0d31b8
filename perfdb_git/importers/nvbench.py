"""NVBench: its JSON of version 1 and the layouts before it, and its CSV.

Numbers of the JSON are strings. Times are seconds of one isolated launch, between CUDA events.
NVBench discards trials under a lowered clock, so that a state may end without a single sample; it
is listed as skipped and is no time of zero. The CSV prints noise as a fraction under a header that
says percent, so its noise is not read. Samples that were kept lie in files beside the JSON.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from perfdb_git.importers.cells import RawCell
from perfdb_git.importers.named_benchmarks import benchmark_point, summary_metrics, summary_remark
from perfdb_git.importers.nvbench_layouts import (
    CSV_HEADER,
    State,
    number_of,
    states_of_csv,
    states_of_json,
)
from perfdb_git.importers.source_text import SourceText, refuse
from perfdb_git.importers.tool_results import (
    UNKNOWN_PROTOCOL,
    Environment,
    MetricCell,
    MetricColumn,
    Point,
    ReadingFacts,
    Remark,
    ToolImporter,
    ToolResult,
)
from perfdb_git.model.values import JsonValue

_MEASURES = (
    ("nv/cold", "gpu", "CUDA events around each isolated launch"),
    ("nv/cpu_only", "cpu", "host clock around each call"),
)
"""Prefix of the summaries, the time that is the latency, and how it is taken; best first."""

_RATES = {
    "bw/item_rate": MetricColumn("item_throughput", "mean", "ops/s"),
    "bw/global/bytes_per_second": MetricColumn("bandwidth", "mean", "B/s"),
    "sm_clock_rate/mean": MetricColumn("sm_clock", "mean", "Hz"),
}
_SAMPLE_FILE = "nv/json/bin:nv/cold/sample_times"


def _recognises(source: SourceText) -> bool:
    value = source.json_object()
    if value is None:
        header = source.head.split("\n")[0].rstrip("\r").split(",")
        return tuple(header[:3]) == CSV_HEADER
    benchmarks = value.get("benchmarks")
    return (
        isinstance(value.get("devices"), list)
        and isinstance(benchmarks, list)
        and all(isinstance(item, dict) and "states" in item for item in benchmarks)
    )


def _read(source: SourceText, facts: ReadingFacts) -> ToolResult:
    if not _recognises(source):
        refuse(source.document, "is no output of NVBench", "unknown-layout")
    is_json = source.looks_like_json
    states = states_of_json(source.json(), source.document) if is_json else states_of_csv(source)
    points: list[Point] = []
    skipped: list[str] = []
    for state in states:
        found = _point(state)
        if isinstance(found, str):
            skipped.append(f"{state.place}: {state.name} was skipped: {found}")
        else:
            points.append(found)
    return ToolResult(
        tool="nvbench",
        revision=_revision(source) if is_json else None,
        points=points,
        environment=Environment(device_names=_devices(states, source.document)),
        observed=_observed(source) if is_json else {},
        skipped=tuple(skipped),
        remarks=_remarks(states, points),
    )


def _point(state: State) -> Point | str:
    """Return the record of a state, or why it has none."""
    if state.skipped is not None:
        return state.skipped
    for prefix, clock, how in _MEASURES:
        count = number_of(state, f"{prefix}/sample_size")
        if count == 0:
            return "it ended without a sample"
        if number_of(state, f"{prefix}/time/{clock}/mean") is not None:
            return _measured(state, prefix, clock, how, count)
    return "it states no time"


def _measured(state: State, prefix: str, clock: str, how: str, count: float | None) -> Point:
    runs = None if count is None else int(count)
    metrics: dict[MetricColumn, MetricCell] = {}
    for name, timer in (("latency", clock), ("cpu_time", "cpu")):
        if name == "latency" or timer != clock:
            metrics |= _times(state, f"{prefix}/time/{timer}", name, runs)
    for tag, column in _RATES.items():
        value = number_of(state, f"{prefix}/{tag}")
        if value is not None:
            metrics[column] = value
    sources: dict[str, RawCell] = {"device_id": state.device_id}
    return benchmark_point(
        state.place,
        state.name,
        metrics,
        protocol=replace(UNKNOWN_PROTOCOL, repetitions=runs or None, synchronization=how),
        sources=sources,
    )


def _times(
    state: State, prefix: str, name: str, count: int | None
) -> dict[MetricColumn, MetricCell]:
    mean = number_of(state, f"{prefix}/mean")
    if mean is None:
        return {}
    deviation = number_of(state, f"{prefix}/stdev/absolute")
    noise = number_of(state, f"{prefix}/stdev/relative")
    if deviation is None and noise is not None:
        deviation = noise * mean
    found = {"mean": mean, "std": deviation}
    for statistic in ("median", "min", "max"):
        value = number_of(state, f"{prefix}/{statistic}")
        if value is not None:
            found[statistic] = value
    # Fewer than five samples have no deviation, which NVBench prints as infinite.
    kept = {key: value for key, value in found.items() if value is not None}
    return summary_metrics(kept, "s", name=name, count=count)


def _devices(states: Sequence[State], document: str) -> tuple[str, ...]:
    names = sorted({state.device for state in states if state.device is not None})
    if len(names) > 1:
        refuse(
            document,
            f"holds states of several devices: {', '.join(names)}",
            "several-devices",
            remedy="run each device by itself: --device ID",
        )
    return tuple(names)


def _revision(source: SourceText) -> str | None:
    stated = source.json().get("meta", {}).get("version", {}).get("nvbench", {})
    revision = stated.get("string")
    return None if revision is None else str(revision)


def _observed(source: SourceText) -> dict[str, JsonValue]:
    """Keep the clock that NVBench compares the device's with."""
    rates = {device.get("sm_default_clock_rate") for device in source.json()["devices"]}
    rate = rates.pop() if len(rates) == 1 else None
    if not isinstance(rate, int | float):
        return {}
    return {"sm_default_clock_rate": {"value": rate, "unit": "Hz"}}


def _remarks(states: Sequence[State], points: Sequence[Point]) -> tuple[Remark, ...]:
    remarks = list(summary_remark([point.place for point in points]))
    if any(_SAMPLE_FILE in state.files for state in states):
        text = "the samples lie in files beside the JSON, which are not read"
        remarks.append(Remark(code="samples-elsewhere", text=text))
    return tuple(remarks)


NVBENCH = ToolImporter(
    name="nvbench",
    version=1,
    summary="Import benchmarks of NVBench: its JSON or CSV.",
    recognises=_recognises,
    read=_read,
)

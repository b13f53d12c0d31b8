"""iperf3's JSON: what the receiver counted, and the sender's intervals as samples.

Round-trip times are in us, which the file does not say; ``omit`` are seconds of warm-up.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from perfdb_git.importers.source_text import SourceText, refuse
from perfdb_git.importers.timestamps import StatedTime, stated_time
from perfdb_git.importers.tool_results import (
    UNKNOWN_PROTOCOL,
    Environment,
    MetricCell,
    MetricColumn,
    Point,
    ReadingFacts,
    ToolImporter,
    ToolResult,
    finite,
)

_BANDWIDTH = MetricColumn("bandwidth", "mean", "bit/s")
_SENT = MetricColumn("sent_bandwidth", "mean", "bit/s")
_INTERVALS = MetricColumn("sent_bandwidth", "sample", "bit/s")
_ROUND_TRIP = "round_trip_latency"


def _recognises(source: SourceText) -> bool:
    value = source.json_object()
    return (
        value is not None
        and {"start", "intervals", "end"} <= value.keys()
        and isinstance(value["start"], dict)
        and str(value["start"].get("version", "")).startswith("iperf ")
    )


def _read(source: SourceText, facts: ReadingFacts) -> ToolResult:
    value = source.json()
    if not _recognises(source):
        refuse(source.document, "is no JSON of iperf3", "unknown-layout")
    if "error" in value:
        refuse(source.document, f"ended with an error: {value['error']}", "failed-run")
    start, end = value["start"], value["end"]
    test = start.get("test_start") or {}
    if test.get("bidir") or "sum_sent_bidir_reverse" in end:
        refuse(
            source.document,
            "ran both directions at once",
            "ambiguous-direction",
            remedy="run and import each direction by itself",
        )
    point = _point(value, test)
    system = str(start.get("system_info", "")).split()
    linked = start.get("connected") or []
    hosts = {str(link.get(key)) for link in linked for key in ("local_host", "remote_host")}
    hosts.add(str((start.get("connecting_to") or {}).get("host", "")))
    return ToolResult(
        tool="iperf3",
        revision=str(start["version"]).removeprefix("iperf "),
        points=[point],
        time=_time(start, source.document, facts),
        environment=Environment(
            kernel=f"{system[0]} {system[2]}" if len(system) > 2 else None,
            hosts=tuple(sorted({*hosts, *system[1:2]} - {"", "None"})),
        ),
    )


def _time(start: Mapping[str, Any], document: str, facts: ReadingFacts) -> StatedTime | None:
    stamp = start.get("timestamp") or {}
    seconds = finite(stamp.get("timesecs"))
    if not stamp:
        return None
    return stated_time(
        str(stamp.get("time")),
        document=document,
        epoch_ms=None if seconds is None else 1000 * seconds,
        zone=facts.zone,
    )


def _point(value: Mapping[str, Any], test: Mapping[str, Any]) -> Point:
    end = value["end"]
    transport = str(test.get("protocol", "")).lower() or None
    metrics: dict[MetricColumn, MetricCell] = {}
    reasons: dict[str, str] = {}
    received = finite((end.get("sum_received") or {}).get("bits_per_second"))
    sent = finite((end.get("sum_sent") or end.get("sum") or {}).get("bits_per_second"))
    metrics[_BANDWIDTH] = received or None
    if not received:
        reasons[_BANDWIDTH.name] = "the file has no count of the receiver"
    metrics[_SENT] = sent
    counted = [item["sum"] for item in value["intervals"] if not item["sum"].get("omitted")]
    rates = tuple(
        rate
        for rate in (finite(item.get("bits_per_second")) for item in counted)
        if rate is not None
    )
    if rates:
        metrics[_INTERVALS] = rates
    metrics |= _round_trips(end)
    if transport == "udp":
        total = end.get("sum") or {}
        metrics[MetricColumn("jitter", "sample", "ms")] = finite(total.get("jitter_ms"))
        metrics[MetricColumn("lost_packets", "sample", "1")] = finite(total.get("lost_packets"))
    omitted = test.get("omit")
    notes = [f"the first {omitted} s were left out"] if omitted else []
    return Point(
        place="/end",
        operation="network_stream",
        dimensions={"transport": transport, "concurrency": test.get("num_streams")},
        metrics=metrics,
        sources={
            "block_bytes": test.get("blksize"),
            "seconds": test.get("duration"),
            "reverse": test.get("reverse"),
            "retransmits": (end.get("sum_sent") or {}).get("retransmits"),
        },
        protocol=replace(
            UNKNOWN_PROTOCOL, synchronization="the receiver counts", notes=tuple(notes)
        ),
        null_reasons=reasons,
    )


def _round_trips(end: Mapping[str, Any]) -> dict[MetricColumn, MetricCell]:
    senders = [stream.get("sender") or {} for stream in end.get("streams") or ()]
    known = [item for item in senders if finite(item.get("mean_rtt"))]
    if not known or len(known) != len(senders):
        return {}
    cells: dict[MetricColumn, MetricCell] = {
        MetricColumn(_ROUND_TRIP, "min", "us"): min(float(item["min_rtt"]) for item in known),
        MetricColumn(_ROUND_TRIP, "max", "us"): max(float(item["max_rtt"]) for item in known),
    }
    if len(known) == 1:
        # Streams send different numbers of segments, so their means have no plain mean.
        cells[MetricColumn(_ROUND_TRIP, "mean", "us")] = float(known[0]["mean_rtt"])
    return cells


IPERF3 = ToolImporter(
    name="iperf3",
    version=1,
    summary="Import network runs of iperf3: its JSON.",
    recognises=_recognises,
    read=_read,
)

"""perftest's tables (ib_write_bw, ib_send_lat and their like).

``MB/sec`` of older versions always meant MiB, as newer ones say; ``Gb/sec`` is 10⁹ bit. Where the
message rate is printed, rate times size must be the bandwidth. The JSON states no unit and is
refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from perfdb_git.importers.layouts import hides_row, integer, number
from perfdb_git.importers.source_text import SourceText, refuse
from perfdb_git.importers.tool_results import (
    UNKNOWN_PROTOCOL,
    MetricCell,
    MetricColumn,
    Point,
    ReadingFacts,
    Remark,
    ToolImporter,
    ToolResult,
)
from perfdb_git.model.values import Scalar
from perfdb_git.operations.units import UNITS

_TITLE = re.compile(r"^\s*(RDMA_Write|RDMA_Read|Send|Atomic)\b(.*?)\b(BW|Latency) Test")
_VERBS = {"RDMA_Write": "write", "RDMA_Read": "read", "Send": "send", "Atomic": "atomic"}
_LINKS = {"IB": "infiniband", "Ethernet": "ethernet"}
_SETTING = re.compile(r"(Device|Number of qps|Mtu|Link type|Connection type)\s*:\s*(\S+)")
_BANDWIDTH_UNITS = {"MiB/sec": "MiB/s", "MB/sec": "MiB/s", "Gb/sec": "Gbit/s"}
_TITLES: Mapping[str, tuple[str, str, str]] = {
    "t_min[usec]": ("latency", "min", "us"),
    "t_max[usec]": ("latency", "max", "us"),
    "t_typical[usec]": ("latency", "median", "us"),
    "t_avg[usec]": ("latency", "mean", "us"),
    "99% percentile[usec]": ("latency", "p99", "us"),
    "99.9% percentile[usec]": ("latency", "p999", "us"),
}
_COLUMN = re.compile(
    r"#bytes|#iterations|BW peak\[[^\]]+\]|BW average\[[^\]]+\]|MsgRate\[Mpps\]"
    r"|t_(?:min|max|typical|avg|stdev)\[usec\]|99(?:\.9)?% percentile\[usec\]|tps average"
    r"|CPU_Util\[%\]"
)
_RATE = "MsgRate[Mpps]"
_TOLERANCE = 0.002
_STDEV = "t_stdev[usec]"


def _recognises(source: SourceText) -> bool:
    return re.search(r"(?m)^\s*#bytes\s+#iterations\s", source.head) is not None


def _read(source: SourceText, facts: ReadingFacts) -> ToolResult:
    title = next((match for match in map(_TITLE.search, source.lines) if match), None)
    tops = [place for place, line in enumerate(source.lines) if line.strip().startswith("#bytes")]
    if title is None or not tops:
        refuse(source.document, "has no title or no table of perftest", "unknown-layout")
    if len(tops) > 1:
        refuse(source.document, f"holds {len(tops)} tables", "several-runs")
    names = _columns(source.lines[tops[0]], source.document, tops[0] + 1)
    settings = dict(match for line in source.lines for match in _SETTING.findall(line))
    points: list[Point] = []
    bad: list[str] = []
    for place in range(tops[0] + 1, len(source.lines)):
        words = source.lines[place].split()
        if not words or integer(words[0]) is None:
            if hides_row(words, len(names)):
                bad.append(f"line {place + 1}: has a row behind something else")
            continue
        if len(words) != len(names):
            bad.append(f"line {place + 1}: has {len(words)} words, the header {len(names)}")
            continue
        row = dict(zip(names, words, strict=True))
        fault = _fault(row)
        if fault is not None:
            bad.append(f"line {place + 1}: {fault}")
        else:
            points.append(_point(row, title, settings, f"line {place + 1}"))
    return ToolResult(
        tool="perftest",
        revision=None,
        points=points,
        bad_rows=tuple(bad),
        remarks=_remarks(names),
    )


def _columns(line: str, document: str, number_: int) -> list[str]:
    names = _COLUMN.findall(line)
    rest = _COLUMN.sub("", line).strip()
    units = {name[name.index("[") + 1 : -1] for name in names if name.startswith("BW")}
    if rest or names[:2] != ["#bytes", "#iterations"] or not units <= _BANDWIDTH_UNITS.keys():
        refuse(
            document,
            f"has columns of no known layout: {line.strip()}",
            "unknown-layout",
            line=number_,
        )
    return names


def _remarks(names: Sequence[str]) -> tuple[Remark, ...]:
    if any("MB/sec" in name for name in names):
        text = "MB/sec of this version is read as MiB/s, which is what it always counted"
        return (Remark(code="mb-is-mib", text=text),)
    return ()


def _rate_column(name: str) -> MetricColumn | None:
    match = re.fullmatch(r"BW (peak|average)\[([^\]]+)\]", name)
    if match is None:
        return None
    statistic = "max" if match[1] == "peak" else "mean"
    return MetricColumn("bandwidth", statistic, _BANDWIDTH_UNITS[match[2]])  # type: ignore[arg-type]


def _fault(row: Mapping[str, str]) -> str | None:
    for name, text in row.items():
        if number(text) is None:
            return f"column {name}: {text!r} is not a number"
    rate, size = number(row.get(_RATE, "0")), number(row["#bytes"])
    for name, text in row.items():
        column = _rate_column(name)
        if column is None or column.statistic != "mean" or not rate or size is None:
            continue
        stated = UNITS[column.unit].to_si(float(text))
        if stated == 0:
            return f"column {name} is 0, and the rate is not"
        if abs(rate * 1e6 * size / stated - 1) > _TOLERANCE + 0.5e-6 / rate:
            return (
                f"rate times size is {rate * 1e6 * size:.6g} B/s, the table says {stated:.6g} B/s"
            )
    return None


def _point(
    row: Mapping[str, str], title: re.Match[str], settings: Mapping[str, str], place: str
) -> Point:
    both = "Bidirectional" in title[2]
    metrics: dict[MetricColumn, MetricCell] = {}
    for name, text in row.items():
        value = number(text)
        column = _rate_column(name)
        if column is not None:
            column = replace(column, name="bidirectional_bandwidth") if both else column
            # A run of a set duration has no peak and prints 0.
            metrics[column] = value or None
        elif name in _TITLES:
            metric, statistic, unit = _TITLES[name]
            metrics[MetricColumn(metric, statistic, unit)] = value  # type: ignore[arg-type]
        elif name == _RATE:
            column = MetricColumn("message_throughput", "mean", "ops/s")
            metrics[column] = None if value is None else value * 1e6
    dimensions: dict[str, Scalar | None] = {
        "message_bytes": integer(row["#bytes"]),
        "rdma_verb": _VERBS[title[1]],
        "queue_pairs": integer(settings.get("Number of qps", "")),
        "link_class": _LINKS.get(settings.get("Link type", "")),
    }
    sources = {
        "connection": settings.get("Connection type"),
        "mtu": settings.get("Mtu"),
        "iterations": integer(row["#iterations"]),
    }
    if _STDEV in row:
        # Which divisor it has is not documented, so it is no statistic of the record.
        sources[_STDEV] = row[_STDEV]
    return Point(
        place=place,
        operation="rdma_transfer",
        dimensions=dimensions,
        metrics=metrics,
        sources=sources,
        protocol=replace(
            UNKNOWN_PROTOCOL,
            repetitions=integer(row["#iterations"]) or None,
            synchronization="completion queue",
        ),
    )


PERFTEST = ToolImporter(
    name="perftest",
    version=1,
    summary="Import RDMA bandwidths and latencies of perftest: its tables.",
    recognises=_recognises,
    read=_read,
)

"""OSU micro-benchmarks' tables. MB/s is 10⁶ bytes; sizes become those of the vocabulary.

The number of ranks is in no table and must be stated. Minimum and maximum of a collective are over
the ranks' own averages, not over iterations. The warm-up is fixed in the program and not printed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from perfdb_git.importers.layouts import hides_row, integer, number, without_rank_tags
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
from perfdb_git.model.values import Scalar

_TITLE = re.compile(r"#\s*OSU (\S+) (?:(.*?) )?(Latency|Bandwidth) Test v(\S+)")
_OPERATIONS: Mapping[str, tuple[str, bool]] = {
    "": ("send_recv", False),
    "Bi-Directional": ("send_recv", False),
    "Allreduce": ("all_reduce", False),
    "Reduce": ("reduce", False),
    "Broadcast": ("broadcast", False),
    "Reduce_scatter": ("reduce_scatter", False),
    "Allgather": ("all_gather", True),
    "Gather": ("gather", True),
    "Scatter": ("scatter", True),
    "All-to-All Personalized Exchange": ("all_to_all", True),
    "All-to-All": ("all_to_all", True),
    "Alltoall": ("all_to_all", True),
}
"""Title to operation, and whether the printed size is one rank's share of ``message_bytes``."""

_COLUMNS: Mapping[str, MetricColumn | None] = {
    "latency(us)": MetricColumn("latency", "mean", "us"),
    "avglatency(us)": MetricColumn("latency", "mean", "us"),
    "avglat(us)": MetricColumn("latency", "mean", "us"),
    "minlatency(us)": MetricColumn("fastest_rank_latency", "mean", "us"),
    "minlat(us)": MetricColumn("fastest_rank_latency", "mean", "us"),
    "maxlatency(us)": MetricColumn("slowest_rank_latency", "mean", "us"),
    "maxlat(us)": MetricColumn("slowest_rank_latency", "mean", "us"),
    "p50taillat(us)": MetricColumn("latency", "median", "us"),
    "p90taillat(us)": MetricColumn("latency", "p90", "us"),
    "p99taillat(us)": MetricColumn("latency", "p99", "us"),
    "bandwidth(mb/s)": MetricColumn("bandwidth", "mean", "MB/s"),
    "iterations": None,
    "validation": None,
}
"""Column to metric by its title without spaces; None is no metric."""

_RANKS = ("fastest_rank_latency", "slowest_rank_latency")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    operation: str
    is_share: bool
    bidirectional: bool
    implementation: str
    version: str


def _recognises(source: SourceText) -> bool:
    head = without_rank_tags(source.head.split("\n"))
    return any(re.match(r"#\s*OSU \S+ .*Test v\d", line) for line in head)


def _read(source: SourceText, facts: ReadingFacts) -> ToolResult:
    lines = without_rank_tags(source.lines)
    run = _run(lines, source.document)
    ranks = _ranks(run, facts, source.document)
    top, names = _header(lines, source.document)
    points: list[Point] = []
    bad: list[str] = []
    for place in range(top + 1, len(lines)):
        words = lines[place].split()
        if not words or words[0].startswith("#"):
            continue
        size = integer(words[0])
        if size is None:
            if hides_row(words, len(names)):
                bad.append(f"line {place + 1}: has a row behind something else")
        elif len(words) != len(names):
            bad.append(f"line {place + 1}: has {len(words)} words, the header {len(names)}")
        else:
            row = dict(zip(names, words, strict=True))
            fault = _fault(row)
            if fault is not None:
                bad.append(f"line {place + 1}: {fault}")
            else:
                points.append(_point(run, size, ranks, row, f"line {place + 1}"))
    return ToolResult(
        tool="osu-micro-benchmarks",
        revision=run.version,
        points=_with_repetitions(points),
        bad_rows=tuple(bad),
    )


def _run(lines: Sequence[str], document: str) -> _Run:
    titles = [match for match in map(_TITLE.search, lines) if match]
    if len(titles) != 1:
        refuse(
            document,
            f"holds {len(titles)} latency or bandwidth tests of OSU",
            "several-runs" if titles else "unknown-layout",
            remedy="one test a file: latency, bandwidth, or a blocking collective's latency",
        )
    kind, name = titles[0][1], titles[0][2] or ""
    found = _OPERATIONS.get(name)
    if found is None or not kind.startswith("MPI"):
        refuse(
            document,
            f"is of the test {kind} {name!r}, which is no operation of the vocabulary",
            "unknown-operation",
        )
    return _Run(
        operation=found[0],
        is_share=found[1],
        bidirectional=name == "Bi-Directional",
        implementation=kind,
        version=titles[0][4],
    )


def _ranks(run: _Run, facts: ReadingFacts, document: str) -> int | None:
    """Return the number of ranks where the operation or the user says it."""
    if run.operation == "send_recv":
        return 2
    stated = facts.dimensions.get("participants")
    if run.is_share and not isinstance(stated, int):
        refuse(
            document,
            "prints the bytes of one rank's share and not how many ranks there were",
            "missing-fact",
            remedy="--set participants=…",
        )
    return stated if isinstance(stated, int) else None


def _header(lines: Sequence[str], document: str) -> tuple[int, Sequence[str]]:
    tops = [i for i, line in enumerate(lines) if re.match(r"#\s*Size\b", line)]
    if len(tops) != 1:
        refuse(document, f"has {len(tops)} header lines '# Size …'", "unknown-layout")
    line = lines[tops[0]].lstrip("# ").strip()
    names = [title.replace(" ", "").lower() for title in re.split(r"\s{2,}|\t+", line)]
    if len(names) < 2 or any(name not in _COLUMNS for name in names[1:]):
        refuse(
            document,
            f"has columns of no known layout: {line}",
            "unknown-layout",
            line=tops[0] + 1,
        )
    return tops[0], names


def _fault(row: Mapping[str, str]) -> str | None:
    if row.get("validation", "Pass") != "Pass":
        return "failed its validation"
    for name, text in row.items():
        if _COLUMNS.get(name) is not None and number(text) is None:
            return f"column {name}: {text!r} is not a number"
    values = {
        column.name: float(text)
        for name, text in row.items()
        if (column := _COLUMNS.get(name)) is not None
    }
    fastest, slowest = (values.get(name) for name in _RANKS)
    if fastest is not None and slowest is not None and fastest > slowest:
        return "its fastest rank is slower than its slowest"
    return None


def _point(run: _Run, size: int, ranks: int | None, row: Mapping[str, str], place: str) -> Point:
    whole = size * ranks if run.is_share and ranks is not None else size
    dimensions: dict[str, Scalar | None] = {"message_bytes": whole, "runtime": "mpi"}
    if ranks is not None:
        dimensions["participants"] = ranks
    metrics: dict[MetricColumn, MetricCell] = {}
    for name, text in row.items():
        column = _COLUMNS.get(name)
        if column is not None:
            if run.bidirectional and column.name == "bandwidth":
                column = replace(column, name="bidirectional_bandwidth")
            metrics[column] = number(text)
    sources: dict[str, str | int | float | None] = {"build": run.implementation}
    if "iterations" in row:
        sources["iterations"] = integer(row["iterations"])
    return Point(
        place=place,
        operation=run.operation,
        dimensions=dimensions,
        metrics=metrics,
        sources={**sources, "share_bytes": size} if run.is_share else sources,
        protocol=replace(UNKNOWN_PROTOCOL, synchronization="MPI_Wtime around all iterations"),
    )


def _with_repetitions(points: Sequence[Point]) -> list[Point]:
    """Return the points with their iterations in the protocol, where all have the same."""
    counts = {point.sources.get("iterations") for point in points}
    if len(counts) != 1 or None in counts:
        return list(points)
    (count,) = counts
    assert isinstance(count, int)
    return [replace(point, protocol=replace(point.protocol, repetitions=count)) for point in points]


OSU = ToolImporter(
    name="osu",
    version=1,
    summary="Import OSU micro-benchmarks: latency, bandwidth and blocking collectives.",
    recognises=_recognises,
    read=_read,
)

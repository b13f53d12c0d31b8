"""What the tables of collective benchmarks share: names, element types, bandwidth factors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from perfdb_git.importers.cells import RawCell
from perfdb_git.importers.source_text import refuse
from perfdb_git.importers.tool_results import (
    UNKNOWN_PROTOCOL,
    MetricCell,
    MetricColumn,
    Point,
    ReadingFacts,
)
from perfdb_git.model.records import MeasurementProtocol
from perfdb_git.model.values import Scalar

PROGRAMS: Mapping[str, str] = {
    "all_reduce_perf": "all_reduce",
    "all_gather_perf": "all_gather",
    "reduce_scatter_perf": "reduce_scatter",
    "alltoall_perf": "all_to_all",
    "broadcast_perf": "broadcast",
    "reduce_perf": "reduce",
    "gather_perf": "gather",
    "scatter_perf": "scatter",
    "sendrecv_perf": "send_recv",
}
"""Program to operation; others, such as hypercube_perf, measure no operation of the vocabulary."""

ELEMENT_TYPES: Mapping[str, str] = {
    "double": "float64",
    "float": "float32",
    "half": "float16",
    "bfloat16": "bfloat16",
    "f8e4m3": "float8",
    "fp8_e4m3": "float8",
    "f8e5m2": "float8_e5m2",
    "fp8_e5m2": "float8_e5m2",
    "int8": "int8",
    "uint8": "uint8",
    "int32": "int32",
    "uint32": "uint32",
    "int64": "int64",
    "uint64": "uint64",
}

REDUCING = frozenset({"all_reduce", "reduce_scatter", "reduce"})
_SHARE = frozenset({"all_gather", "reduce_scatter", "all_to_all", "gather", "scatter"})
_RATIO_TOLERANCE = 0.01
_LEAST_TELLING = 2.0
"""GB/s; below it, rounding to two decimals alone may exceed that tolerance."""

_TIME_TOLERANCE = 0.03

LATENCY = MetricColumn("latency", "mean", "us")
LATENCY_SAMPLES = MetricColumn("latency", "sample", "us")
CPU_TIME = MetricColumn("cpu_time", "mean", "us")
ALGORITHM_BANDWIDTH = MetricColumn("algorithm_bandwidth", "mean", "GB/s")
BUS_BANDWIDTH = MetricColumn("bus_bandwidth", "mean", "GB/s")
WRONG = MetricColumn("wrong_elements", "sample", "1")

FAILED = "the tool found wrong results, so the time is none of this operation"
UNCHECKED = "results were not checked"


def bus_factor(operation: str, ranks: int) -> float:
    """Return bus over algorithm bandwidth (nccl-tests, doc/PERFORMANCE.md)."""
    if operation == "all_reduce":
        return 2 * (ranks - 1) / ranks
    return (ranks - 1) / ranks if operation in _SHARE else 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectiveRun:
    """What all rows of one run share."""

    document: str
    operation: str
    ranks: int | None
    ranks_per_node: int | None
    protocol: MeasurementProtocol = UNKNOWN_PROTOCOL


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectiveRow:
    """One size of one half of a table; times in us, bandwidths in GB/s, None where unstated."""

    place: str
    size: int
    element_type: str
    reduction: str | None
    root: str | None
    in_place: bool
    time: float | None
    is_cpu_time: bool
    algorithm_bandwidth: float | None
    bus_bandwidth: float | None
    wrong: float | None
    samples: tuple[float, ...] = ()
    sources: Mapping[str, RawCell] = field(default_factory=dict)


def row_fault(row: CollectiveRow, run: CollectiveRun) -> str | None:
    """Say why a row is no observation of its run, or None."""
    if row.element_type not in ELEMENT_TYPES:
        return f"element type {row.element_type!r} is not known"
    if run.operation in REDUCING and row.reduction not in (None, "sum"):
        return f"reduces by {row.reduction!r}, {run.operation} of the vocabulary by sum"
    if row.time is None or row.algorithm_bandwidth is None or row.is_cpu_time:
        return None
    if row.time > 0 and row.algorithm_bandwidth >= 1:
        worked_out = row.size / row.time / 1e3
        if abs(worked_out / row.algorithm_bandwidth - 1) > _TIME_TOLERANCE:
            return (
                f"size over time is {worked_out:.4g} GB/s, the table says "
                f"{row.algorithm_bandwidth:.4g}: not the layout or unit that its header states"
            )
    return None


def collective_point(row: CollectiveRow, run: CollectiveRun) -> Point:
    """Return the record of a row; one that failed its check keeps its time in a source column."""
    failed = bool(row.wrong)
    time = row.time if row.time and not failed else None
    metrics: dict[MetricColumn, MetricCell] = {CPU_TIME if row.is_cpu_time else LATENCY: time}
    reasons: dict[str, str] = {}
    if row.samples:
        metrics[LATENCY_SAMPLES] = None if failed else row.samples
    if not row.is_cpu_time:
        # Of a CPU time the bandwidth columns are not bandwidths.
        known = time is not None
        metrics[ALGORITHM_BANDWIDTH] = row.algorithm_bandwidth if known else None
        metrics[BUS_BANDWIDTH] = row.bus_bandwidth if known else None
    metrics[WRONG] = row.wrong
    if row.wrong is None:
        reasons[WRONG.name] = UNCHECKED
    if time is None:
        names = [column.name for column in metrics if column is not WRONG]
        reasons |= dict.fromkeys(names, FAILED if failed else "the tool printed no time")
    dimensions: dict[str, Scalar | None] = {
        "message_bytes": row.size,
        "dtype": ELEMENT_TYPES[row.element_type],
        "layout": "in_place" if row.in_place else "out_of_place",
    }
    if run.ranks is not None:
        dimensions["participants"] = run.ranks
    if run.ranks_per_node is not None:
        dimensions["participants_per_node"] = run.ranks_per_node
    sources = dict(row.sources)
    if row.root is not None:
        sources["root"] = row.root
    if failed:
        sources["time_us_of_failed_run"] = row.time
    return Point(
        place=row.place,
        operation=run.operation,
        dimensions=dimensions,
        metrics=metrics,
        sources=sources,
        protocol=run.protocol,
        null_reasons=reasons,
    )


def operation_of_run(
    program: str | None,
    facts: ReadingFacts,
    rows: list[CollectiveRow],
    ranks: int | None,
    document: str,
) -> str:
    """Return the operation that a run measured, never guessed from its bandwidths alone.

    Raises
    ------
    InvalidInputError
        'missing-fact' where neither the file nor the user says it, 'unknown-operation' for a
        program without one, 'contradicted-fact' where the bandwidths deny it.
    """
    stated = facts.dimensions.get("operation")
    if program is not None:
        operation = PROGRAMS.get(program)
        if operation is None:
            refuse(
                document,
                f"{program} measures no operation of the vocabulary",
                "unknown-operation",
                remedy=f"known programs are {', '.join(PROGRAMS)}",
            )
        _require_ratio(operation, rows, ranks, document)
        return operation
    ratio = _ratio(rows)
    fitting = [] if ratio is None or ranks is None else _fitting(ratio, ranks)
    if stated is None:
        hint = (
            f"; busbw/algbw = {ratio:.3g} fits {', '.join(fitting)} of {ranks} ranks"
            if fitting
            else ""
        )
        refuse(
            document,
            f"does not say which collective it measured{hint}",
            "missing-fact",
            remedy=f"--set operation={fitting[0] if len(fitting) == 1 else '…'}",
        )
    _require_ratio(str(stated), rows, ranks, document)
    return str(stated)


def _require_ratio(
    operation: str, rows: list[CollectiveRow], ranks: int | None, document: str
) -> None:
    """Refuse an operation whose bus bandwidth is another multiple of the algorithm's."""
    ratio = _ratio(rows)
    if ratio is None or ranks is None:
        return
    fitting = _fitting(ratio, ranks)
    if operation not in fitting:
        refuse(
            document,
            f"busbw/algbw is {ratio:.3g}, which {operation} of {ranks} ranks cannot have",
            "contradicted-fact",
            remedy=f"it fits {', '.join(fitting) or 'no collective'}",
        )


def _ratio(rows: list[CollectiveRow]) -> float | None:
    """Return busbw over algbw of the fastest row, None where its two decimals say too little."""
    known = [
        (row.algorithm_bandwidth, row.bus_bandwidth)
        for row in rows
        if row.algorithm_bandwidth is not None
        and row.algorithm_bandwidth >= _LEAST_TELLING
        and row.bus_bandwidth is not None
        and not row.is_cpu_time
    ]
    if not known:
        return None
    algorithm, bus = max(known)
    return bus / algorithm


def _fitting(ratio: float, ranks: int) -> list[str]:
    return [
        operation
        for operation in PROGRAMS.values()
        if abs(ratio - bus_factor(operation, ranks)) <= _RATIO_TOLERANCE * max(ratio, 0.1)
    ]


def nodes_of(hosts: list[str]) -> int | None:
    """Return the ranks on each host, or None where hosts hold different numbers of them."""
    counts = {hosts.count(host) for host in set(hosts)}
    return counts.pop() if len(counts) == 1 else None


def library_version(code: int) -> str:
    """Return NCCL's version from its number: 22703 is 2.27.3, and before 2.9 2804 is 2.8.4."""
    if code >= 10000:
        return f"{code // 10000}.{code % 10000 // 100}.{code % 100}"
    return f"{code // 1000}.{code % 1000 // 100}.{code % 100}"


def collective_protocol(
    warmup: int | None, iterations: int | None, notes: list[str]
) -> MeasurementProtocol:
    """Return the protocol of nccl-tests: a host timer around all iterations of a size."""
    return MeasurementProtocol(
        warmup=warmup,
        repetitions=iterations or None,
        synchronization="host clock over all iterations until their streams are done",
        timer_resolution=None,
        clock_state=None,
        power_state=None,
        measurement_error=None,
        notes=tuple(notes),
    )

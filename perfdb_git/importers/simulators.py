"""gem5's statistics and Accel-Sim's log: simulated records, never measured.

gem5 does not name its program and Accel-Sim's clock may be absent; neither is guessed. Accel-Sim's
``gpu_tot_*`` are running totals, so their differences must be the single kernels' counts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from perfdb_git.importers.layouts import integer, number
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

_BEGIN = "---------- Begin Simulation Statistics ----------"
_END = "---------- End Simulation Statistics"
_GEM5_ROW = re.compile(r"^(\S+)\s+(\S+)(?:\s|$)")
_GEM5_NAMES: Mapping[str, MetricColumn] = {
    "simSeconds": MetricColumn("latency", "sample", "s"),
    "sim_seconds": MetricColumn("latency", "sample", "s"),
    "simInsts": MetricColumn("instructions", "sample", "1"),
    "sim_insts": MetricColumn("instructions", "sample", "1"),
    "simOps": MetricColumn("micro_operations", "sample", "1"),
    "sim_ops": MetricColumn("micro_operations", "sample", "1"),
}
_ACCEL_ROW = re.compile(
    r"^(kernel_name|gpu_sim_cycle|gpu_sim_insn|gpu_tot_sim_cycle)\s*=\s*(.+?)\s*$"
)
_CLOCKS = re.compile(r"^-gpgpu_clock_domains\s+([0-9.]+):", re.MULTILINE)
_SIMULATED = replace(UNKNOWN_PROTOCOL, synchronization="simulated time")


def _is_gem5(source: SourceText) -> bool:
    return _BEGIN in source.head


def _read_gem5(source: SourceText, facts: ReadingFacts) -> ToolResult:
    blocks = source.text.count(_BEGIN)
    if blocks != 1:
        refuse(
            source.document,
            f"holds {blocks} blocks of statistics, which are phases of one run",
            "several-runs" if blocks else "unknown-layout",
            remedy="keep the block of the phase that is meant",
        )
    if _END not in source.text:
        refuse(source.document, "is a block that was cut off", "broken-table")
    metrics: dict[MetricColumn, MetricCell] = {}
    for line in source.lines:
        match = _GEM5_ROW.match(line)
        column = None if match is None else _GEM5_NAMES.get(match[1])
        if match is not None and column is not None:
            value = number(match[2])
            metrics[column] = None if value is None else (value,)
    if not any(column.name == "latency" and cell for column, cell in metrics.items()):
        refuse(source.document, "has no simulated seconds", "no-points")
    point = Point(
        place="statistics",
        operation="benchmark",
        dimensions={},
        metrics=metrics,
        protocol=replace(_SIMULATED, repetitions=1),
    )
    return ToolResult(tool="gem5", revision=None, kind="simulated", points=[point])


def _is_accel_sim(source: SourceText) -> bool:
    text = source.head
    return "gpu_sim_cycle =" in text or ("GPGPU-Sim" in text and "gpu_sim_cycle" in source.text)


def _read_accel_sim(source: SourceText, facts: ReadingFacts) -> ToolResult:
    clock = _CLOCKS.search(source.text)
    frequency = None if clock is None else number(clock[1])
    found: dict[str, list[dict[str, str]]] = {}
    bad: list[str] = []
    total = 0
    for line, row in _kernels(source):
        cycles, running = integer(row["gpu_sim_cycle"]), integer(row["gpu_tot_sim_cycle"])
        if cycles is None or running is None or running - total != cycles:
            bad.append(f"line {line}: running total does not grow by the kernel's cycles")
            continue
        total = running
        found.setdefault(row["kernel_name"], []).append(row)
    points = [_kernel_point(name, rows, frequency) for name, rows in found.items()]
    return ToolResult(
        tool="accel-sim", revision=None, kind="simulated", points=points, bad_rows=tuple(bad)
    )


def _kernels(source: SourceText) -> list[tuple[int, dict[str, str]]]:
    """Return the line and the counts of every kernel, in the order of the log."""
    kernels: list[tuple[int, dict[str, str]]] = []
    for line, match in enumerate(map(_ACCEL_ROW.match, source.lines), start=1):
        if match is None:
            continue
        if match[1] == "kernel_name":
            kernels.append((line, {}))
        if kernels:
            kernels[-1][1][match[1]] = match[2]
    complete = [item for item in kernels if len(item[1]) == 4]
    if not complete or len(complete) != len(kernels):
        refuse(source.document, "has kernels without all their counts", "unknown-layout")
    return complete


def _kernel_point(name: str, rows: list[dict[str, str]], frequency_mhz: float | None) -> Point:
    cycles = [int(row["gpu_sim_cycle"]) for row in rows]
    metrics: dict[MetricColumn, MetricCell] = {
        MetricColumn("cycles", "sample", "1"): tuple(map(float, cycles)),
        MetricColumn("instructions", "sample", "1"): tuple(
            float(row["gpu_sim_insn"]) for row in rows
        ),
    }
    reasons = {}
    latency = MetricColumn("latency", "sample", "us")
    if frequency_mhz:
        metrics[latency] = tuple(count / frequency_mhz for count in cycles)
    else:
        metrics[latency] = None
        reasons["latency"] = "the log does not state the clock"
    return Point(
        place=f"kernel {name}",
        operation="gpu_kernel",
        dimensions={"kernel": name},
        metrics=metrics,
        sources={"core_clock_mhz": frequency_mhz},
        protocol=_SIMULATED,
        null_reasons=reasons,
    )


GEM5 = ToolImporter(
    name="gem5",
    version=1,
    summary="Import simulated times of gem5: stats.txt with one block.",
    recognises=_is_gem5,
    read=_read_gem5,
)
ACCEL_SIM = ToolImporter(
    name="accel-sim",
    version=1,
    summary="Import simulated kernels of Accel-Sim: its log.",
    recognises=_is_accel_sim,
    read=_read_accel_sim,
)

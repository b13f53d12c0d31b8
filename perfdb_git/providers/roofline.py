"""Times of single tasks on a system profile: compute, memory traffic and messages."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from perfdb_git.model.system_profile import (
    ComputeRate,
    EfficiencyStep,
    Memory,
    Network,
    SystemProfile,
    TableReading,
)
from perfdb_git.operations.work import Work

MAIN_MEMORY = "mem1"
"""Name of the memory tier that holds the operands."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One part of a task's time in seconds; ``bound`` says that an efficiency is unknown."""

    seconds: float
    bound: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskTime:
    """A task's time with its parts.

    ``latency`` is the sum of the parts in a ``no_overlap`` profile and their maximum in a
    ``roofline`` one.
    """

    latency: float
    parts: dict[str, float]
    bound: bool
    assumptions: tuple[str, ...]


def step_efficiency(steps: Sequence[EfficiencyStep] | None, size: float) -> float | None:
    """Look up a step table: the first row whose threshold is at most ``size``.

    Parameters
    ----------
    steps : Sequence[EfficiencyStep] or None
        Strictly descending thresholds; ``None`` means that no efficiency is known.
    size : float
        Work in the unit of the table.

    Returns
    -------
    float or None
        Efficiency in (0, 1], ``None`` where it is unknown.

    Notes
    -----
    Source: Calculon (Isaev et al., SC '23): the comparison is ``>=`` and nothing is interpolated.
    """
    if steps is None:
        return None
    for step in steps:
        if size >= step.threshold:
            return step.efficiency
    return None


def interpolated_efficiency(steps: Sequence[EfficiencyStep] | None, size: float) -> float | None:
    """Read an efficiency table as points with straight lines between them.

    Parameters
    ----------
    steps : Sequence[EfficiencyStep] or None
        Strictly descending thresholds; ``None`` means that no efficiency is known.
    size : float
        Work in the unit of the table.

    Returns
    -------
    float or None
        Efficiency in (0, 1], ``None`` where it is unknown.

    Notes
    -----
    Lines are straight over the logarithm of the size, as efficiency curves are plotted, and over
    the size itself down to a row of threshold 0. Above the largest threshold its efficiency holds;
    below the smallest nothing is known, as with `step_efficiency`.
    """
    if steps is None:
        return None
    above: EfficiencyStep | None = None
    for step in steps:
        if size >= step.threshold:
            return step.efficiency if above is None else _between(step, above, size)
        above = step
    return None


def _between(low: EfficiencyStep, high: EfficiencyStep, size: float) -> float:
    if low.threshold > 0:
        share = math.log(size / low.threshold) / math.log(high.threshold / low.threshold)
    else:
        share = size / high.threshold
    return low.efficiency + share * (high.efficiency - low.efficiency)


_READINGS: Mapping[TableReading, Callable[[Sequence[EfficiencyStep] | None, float], float | None]]
_READINGS = {"steps": step_efficiency, "interpolated": interpolated_efficiency}


_INTERPOLATED: Mapping[TableReading, tuple[str, ...]] = {
    "steps": (),
    "interpolated": ("efficiencies are interpolated between the rows of their tables",),
}


def compute_time(rate: ComputeRate, operations: float, reading: TableReading) -> Part:
    """Return operations / (peak * efficiency)."""
    efficiency = _READINGS[reading](rate.efficiency_by_gops, operations / 1e9)
    seconds = operations / (rate.peak_tops * 1e12 * (1 if efficiency is None else efficiency))
    return Part(seconds=seconds, bound=efficiency is None)


def memory_time(memory: Memory, moved: float, reading: TableReading) -> Part:
    """Return bytes / (bandwidth * efficiency)."""
    efficiency = _READINGS[reading](memory.efficiency_by_mb, moved / 1e6)
    rate = memory.bandwidth_gbyte_per_s * 1e9 * (1 if efficiency is None else efficiency)
    return Part(seconds=moved / rate, bound=efficiency is None)


def combined_time(profile: SystemProfile, compute: float, memory: float) -> float:
    """Return the larger of the two parts in a ``roofline`` profile, else their sum.

    Source: Williams et al., "Roofline" (CACM 2009); the sum is Calculon's ``no_overlap`` mode.
    """
    return max(compute, memory) if profile.processing_mode == "roofline" else compute + memory


def task_time(profile: SystemProfile, rate: ComputeRate | None, work: Work) -> TaskTime:
    """Return the time of arithmetic work on one device.

    Parameters
    ----------
    profile : SystemProfile
        Device with a memory called ``mem1``.
    rate : ComputeRate or None
        Rate of the engine and dtype; ``None`` leaves the arithmetic out, which the caller
        may only do when it says so.
    work : Work
        Operations and bytes.
    """
    reading = profile.table_reading
    memory = memory_time(profile.memories[MAIN_MEMORY], work.bytes_moved, reading)
    compute = compute_time(rate, work.operations, reading) if rate is not None else None
    parts = {"memory": memory.seconds}
    if compute is not None:
        parts["compute"] = compute.seconds
    how = "the larger of" if profile.processing_mode == "roofline" else "the sum of"
    return TaskTime(
        latency=combined_time(profile, compute.seconds if compute else 0.0, memory.seconds),
        parts=parts,
        bound=memory.bound or compute is None or compute.bound,
        assumptions=(
            f"latency is {how} compute and memory time ({profile.processing_mode})",
            *_INTERPOLATED[reading],
        ),
    )


def collective_time(network: Network, operation: str, message: float, ranks: int) -> TaskTime:
    """Return latency + bytes * scalar * (1 + offset / n) / (bandwidth * efficiency).

    A zero-byte operation still pays the latency (Calculon's rule).
    """
    factor = network.operations[operation]
    share = 1.0 if factor.offset is None else 1 + factor.offset / ranks
    wire = message * factor.scalar * share
    efficiency = 1.0 if network.efficiency is None else network.efficiency
    transfer = wire / (network.bandwidth_gbyte_per_s * 1e9 * efficiency)
    latency = 0.0 if network.latency_s is None else network.latency_s
    unknown = [
        f"{name} of network {network.name} is unknown and left out"
        for name, value in (("latency", network.latency_s), ("efficiency", network.efficiency))
        if value is None
    ]
    return TaskTime(
        latency=latency + transfer,
        parts={"latency": latency, "transfer": transfer},
        bound=bool(unknown),
        assumptions=(f"network tier {network.name}", *unknown),
    )


def network_tier(
    networks: Sequence[Network],
    *,
    participants: int,
    participants_per_node: int | None,
    link_class: str | None,
) -> Network | None:
    """Choose the innermost tier that holds the participants, or ``None``.

    Participants that are spread over nodes leave the innermost tier to those on one node.
    """
    spread = participants_per_node is not None and participants_per_node < participants
    fitting = [
        network
        for index, network in enumerate(networks)
        if network.size >= participants
        and not (spread and index == 0)
        and link_class in (None, network.link_class)
    ]
    return min(fitting, key=lambda network: network.size) if fitting else None


def can_fill(network: Network, processors: int) -> bool:
    """Tell whether groups of so many processors leave no part of a network over that must be full.

    Source: Calculon (Isaev et al., SC '23), ``must_be_filled`` of a network: the processors in use
    divide its size.
    """
    return not network.must_be_filled or network.size % processors == 0

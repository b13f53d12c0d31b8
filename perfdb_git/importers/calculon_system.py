"""Calculon's system files (Isaev et al., SC '23): into system profiles, and back.

Nothing is guessed and nothing is lost: a file that a profile cannot hold is refused, and so is a
profile that a file cannot hold. Calculon's GB, MB, GFLOP and TFLOP are decimal, its GiB is 2^30
bytes; profiles use the same units under names that say so.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from perfdb_git.errors import InvalidInputError, UsageError
from perfdb_git.formats.codec import decode, encode
from perfdb_git.formats.json_value import pointer_of
from perfdb_git.formats.schemas import SchemaStore
from perfdb_git.formats.strict_json import read_json
from perfdb_git.model.system_profile import (
    CollectiveFactor,
    ComputeRate,
    EfficiencyStep,
    Memory,
    Network,
    SystemProfile,
    ValueSource,
)
from perfdb_git.model.values import JsonValue

PROFILE_SCHEMA = "perfdb/system-profile/v2"
ENGINES = ("matrix", "vector")
MEMORIES = ("mem1", "mem2")

OPERATIONS = {
    "p2p": "send_recv",
    "reduce_scatter": "reduce_scatter",
    "all_gather": "all_gather",
    "all_reduce": "all_reduce",
}
"""Calculon's name of a network operation to ours."""

_Step = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rate:
    tflops: float
    gflops_efficiency: tuple[_Step, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Memory:
    capacity: float = field(metadata={"name": "GiB"})
    bandwidth: float = field(metadata={"name": "GBps"})
    efficiency: tuple[_Step, ...] = field(metadata={"name": "MB_efficiency"})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Network:
    bandwidth: float
    efficiency: float
    size: int
    latency: float
    ops: Mapping[str, tuple[float, float | None]]
    must_be_filled: bool
    processor_usage: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _System:
    matrix: Mapping[str, _Rate]
    vector: Mapping[str, _Rate]
    mem1: _Memory
    mem2: _Memory
    processing_mode: str
    networks: tuple[_Network, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileLabels:
    """What a profile states and a Calculon file does not.

    Parameters
    ----------
    name, version : str
        Of the profile; other content under them is another profile.
    device : str
        The vocabulary's term.
    description : str
        For people.
    link_classes : sequence of str
        Class of each network's links, the nearest network first; it names the network too.
        Networks beyond these are called ``tier<N>``, their class unknown.
    source : str
        Where the file comes from.
    license : str or None
        SPDX expression of its licence, None if unknown.
    """

    name: str
    version: str
    device: str
    description: str
    link_classes: Sequence[str]
    source: str
    license: str | None


def profile_of_calculon_system(
    content: bytes, labels: ProfileLabels, *, document: str
) -> SystemProfile:
    """Read a Calculon system file as a system profile.

    Parameters
    ----------
    content : bytes
        The file.
    labels : ProfileLabels
        What the file does not say.
    document : str
        Its name, for messages.

    Raises
    ------
    InvalidInputError
        Where the file has another form, or a table that Calculon would never reach the end of.
    UsageError
        'too-many-link-classes' for more link classes than networks.
    """
    value = read_json(content, document=document)
    system = decode(_System, value, document=document)
    for pointer, fault in _faults(system):
        raise InvalidInputError(fault, code="calculon-system", document=document, pointer=pointer)
    if len(labels.link_classes) > len(system.networks):
        raise UsageError(
            f"{len(labels.link_classes)} link classes for {len(system.networks)} networks",
            code="too-many-link-classes",
        )
    return _profile(system, labels)


def profile_file(profile: SystemProfile) -> bytes:
    """Return a profile as the bytes of its document, one value a line.

    Raises
    ------
    InvalidInputError
        Where a label breaks the schema.
    """
    value = encode(profile)
    SchemaStore().validate(
        value, document=f"system profile {profile.name}", expected_kind="system-profile"
    )
    return (json.dumps(_plain(value), indent=2, ensure_ascii=False) + "\n").encode()


def _plain(value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return _number(value) if isinstance(value, float) else value


def _profile(system: _System, labels: ProfileLabels) -> SystemProfile:
    classes = (*labels.link_classes, *(None for _ in system.networks))
    return SystemProfile(
        schema=PROFILE_SCHEMA,
        name=labels.name,
        version=labels.version,
        device=labels.device,
        description=labels.description,
        processing_mode="roofline" if system.processing_mode == "roofline" else "no_overlap",
        engines={
            "matrix": {dtype: _rate(rate) for dtype, rate in system.matrix.items()},
            "vector": {dtype: _rate(rate) for dtype, rate in system.vector.items()},
        },
        memories={"mem1": _memory(system.mem1), "mem2": _memory(system.mem2)},
        networks=tuple(
            _network(network, tier, classes[tier]) for tier, network in enumerate(system.networks)
        ),
        sources=(ValueSource(pointer="", source=labels.source, license=labels.license),),
        notes=(
            "Calculon calls send_recv p2p.",
            "Efficiencies are step tables: the first row whose threshold the work reaches applies, "
            "nothing is interpolated.",
            "Names and link classes of the networks are not from the file.",
        ),
    )


def _steps(rows: Sequence[_Step]) -> tuple[EfficiencyStep, ...]:
    return tuple(EfficiencyStep(threshold=row[0], efficiency=row[1]) for row in rows)


def _rate(rate: _Rate) -> ComputeRate:
    return ComputeRate(peak_tops=rate.tflops, efficiency_by_gops=_steps(rate.gflops_efficiency))


def _memory(memory: _Memory) -> Memory:
    return Memory(
        capacity_gib=memory.capacity,
        bandwidth_gbyte_per_s=memory.bandwidth,
        efficiency_by_mb=_steps(memory.efficiency),
    )


def _network(network: _Network, tier: int, link_class: str | None) -> Network:
    return Network(
        name=link_class or f"tier{tier}",
        link_class=link_class,
        bandwidth_gbyte_per_s=network.bandwidth,
        efficiency=network.efficiency,
        size=network.size,
        latency_s=network.latency,
        operations={
            OPERATIONS[name]: CollectiveFactor(scalar=scalar, offset=offset)
            for name, (scalar, offset) in network.ops.items()
        },
        must_be_filled=network.must_be_filled,
        processor_usage=network.processor_usage,
    )


def _faults(system: _System) -> Iterator[tuple[str, str]]:
    """Yield where the file breaks what Calculon asserts, or what a profile needs."""
    if system.processing_mode not in ("roofline", "no_overlap"):
        yield "/processing_mode", f"unknown processing mode {system.processing_mode!r}"
    for engine, rates in (("matrix", system.matrix), ("vector", system.vector)):
        for dtype, rate in rates.items():
            yield from _table_faults((engine, dtype, "gflops_efficiency"), rate.gflops_efficiency)
    for name, memory in (("mem1", system.mem1), ("mem2", system.mem2)):
        yield from _table_faults((name, "MB_efficiency"), memory.efficiency)
    for tier, network in enumerate(system.networks):
        yield from _network_faults(("networks", tier), network)


def _table_faults(path: tuple[str | int, ...], rows: Sequence[_Step]) -> Iterator[tuple[str, str]]:
    thresholds = [row[0] for row in rows]
    if any(after >= before for before, after in pairwise(thresholds)):
        # Calculon does not look at a memory's order: rows out of it would never apply.
        yield pointer_of(path), "the thresholds do not descend strictly"
    if not rows or rows[-1][0] != 0:
        yield pointer_of(path), "the last threshold is not 0, so smaller work has no efficiency"
    for index, (_, efficiency) in enumerate(rows):
        if not 0 < efficiency <= 1:
            yield pointer_of((*path, index, 1)), f"efficiency {efficiency} is not in (0, 1]"


def _network_faults(path: tuple[str | int, ...], network: _Network) -> Iterator[tuple[str, str]]:
    if set(network.ops) != set(OPERATIONS):
        yield (
            pointer_of((*path, "ops")),
            f"the operations are not exactly {', '.join(OPERATIONS)}",
        )
    for name, (scalar, offset) in network.ops.items():
        if scalar <= 0:
            yield pointer_of((*path, "ops", name, 0)), f"scalar {scalar} is not positive"
        if (offset is None) != (name == "p2p"):
            yield (
                pointer_of((*path, "ops", name, 1)),
                "p2p has no offset, each collective has one",
            )
    if not 0 < network.efficiency <= 1:
        yield pointer_of((*path, "efficiency")), f"{network.efficiency} is not in (0, 1]"
    if not 0 <= network.processor_usage < 1:
        yield pointer_of((*path, "processor_usage")), f"{network.processor_usage} is not in [0, 1)"


def calculon_system_of_profile(profile: SystemProfile) -> dict[str, JsonValue]:
    """Return a system profile as the content of a Calculon system file.

    Names, link classes, sources and a fallback bound have no place in the file and stay behind.

    Raises
    ------
    InvalidInputError
        'not-a-calculon-system', with the first thing that Calculon has no word for.
    """
    for pointer, fault in _gaps(profile):
        raise InvalidInputError(
            fault,
            code="not-a-calculon-system",
            document=f"system profile {profile.name}",
            pointer=pointer,
        )
    return {
        **{engine: _calculon_engine(profile.engines[engine]) for engine in ENGINES},
        **{name: _calculon_memory(profile.memories[name]) for name in MEMORIES},
        "processing_mode": profile.processing_mode,
        "networks": [_calculon_network(network) for network in profile.networks],
    }


def _gaps(profile: SystemProfile) -> Iterator[tuple[str, str]]:
    """Yield what a Calculon file needs and the profile leaves open, or has too much of."""
    if profile.table_reading != "steps":
        yield "/table_reading", "Calculon reads its tables as steps"
    for place, held, wanted in (
        ("engines", profile.engines, ENGINES),
        ("memories", profile.memories, MEMORIES),
    ):
        if set(held) != set(wanted):
            yield f"/{place}", f"a Calculon system has exactly {' and '.join(wanted)}"
    for engine, rates in profile.engines.items():
        for dtype, rate in rates.items():
            if rate.efficiency_by_gops is None:
                yield pointer_of(("engines", engine, dtype)), "the efficiency is unknown"
    for name, memory in profile.memories.items():
        if memory.efficiency_by_mb is None or memory.capacity_gib is None:
            yield pointer_of(("memories", name)), "efficiency or capacity is unknown"
    for tier, network in enumerate(profile.networks):
        where = ("networks", tier)
        if None in (network.efficiency, network.latency_s, network.processor_usage):
            yield pointer_of(where), "efficiency, latency or processor usage is unknown"
        if set(network.operations) != set(OPERATIONS.values()):
            names = ", ".join(OPERATIONS.values())
            yield pointer_of((*where, "operations")), f"the operations are not exactly {names}"


def _calculon_steps(steps: Sequence[EfficiencyStep] | None) -> list[JsonValue]:
    return [[_number(step.threshold), _number(step.efficiency)] for step in steps or ()]


def _calculon_engine(rates: Mapping[str, ComputeRate]) -> dict[str, JsonValue]:
    return {
        dtype: {
            "tflops": _number(rate.peak_tops),
            "gflops_efficiency": _calculon_steps(rate.efficiency_by_gops),
        }
        for dtype, rate in rates.items()
    }


def _calculon_memory(memory: Memory) -> dict[str, JsonValue]:
    return {
        "GiB": _number(memory.capacity_gib),
        "GBps": _number(memory.bandwidth_gbyte_per_s),
        "MB_efficiency": _calculon_steps(memory.efficiency_by_mb),
    }


def _calculon_network(network: Network) -> dict[str, JsonValue]:
    return {
        "bandwidth": _number(network.bandwidth_gbyte_per_s),
        "efficiency": _number(network.efficiency),
        "size": network.size,
        "latency": _number(network.latency_s),
        "ops": {
            name: [
                _number(network.operations[ours].scalar),
                _number(network.operations[ours].offset),
            ]
            for name, ours in OPERATIONS.items()
        },
        "must_be_filled": network.must_be_filled,
        "processor_usage": _number(network.processor_usage),
    }


def _number(value: float | None) -> JsonValue:
    """Return a number as people write it: 80 and not 80.0, which is the same value."""
    return int(value) if value is not None and value == int(value) else value

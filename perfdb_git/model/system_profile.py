"""System profiles: peak rates, bandwidths and efficiencies of one device and its networks.

The fields cover Calculon's system files (Isaev et al., SC '23) so that nothing is lost in
conversion, with units in the names and a source for every value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

TableReading: TypeAlias = Literal["steps", "interpolated"]
"""How an efficiency table is read between its rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EfficiencyStep:
    """``efficiency`` applies to work of at least ``threshold`` (unit of the table)."""

    threshold: float
    efficiency: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputeRate:
    """Peak arithmetic rate for one dtype; ``None`` efficiency means peak, hence a bound.

    Thresholds are in 10^9 operations and strictly descending.
    """

    peak_tops: float
    efficiency_by_gops: tuple[EfficiencyStep, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """One memory tier; thresholds in 10^6 bytes."""

    capacity_gib: float | None
    bandwidth_gbyte_per_s: float
    efficiency_by_mb: tuple[EfficiencyStep, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectiveFactor:
    """Bytes on the wire = bytes * scalar * (1 + offset / participants)."""

    scalar: float
    offset: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """One network tier. ``efficiency`` or ``latency_s`` of ``None`` is unknown, hence a bound."""

    name: str
    link_class: str | None
    bandwidth_gbyte_per_s: float
    efficiency: float | None
    size: int
    latency_s: float | None
    operations: Mapping[str, CollectiveFactor]
    must_be_filled: bool
    processor_usage: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FallbackBound:
    """A declared conservative bound: latency = latency_s + work/rates at these rates."""

    latency_s: float
    tops: float
    memory_gbyte_per_s: float
    network_gbyte_per_s: float | None
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueSource:
    """Where the values under a JSON pointer of the profile come from."""

    pointer: str
    source: str
    license: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemProfile:
    """One device with its memories and networks.

    ``table_reading`` says how efficiency tables are read between their rows. Steps are Calculon's
    reading and that of every v1 document; a v2 document may state the other, which is another
    profile with another digest, and so another provider revision.
    """

    schema: str
    name: str
    version: str
    device: str
    description: str
    processing_mode: Literal["roofline", "no_overlap"]
    engines: Mapping[str, Mapping[str, ComputeRate]]
    memories: Mapping[str, Memory]
    networks: tuple[Network, ...]
    sources: tuple[ValueSource, ...]
    table_reading: TableReading = "steps"
    fallback: FallbackBound | None = None
    notes: tuple[str, ...] = field(default_factory=tuple)

"""Units of metrics and dimensions, converted by exact integers.

A value is multiplied or divided by one integer, never by a rounded factor, so that a conversion
gives the same bits everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit as ``numerator / denominator`` of its SI unit ``si``."""

    si: str
    numerator: int
    denominator: int

    def to_si(self, value: float) -> float:
        """Convert a value in this unit to the SI unit."""
        if self.denominator != 1:
            return (
                value / self.denominator
                if self.numerator == 1
                else (value * self.numerator / self.denominator)
            )
        return value * self.numerator if self.numerator != 1 else value


UNITS: Mapping[str, Unit] = {
    "1": Unit("1", 1, 1),
    "s": Unit("s", 1, 1),
    "ms": Unit("s", 1, 10**3),
    "us": Unit("s", 1, 10**6),
    "ns": Unit("s", 1, 10**9),
    "B": Unit("B", 1, 1),
    "kB": Unit("B", 10**3, 1),
    "MB": Unit("B", 10**6, 1),
    "GB": Unit("B", 10**9, 1),
    "KiB": Unit("B", 2**10, 1),
    "MiB": Unit("B", 2**20, 1),
    "GiB": Unit("B", 2**30, 1),
    "bit": Unit("B", 1, 8),
    "B/s": Unit("B/s", 1, 1),
    "MB/s": Unit("B/s", 10**6, 1),
    "GB/s": Unit("B/s", 10**9, 1),
    "MiB/s": Unit("B/s", 2**20, 1),
    "GiB/s": Unit("B/s", 2**30, 1),
    "bit/s": Unit("B/s", 1, 8),
    "Gbit/s": Unit("B/s", 10**9, 8),
    "J": Unit("J", 1, 1),
    "mJ": Unit("J", 1, 10**3),
    "W": Unit("W", 1, 1),
    "Hz": Unit("Hz", 1, 1),
    "MHz": Unit("Hz", 10**6, 1),
    "GHz": Unit("Hz", 10**9, 1),
    "K": Unit("K", 1, 1),
    "ops/s": Unit("ops/s", 1, 1),
    "tokens/s": Unit("tokens/s", 1, 1),
}
"""Every unit that documents may use."""

METRIC_UNITS: Mapping[str, str] = {
    "latency": "s",
    "energy": "J",
    "bandwidth": "B/s",
    "throughput": "tokens/s",
    "power": "W",
    "utilization": "1",
    "temperature": "K",
}
"""SI unit of each named metric; any other metric is a counter in its own unit."""

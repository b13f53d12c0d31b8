"""Timing profiles: rates, latencies and lanes of the components that a pipeline visits.

Numbers enter exact arithmetic, so they are decimals as their author wrote them, never float.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal, TypeAlias

TIMING_PROFILE_SCHEMA = "perfdb/timing-profile/v1"

ResourceMode: TypeAlias = Literal["overlap", "serial"]
ComponentEvidence: TypeAlias = Literal["analytic", "calibrated"]

RATE_FIELDS: tuple[str, ...] = (
    "instruction_rate_mips",
    "clock_mhz",
    "bandwidth_gbps",
    "packet_rate_mpps",
    "compute_tops",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """One component: what a visit costs there, and how many visits it serves at a time.

    Service time = ``calibration_scale`` * (fixed + dynamic) + ``calibration_offset_ns``; the
    dynamic part is the slowest requested term (``overlap``) or their sum (``serial``). A visit
    holds its lane for the whole service, the fixed latency included, and each lane has the
    declared rates for itself.

    Parameters
    ----------
    fixed_latency_ns : Decimal
        Paid by every visit, at least 0.
    instruction_rate_mips, clock_mhz, packet_rate_mpps : Decimal or None
        10^6 instructions, cycles or packets per second; positive, ``None`` if it has none.
    bandwidth_gbps : Decimal or None
        10^9 bit per second; positive, ``None`` if it has none.
    compute_tops : Decimal or None
        10^12 operations per second; positive, ``None`` if it has none.
    lanes : int
        Visits served at the same time, at least 1.
    target : str or None
        What a calibrated component was calibrated against.
    calibration : str or None
        Digest of the calibration revision with the held-out report for ``target``.
    uncertainty_pct : Decimal or None
        Of the service time, in percent; ``None`` if unknown.
    notes : str or tuple of str
        The source of every value.
    """

    fixed_latency_ns: Decimal
    instruction_rate_mips: Decimal | None = None
    clock_mhz: Decimal | None = None
    bandwidth_gbps: Decimal | None = None
    packet_rate_mpps: Decimal | None = None
    compute_tops: Decimal | None = None
    lanes: int
    resource_mode: ResourceMode
    evidence: ComponentEvidence
    target: str | None = None
    calibration: str | None = None
    calibration_scale: Decimal = Decimal(1)
    calibration_offset_ns: Decimal = Decimal(0)
    uncertainty_pct: Decimal | None = None
    notes: str | tuple[str, ...]

    def __post_init__(self) -> None:
        for fault in self._faults():
            raise ValueError(fault)

    def _faults(self) -> Iterator[str]:
        for name in (*RATE_FIELDS, "calibration_scale"):
            value = getattr(self, name)
            if value is not None and not (value.is_finite() and value > 0):
                yield f"{name} must be positive and finite, not {value}"
        for name in ("fixed_latency_ns", "uncertainty_pct"):
            value = getattr(self, name)
            if value is not None and not (value.is_finite() and value >= 0):
                yield f"{name} must be finite and at least 0, not {value}"
        if not self.calibration_offset_ns.is_finite():
            yield f"calibration_offset_ns must be finite, not {self.calibration_offset_ns}"
        if self.lanes < 1:
            yield f"lanes must be at least 1, not {self.lanes}"
        if self.evidence == "calibrated" and self.target is None:
            yield "a calibrated component names its target"
        if not any(text.strip() for text in self.note_lines()):
            yield "notes must give the source of the values"

    def note_lines(self) -> tuple[str, ...]:
        """Return the notes as lines, whichever form they were written in."""
        return (self.notes,) if isinstance(self.notes, str) else self.notes


@dataclass(frozen=True, slots=True, kw_only=True)
class TimingProfile:
    """Components by unique name. A changed profile gets a new name or version."""

    schema: str = TIMING_PROFILE_SCHEMA
    name: str
    version: str | int
    description: str | None = None
    components: Mapping[str, Component]

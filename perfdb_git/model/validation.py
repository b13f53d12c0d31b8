"""Validations: a simulator's records against measurements of the same points, for one target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from perfdb_git.model.held_out import HeldOutReport


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulator:
    """The program whose word is judged, at one revision."""

    name: str
    revision: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidationTarget:
    """What the simulator was judged for; ``None`` is a fact that does not apply."""

    device: str
    component: str | None
    capability_revision: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordPair:
    """A simulated record and the measured one of the same point, by their ids."""

    simulated: str
    measured: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorLimit:
    """The error up to which the simulator's records may answer."""

    statistic: Literal["mape_pct", "median_pct", "p90_pct", "p95_pct", "max_pct"]
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Validation:
    """One comparison of a simulator with measurements; immutable."""

    schema: str
    simulator: Simulator
    target: ValidationTarget
    operation: str
    response: str
    pairs: tuple[RecordPair, ...]
    held_out_report: HeldOutReport
    limit: ErrorLimit

    @property
    def is_within_limit(self) -> bool:
        """Whether the report's error is known and at most the limit."""
        errors = self.held_out_report.overall
        return errors is not None and getattr(errors, self.limit.statistic) <= self.limit.value

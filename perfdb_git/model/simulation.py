"""Results of a simulation as plain values: times are picoseconds (ps)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Literal, TypeAlias

from perfdb_git.model.values import JsonValue

EvidenceClass: TypeAlias = Literal["fallback", "analytic", "simulated", "calibrated", "measured"]

EVIDENCE_CLASSES: tuple[EvidenceClass, ...] = (
    "fallback",
    "analytic",
    "simulated",
    "calibrated",
    "measured",
)
"""From the weakest to the strongest."""

TickName: TypeAlias = Literal["ps", "fs"]
"""The unit of the grid of time that a run uses."""

Picoseconds: TypeAlias = int | Decimal
"""Exact times in ps: ``int`` of runs with the tick ps, ``Decimal`` of those with the tick fs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedService:
    """The service time of a ``query`` stage, as the caller resolved it.

    Parameters
    ----------
    service_ns : Fraction
        The whole service time in ns, at least 0.
    lower_ns, upper_ns : Fraction or None
        Its interval in ns, ``None`` if the spread is unknown.
    evidence : EvidenceClass
        What the answer rests on.
    uncertainty_pct : Fraction or None
        Half the interval's width in percent of the service time, ``None`` if unknown.
    provenance : Mapping
        What the resolver says of the answer's origin, passed on as it is.
    """

    service_ns: Fraction
    lower_ns: Fraction | None = None
    upper_ns: Fraction | None = None
    evidence: EvidenceClass
    uncertainty_pct: Fraction | None = None
    provenance: Mapping[str, JsonValue] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencySummary:
    """Latencies from arrival to last finish; percentiles are the nearest rank, exact."""

    min: Picoseconds
    mean: float
    p50: Picoseconds
    p95: Picoseconds
    p99: Picoseconds
    max: Picoseconds


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectiveRate:
    """What one lane delivers of a dimension, against what the profile declares.

    ``unit`` is the profile's: ``mips``, ``mhz``, ``gbps``, ``mpps`` or ``tops``.
    """

    dimension: str
    unit: str
    declared: float
    effective: float
    ratio: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StageAnswer:
    """The origin of a ``query`` stage's service time."""

    service_ns: float
    lower_ns: float | None
    upper_ns: float | None
    evidence: EvidenceClass
    provenance: Mapping[str, JsonValue]


@dataclass(frozen=True, slots=True, kw_only=True)
class StageUse:
    """One stage over all jobs.

    ``service_ps`` is that of every visit, ``None`` where it differs between jobs;
    ``rounding_error_ps`` is what the grid added to one visit (the mean over the jobs).
    """

    name: str
    component: str
    service_ps: Picoseconds | None
    busy_ps: Picoseconds
    wait_ps: Picoseconds
    wait_max_ps: Picoseconds
    rounding_error_ps: float
    rates: tuple[EffectiveRate, ...]
    answer: StageAnswer | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneUse:
    """One lane over the whole run."""

    lane: int
    visits: int
    busy_ps: Picoseconds
    utilisation: float


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitPercentiles:
    """Queue waits of a component's visits: nearest ranks, exact."""

    p50: Picoseconds
    p95: Picoseconds
    max: Picoseconds


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentUse:
    """One component over the whole run.

    ``utilisation`` is busy / (lanes * makespan), 0 where nothing takes time; ``queue_length``
    is the mean number of waiting jobs (Little's law). ``lane_use`` has the lanes that served a
    visit; it and ``wait_percentiles_ps`` are ``None`` where the run was too large to look at single
    visits.
    """

    name: str
    lanes: int
    visits: int
    busy_ps: Picoseconds
    wait_ps: Picoseconds
    wait_max_ps: Picoseconds
    wait_percentiles_ps: WaitPercentiles | None
    utilisation: float
    queue_length: float
    lane_use: tuple[LaneUse, ...] | None
    evidence: EvidenceClass
    target: str | None
    uncertainty_pct: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PathStep:
    """One visit of the critical path."""

    job: int
    stage: str
    component: str
    lane: int
    start_ps: Picoseconds
    finish_ps: Picoseconds


@dataclass(frozen=True, slots=True, kw_only=True)
class PathShare:
    """What a component contributes to the critical path."""

    component: str
    visits: int
    service_ps: Picoseconds
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """The upper bound on throughput: min over components of lanes / service per job.

    A queue may stay below it for ever, so it is never a forecast.
    """

    kind: Literal["upper-bound"] = "upper-bound"
    jobs_per_s: float
    component: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GridError:
    """What rounding each service to whole ticks changed.

    ``worst_relative`` is over single services, ``bound_ps`` is the sum over all visits of the
    absolute errors: no path through the run can be off by more.
    """

    worst_relative: float
    worst_stage: str | None
    bound_ps: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationSummary:
    """What one run says: every time in picoseconds from tick 0, exact, and on the grid of ``tick``.

    ``critical_path`` is ``None`` where the run was too large to keep single visits. The services
    on it plus the first job's arrival (``path_arrival_ps``) are the makespan.
    ``uncertainty_pct`` is the largest of the components and answers used, ``None`` if that of
    any is unknown.
    """

    jobs: int
    visits: int
    makespan_ps: Picoseconds
    throughput_jobs_per_s: float | None
    latency_ps: LatencySummary
    stages: tuple[StageUse, ...]
    components: tuple[ComponentUse, ...]
    bottleneck: str | None
    capacity: Capacity | None
    critical_path: tuple[PathStep, ...] | None
    path_arrival_ps: Picoseconds | None
    path_shares: tuple[PathShare, ...] | None
    grid_error: GridError
    evidence_class: EvidenceClass
    uncertainty_pct: float | None
    engine: Literal["feed-forward", "event"]
    warnings: tuple[str, ...]
    tick: TickName = field(default="ps", metadata={"omit_default": True})


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepPoint:
    """One row of a sweep: the field's value, and what the run gave."""

    value: str
    summary: SimulationSummary


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensitivity:
    """Change of the makespan when every service of a component is 1 % longer or shorter.

    Both are re-simulated: with re-entrant stages a faster component may end later.
    """

    component: str
    slower_ps: Picoseconds
    faster_ps: Picoseconds
    slower_pct: float
    faster_pct: float

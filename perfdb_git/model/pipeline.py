"""Pipelines: the stages that every job passes in order, and the jobs themselves.

Amounts enter exact arithmetic, so they are decimals as their author wrote them, never float.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from decimal import Decimal
from typing import Literal, TypeAlias

from perfdb_git.model.values import Scalar

PIPELINE_SCHEMA = "perfdb/pipeline/v1"

ArrivalKind: TypeAlias = Literal["batch", "interval", "list", "closed-loop"]

MAX_STAGES = 10_000
"""Stages of one pipeline; schema and code hold the same limit."""

MAX_LISTED_JOBS = 100_000
"""Arrivals or jobs with work of their own that one document may list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """Amounts that one visit asks of its component, each finite and at least 0.

    0 is the same as not asked for, and needs no rate. ``bytes`` are eight bits each.
    """

    instructions: Decimal = Decimal(0)
    cycles: Decimal = Decimal(0)
    bytes: Decimal = Decimal(0)
    packets: Decimal = Decimal(0)
    operations: Decimal = Decimal(0)

    def __post_init__(self) -> None:
        for name, amount in self.amounts():
            if not (amount.is_finite() and amount >= 0):
                raise ValueError(f"{name} must be finite and at least 0, not {amount}")

    def amounts(self) -> Iterator[tuple[str, Decimal]]:
        """Yield every dimension with its amount, zeros included."""
        for item in fields(self):
            yield item.name, getattr(self, item.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One step of every job: a visit to a component with either ``work`` or a ``query``.

    A query, by flat dimension name, is resolved at the pipeline's commit into the whole service
    time; the component then gives only its lanes.
    """

    name: str
    component: str
    work: Work | None = None
    query: Mapping[str, Scalar] | None = None
    notes: str | None = None

    def __post_init__(self) -> None:
        if (self.work is None) == (self.query is None):
            raise ValueError(f"stage {self.name!r} has either work or a query")


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrivals:
    """When jobs arrive.

    ``batch``: all at 0. ``interval``: job i at i * ``interval_ns``. ``list``: at ``times_ns``,
    sorted stably, jobs numbered in that order. ``closed-loop``: ``window`` jobs at 0, then one
    at each completion.
    """

    kind: ArrivalKind = "batch"
    interval_ns: Decimal | None = None
    times_ns: tuple[Decimal, ...] | None = None
    window: int | None = None

    def __post_init__(self) -> None:
        needs = {"interval": "interval_ns", "list": "times_ns", "closed-loop": "window"}
        for kind, name in needs.items():
            if (getattr(self, name) is not None) != (kind == self.kind):
                raise ValueError(f"{name} belongs to arrivals of kind {kind!r}, which need it")
        times = self.times_ns or ()
        for time in times if self.interval_ns is None else (self.interval_ns,):
            if not (time.is_finite() and time >= 0):
                raise ValueError(f"arrival times must be finite and at least 0, not {time}")
        if self.window is not None and self.window < 1:
            raise ValueError(f"window must be at least 1, not {self.window}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Jobs:
    """How many jobs run, when they arrive, and work that differs from job to job.

    ``count`` may be left out where a list of arrivals or of work gives it, and is else 1.
    ``work`` has one entry for each job as listed: stages by name with the work that replaces the
    stage's own.
    """

    count: int | None = None
    arrivals: Arrivals = field(default_factory=Arrivals)
    work: tuple[Mapping[str, Work], ...] | None = None

    def __post_init__(self) -> None:
        lengths = {
            "count": self.count,
            "the list of arrivals": None if self.arrivals.times_ns is None else self._listed(),
            "the list of work": None if self.work is None else len(self.work),
        }
        known = {name: length for name, length in lengths.items() if length is not None}
        if len(set(known.values())) > 1:
            stated = ", ".join(f"{name} {length}" for name, length in known.items())
            raise ValueError(f"the number of jobs is not one: {stated}")
        if self.number < 1:
            raise ValueError("there must be at least one job")

    def _listed(self) -> int:
        return len(self.arrivals.times_ns or ())

    @property
    def number(self) -> int:
        """The number of jobs."""
        if self.count is not None:
            return self.count
        if self.arrivals.times_ns is not None:
            return self._listed()
        return 1 if self.work is None else len(self.work)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """Stages in the order in which every job passes them, with unique names."""

    schema: str = PIPELINE_SCHEMA
    name: str | None = None
    version: str | int | None = None
    description: str | None = None
    stages: tuple[Stage, ...]
    jobs: Jobs = field(default_factory=Jobs)

    def __post_init__(self) -> None:
        if not self.stages:
            raise ValueError("the pipeline has no stages")
        if len(self.stages) > MAX_STAGES:
            raise ValueError(f"{len(self.stages)} stages; a pipeline may have {MAX_STAGES}")
        seen: set[str] = set()
        for stage in self.stages:
            if stage.name in seen:
                raise ValueError(f"two stages are called {stage.name!r}")
            seen.add(stage.name)
        for job, work in enumerate(self.jobs.work or ()):
            for name in work:
                if name not in seen:
                    raise ValueError(f"job {job} has work for an unknown stage {name!r}")

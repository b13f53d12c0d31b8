"""What the engines run: a pipeline in integers, its services and arrivals on the grid."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from perfdb_git.errors import InvalidInputError
from perfdb_git.simulation.arrivals import ArrivalTimes
from perfdb_git.simulation.ticks import PICOSECOND, TICK_LIMIT, Tick

if TYPE_CHECKING:
    from perfdb_git.simulation.arrivals import Ticks


@dataclass(frozen=True, slots=True, kw_only=True)
class TickModel:
    """A pipeline in ticks.

    Parameters
    ----------
    lanes : tuple of int, shape (n_components,)
        Lanes of each component.
    routes : tuple of int, shape (n_stages,)
        The component that each stage visits.
    services : tuple, shape (n_stages,)
        Service time of each stage in ticks: one int for every job, or an ndarray of int64, shape
        (n_jobs,).
    arrivals : ArrivalTimes
        The jobs.
    tick : Tick
        What a tick is. Engines need not know.
    """

    lanes: tuple[int, ...]
    routes: tuple[int, ...]
    services: tuple[int | Ticks, ...]
    arrivals: ArrivalTimes
    tick: Tick = PICOSECOND

    @property
    def n_jobs(self) -> int:
        """The number of jobs."""
        return self.arrivals.n_jobs

    @property
    def n_stages(self) -> int:
        """The number of stages."""
        return len(self.routes)

    def usable_lanes(self) -> tuple[int, ...]:
        """Return the lanes of each component, at most one for each of its visits.

        Lanes beyond that are never taken: of those with stamp 0 the lowest comes first.
        """
        visits = [0] * len(self.lanes)
        for route in self.routes:
            visits[route] += self.n_jobs
        return tuple(map(min, self.lanes, visits))

    def busy(self, stage: int) -> int:
        """Return the sum of a stage's services over all jobs."""
        service = self.services[stage]
        if isinstance(service, int):
            return service * self.n_jobs
        return exact_sum(service)

    def guard(self, *, document: str) -> None:
        """Refuse a model whose last event might not fit the grid, before anything runs.

        Parameters
        ----------
        document : str
            For messages.

        Raises
        ------
        InvalidInputError
            With code ``time-overflow``.
        """
        # At every tick before the end some job is served, or none has arrived yet.
        end = self.arrivals.last() + sum(self.busy(stage) for stage in range(self.n_stages))
        if end >= TICK_LIMIT:
            remedy = "run fewer jobs or smaller work"
            raise InvalidInputError(
                f"{self.n_jobs} jobs might end after {self.tick.limit}: the last arrival plus all "
                f"services is {float(end):.3g} {self.tick.name}",
                code="time-overflow",
                document=document,
                remedy=f"{remedy}; {self.tick.remedy}" if self.tick.remedy else remedy,
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """The schedule of consecutive jobs, in ticks; arrays are reused for the next block.

    Parameters
    ----------
    first_job : int
        Number of the first of them.
    arrivals : ndarray of int64, shape (n,)
        Their arrivals.
    starts : sequence of ndarray of int64, shape (n_stages, n)
        When each visit starts.
    finishes : ndarray of int64, shape (n,)
        When each job's last visit ends.
    """

    first_job: int
    arrivals: Ticks
    starts: tuple[Ticks, ...]
    finishes: Ticks

    def service(self, model: TickModel, stage: int) -> int | Ticks:
        """Return the services of a stage, one int or shape (n,)."""
        service = model.services[stage]
        if isinstance(service, int):
            return service
        return service[self.first_job : self.first_job + len(self.arrivals)]

    def ready(self, model: TickModel, stage: int) -> Ticks:
        """Return when each job is ready for a stage, shape (n,)."""
        if stage == 0:
            return self.arrivals
        ready: Ticks = self.starts[stage - 1] + self.service(model, stage - 1)
        return ready


class Engine(Protocol):
    """A way to run a model. Every engine gives the same integers."""

    @property
    def name(self) -> Literal["feed-forward", "event"]:
        """What results call it."""
        ...

    @property
    def keeps_job_order(self) -> bool:
        """Whether each component handles its visits in job order."""
        ...

    def blocks(self) -> Iterator[Block]:
        """Yield the schedule in job order; may be called again."""
        ...


def exact_sum(values: Ticks, *, largest: int | None = None) -> int:
    """Sum of int64 values of at least 0, where int64 itself might overflow.

    Parameters
    ----------
    values : ndarray of int64
        Any shape.
    largest : int or None
        Their maximum, where the caller has it.
    """
    if not values.size:
        return 0
    largest = int(values.max()) if largest is None else largest
    if largest < TICK_LIMIT // values.size:
        return int(values.sum())
    # Halves of 32 bits: 2**31 of them fit.
    return (int((values >> 32).sum()) << 32) + int((values & 0xFFFFFFFF).sum())

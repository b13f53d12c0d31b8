"""Pipeline and profile brought together: each stage with its component and its exact services."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from perfdb_git.errors import InvalidInputError
from perfdb_git.model.pipeline import Pipeline, Stage, Work
from perfdb_git.model.simulation import ResolvedService
from perfdb_git.model.timing_profile import Component, TimingProfile
from perfdb_git.simulation.arrivals import arrival_times
from perfdb_git.simulation.documents import ReadDocument
from perfdb_git.simulation.service_time import (
    ServiceTime,
    given_service_time,
    service_time,
)
from perfdb_git.simulation.tick_model import TickModel
from perfdb_git.simulation.ticks import PICOSECOND, TICK_LIMIT, Tick

if TYPE_CHECKING:
    from perfdb_git.simulation.arrivals import Ticks

_ONE = Fraction(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class StagePlan:
    """One stage with its services.

    Parameters
    ----------
    stage : Stage
        From the pipeline.
    component : Component
        The one that it visits.
    services : tuple of ServiceTime
        The different ones; a single one where all jobs are alike.
    counts : tuple of int
        How many jobs have each of them.
    by_job : tuple of int or None
        For each job the index of its service, ``None`` where all jobs are alike.
    answer : ResolvedService or None
        Where the service of a query comes from.
    """

    stage: Stage
    component: Component
    services: tuple[ServiceTime, ...]
    counts: tuple[int, ...]
    by_job: tuple[int, ...] | None
    answer: ResolvedService | None

    def total(self, values: Sequence[Fraction]) -> Fraction:
        """Sum over all jobs of a value that is given for each service."""
        return sum(
            (value * n for value, n in zip(values, self.counts, strict=True)), start=Fraction()
        )

    def ticks(self) -> int | Ticks:
        """Return the services on the grid, one int or shape (n_jobs,)."""
        import numpy as np

        if self.by_job is None:
            return self.services[0].ticks
        grid = np.array([service.ticks for service in self.services], dtype=np.int64)
        chosen: Ticks = grid[np.array(self.by_job, dtype=np.int64)]
        return chosen


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelinePlan:
    """Everything that a run needs: exact services, and the model of integers made of them."""

    stages: tuple[StagePlan, ...]
    components: tuple[str, ...]
    model: TickModel


def plan_pipeline(
    profile: ReadDocument[TimingProfile],
    pipeline: ReadDocument[Pipeline],
    *,
    answers: Mapping[str, ResolvedService] | None = None,
    factors: Mapping[str, Fraction] | None = None,
    tick: Tick = PICOSECOND,
) -> PipelinePlan:
    """Services, lanes and arrivals of a pipeline on a profile.

    Parameters
    ----------
    profile : ReadDocument[TimingProfile]
        The components.
    pipeline : ReadDocument[Pipeline]
        The stages and jobs.
    answers : Mapping or None
        The resolved service of each ``query`` stage, by stage name.
    factors : Mapping or None
        Factors on every service of a component, by its name: what a sensitivity varies.
    tick : Tick
        The grid of its times.

    Raises
    ------
    InvalidInputError
        If a component is unknown, a rate is missing, a query has no answer, or a service time is
        negative or beyond the grid.
    """
    jobs = pipeline.value.jobs
    times, order = arrival_times(jobs.arrivals, jobs.number, document=pipeline.document, tick=tick)
    builder = _Builder(profile, pipeline, answers or {}, factors or {}, order, tick)
    plans = tuple(builder.plan(index) for index in range(len(pipeline.value.stages)))
    components = tuple(dict.fromkeys(plan.stage.component for plan in plans))
    places = {name: place for place, name in enumerate(components)}
    model = TickModel(
        lanes=tuple(profile.value.components[name].lanes for name in components),
        routes=tuple(places[plan.stage.component] for plan in plans),
        services=tuple(plan.ticks() for plan in plans),
        arrivals=times,
        tick=tick,
    )
    return PipelinePlan(stages=plans, components=components, model=model)


@dataclass(frozen=True, slots=True)
class _Builder:
    profile: ReadDocument[TimingProfile]
    pipeline: ReadDocument[Pipeline]
    answers: Mapping[str, ResolvedService]
    factors: Mapping[str, Fraction]
    order: Sequence[int] | None
    tick: Tick

    def plan(self, index: int) -> StagePlan:
        stage = self.pipeline.value.stages[index]
        component = self._component(stage, index)
        n_jobs = self.pipeline.value.jobs.number
        if stage.work is None:
            answer = self._answer(stage, index)
            one = given_service_time(
                answer.service_ns,
                stage=stage.name,
                document=self.pipeline.document,
                tick=self.tick,
            )
            return StagePlan(
                stage=stage,
                component=component,
                services=(self._adjusted(one, stage),),
                counts=(n_jobs,),
                by_job=None,
                answer=answer,
            )
        works, by_job = self._works(stage, stage.work)
        services = tuple(self._service(stage, component, work) for work in works)
        counts = [0] * len(works)
        for place in by_job:
            counts[place] += 1
        alike = len(works) == 1
        return StagePlan(
            stage=stage,
            component=component,
            services=services,
            counts=(n_jobs,) if alike else tuple(counts),
            by_job=None if alike else by_job,
            answer=None,
        )

    def _component(self, stage: Stage, index: int) -> Component:
        component = self.profile.value.components.get(stage.component)
        if component is None:
            known = ", ".join(sorted(self.profile.value.components))
            raise InvalidInputError(
                f"stage {stage.name!r} visits component {stage.component!r}, which profile "
                f"{self.profile.value.name!r} does not have",
                code="unknown-component",
                document=self.pipeline.document,
                pointer=f"/stages/{index}/component",
                remedy=f"known components: {known}",
            )
        return component

    def _answer(self, stage: Stage, index: int) -> ResolvedService:
        answer = self.answers.get(stage.name)
        if answer is None:
            raise InvalidInputError(
                f"the query of stage {stage.name!r} was not resolved",
                code="unresolved-query",
                document=self.pipeline.document,
                pointer=f"/stages/{index}/query",
                remedy="simulate at a commit whose evidence answers it",
            )
        if any(stage.name in work for work in self.pipeline.value.jobs.work or ()):
            raise InvalidInputError(
                f"stage {stage.name!r} has a query, so jobs cannot have work of their own for it",
                code="work-for-query",
                document=self.pipeline.document,
                pointer="/jobs/work",
            )
        return answer

    def _works(self, stage: Stage, work: Work) -> tuple[list[Work], tuple[int, ...]]:
        """The different works of a stage, and for each job in arrival order which one it has."""
        listed = self.pipeline.value.jobs.work
        if listed is None:
            return [work], ()
        jobs = range(len(listed)) if self.order is None else self.order
        places: dict[Work, int] = {}
        by_job = tuple(
            places.setdefault(listed[job].get(stage.name, work), len(places)) for job in jobs
        )
        return list(places), by_job

    def _service(self, stage: Stage, component: Component, work: Work) -> ServiceTime:
        one = service_time(
            component,
            work,
            component_name=stage.component,
            stage=stage.name,
            document=self.pipeline.document,
            tick=self.tick,
        )
        return self._adjusted(one, stage)

    def _adjusted(self, service: ServiceTime, stage: Stage) -> ServiceTime:
        factor = self.factors.get(stage.component, _ONE)
        if factor != 1:
            service = ServiceTime.rounded(
                service.exact_ps * factor,
                self.tick,
                terms_ps=service.terms_ps,
                fixed_ps=service.fixed_ps * factor,
            )
        if service.ticks >= TICK_LIMIT:
            raise InvalidInputError(
                f"stage {stage.name!r} on component {stage.component!r} takes "
                f"{_shown(service.exact_ps)} ps; times lie below {self.tick.limit}",
                code="time-overflow",
                document=self.pipeline.document,
                remedy=self.tick.remedy,
            )
        return service


def _shown(ps: Fraction) -> str:
    digits = str(round(ps))
    return f"about 1e{len(digits) - 1}"

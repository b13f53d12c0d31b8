"""One run: documents in, summary and visits out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from perfdb_git.errors import UsageError
from perfdb_git.model.pipeline import Arrivals, Pipeline
from perfdb_git.model.simulation import ResolvedService, SimulationSummary, TickName
from perfdb_git.model.timing_profile import TimingProfile
from perfdb_git.simulation.documents import ReadDocument
from perfdb_git.simulation.engine import start_engine
from perfdb_git.simulation.lanes import VisitTable, visit_table
from perfdb_git.simulation.stage_plans import PipelinePlan, plan_pipeline
from perfdb_git.simulation.statistics import collect
from perfdb_git.simulation.summary import summarise
from perfdb_git.simulation.tick_model import Engine
from perfdb_git.simulation.ticks import tick_named

RECORDED_VISITS = 1_000_000
"""Visits up to which a run keeps them all, for the critical path, lanes and waits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulation:
    """A finished run.

    Parameters
    ----------
    plan : PipelinePlan
        Stages with their services, and the model of integers.
    engine : Engine
        What ran it; single visits are made again from it.
    summary : SimulationSummary
        What it says.
    """

    plan: PipelinePlan
    engine: Engine
    summary: SimulationSummary

    def visits(self, first_job: int = 0, last_job: int | None = None) -> VisitTable:
        """Visits of jobs ``first_job`` to ``last_job - 1`` (``None``: the last), with lanes.

        Raises
        ------
        UsageError
            If there are no such jobs.
        """
        end = self.summary.jobs if last_job is None else last_job
        if not 0 <= first_job < end <= self.summary.jobs:
            raise UsageError(
                f"jobs {first_job} to {end - 1} are not among the {self.summary.jobs} of the run",
                code="job-range",
            )
        return visit_table(self.plan.model, self.engine, first_job, end)


def simulate(
    profile: ReadDocument[TimingProfile],
    pipeline: ReadDocument[Pipeline],
    *,
    answers: Mapping[str, ResolvedService] | None = None,
    factors: Mapping[str, Fraction] | None = None,
    recorded_visits: int = RECORDED_VISITS,
    tick: TickName = "ps",
) -> Simulation:
    """Run a pipeline on a profile until it is drained.

    Parameters
    ----------
    profile : ReadDocument[TimingProfile]
        The components.
    pipeline : ReadDocument[Pipeline]
        The stages and jobs.
    answers : Mapping or None
        The resolved service of each ``query`` stage, by stage name.
    factors : Mapping or None
        Factors on every service of a component, by its name.
    recorded_visits : int
        Visits up to which the critical path, lane use and wait percentiles are worked out.
    tick : str
        The grid: ``ps``, or ``fs``, which is 1,000 times finer and ends after 2.56 hours.

    Raises
    ------
    InvalidInputError
        If the documents do not fit each other (``unknown-component``, ``missing-rate``,
        ``negative-service-time``, ``unresolved-query``) or the run the grid (``time-overflow``).
    UsageError
        If there are too many visits (``too-many-visits``), or there is no such ``tick``.
    """
    plan = plan_pipeline(profile, pipeline, answers=answers, factors=factors, tick=tick_named(tick))
    model = plan.model
    engine = start_engine(model, document=pipeline.document)
    statistics = collect(model, engine)
    table = None
    if model.n_jobs * model.n_stages <= recorded_visits:
        table = visit_table(model, engine, 0, model.n_jobs)
    summary = summarise(plan, engine, statistics, table)
    return Simulation(plan=plan, engine=engine, summary=summary)


def with_jobs(
    pipeline: ReadDocument[Pipeline], *, count: int | None = None, arrivals: Arrivals | None = None
) -> ReadDocument[Pipeline]:
    """Pipeline with another number of jobs or other arrivals.

    Parameters
    ----------
    pipeline : ReadDocument[Pipeline]
        As it was read.
    count : int or None
        The number of jobs; ``None`` keeps it, or takes the length of listed arrivals.
    arrivals : Arrivals or None
        The arrivals; ``None`` keeps them.

    Raises
    ------
    UsageError
        If that contradicts a list of arrivals or of work per job.
    """
    jobs = pipeline.value.jobs
    number = jobs.count if count is None else count
    if count is None and arrivals is not None and arrivals.times_ns is not None:
        number = None
    try:
        jobs = replace(jobs, count=number, arrivals=arrivals or jobs.arrivals)
    except ValueError as error:
        raise UsageError(f"{pipeline.document}: {error}", code="jobs") from error
    return replace(pipeline, value=replace(pipeline.value, jobs=jobs))

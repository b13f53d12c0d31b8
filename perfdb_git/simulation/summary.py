"""The summary of a run: what the blocks, the visits and the exact services say together."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import TYPE_CHECKING

from perfdb_git.model.simulation import (
    EVIDENCE_CLASSES,
    Capacity,
    ComponentUse,
    EvidenceClass,
    LaneUse,
    PathShare,
    PathStep,
    SimulationSummary,
    StageAnswer,
    StageUse,
    WaitPercentiles,
)
from perfdb_git.simulation.critical_path import CriticalPath, critical_path
from perfdb_git.simulation.lanes import VisitTable
from perfdb_git.simulation.percentiles import nearest_rank, ranked
from perfdb_git.simulation.rates import (
    effective_rates,
    grid_error,
    mean_rounding_error,
    rate_warnings,
)
from perfdb_git.simulation.stage_plans import PipelinePlan, StagePlan
from perfdb_git.simulation.statistics import RunStatistics
from perfdb_git.simulation.tick_model import Engine

if TYPE_CHECKING:
    from perfdb_git.simulation.arrivals import Ticks

MAX_REPORTED_LANES = 4096
"""Lanes in use at a component up to which each is reported."""


def summarise(
    plan: PipelinePlan, engine: Engine, statistics: RunStatistics, table: VisitTable | None
) -> SimulationSummary:
    """Summary of a run.

    Parameters
    ----------
    plan : PipelinePlan
        What was run.
    engine : Engine
        What ran it.
    statistics : RunStatistics
        What was counted.
    table : VisitTable or None
        All visits; ``None`` leaves out what needs single visits.
    """
    return _Summariser(plan, engine, statistics, table).summary()


class _Summariser:
    def __init__(
        self,
        plan: PipelinePlan,
        engine: Engine,
        statistics: RunStatistics,
        table: VisitTable | None,
    ) -> None:
        self._plan = plan
        self._engine = engine
        self._statistics = statistics
        self._table = table
        self._makespan = statistics.makespan
        self._tick = plan.model.tick
        self._busy = [plan.model.busy(stage) for stage in range(plan.model.n_stages)]
        self._stages_of: list[list[int]] = [[] for _ in plan.components]
        for stage, component in enumerate(plan.model.routes):
            self._stages_of[component].append(stage)
        self._rows = None if table is None else table.rows_by_component(len(plan.components))

    def summary(self) -> SimulationSummary:
        model = self._plan.model
        stages = self._plan.stages
        grid = grid_error(stages)
        capacity = self._capacity()
        path = (
            None
            if self._table is None
            else critical_path(self._table, window=model.arrivals.window)
        )
        throughput = model.n_jobs * self._tick.per_s / self._makespan if self._makespan else None
        return SimulationSummary(
            jobs=model.n_jobs,
            visits=model.n_jobs * model.n_stages,
            makespan_ps=self._tick.ps(self._makespan),
            throughput_jobs_per_s=throughput,
            latency_ps=self._statistics.latency,
            stages=tuple(self._stage(index, one) for index, one in enumerate(stages)),
            components=tuple(
                self._component(index, name) for index, name in enumerate(self._plan.components)
            ),
            bottleneck=None if capacity is None else capacity.component,
            capacity=capacity,
            critical_path=None if path is None else self._steps(path),
            path_arrival_ps=None if path is None else self._tick.ps(path.arrival),
            path_shares=None if path is None else self._shares(path),
            grid_error=grid,
            evidence_class=_weakest(map(_evidence, stages)),
            uncertainty_pct=_uncertainty(stages),
            engine=self._engine.name,
            warnings=tuple(rate_warnings(stages, grid, self._tick)),
            tick=self._tick.name,
        )

    def _capacity(self) -> Capacity | None:
        """Of several components with the least capacity, the first that a job visits."""
        model = self._plan.model
        least: tuple[Fraction, str] | None = None
        for index, name in enumerate(self._plan.components):
            busy = sum(self._busy[stage] for stage in self._stages_of[index])
            if busy:
                capacity = Fraction(model.lanes[index] * model.n_jobs, busy)
                if least is None or capacity < least[0]:
                    least = capacity, name
        if least is None:
            return None
        return Capacity(jobs_per_s=float(least[0] * self._tick.per_s), component=least[1])

    def _stage(self, index: int, plan: StagePlan) -> StageUse:
        answer = plan.answer
        return StageUse(
            name=plan.stage.name,
            component=plan.stage.component,
            service_ps=self._tick.ps(plan.services[0].ticks) if plan.by_job is None else None,
            busy_ps=self._tick.ps(self._busy[index]),
            wait_ps=self._tick.ps(self._statistics.waits[index]),
            wait_max_ps=self._tick.ps(self._statistics.waits_max[index]),
            rounding_error_ps=mean_rounding_error(plan),
            rates=effective_rates(plan),
            answer=None
            if answer is None
            else StageAnswer(
                service_ns=float(answer.service_ns),
                lower_ns=None if answer.lower_ns is None else float(answer.lower_ns),
                upper_ns=None if answer.upper_ns is None else float(answer.upper_ns),
                evidence=answer.evidence,
                provenance=answer.provenance,
            ),
        )

    def _component(self, index: int, name: str) -> ComponentUse:
        model = self._plan.model
        stages = self._stages_of[index]
        plans = [self._plan.stages[stage] for stage in stages]
        lanes = model.lanes[index]
        busy = sum(self._busy[stage] for stage in stages)
        wait = sum(self._statistics.waits[stage] for stage in stages)
        longest = max(self._statistics.waits_max[stage] for stage in stages)
        return ComponentUse(
            name=name,
            lanes=lanes,
            visits=model.n_jobs * len(stages),
            busy_ps=self._tick.ps(busy),
            wait_ps=self._tick.ps(wait),
            wait_max_ps=self._tick.ps(longest),
            wait_percentiles_ps=self._wait_percentiles(index),
            utilisation=busy / (lanes * self._makespan) if self._makespan else 0.0,
            queue_length=wait / self._makespan if self._makespan else 0.0,
            lane_use=self._lane_use(index),
            evidence=_weakest(map(_evidence, plans)),
            target=plans[0].component.target,
            uncertainty_pct=_uncertainty(plans),
        )

    def _wait_percentiles(self, component: int) -> WaitPercentiles | None:
        table = self._table
        if table is None or self._rows is None:
            return None
        rows = self._rows[component]
        waits: Ticks = table.start[rows] - table.ready[rows]
        count = len(waits)
        inner = [nearest_rank(Fraction(part, 100), count) for part in (50, 95)]
        p50, p95, high = map(self._tick.ps, ranked(waits, [*inner, count - 1]))
        return WaitPercentiles(p50=p50, p95=p95, max=high)

    def _lane_use(self, component: int) -> tuple[LaneUse, ...] | None:
        """Lanes that served at least one visit: a delay may have a thousand that did not."""
        import numpy as np

        table = self._table
        if table is None or self._rows is None:
            return None
        rows = self._rows[component]
        lanes, places = np.unique(table.lane[rows], return_inverse=True)
        if len(lanes) > MAX_REPORTED_LANES:
            return None
        visits = np.bincount(places)
        busy = np.zeros(len(lanes), dtype=np.int64)
        np.add.at(busy, places, table.finish[rows] - table.start[rows])
        return tuple(
            LaneUse(
                lane=lane,
                visits=count,
                busy_ps=self._tick.ps(time),
                utilisation=time / self._makespan if self._makespan else 0.0,
            )
            for lane, count, time in zip(
                lanes.tolist(), visits.tolist(), busy.tolist(), strict=True
            )
        )

    def _steps(self, path: CriticalPath) -> tuple[PathStep, ...]:
        table = self._table
        assert table is not None
        rows = list(path.rows)
        columns = (table.job, table.stage, table.lane)
        times = (table.start, table.finish)
        steps = []
        for job, stage, lane, start, finish in zip(
            *(column[rows].tolist() for column in columns),
            *(self._tick.each_ps(column[rows].tolist()) for column in times),
            strict=True,
        ):
            one = self._plan.stages[stage].stage
            steps.append(
                PathStep(
                    job=job,
                    stage=one.name,
                    component=one.component,
                    lane=lane,
                    start_ps=start,
                    finish_ps=finish,
                )
            )
        return tuple(steps)

    def _shares(self, path: CriticalPath) -> tuple[PathShare, ...]:
        """Shares of the path, the largest first."""
        table = self._table
        assert table is not None
        rows = list(path.rows)
        service = [0] * len(self._plan.components)
        visits = [0] * len(self._plan.components)
        durations = table.finish[rows] - table.start[rows]
        for component, duration in zip(
            table.component[rows].tolist(), durations.tolist(), strict=True
        ):
            service[component] += duration
            visits[component] += 1
        shares = (
            PathShare(
                component=name,
                visits=visits[place],
                service_ps=self._tick.ps(service[place]),
                share=service[place] / self._makespan if self._makespan else 0.0,
            )
            for place, name in enumerate(self._plan.components)
            if visits[place]
        )
        return tuple(sorted(shares, key=lambda share: (-share.service_ps, share.component)))


def _evidence(plan: StagePlan) -> EvidenceClass:
    return plan.component.evidence if plan.answer is None else plan.answer.evidence


def _weakest(classes: Iterable[EvidenceClass]) -> EvidenceClass:
    return min(classes, key=EVIDENCE_CLASSES.index)


def _uncertainty(plans: Iterable[StagePlan]) -> float | None:
    """The largest of the stages, ``None`` if any is unknown."""
    known = []
    for plan in plans:
        source = plan.component if plan.answer is None else plan.answer
        if source.uncertainty_pct is None:
            return None
        known.append(float(source.uncertainty_pct))
    return max(known)

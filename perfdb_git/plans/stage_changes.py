"""A plan's pipeline run again with some services changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction

from perfdb_git.model.simulation import ResolvedService
from perfdb_git.operations.queries import query_digest
from perfdb_git.plans.composing import PS_PER_S
from perfdb_git.plans.resolving import ResolvedPlan
from perfdb_git.plans.tracked import STAGE_PREFIX
from perfdb_git.resolution.stage_answers import NS_PER_S, answer_stages
from perfdb_git.simulation.simulate import Simulation, simulate, with_jobs


class StageChanges:
    """Runs the pipeline of a resolved plan; equal runs are done once.

    Parameters
    ----------
    resolved : ResolvedPlan
        Of the composition ``pipeline``, with an answer for each stage that asks.
    """

    def __init__(self, resolved: ResolvedPlan) -> None:
        snapshot, composition = resolved.snapshot, resolved.document.value.composition
        assert composition.pipeline is not None and composition.profile is not None
        self.profile_name = composition.profile
        self._profile = snapshot.timing_profile(composition.profile)
        self._pipeline = with_jobs(snapshot.pipeline(composition.pipeline), count=composition.jobs)
        known = {item.resolution.query_digest: item.resolution for item in resolved.answered}
        self._answers = answer_stages(
            self._pipeline,
            snapshot.vocabulary,
            lambda query: known[query_digest(query)],
        )
        self._unchanged: Simulation | None = None

    def makespan_s(
        self,
        latencies: Mapping[str, float],
        *,
        component: str | None = None,
        factor: float = 1,
    ) -> float:
        """Return the makespan in seconds.

        Parameters
        ----------
        latencies : mapping
            Changed answers in seconds, by the names that the plan gives the stages' queries.
        component : str or None
            Component of the timing profile whose services are multiplied.
        factor : float
            By how much; answers to queries of stages on it stay what they are.
        """
        if not latencies and component is None:
            return float(self._base.summary.makespan_ps) / PS_PER_S
        answers = {
            name: _with_latency(service, latencies.get(f"{STAGE_PREFIX}{name}"))
            for name, service in self._answers.items()
        }
        exact = Fraction(str(factor))
        if component is not None:
            answers |= self._compensated(component, exact)
        factors = None if component is None else {component: exact}
        run = simulate(self._profile, self._pipeline, answers=answers, factors=factors)
        return float(run.summary.makespan_ps) / PS_PER_S

    def components(self) -> Iterator[tuple[str, tuple[str, ...], float]]:
        """Yield components with stages that ask nothing: name, stages, and busy seconds of them."""
        stages = [use for use in self._base.summary.stages if use.answer is None]
        for component in dict.fromkeys(use.component for use in stages):
            own = [use for use in stages if use.component == component]
            busy = sum(use.busy_ps for use in own)
            yield component, tuple(use.name for use in own), float(busy) / PS_PER_S

    @property
    def _base(self) -> Simulation:
        if self._unchanged is None:
            self._unchanged = simulate(self._profile, self._pipeline, answers=self._answers)
        return self._unchanged

    def _compensated(self, component: str, factor: Fraction) -> dict[str, ResolvedService]:
        """Return answers that the factor on their component leaves as they are."""
        stages = self._pipeline.value.stages
        asking = [stage.name for stage in stages if stage.component == component]
        return {
            name: replace(self._answers[name], service_ns=self._answers[name].service_ns / factor)
            for name in asking
            if name in self._answers
        }


def _with_latency(service: ResolvedService, latency_s: float | None) -> ResolvedService:
    if latency_s is None:
        return service
    return replace(service, service_ns=Fraction(latency_s) * NS_PER_S)

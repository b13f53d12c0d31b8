"""From answers to one number: a weighted sum, or the makespan of a pipeline."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perfdb_git.model.estimate import CostEstimate, MetricEstimate, Uncertainty
from perfdb_git.model.plan_lock import CompositionResult, UncertaintyCode
from perfdb_git.model.result import Resolution
from perfdb_git.model.simulation import EVIDENCE_CLASSES, EvidenceClass
from perfdb_git.plans.tracked import TrackedQuery
from perfdb_git.resolution.stage_answers import EVIDENCE_OF_METHOD, SERVICE_METRIC

if TYPE_CHECKING:
    from perfdb_git.simulation.simulate import Simulation

SECONDS = "s"
PS_PER_S = 10**12
COMONOTONE_SUM = "comonotone-sum"
"""Rule of a sum's interval: the sums of the lower and of the upper bounds.

It is exact where all parts are slow together and fast together, and wider than needed where they
vary apart; its level is the lowest of theirs.
"""


@dataclass(frozen=True, slots=True)
class AnsweredQuery:
    """A query of a plan with its outcome."""

    tracked: TrackedQuery
    resolution: Resolution

    @property
    def latency(self) -> MetricEstimate | None:
        """The latency, or ``None`` where there is no answer or it is about something else."""
        estimate = self.resolution.estimate
        return None if estimate is None else estimate.metrics.get(SERVICE_METRIC)


def compose_sum(answered: Sequence[AnsweredQuery]) -> CompositionResult:
    """Sum multiplicity times latency over the queries.

    Parameters
    ----------
    answered : sequence of AnsweredQuery
        Every query of the plan.

    Returns
    -------
    CompositionResult
        Without a value where a required query has no answer.
    """
    parts = [(item.tracked.multiplicity, item.latency) for item in answered]
    counted = [(count, metric) for count, metric in parts if metric is not None]
    missing = [item.tracked for item in answered if item.latency is None]
    complete = not any(query.required for query in missing) and bool(counted)
    uncertainty: Uncertainty | None = None
    code: UncertaintyCode | None = "incomplete"
    if complete and not missing:
        uncertainty, code = _sum_interval(counted)
    return CompositionResult(
        kind="sum",
        value=math.fsum(count * metric.value for count, metric in counted) if complete else None,
        unit=SECONDS,
        makespan_ps=None,
        evidence=weakest_evidence(answered) if complete else None,
        uncertainty=uncertainty,
        uncertainty_code=code,
        left_out=tuple(query.name for query in missing if not query.required),
    )


def _sum_interval(
    counted: Sequence[tuple[int, MetricEstimate]],
) -> tuple[Uncertainty | None, UncertaintyCode | None]:
    known = [
        (count, metric.uncertainty) for count, metric in counted if metric.uncertainty is not None
    ]
    if len(known) < len(counted):
        return None, "spread-unknown"
    kinds = {bounds.kind for _, bounds in known}
    if len(kinds) > 1:
        return None, "kinds-differ"
    interval = Uncertainty(
        kind=kinds.pop(),
        level=min(bounds.level for _, bounds in known),
        lower=math.fsum(count * bounds.lower for count, bounds in known),
        upper=math.fsum(count * bounds.upper for count, bounds in known),
        sample_count=None,
        rule=COMONOTONE_SUM,
    )
    return interval, None


def compose_pipeline(simulation: Simulation | None) -> CompositionResult:
    """Take the makespan of a run; ``None`` where a stage's query has no answer.

    There is no interval: a makespan is no monotone function of its parts where jobs queue, so the
    bounds of the parts do not give bounds of the whole.
    """
    summary = None if simulation is None else simulation.summary
    makespan = None if summary is None else int(summary.makespan_ps)
    return CompositionResult(
        kind="pipeline",
        value=None if makespan is None else makespan / PS_PER_S,
        unit=SECONDS,
        makespan_ps=None if makespan is None else str(makespan),
        evidence=None if summary is None else summary.evidence_class,
        uncertainty=None,
        uncertainty_code="incomplete" if summary is None else "not-propagated",
        left_out=(),
    )


def weakest_evidence(answered: Sequence[AnsweredQuery]) -> EvidenceClass | None:
    """Return the weakest class of evidence among the answers."""
    estimates: list[CostEstimate] = [
        item.resolution.estimate
        for item in answered
        if item.resolution.estimate is not None and item.latency is not None
    ]
    classes = [EVIDENCE_OF_METHOD[estimate.method] for estimate in estimates]
    return min(classes, key=EVIDENCE_CLASSES.index, default=None)

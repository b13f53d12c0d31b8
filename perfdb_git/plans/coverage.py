"""What a sum rests on: how many of its tasks, and which share of its time, have which method."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from perfdb_git.model.estimate import Method, MetricEstimate, Uncertainty
from perfdb_git.plans.composing import AnsweredQuery, compose_sum
from perfdb_git.plans.lock import NO_LATENCY

METHODS: tuple[Method, ...] = ("measured", "simulated", "calibrated", "analytical", "fallback")
"""From the strongest to the weakest."""

INDEPENDENT_SUM = "independent-queries-root-sum-square"
"""Rule of a sum's narrower interval: half-widths of different queries added as squares.

It holds where the errors of different queries are independent, and those of one query's repeats
equal; upper and lower half-widths are added apart. Answers of one calibration or session share
errors, so this is a best case beside the comonotone sum, which is the worst. Source: JCGM 100:2008
(GUM), 5.1.2, with sensitivity coefficients equal to the multiplicities.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodCoverage:
    """Tasks of one method: how many, how long in seconds, and their share of what is answered."""

    method: Method
    tasks: int
    time_s: float
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedTask:
    """A task without an answer: it has no time, not a time of zero."""

    name: str
    multiplicity: int
    code: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """What a sum rests on.

    Parameters
    ----------
    tasks : int
        All tasks, refused ones included.
    answered_s : float
        Sum of the answered tasks; a total only where none is refused.
    methods : tuple of MethodCoverage
        Methods with a task, the strongest first.
    refused : tuple of RefusedTask
        Tasks without an answer.
    lower_bounds, upper_bounds : tuple of str
        Tasks whose answer is a bound, not an expectation: a model with unknown efficiencies gives
        lower ones, a declared fallback gives upper ones.
    bounds_share : float
        Their share of the answered time.
    without_spread : tuple of str
        Answered tasks that state no interval.
    spread_share : float
        Share of the answered time whose interval is known.
    spread_s : float
        That time.
    comonotone, independent : Uncertainty or None
        Intervals of that time by the two rules; ``None`` where nothing states one, or kinds differ.
    """

    tasks: int
    answered_s: float
    methods: tuple[MethodCoverage, ...]
    refused: tuple[RefusedTask, ...]
    lower_bounds: tuple[str, ...]
    upper_bounds: tuple[str, ...]
    bounds_share: float
    without_spread: tuple[str, ...]
    spread_share: float
    spread_s: float
    comonotone: Uncertainty | None
    independent: Uncertainty | None


def sum_coverage(answered: Sequence[AnsweredQuery]) -> Coverage:
    """Return what a sum of these queries rests on.

    Parameters
    ----------
    answered : sequence of AnsweredQuery
        Every query of a plan, with its outcome.
    """
    known = [item for item in answered if item.latency is not None]
    total = _time(known)
    spread = [item for item in known if _interval(item) is not None]
    bounds = [item for item in known if _is_bound(item)]
    return Coverage(
        tasks=len(answered),
        answered_s=total,
        methods=_methods(known, total),
        refused=tuple(_refused(item) for item in answered if item.latency is None),
        lower_bounds=_names([item for item in bounds if _method(item) != "fallback"]),
        upper_bounds=_names([item for item in bounds if _method(item) == "fallback"]),
        bounds_share=_share(_time(bounds), total),
        without_spread=_names([item for item in known if _interval(item) is None]),
        spread_share=_share(_time(spread), total),
        spread_s=_time(spread),
        comonotone=compose_sum(spread).uncertainty,
        independent=_independent(spread),
    )


def task_time(item: AnsweredQuery) -> float | None:
    """Return multiplicity times latency in seconds, ``None`` without an answer."""
    return None if item.latency is None else item.tracked.multiplicity * item.latency.value


def _time(items: Sequence[AnsweredQuery]) -> float:
    times = (task_time(item) for item in items)
    return math.fsum(time for time in times if time is not None)


def _share(part: float, total: float) -> float:
    return part / total if total else 0.0


def _names(items: Sequence[AnsweredQuery]) -> tuple[str, ...]:
    return tuple(item.tracked.name for item in items)


def _interval(item: AnsweredQuery) -> Uncertainty | None:
    return None if item.latency is None else item.latency.uncertainty


def _is_bound(item: AnsweredQuery) -> bool:
    estimate = item.resolution.estimate
    return estimate is not None and estimate.validity.kind == "bound"


def _method(item: AnsweredQuery) -> Method:
    assert item.resolution.estimate is not None
    return item.resolution.estimate.method


def _methods(known: Sequence[AnsweredQuery], total: float) -> tuple[MethodCoverage, ...]:
    found: dict[Method, list[AnsweredQuery]] = {}
    for item in known:
        found.setdefault(_method(item), []).append(item)
    return tuple(
        MethodCoverage(
            method=method,
            tasks=len(found[method]),
            time_s=_time(found[method]),
            share=_share(_time(found[method]), total),
        )
        for method in METHODS
        if method in found
    )


def _refused(item: AnsweredQuery) -> RefusedTask:
    code = item.resolution.code if item.resolution.estimate is None else NO_LATENCY
    return RefusedTask(
        name=item.tracked.name,
        multiplicity=item.tracked.multiplicity,
        code=code,
        reason=item.resolution.reason,
    )


def _independent(spread: Sequence[AnsweredQuery]) -> Uncertainty | None:
    """Return the interval by `INDEPENDENT_SUM`; equal questions are one query."""
    counts: dict[str, int] = {}
    metrics: dict[str, MetricEstimate] = {}
    for item in spread:
        digest = item.resolution.query_digest
        assert item.latency is not None
        counts[digest] = counts.get(digest, 0) + item.tracked.multiplicity
        metrics[digest] = item.latency
    parts = [
        (counts[digest], metric.value, metric.uncertainty)
        for digest, metric in metrics.items()
        if metric.uncertainty is not None
    ]
    kinds = {bounds.kind for _, _, bounds in parts}
    if len(kinds) != 1:
        return None
    total = math.fsum(count * value for count, value, _ in parts)
    below = math.hypot(*(count * (value - bounds.lower) for count, value, bounds in parts))
    above = math.hypot(*(count * (bounds.upper - value) for count, value, bounds in parts))
    return Uncertainty(
        kind=kinds.pop(),
        level=min(bounds.level for _, _, bounds in parts),
        lower=total - below,
        upper=total + above,
        sample_count=None,
        rule=INDEPENDENT_SUM,
    )

"""Intervals for quantiles from order statistics: no model, and a coverage that is true.

All of them are *confidence* intervals for a quantile of the distribution that the samples come
from; `perfdb_git.analysis.intervals` predicts the next sample.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from perfdb_git.analysis.student_t import regularized_incomplete_beta
from perfdb_git.model.estimate import Uncertainty

MEDIAN_ORDER_STATISTICS = "order-statistics-of-median"

_ROUNDING = 1e-12
"""Coverage that reaches the level but for rounding reaches it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankInterval:
    """Ranks from 1 of the two order statistics that bound a quantile, and what they cover."""

    lower: int
    upper: int
    coverage: float


def binomial_cdf(successes: int, trials: int, probability: float) -> float:
    """Return P(X <= successes) of a binomial distribution.

    Parameters
    ----------
    successes : int
        From -1, where it is 0, to ``trials``, where it is 1.
    trials : int
        At least 0.
    probability : float
        Of one success, in (0, 1).
    """
    if successes < 0:
        return 0.0
    if successes >= trials:
        return 1.0
    return regularized_incomplete_beta(trials - successes, successes + 1, 1 - probability)


def quantile_ranks(count: int, probability: float, level: float) -> RankInterval | None:
    """Return the order statistics that bound a quantile with equal tails.

    Parameters
    ----------
    count : int
        Number of samples.
    probability : float
        Quantile, in (0, 1); 0.5 is the median.
    level : float
        Coverage asked for, in (0, 1).

    Returns
    -------
    RankInterval or None
        ``None`` where so few samples cannot bound the quantile on both sides.

    Notes
    -----
    Source: David & Nagaraja, Order Statistics, 3rd ed., section 7.1: [x_(l), x_(u)] covers the
    quantile q with probability B(u - 1; n, q) - B(l - 1; n, q), B being the binomial CDF.
    """
    tail = (1 - level) / 2 + _ROUNDING
    lower = _last_rank(count, probability, tail)
    # The upper tail of q is the lower tail of 1 - q, counted from the largest sample.
    upper = count + 1 - _last_rank(count, 1 - probability, tail)
    if lower < 1 or upper > count:
        return None
    coverage = binomial_cdf(upper - 1, count, probability) - binomial_cdf(
        lower - 1, count, probability
    )
    return RankInterval(lower=lower, upper=upper, coverage=coverage)


def _last_rank(count: int, probability: float, tail: float) -> int:
    """Return the largest rank l with B(l - 1; n, q) <= tail, or 0 where there is none."""
    low, high = 0, count
    while low < high:
        middle = (low + high + 1) // 2
        if binomial_cdf(middle - 1, count, probability) <= tail:
            low = middle
        else:
            high = middle - 1
    return low


def median_interval(samples: Sequence[float], level: float) -> Uncertainty | None:
    """Bound the median of a distribution by two of its samples.

    Parameters
    ----------
    samples : sequence of float
        Independent samples, shape ``(n_samples,)``, any order.
    level : float
        Coverage asked for, in (0, 1).

    Returns
    -------
    Uncertainty or None
        Its ``level`` is the true coverage, at least the one asked for. ``None`` where too few
        samples reach it: fewer than 6 at 95 %.
    """
    return quantile_interval(samples, 0.5, level)


def quantile_interval(
    samples: Sequence[float], probability: float, level: float
) -> Uncertainty | None:
    """Bound a quantile by two of the samples; see `quantile_ranks`."""
    ranks = quantile_ranks(len(samples), probability, level)
    if ranks is None:
        return None
    ordered = sorted(samples)
    median = probability == 0.5
    return Uncertainty(
        kind="confidence",
        level=ranks.coverage,
        lower=ordered[ranks.lower - 1],
        upper=ordered[ranks.upper - 1],
        sample_count=len(ordered),
        quantiles={"0.5": statistics.median(ordered)} if median else {},
        rule=MEDIAN_ORDER_STATISTICS if median else "order-statistics-of-quantile",
    )


def samples_for_upper_bound(probability: float, level: float) -> int:
    """Return how many samples it takes until their largest bounds a quantile from above.

    The largest of n samples lies above the quantile q with probability 1 - q^n. With fewer
    samples a percentile is not supported by the data, whatever a tool printed.

    Parameters
    ----------
    probability : float
        Quantile, in (0, 1); 0.99 is p99.
    level : float
        Confidence asked for, in (0, 1).
    """
    return math.ceil(math.log(1 - level) / math.log(probability) - _ROUNDING)

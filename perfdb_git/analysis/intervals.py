"""Intervals for recorded evidence, each made by a named rule.

All of them are *prediction* intervals: the range in which one further run is expected, which is
what a cost query about a future run needs, and not the (narrower) confidence interval of the
typical value.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from perfdb_git.analysis.student_t import student_t_quantile
from perfdb_git.model.estimate import Uncertainty

ORDER_STATISTICS = "order-statistics"
LOG_NORMAL_SUMMARY = "log-normal-from-median-std"
LOG_NORMAL_REPEATS = "log-normal-over-repeats"
LOG_NORMAL_TWO_LEVEL = "log-normal-over-sessions"

LARGEST_REACH = 500.0
"""e^500 stays a finite float64 for every latency; such an interval says "unknown" anyway."""


def order_statistics_prediction(samples: Sequence[float], level: float) -> Uncertainty | None:
    """Predict one further sample from raw samples, without a model.

    [x_(l), x_(n+1-l)] covers (n + 1 - 2l) / (n + 1). The narrowest such interval that reaches
    ``level`` is taken; with too few samples it is [min, max], and its true coverage is stated.

    Parameters
    ----------
    samples : Sequence[float]
        Raw samples, shape ``(n_samples,)``, any order.
    level : float
        Coverage asked for, in (0, 1).

    Returns
    -------
    Uncertainty or None
        ``None`` for fewer than two samples.
    """
    ordered = sorted(samples)
    count = len(ordered)
    if count < 2:
        return None
    # The tolerance keeps n = 19 at level 0.9 (exactly 18/20) from losing to rounding.
    trim = max(1, math.floor((count + 1) * (1 - level) / 2 + 1e-9))
    return Uncertainty(
        kind="prediction",
        level=(count + 1 - 2 * trim) / (count + 1),
        lower=ordered[trim - 1],
        upper=ordered[count - trim],
        sample_count=count,
        quantiles={"0.5": statistics.median(ordered)},
        rule=ORDER_STATISTICS,
    )


def log_variance(deviation: float, mean: float) -> float:
    """Return the variance of ln x of a log-normal with that mean and standard deviation."""
    return math.log1p((deviation / mean) ** 2)


def summary_prediction(
    center: float, variance: float, count: int, level: float, *, quantum: float | None
) -> Uncertainty | None:
    """Predict one further run from a summary: exp(ln median ± t s sqrt(1 + 1/n)).

    Parameters
    ----------
    center : float
        Median (or mean) of the runs, positive.
    variance : float
        Sample variance of ln x.
    count : int
        Runs behind the summary.
    level : float
        Coverage, in (0, 1).
    quantum : float or None
        Timer resolution in the unit of ``center``; the interval is at least one quantum wide.

    Returns
    -------
    Uncertainty or None
        ``None`` for fewer than two runs, whose spread is unknown.
    """
    if count < 2:
        return None
    reach = student_t_quantile((1 + level) / 2, count - 1) * math.sqrt(variance * (1 + 1 / count))
    return _log_interval(center, reach, level, count, quantum, LOG_NORMAL_SUMMARY)


def grouped_prediction(
    centers: Sequence[float],
    within_variance: float,
    level: float,
    *,
    sample_count: int | None,
    quantum: float | None,
    rule: str,
) -> Uncertainty | None:
    """Predict one further run from the centres of groups (repeats or sessions).

    exp(ln median ± t_(k-1) sqrt(s_b^2 (1 + 1/k) + s_w^2)): spread between the k groups plus the
    spread of single runs within them (Kalibera & Jones, ISMM '13, two levels).

    Parameters
    ----------
    centers : Sequence[float]
        Typical value of each group, shape ``(n_groups,)``, positive.
    within_variance : float
        Mean variance of ln x within the groups; 0 where it is unknown.
    level : float
        Coverage, in (0, 1).
    sample_count : int or None
        Runs behind all groups, where known.
    quantum : float or None
        Timer resolution.
    rule : str
        Name of the rule to report.
    """
    count = len(centers)
    if count < 2:
        return None
    between = statistics.variance([math.log(center) for center in centers])
    spread = math.sqrt(between * (1 + 1 / count) + within_variance)
    reach = student_t_quantile((1 + level) / 2, count - 1) * spread
    return _log_interval(statistics.median(centers), reach, level, sample_count, quantum, rule)


def _log_interval(
    center: float,
    reach: float,
    level: float,
    sample_count: int | None,
    quantum: float | None,
    rule: str,
) -> Uncertainty:
    # A reading is known no better than to half a tick of its timer.
    half = quantum / 2 if quantum is not None else 0.0
    reach = min(reach, LARGEST_REACH)
    return Uncertainty(
        kind="prediction",
        level=level,
        lower=max(0.0, min(center * math.exp(-reach), center - half)),
        upper=max(center * math.exp(reach), center + half),
        sample_count=sample_count,
        rule=rule,
    )

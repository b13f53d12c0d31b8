"""The ratio of two summarised groups, where no raw samples were kept."""

from __future__ import annotations

import math
from dataclasses import dataclass

from perfdb_git.analysis.student_t import student_t_quantile, two_sided_tail

MEDIAN_LOSS = math.pi / 2
"""The median of log-normal samples varies by so much more than their geometric mean."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What is known of a group without its samples.

    Attributes
    ----------
    center : float
        Median or mean, positive.
    is_median : bool
        Which of the two.
    variance : float
        Sample variance of ln x, at least 0.
    count : int
        Samples behind it, at least 2.
    """

    center: float
    is_median: bool
    variance: float
    count: int

    @property
    def center_variance(self) -> float:
        """Variance of ln center."""
        return self.variance * (MEDIAN_LOSS if self.is_median else 1) / self.count


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryRatio:
    """Ratio second / first with its confidence interval and two-sided p-value."""

    ratio: float
    lower: float
    upper: float
    p_value: float


def summary_ratio(first: Summary, second: Summary, level: float) -> SummaryRatio | None:
    """Compare two summaries, their samples taken as independent and log-normal.

    Parameters
    ----------
    first, second : Summary
        In one unit.
    level : float
        Coverage asked for, in (0, 1).

    Returns
    -------
    SummaryRatio or None
        ``None`` where both spreads are 0: a timer too coarse to show any, and no proof of none.

    Notes
    -----
    Source: Welch, The generalization of Student's problem, Biometrika 34 (1947), on logarithms;
    degrees of freedom by Satterthwaite, rounded down.
    """
    parts = first.center_variance, second.center_variance
    total = sum(parts)
    if total <= 0:
        return None
    weights = parts[0] ** 2 / (first.count - 1) + parts[1] ** 2 / (second.count - 1)
    degrees = max(1, math.floor(total**2 / weights))
    shift, error = math.log(second.center / first.center), math.sqrt(total)
    reach = student_t_quantile((1 + level) / 2, degrees) * error
    return SummaryRatio(
        ratio=math.exp(shift),
        lower=math.exp(shift - reach),
        upper=math.exp(shift + reach),
        p_value=two_sided_tail(abs(shift) / error, degrees),
    )

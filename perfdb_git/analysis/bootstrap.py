"""The bootstrap, resampling the outermost level, where no closed form answers."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

from perfdb_git.model.estimate import Uncertainty

BOOTSTRAP = "percentile-bootstrap"
MIN_RUNS = 10
"""With fewer runs the resamples are too alike, and the interval too narrow."""

MIN_DRAWS = 10_000

Statistic: TypeAlias = Callable[[Sequence[float]], float]


def bootstrap_interval(
    runs: Sequence[Sequence[float]],
    statistic: Statistic,
    level: float,
    *,
    seed: int,
    draws: int = MIN_DRAWS,
) -> Uncertainty | None:
    """Bound a statistic by resampling whole runs with replacement.

    Parameters
    ----------
    runs : sequence of sequences of float
        Shape ``(n_runs, n_repetitions)``; a run is drawn with all its repetitions. Samples
        without a level above them are runs of one.
    statistic : callable
        From the pooled samples of one resample to a number.
    level : float
        Coverage asked for, in (0, 1).
    seed : int
        Of the draws; the same seed gives the same interval.
    draws : int
        Resamples, at least `MIN_DRAWS`.

    Returns
    -------
    Uncertainty or None
        ``None`` for fewer than `MIN_RUNS` runs.

    Raises
    ------
    ValueError
        For too few draws.

    Notes
    -----
    Source: Efron & Tibshirani, An Introduction to the Bootstrap, chapter 13.
    """
    import random

    if draws < MIN_DRAWS:
        raise ValueError(f"{draws} draws are too few, {MIN_DRAWS} are the least")
    if len(runs) < MIN_RUNS:
        return None
    generator = random.Random(seed)
    found = sorted(
        statistic([sample for run in generator.choices(runs, k=len(runs)) for sample in run])
        for _ in range(draws)
    )
    cut = math.floor(draws * (1 - level) / 2)
    return Uncertainty(
        kind="confidence",
        level=level,
        lower=found[cut],
        upper=found[draws - 1 - cut],
        sample_count=len(runs),
        rule=BOOTSTRAP,
    )


def bootstrap_median_counts(count: int) -> tuple[int, ...]:
    """Count, over all resamples, how often each order statistic is the median.

    Parameters
    ----------
    count : int
        Number of samples, odd: the median of a resample is then one of them.

    Returns
    -------
    tuple of int
        Shape ``(count,)``, of ``count ** count`` resamples in all.

    Raises
    ------
    ValueError
        For an even number.

    Notes
    -----
    The median is at most x_(k) where at least half of the draws are:
    sum over j >= (n + 1) / 2 of C(n, j) k^j (n - k)^(n - j).
    """
    if count % 2 == 0:
        raise ValueError("the median of an even number of samples lies between two of them")
    at_most = [
        sum(
            math.comb(count, drawn) * rank**drawn * (count - rank) ** (count - drawn)
            for drawn in range((count + 1) // 2, count + 1)
        )
        for rank in range(count + 1)
    ]
    return tuple(after - before for before, after in itertools.pairwise(at_most))

"""Intervals for arithmetic and geometric means, for who asks for a mean and accepts its model."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

from perfdb_git.analysis.intervals import summary_prediction
from perfdb_git.analysis.student_t import student_t_quantile
from perfdb_git.model.estimate import Uncertainty

MEAN_T = "student-t-of-mean"
GEOMETRIC_MEAN_T = "log-normal-of-geometric-mean"
LOG_NORMAL_NEXT = "log-normal-of-next-sample"
RUN_MEANS_T = "student-t-over-run-means"


def mean_interval(samples: Sequence[float], level: float) -> Uncertainty | None:
    """Bound the mean of normal samples: mean ± t s / sqrt(n).

    Parameters
    ----------
    samples : sequence of float
        Independent samples, shape ``(n_samples,)``.
    level : float
        Coverage, in (0, 1).

    Returns
    -------
    Uncertainty or None
        A confidence interval; ``None`` for fewer than two samples.
    """
    if len(samples) < 2:
        return None
    mean = statistics.fmean(samples)
    reach = _t(level, len(samples)) * statistics.stdev(samples) / math.sqrt(len(samples))
    return _confidence(mean - reach, mean + reach, level, len(samples), MEAN_T)


def geometric_mean_interval(samples: Sequence[float], level: float) -> Uncertainty | None:
    """Bound the geometric mean (and median) of log-normal samples: exp(mean ln x ± t s / sqrt(n)).

    Parameters
    ----------
    samples : sequence of float
        Independent positive samples, shape ``(n_samples,)``.
    level : float
        Coverage, in (0, 1).

    Returns
    -------
    Uncertainty or None
        A confidence interval, not one for the next sample; ``None`` for fewer than two samples.

    Raises
    ------
    ValueError
        For a sample that is not positive.
    """
    interval = mean_interval([math.log(sample) for sample in samples], level)
    if interval is None:
        return None
    return _confidence(
        math.exp(interval.lower), math.exp(interval.upper), level, len(samples), GEOMETRIC_MEAN_T
    )


def log_normal_prediction(samples: Sequence[float], level: float) -> Uncertainty | None:
    """Predict one further log-normal sample: exp(mean ln x ± t s sqrt(1 + 1/n)).

    Parameters
    ----------
    samples : sequence of float
        Independent positive samples, shape ``(n_samples,)``.
    level : float
        Coverage, in (0, 1).

    Returns
    -------
    Uncertainty or None
        A prediction interval; ``None`` for fewer than two samples.
    """
    if len(samples) < 2:
        return None
    logs = [math.log(sample) for sample in samples]
    center = math.exp(statistics.fmean(logs))
    found = summary_prediction(center, statistics.variance(logs), len(samples), level, quantum=None)
    return None if found is None else replace(found, rule=LOG_NORMAL_NEXT)


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoLevelMean:
    """The mean over runs (processes, sessions) of repetitions.

    Attributes
    ----------
    mean : float
        Mean of the run means.
    interval : Uncertainty
        Confidence interval over the runs, which alone are independent.
    within_variance : float
        Mean variance of the repetitions within a run.
    between_variance : float
        Variance of the runs themselves, the part of repetitions taken off; 0 where that part
        exceeds all there is.
    """

    mean: float
    interval: Uncertainty
    within_variance: float
    between_variance: float


def two_level_mean(runs: Sequence[Sequence[float]], level: float) -> TwoLevelMean | None:
    """Bound the mean of repetitions that were taken in several runs.

    Repetitions of one run share what the run happened to get (memory layout, placement, clocks),
    so an interval over all of them would be too narrow: the run is the unit.

    Parameters
    ----------
    runs : sequence of sequences of float
        Shape ``(n_runs, n_repetitions)``, ragged at will.
    level : float
        Coverage, in (0, 1).

    Returns
    -------
    TwoLevelMean or None
        ``None`` for fewer than two runs, or where no run has two repetitions.

    Notes
    -----
    Source: Kalibera & Jones, Rigorous benchmarking in reasonable time, ISMM 2013, section 6.
    """
    repeated = [statistics.variance(run) for run in runs if len(run) > 1]
    means = [statistics.fmean(run) for run in runs]
    interval = mean_interval(means, level)
    if interval is None or not repeated:
        return None
    within = statistics.fmean(repeated)
    repetitions = statistics.harmonic_mean([len(run) for run in runs])
    return TwoLevelMean(
        mean=statistics.fmean(means),
        interval=replace(interval, rule=RUN_MEANS_T),
        within_variance=within,
        between_variance=max(0.0, statistics.variance(means) - within / repetitions),
    )


def _t(level: float, count: int) -> float:
    return student_t_quantile((1 + level) / 2, count - 1)


def _confidence(lower: float, upper: float, level: float, count: int, rule: str) -> Uncertainty:
    return Uncertainty(
        kind="confidence", level=level, lower=lower, upper=upper, sample_count=count, rule=rule
    )

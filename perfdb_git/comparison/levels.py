"""Samples on two levels, such as values of processes: the mean over the outer one."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from perfdb_git.analysis.bootstrap import bootstrap_interval
from perfdb_git.analysis.mean_intervals import TwoLevelMean, two_level_mean
from perfdb_git.analysis.sample_flags import modes
from perfdb_git.comparison.groups import Group
from perfdb_git.comparison.results import SampleUnit
from perfdb_git.model.estimate import Uncertainty


def samples_by_unit(group: Group, unit: SampleUnit) -> list[tuple[float, ...]]:
    """Return the samples of each record or session of a side.

    Returns
    -------
    list of tuple of float
        Shape ``(n_units, n_samples)``, ragged; empty where there is one level or a record without
        raw samples.
    """
    if unit not in ("record", "session") or not all(item.samples for item in group.observations):
        return []
    runs: dict[str, tuple[float, ...]] = {}
    for number, item in enumerate(group.observations):
        key = item.session if unit == "session" else str(number)
        runs[key] = (*runs.get(key, ()), *item.samples)
    return list(runs.values())


def mean_over_units(
    runs: Sequence[Sequence[float]], units: Sequence[float], level: float
) -> TwoLevelMean | None:
    """Return the mean over units; None where they have two modes: between them there is no unit.

    Parameters
    ----------
    runs : sequence of sequences of float
        As `samples_by_unit` returns them.
    units : sequence of float
        The typical value of each unit.
    level : float
        Coverage of the interval.
    """
    return two_level_mean(runs, level) if runs and modes(units) is None else None


def resampled_median(
    runs: Sequence[Sequence[float]], level: float, seed: int | None
) -> Uncertainty | None:
    """Bound the median of all samples by resampling whole units; None without a seed."""
    if seed is None:
        return None
    return bootstrap_interval(runs, statistics.median, level, seed=seed)

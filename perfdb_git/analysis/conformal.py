"""Prediction intervals from the errors of models that had not seen the rows.

All widths are half-widths on the logarithm: the interval of a prediction p is
[p exp(-width), p exp(+width)]. Scores are |log(predicted / measured)| of out-of-fold predictions,
divided by an error scale where one was learned.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ConformalWidths:
    """Half-widths by group, in units of the error scale.

    Parameters
    ----------
    level : float
        Coverage asked for, in (0, 1).
    pooled : float
        Half-width of every group that is not named.
    groups : ndarray of int64
        Groups with a half-width of their own, ascending, shape ``(n_groups,)``.
    widths : ndarray of float64
        Theirs, shape ``(n_groups,)``.
    """

    level: float
    pooled: float
    groups: NDArray[np.int64]
    widths: NDArray[np.float64]

    def predict(self, scale: ArrayLike, group: ArrayLike = -1) -> NDArray[np.float64]:
        """Return half-widths on the logarithm.

        Parameters
        ----------
        scale : array_like
            Error scale of each query, positive; 1 where none was learned.
        group : array_like of int
            Group of each query, of the shape of ``scale`` or one for all.

        Returns
        -------
        ndarray of float64
            Of the shape of ``scale``.
        """
        scales, groups = np.asarray(scale, np.float64), np.asarray(group)
        if not len(self.groups):
            return np.asarray(self.pooled * scales)
        place = np.minimum(np.searchsorted(self.groups, groups), len(self.groups) - 1)
        own = self.groups[place] == groups
        return np.asarray(np.where(own, self.widths[place], self.pooled) * scales)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TwoRegimeWidths:
    """One set of half-widths where the query's line is measured, one where it is not.

    A line is all that two rows share when they differ in one size only: its rows come from the
    same sweep. Row folds imitate a gap in a measured line, whole-line folds a line never measured.

    Parameters
    ----------
    measured, unmeasured : ConformalWidths
        From row folds and from folds that leave out whole lines.
    """

    measured: ConformalWidths
    unmeasured: ConformalWidths

    def predict(
        self, scale: ArrayLike, line_measured: ArrayLike, group: ArrayLike = -1
    ) -> NDArray[np.float64]:
        """Return half-widths on the logarithm.

        Parameters
        ----------
        scale : array_like
            Error scale of each query in the regime that applies to it.
        line_measured : array_like of bool
            Whether training rows share the query's line.
        group : array_like of int
            Group of each query.

        Returns
        -------
        ndarray of float64
            Of the shape of ``scale``.
        """
        known = self.measured.predict(scale, group)
        return np.where(line_measured, known, self.unmeasured.predict(scale, group))


@dataclass(frozen=True, slots=True, kw_only=True)
class DistanceWidening:
    """Factor on the interior half-width outside the domain: ``1 + rate * sqrt(octaves)``.

    Parameters
    ----------
    rate : float
        Per root octave, never negative.
    """

    rate: float

    def predict(self, octaves: ArrayLike) -> NDArray[np.float64]:
        """Return the factor at distances of at least 0, of the shape of ``octaves``."""
        return np.asarray(1 + self.rate * np.sqrt(np.asarray(octaves, np.float64)))


def conformal_quantile(scores: ArrayLike, level: float) -> float:
    """Return the smallest score that one further row stays below with that probability.

    Parameters
    ----------
    scores : array_like
        Shape ``(n_scores,)``, not negative.
    level : float
        In (0, 1).

    Returns
    -------
    float
        The ceil((n + 1) * level)-th smallest; infinite where there are too few scores.

    Raises
    ------
    ValueError
        For a level outside (0, 1), or a score that is not a number.

    Notes
    -----
    Source: Lei et al., Distribution-free predictive inference for regression, Journal of the
    American Statistical Association 113 (2018), section 2.2.
    """
    values = np.sort(np.asarray(scores, np.float64).ravel())
    if not 0 < level < 1 or np.isnan(values).any():
        raise ValueError(f"no quantile at level {level} of such scores")
    # The tolerance keeps n = 9 at level 0.9 (exactly the 9th) from losing to rounding.
    rank = math.ceil((len(values) + 1) * level - 1e-9)
    return float(values[rank - 1]) if rank <= len(values) else math.inf


def least_scores(level: float) -> int:
    """Return the fewest scores of which `conformal_quantile` has a finite one at a level.

    Parameters
    ----------
    level : float
        In (0, 1).
    """
    # n scores reach levels up to n / (n + 1), with the tolerance of the quantile.
    return math.ceil(level / (1 - level) - 1e-9)


def cautious_level(level: float, n_groups: int) -> float:
    """Return the level to ask of few groups: one standard error of their coverage above.

    Residuals of repeats hardly differ, so that groups count and not rows. A quantile of few of
    them covers less than its level about half of the time.

    Notes
    -----
    Source: Vovk, Conditional validity of inductive conformal predictors, ACML 2012 (coverage given
    the calibration rows; there by the whole distribution, here by its standard deviation).
    """
    return min(level + math.sqrt(level * (1 - level) / n_groups), 1 - 1 / (n_groups + 1))


def fit_conformal_widths(
    scores: ArrayLike, level: float, groups: ArrayLike | None = None, *, least_rows: int = 200
) -> ConformalWidths:
    """Turn out-of-fold scores into half-widths, small groups pooled.

    Parameters
    ----------
    scores : array_like
        |log error| / error scale of rows that the model had not seen, shape ``(n_samples,)``.
    level : float
        Coverage, in (0, 1).
    groups : array_like of int or None
        Group of each row, not negative, such as the number of its slice.
    least_rows : int
        Rows that a group needs for a half-width of its own.

    Returns
    -------
    ConformalWidths
        The pooled half-width is that of the rows of small groups, or of all rows where the small
        groups together are still too small.
    """
    values = np.asarray(scores, np.float64)
    labels = np.zeros(len(values), np.int64) if groups is None else np.asarray(groups, np.int64)
    if labels.shape != values.shape:
        raise ValueError(f"groups of shape {labels.shape} for scores of shape {values.shape}")
    names, place, counts = np.unique(labels, return_inverse=True, return_counts=True)
    large = counts >= least_rows
    small_rows = values[~large[place]]
    pool = small_rows if len(small_rows) >= least_rows else values
    own = [conformal_quantile(values[labels == name], level) for name in names[large]]
    if groups is None:
        own, large = [], np.zeros(len(names), np.bool_)
    return ConformalWidths(
        level=level,
        pooled=conformal_quantile(pool, level),
        groups=names[large].astype(np.int64),
        widths=np.array(own, np.float64),
    )


def fit_distance_widening(ratios: ArrayLike, octaves: ArrayLike, level: float) -> DistanceWidening:
    """Learn how fast intervals must widen from rows beyond a tail that was left out.

    Parameters
    ----------
    ratios : array_like
        |log error| over the interior half-width, for models fitted without the tail, shape
        ``(n_samples,)``.
    octaves : array_like
        Distance of each row from what was left, positive, shape ``(n_samples,)``.
    level : float
        Coverage, in (0, 1).

    Returns
    -------
    DistanceWidening
        The smallest rate whose intervals cover that share of the rows.

    Raises
    ------
    ValueError
        For shapes that do not fit, a distance of 0, or too few rows for the level.
    """
    over, distance = np.asarray(ratios, np.float64), np.asarray(octaves, np.float64)
    if over.shape != distance.shape or not (distance > 0).all():
        raise ValueError("every ratio needs a positive distance")
    # ratio <= 1 + rate * sqrt(octaves) exactly where rate >= (ratio - 1) / sqrt(octaves).
    rate = conformal_quantile((over - 1) / np.sqrt(distance), level)
    if math.isinf(rate):
        raise ValueError(f"{over.size} rows beyond the tail are too few for level {level}")
    return DistanceWidening(rate=max(0.0, rate))


def octaves_beyond(size: ArrayLike, lower: float, upper: float) -> NDArray[np.float64]:
    """Return log2 of the factor by which positive sizes lie outside a range; 0 inside."""
    logs = np.log2(np.asarray(size, np.float64))
    beyond = np.maximum(math.log2(lower) - logs, logs - math.log2(upper))
    return np.asarray(np.maximum(beyond, 0.0))


def row_folds(n_rows: int, n_folds: int, seed: int = 0) -> NDArray[np.int64]:
    """Deal rows to folds of nearly equal size.

    Returns
    -------
    ndarray of int64
        Fold of each row, 0 to ``n_folds - 1``, shape ``(n_rows,)``; sort the rows by key first.

    Raises
    ------
    ValueError
        For fewer than two folds or fewer rows than folds.
    """
    if not 2 <= n_folds <= n_rows:
        raise ValueError(f"{n_rows} rows do not fill {n_folds} folds")
    shuffled = _shuffled(n_rows, seed)
    folds = np.empty(n_rows, np.int64)
    folds[shuffled] = np.arange(n_rows) % n_folds
    return folds


def group_folds(keys: ArrayLike, n_folds: int, seed: int = 0) -> NDArray[np.int64]:
    """Deal whole groups to folds: all rows of one key share a fold.

    Parameters
    ----------
    keys : array_like
        Key of each row: shape ``(n_rows,)`` of any sortable type, or ``(n_rows, n_columns)`` of
        numbers. The folds do not depend on the order of the rows.
    n_folds : int
        At least 2, at most the number of distinct keys.
    seed : int
        Of the shuffle of the keys.

    Returns
    -------
    ndarray of int64
        Fold of each row, shape ``(n_rows,)``. Groups are dealt largest first to the fold with the
        fewest rows.

    Raises
    ------
    ValueError
        For fewer than two folds or fewer keys than folds.
    """
    table = np.asarray(keys)
    names, place = np.unique(table, axis=0, return_inverse=True)
    place = place.reshape(len(table))
    if not 2 <= n_folds <= len(names):
        raise ValueError(f"{len(names)} groups do not fill {n_folds} folds")
    counts = np.bincount(place, minlength=len(names))
    shuffled = _shuffled(len(names), seed)
    by_size = shuffled[np.argsort(-counts[shuffled], kind="stable")]
    fold_of = np.empty(len(names), np.int64)
    filled = np.zeros(n_folds, np.int64)
    for group in by_size:
        fold_of[group] = filled.argmin()
        filled[fold_of[group]] += counts[group]
    return fold_of[place]


def log_interval(
    predicted: ArrayLike, half_width: ArrayLike
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return lower and upper bound, ``predicted * exp(-+ half_width)``."""
    center, factor = np.asarray(predicted, np.float64), np.exp(np.asarray(half_width, np.float64))
    return np.asarray(center / factor), np.asarray(center * factor)


def _shuffled(count: int, seed: int) -> NDArray[np.int64]:
    # Only random() is drawn: its stream is the same in every version of numpy.
    draws = np.random.Generator(np.random.PCG64(seed)).random(count)
    return np.argsort(draws, kind="stable")

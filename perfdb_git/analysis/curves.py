"""One-dimensional forms over a positive size: affine, step table, log-log curve.

Each is fitted by a function and evaluated by ``predict``, for one size or many. What lies outside
the fitted range is answered too (by the line, by the last step, by the slope at the end); whether
to believe it is the caller's decision.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

_ROBUST_SCALE = 0.05
"""Relative residual from which a point starts to lose weight."""

MOST_STEP_SIZES = 4096
"""Different sizes that a step table is fitted to; the time grows with their square."""

_TAIL_OCTAVES = 2.0
_CV_FOLDS = 10
_LEAST_CV_SIZES = 20
_STANDARD_ERRORS = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class AffineCurve:
    """``intercept + size * slope``.

    Parameters
    ----------
    intercept : float
        Fixed cost, in the unit of the values, never negative.
    slope : float
        Cost of one unit of size, never negative; the rate is its inverse.
    """

    intercept: float
    slope: float

    @property
    def rate(self) -> float:
        """Return size per unit of value; infinite where size costs nothing."""
        return 1 / self.slope if self.slope else float("inf")

    def predict(self, size: ArrayLike) -> NDArray[np.float64]:
        """Return values of the shape of ``size``."""
        return np.asarray(self.intercept + np.asarray(size, np.float64) * self.slope)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StepTable:
    """A constant from each start up to the next; below the first start its value holds too.

    Parameters
    ----------
    starts : ndarray of float64
        Ascending, shape ``(n_steps,)``.
    values : ndarray of float64
        Shape ``(n_steps,)``.
    """

    starts: NDArray[np.float64]
    values: NDArray[np.float64]

    def predict(self, size: ArrayLike) -> NDArray[np.float64]:
        """Return values of the shape of ``size``."""
        step = np.searchsorted(self.starts, np.asarray(size, np.float64), side="right") - 1
        return np.asarray(self.values[np.maximum(step, 0)])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LogLogCurve:
    """Straight lines between knots on doubly logarithmic axes.

    Parameters
    ----------
    sizes, values : ndarray of float64
        Knots, positive, sizes strictly ascending, shape ``(n_knots,)``.
    lower_slope, upper_slope : float
        d log(value) / d log(size) below the first and above the last knot.
    """

    sizes: NDArray[np.float64]
    values: NDArray[np.float64]
    lower_slope: float
    upper_slope: float

    def predict(self, size: ArrayLike) -> NDArray[np.float64]:
        """Return values of the shape of ``size``, all sizes positive."""
        at = np.log(np.asarray(size, np.float64))
        knots = np.log(self.sizes)
        logs = np.interp(at, knots, np.log(self.values))
        logs += self.lower_slope * np.minimum(at - knots[0], 0)
        logs += self.upper_slope * np.maximum(at - knots[-1], 0)
        return np.asarray(np.exp(logs))


def fit_affine(size: ArrayLike, value: ArrayLike) -> AffineCurve:
    """Fit a fixed cost and a rate by robust relative error.

    Minimises the soft-L1 loss of predicted / value - 1 by reweighted least squares, within
    intercept >= 0 and slope >= 0.

    Parameters
    ----------
    size, value : array_like
        Positive, shape ``(n_samples,)``, at least one row.

    Returns
    -------
    AffineCurve

    Raises
    ------
    ValueError
        For shapes that do not fit or numbers that are not positive.

    Notes
    -----
    Source: Holland & Welsch, Robust regression using iteratively reweighted least-squares,
    Communications in Statistics 6 (1977).
    """
    sizes, values = _positive_pairs(size, value)
    design = np.column_stack((1 / values, sizes / values))
    weights = np.ones(len(sizes))
    found = np.zeros(2)
    for _ in range(100):
        previous, found = found, _non_negative_pair(design, weights)
        residual = design @ found - 1
        weights = 1 / np.sqrt(1 + (residual / _ROBUST_SCALE) ** 2)
        if np.allclose(found, previous, rtol=1e-13, atol=0):
            break
    return AffineCurve(intercept=float(found[0]), slope=float(found[1]))


def _non_negative_pair(
    design: NDArray[np.float64], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Solve ``design @ pair = 1`` by weighted least squares with both numbers at least 0."""
    root = np.sqrt(weights)
    scaled = design * root[:, None]
    # Columns of one size keep the solve well conditioned for sizes of any magnitude.
    norms = np.sqrt((scaled**2).sum(axis=0))
    if len(np.unique(design[:, 1] / design[:, 0])) > 1:
        pair = np.linalg.lstsq(scaled / norms, root, rcond=None)[0] / norms
        if (pair >= 0).all():
            return np.asarray(pair, np.float64)
    single = (scaled * root[:, None]).sum(axis=0) / norms**2
    misfit = [float(((scaled[:, j] * single[j] - root) ** 2).sum()) for j in (0, 1)]
    kept = int(misfit[1] < misfit[0])
    pair = np.zeros(2)
    pair[kept] = single[kept]
    return pair


def fit_step_table(size: ArrayLike, value: ArrayLike, n_steps: int) -> StepTable:
    """Fit the best step table of at most ``n_steps`` steps by squared log error.

    Parameters
    ----------
    size, value : array_like
        Positive, shape ``(n_samples,)``; the median stands for repeats of a size.
    n_steps : int
        At least 1.

    Returns
    -------
    StepTable
        A step starts at the smallest size in it and has the geometric mean of its values.

    Raises
    ------
    ValueError
        For shapes that do not fit, numbers that are not positive, no step, or over 4,096 sizes.

    Notes
    -----
    Source: Bellman, On the approximation of curves by line segments using dynamic programming,
    CACM 4 (1961).
    """
    sizes, values = medians_by_size(size, value)
    if n_steps < 1 or len(sizes) > MOST_STEP_SIZES:
        raise ValueError(f"no step table of {n_steps} steps over {len(sizes)} sizes")
    logs = np.log(values)
    n = len(logs)
    sums, squares = (np.concatenate(([0.0], np.cumsum(some))) for some in (logs, logs**2))

    def misfits(end: int) -> NDArray[np.float64]:
        """Return the squared error of one step over [start, end) for every start below end."""
        starts = np.arange(end)
        total = sums[end] - sums[starts]
        return np.asarray(np.maximum(squares[end] - squares[starts] - total**2 / (end - starts), 0))

    steps = min(n_steps, n)
    best = np.full((steps + 1, n + 1), np.inf)
    best[0, 0] = 0
    cut = np.zeros((steps + 1, n + 1), np.int64)
    for end in range(1, n + 1):
        totals = best[:-1, :end] + misfits(end)
        cut[1:, end] = totals.argmin(axis=1)
        best[1:, end] = totals.min(axis=1)
    bounds = [n]
    for used in range(int(best[:, n].argmin()), 0, -1):
        bounds.append(int(cut[used, bounds[-1]]))
    starts = np.array(bounds[:0:-1], np.int64)
    counts = np.diff(np.append(starts, n))
    return StepTable(starts=sizes[starts], values=np.exp(np.add.reduceat(logs, starts) / counts))


def fit_log_log_curve(size: ArrayLike, value: ArrayLike, *, smooth: bool = True) -> LogLogCurve:
    """Fit a log-log curve through the median of every size.

    With ``smooth``, a running median over three neighbouring sizes, or the best ascending curve,
    replaces the values where its paired gain in cross-validation exceeds two standard errors (the
    larger gain of the two): else noise would be interpolated as if it were the curve.

    Parameters
    ----------
    size, value : array_like
        Positive, shape ``(n_samples,)``, any order, repeats allowed.
    smooth : bool
        Whether the two rivals may be chosen.

    Returns
    -------
    LogLogCurve
        Its end slopes are medians of the slopes between all sizes within two octaves of the end.

    Raises
    ------
    ValueError
        For shapes that do not fit or numbers that are not positive.

    Notes
    -----
    Source of the ascending curve: Barlow et al., Statistical inference under order restrictions,
    Wiley 1972 (pool adjacent violators).
    """
    sizes, values = medians_by_size(size, value)
    at, logs = np.log(sizes), np.log(values)
    rivals = (_running_median, _ascending) if smooth and len(sizes) >= _LEAST_CV_SIZES else ()
    gains = [_significant_gain(at, logs, rival) for rival in rivals]
    if max(gains, default=0.0) > 0:
        logs = rivals[int(np.argmax(gains))](logs)
        values = np.exp(logs)
    return LogLogCurve(
        sizes=sizes,
        values=values,
        lower_slope=_end_slope(at, logs, at - at[0]),
        upper_slope=_end_slope(at, logs, at[-1] - at),
    )


def medians_by_size(
    size: ArrayLike, value: ArrayLike
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the distinct sizes, ascending, and the median value at each, ``(n_sizes,)``."""
    sizes, values = _positive_pairs(size, value)
    order = np.lexsort((values, sizes))
    distinct, starts, counts = np.unique(sizes[order], return_index=True, return_counts=True)
    ordered = values[order]
    low, high = starts + (counts - 1) // 2, starts + counts // 2
    return distinct, np.asarray((ordered[low] + ordered[high]) / 2)


def _positive_pairs(
    size: ArrayLike, value: ArrayLike
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    sizes, values = np.asarray(size, np.float64), np.asarray(value, np.float64)
    if sizes.ndim != 1 or sizes.shape != values.shape or not len(sizes):
        raise ValueError(f"sizes of shape {sizes.shape} and values of shape {values.shape}")
    both = np.concatenate((sizes, values))
    if not (np.isfinite(both) & (both > 0)).all():
        raise ValueError("sizes and values must be positive and finite")
    return sizes, values


def _running_median(logs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the median of each inner value and its neighbours; the ends stay."""
    if len(logs) < 3:
        return logs
    inner = np.median(np.stack((logs[:-2], logs[1:-1], logs[2:])), axis=0)
    return np.concatenate((logs[:1], inner, logs[-1:]))


def _ascending(logs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the nearest sequence by squared error that never falls."""
    means: list[float] = []
    counts: list[int] = []
    for value in logs.tolist():
        mean, count = value, 1
        while means and means[-1] > mean:
            total = count + counts[-1]
            mean = (mean * count + means.pop() * counts.pop()) / total
            count = total
        means.append(mean)
        counts.append(count)
    return np.repeat(np.array(means), counts)


def _significant_gain(
    at: NDArray[np.float64],
    logs: NDArray[np.float64],
    rival: Callable[[NDArray[np.float64]], NDArray[np.float64]],
) -> float:
    """Return the rival's mean gain in absolute log error; 0 within two standard errors."""
    # Every tenth inner size is left out in turn, so that each has measured neighbours; the ends
    # always stay, for beyond them neither form interpolates.
    inner = np.arange(1, len(at) - 1)
    gains = np.empty(len(inner))
    for fold in range(_CV_FOLDS):
        tested = inner[inner % _CV_FOLDS == fold]
        known = np.delete(np.arange(len(at)), tested)
        errors = [
            np.abs(np.interp(at[tested], at[known], values) - logs[tested])
            for values in (logs[known], rival(logs[known]))
        ]
        gains[tested - 1] = errors[0] - errors[1]
    gain, error = float(gains.mean()), float(gains.std(ddof=1)) / math.sqrt(len(gains))
    return gain if gain > _STANDARD_ERRORS * error else 0.0


def _end_slope(
    at: NDArray[np.float64], logs: NDArray[np.float64], distance: NDArray[np.float64]
) -> float:
    if len(at) < 2:
        return 0.0
    near = np.sort(np.argsort(distance, kind="stable")[: max(2, _count_near(distance))])
    first, second = np.triu_indices(len(near), 1)
    rise, run = logs[near][second] - logs[near][first], at[near][second] - at[near][first]
    return float(np.median(rise / run))


def _count_near(distance: NDArray[np.float64]) -> int:
    return min(64, int((distance <= _TAIL_OCTAVES * math.log(2)).sum()))

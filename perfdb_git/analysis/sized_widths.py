"""Half-widths of prediction intervals that follow the size: noise is rarely the same everywhere.

One half-width for a whole curve covers too little where measurements scatter, mostly at small
sizes, and too much elsewhere. Here the local spread of out-of-fold errors is learned over log
size, and one conformal factor makes the whole cover what is asked for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

from perfdb_git.analysis.conformal import conformal_quantile

_NEIGHBOURS = 50
"""Errors that a local spread is the quantile of."""

_LEAST_ERRORS = 2 * _NEIGHBOURS
_LEAST_SIZES = 50
_CONFIDENCE = 0.9
_MOST_KNOTS = 64
_FOLDS = 5
_FLOOR_SHARE = 0.05
"""Part of the mean error that every spread keeps: where all errors are 0, the next may not be."""

_LEAST_SPREAD = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SizedWidths:
    """Half-widths on the logarithm, straight between knots on doubly logarithmic axes.

    Below the first and above the last knot ``rate * sqrt(octaves)`` is added: noise at the end says
    nothing of how far a slope leads astray.

    Parameters
    ----------
    level : float
        Coverage asked for, in (0, 1).
    sizes : ndarray of float64
        Knots, positive, strictly ascending, shape ``(n_knots,)``; the first and the last are the
        ends of the domain.
    widths : ndarray of float64
        Positive, shape ``(n_knots,)``.
    rate_below, rate_above : float or None
        Per root octave, never negative; ``None`` where nothing is known on that side.
    """

    level: float
    sizes: NDArray[np.float64]
    widths: NDArray[np.float64]
    rate_below: float | None = None
    rate_above: float | None = None

    def predict(self, size: ArrayLike) -> NDArray[np.float64]:
        """Return half-widths of the shape of ``size``; NaN where nothing is known."""
        with np.errstate(divide="ignore", invalid="ignore"):
            at = np.log(np.asarray(size, np.float64))
        knots = np.log(self.sizes)
        widths = np.exp(np.interp(at, knots, np.log(self.widths)))
        sides = ((knots[0] - at, self.rate_below), (at - knots[-1], self.rate_above))
        for distance, rate in sides:
            octaves = np.maximum(distance, 0.0) / math.log(2)
            added = (np.nan if rate is None else rate) * np.sqrt(octaves)
            widths = np.where(distance > 0, widths + added, widths)
        return np.where(np.isfinite(at), widths, np.nan)


def tells_sizes_apart(size: ArrayLike) -> bool:
    """Return whether errors at these sizes are enough to learn where they are large."""
    sizes = np.asarray(size)
    return len(sizes) >= _LEAST_ERRORS and len(np.unique(sizes)) >= _LEAST_SIZES


def fit_sized_widths(
    size: ArrayLike, error: ArrayLike, level: float, *, ends: tuple[float, float] | None = None
) -> SizedWidths:
    """Turn out-of-fold errors into half-widths by size.

    The spread at a size is the quantile of the 50 errors nearest in rank. The factor on it is the
    conformal quantile of errors over spreads that had not seen their size. Both are taken above
    ``level``, by what a share among so few sizes comes out too low in one of ten cases: most
    calibrations keep the level then, not only their average.

    Parameters
    ----------
    size : array_like
        Positive, shape ``(n_samples,)``, any order, repeats allowed.
    error : array_like
        log(predicted / measured) of rows that the model had not seen, shape ``(n_samples,)``.
    level : float
        Coverage, in (0, 1).
    ends : tuple of float or None
        Ends of the domain; by default the smallest and the largest size. The widths of these hold
        up to there.

    Returns
    -------
    SizedWidths
        Without rates beyond the ends.

    Raises
    ------
    ValueError
        For shapes that do not fit, sizes that are not positive, or where `tells_sizes_apart` says
        no.

    Notes
    -----
    Source: Lei et al., Distribution-free predictive inference for regression, Journal of the
    American Statistical Association 113 (2018), section 5.2, with a quantile as the local spread;
    Vovk, Conditional validity of inductive conformal predictors, ACML 2012, for the raised level.
    """
    sizes, errors = np.asarray(size, np.float64), np.abs(np.asarray(error, np.float64))
    if sizes.ndim != 1 or sizes.shape != errors.shape:
        raise ValueError(f"sizes of shape {sizes.shape} and errors of shape {errors.shape}")
    if not (np.isfinite(sizes) & (sizes > 0) & np.isfinite(errors)).all():
        raise ValueError("sizes must be positive, and errors finite")
    if not tells_sizes_apart(sizes):
        raise ValueError(f"{len(sizes)} errors do not tell sizes apart")
    order = np.lexsort((errors, sizes))
    sizes, errors = sizes[order], errors[order]
    # Whole sizes are left out in turn: repeats of one size err alike.
    distinct, place = np.unique(sizes, return_inverse=True)
    raised = _raised(level, len(distinct))
    fold = place % _FOLDS
    unseen = np.empty(len(errors))
    for number in range(_FOLDS):
        tested = fold == number
        unseen[tested] = _spread(sizes[~tested], errors[~tested], raised).predict(sizes[tested])
    factor = conformal_quantile(errors / unseen, raised)
    spread = _spread(sizes, errors, raised)
    widths = np.maximum(factor * spread.widths, _LEAST_SPREAD)
    lowest, highest = (distinct[0], distinct[-1]) if ends is None else ends
    sizes = np.concatenate(([lowest], spread.sizes, [highest]))
    widths = np.concatenate((widths[:1], widths, widths[-1:]))
    kept = np.append(np.diff(sizes) > 0, True)
    return SizedWidths(level=level, sizes=sizes[kept], widths=widths[kept])


def _raised(level: float, count: int) -> float:
    """Return the level that is asked of ``count`` independent errors."""
    deviation = math.sqrt(level * (1 - level) / count)
    return min(level + NormalDist().inv_cdf(_CONFIDENCE) * deviation, 1 - 1 / (count + 1))


def _spread(sizes: NDArray[np.float64], errors: NDArray[np.float64], level: float) -> SizedWidths:
    """Return the local quantile of errors at knots; rows ascend by size."""
    count = min(_NEIGHBOURS, len(sizes))
    floor = max(_FLOOR_SHARE * float(errors.mean()), _LEAST_SPREAD)
    distinct, starts, repeats = np.unique(sizes, return_index=True, return_counts=True)
    middles = starts + (repeats - 1) / 2
    step = math.ceil(len(distinct) / _MOST_KNOTS)
    chosen = np.unique(np.append(np.arange(0, len(distinct), step), len(distinct) - 1))
    first = np.rint(middles[chosen] - (count - 1) / 2).astype(np.int64)
    first = np.clip(first, 0, len(sizes) - count)
    near = errors[first[:, None] + np.arange(count)]
    local = np.quantile(near, level, axis=1)
    # A size that is left out at an end has the spread of its neighbour.
    return SizedWidths(
        level=level, sizes=distinct[chosen], widths=local + floor, rate_below=0.0, rate_above=0.0
    )

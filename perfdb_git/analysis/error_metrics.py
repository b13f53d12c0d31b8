"""How far predictions are from measurements, over all rows and by slice."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from perfdb_git.model.held_out import ErrorStatistics


def error_metrics(
    predicted: ArrayLike,
    measured: ArrayLike,
    lower: ArrayLike | None = None,
    upper: ArrayLike | None = None,
) -> ErrorStatistics:
    """Compare predictions with measurements.

    Sums are exactly rounded, so the order of the rows does not move a bit.

    Parameters
    ----------
    predicted, measured : array_like
        Shape ``(n_samples,)``, at least one row, the same unit; measurements positive.
    lower, upper : array_like or None
        Interval of each prediction, both or neither, shape ``(n_samples,)``, bounds included.

    Returns
    -------
    ErrorStatistics
        Quantiles interpolate linearly between order statistics; ``coverage`` and
        ``median_half_width_pct`` are ``None`` without intervals, ``r_squared`` where all
        measurements are equal.

    Raises
    ------
    ValueError
        For shapes that do not fit, no rows, measurements that are not positive, predictions that
        are not finite, or one bound without the other.
    """
    guess, truth = _checked(predicted, measured)
    signed = (guess / truth - 1) * 100
    absolute = np.sort(np.abs(signed))
    median, p90, p95 = (float(q) for q in np.quantile(absolute, (0.5, 0.9, 0.95)))
    if (lower is None) != (upper is None):
        raise ValueError("an interval needs both bounds")
    coverage = half_width = None
    if lower is not None and upper is not None:
        low, high = np.asarray(lower, np.float64), np.asarray(upper, np.float64)
        if low.shape != guess.shape or high.shape != guess.shape:
            raise ValueError(f"bounds of shape {low.shape} and {high.shape}, rows {guess.shape}")
        coverage = float(((low <= truth) & (truth <= high)).sum()) / len(truth)
        half_width = float(np.median((high - low) / 2 / guess)) * 100
    return ErrorStatistics(
        n=len(truth),
        mape_pct=_mean(absolute),
        median_pct=median,
        p90_pct=p90,
        p95_pct=p95,
        max_pct=float(absolute[-1]),
        bias_pct=_mean(signed),
        r_squared=_r_squared(guess, truth),
        coverage=coverage,
        median_half_width_pct=half_width,
    )


def metrics_by_slice(
    predicted: ArrayLike,
    measured: ArrayLike,
    slices: Sequence[str],
    lower: ArrayLike | None = None,
    upper: ArrayLike | None = None,
) -> dict[str, ErrorStatistics]:
    """Compare within each slice.

    Parameters
    ----------
    predicted, measured, lower, upper : array_like
        As for ``error_metrics``.
    slices : Sequence[str]
        Slice of each row, ``n_samples`` names.

    Returns
    -------
    dict
        Slice to its metrics, in ascending order of names.

    Raises
    ------
    ValueError
        As ``error_metrics``, and for another number of names.
    """
    guess, truth = _checked(predicted, measured)
    names = np.asarray(slices, dtype=np.str_)
    if names.shape != guess.shape:
        raise ValueError(f"{len(slices)} names of slices for {len(guess)} rows")
    bounds = [None if some is None else np.asarray(some, np.float64) for some in (lower, upper)]
    result = {}
    for name in np.unique(names):
        inside = names == name
        low, high = (None if some is None else some[inside] for some in bounds)
        result[str(name)] = error_metrics(guess[inside], truth[inside], low, high)
    return result


def _checked(
    predicted: ArrayLike, measured: ArrayLike
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    guess, truth = np.asarray(predicted, np.float64), np.asarray(measured, np.float64)
    if guess.ndim != 1 or guess.shape != truth.shape or not len(guess):
        raise ValueError(f"predictions of shape {guess.shape}, measurements {truth.shape}")
    if not np.isfinite(guess).all() or not (np.isfinite(truth) & (truth > 0)).all():
        raise ValueError("predictions must be finite, measurements positive and finite")
    return guess, truth


def _mean(values: NDArray[np.float64]) -> float:
    return math.fsum(values.tolist()) / len(values)


def _r_squared(guess: NDArray[np.float64], truth: NDArray[np.float64]) -> float | None:
    spread = math.fsum(((truth - _mean(truth)) ** 2).tolist())
    return None if spread == 0 else 1 - math.fsum(((guess - truth) ** 2).tolist()) / spread

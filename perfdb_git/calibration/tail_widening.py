"""How intervals widen beyond the measured range, learned from models that had not seen a tail."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from perfdb_git.analysis.conformal import (
    DistanceWidening,
    conformal_quantile,
    fit_distance_widening,
)
from perfdb_git.analysis.sized_widths import SizedWidths
from perfdb_git.calibration.slice_fits import SliceRequest, some_rows

if TYPE_CHECKING:
    from perfdb_git.calibration.slice_fits import Fit, Seconds

_OCTAVES = (1.0, 2.0, 3.0)
_LOWER_OCTAVES = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0)
"""Sizes are mostly measured in equal steps, so that a lower octave holds few of them."""

_LEAST_ROWS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tail:
    """Rows beyond ``edge``, the last size kept: |log error|, its scale, octaves; each ``(n,)``."""

    edge: float
    error: Seconds
    scale: Seconds
    octaves: Seconds


def learn_widening(request: SliceRequest, fit: Fit, width: float) -> DistanceWidening | None:
    """Return one rate for both ends of the input with most values; None where none can be cut.

    Parameters
    ----------
    request : SliceRequest
        The training rows.
    fit : Callable
        As `out_of_fold` takes it.
    width : float
        Interior half-width, in units of the scale of errors.
    """
    tails = [
        *_tails(request, fit, upper=True, cuts=_OCTAVES),
        *_tails(request, fit, upper=False, cuts=_OCTAVES),
    ]
    over = np.concatenate([np.empty(0), *(tail.error / (width * tail.scale) for tail in tails)])
    if math.isinf(conformal_quantile(over, request.level)):
        return None
    octaves = np.concatenate([tail.octaves for tail in tails])
    return fit_distance_widening(over, octaves, request.level)


def widen_each_side(request: SliceRequest, fit: Fit, widths: SizedWidths) -> SizedWidths:
    """Return widths by size with a rate for each end that a tail can be cut from."""
    rates: list[float | None] = []
    for upper, cuts in ((False, _LOWER_OCTAVES), (True, _OCTAVES)):
        # Beyond the last measured size a query gets the width of that size, and more: the smallest
        # rate that covers is the quantile of what is missing for a root octave.
        missing = [
            (tail.error - widths.predict(tail.edge)) / np.sqrt(tail.octaves)
            for tail in _tails(request, fit, upper=upper, cuts=cuts)
        ]
        rate = conformal_quantile(np.concatenate([np.empty(0), *missing]), request.level)
        rates.append(None if math.isinf(rate) else max(0.0, rate))
    return replace(widths, rate_below=rates[0], rate_above=rates[1])


def _tails(
    request: SliceRequest, fit: Fit, *, upper: bool, cuts: Sequence[float]
) -> Iterator[_Tail]:
    """Cut tails of the input with most values, fit what is kept, and predict what is beyond."""
    points = request.points()
    along = max(range(points.shape[1]), key=lambda place: len(np.unique(points[:, place])))
    values = points[:, along]
    if values.min() <= 0:
        return
    count = len(values)
    for cut in cuts:
        end = values.max() / 2**cut if upper else values.min() * 2**cut
        kept = values <= end if upper else values >= end
        if kept.sum() < _LEAST_ROWS or not (~kept).any():
            continue
        edge = float(values[kept].max() if upper else values[kept].min())
        predict = fit(some_rows(request.columns, kept, count), request.latency[kept])
        predicted, scale = predict(some_rows(request.columns, ~kept, count))
        yield _Tail(
            edge=edge,
            error=np.abs(np.log(predicted / request.latency[~kept])),
            scale=scale,
            octaves=np.abs(np.log2(values[~kept] / edge)),
        )

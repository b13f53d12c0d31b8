"""Jumps between neighbouring knots of a log-log curve, and half-widths that cover both sides.

Between two measured sizes a cost grows by nothing at least and in proportion at most. What is more
than that is a jump (a tile edge, a protocol switch) whose place between the two is not known.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from perfdb_git.analysis.curves import LogLogCurve


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Jumps:
    """What lies around each size, on the natural logarithm; 0 at knots and beyond the ends.

    Parameters
    ----------
    excess : ndarray of float64
        Change between the two neighbouring knots beyond what growth explains, shape ``(n,)``;
        negative where there is no jump.
    reach : ndarray of float64
        Distance of the curve's value to the farther of the two, shape ``(n,)``.
    """

    excess: NDArray[np.float64]
    reach: NDArray[np.float64]

    def widen(self, widths: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return half-widths that cover both sides where a jump exceeds them, ``(n,)``."""
        return np.where(self.excess > widths, np.maximum(widths, self.reach), widths)

    @property
    def covered(self) -> NDArray[np.float64]:
        """The error that an interval covers however narrow it is, ``(n,)``, never negative."""
        return np.maximum(np.minimum(self.excess, self.reach), 0.0)


def jumps_around(curve: LogLogCurve, size: ArrayLike, *, of_base: bool = False) -> Jumps:
    """Return the jumps around sizes.

    Parameters
    ----------
    curve : LogLogCurve
        Through measured sizes.
    size : array_like
        Shape ``(n,)``.
    of_base : bool
        Whether the values are multiples of a base, which has taken the growth already: they may
        fall as fast as size.
    """
    sizes = np.asarray(size, np.float64)
    if len(curve.sizes) < 2:
        return Jumps(excess=np.zeros(sizes.shape), reach=np.zeros(sizes.shape))
    upper = np.searchsorted(curve.sizes, sizes)
    place = np.clip(upper, 1, len(curve.sizes) - 1)
    is_between = (upper == place) & (curve.sizes[place] != sizes)
    values = np.log(curve.values)
    rise = values[place] - values[place - 1]
    run = np.log(curve.sizes[place] / curve.sizes[place - 1])
    least = -run if of_base else 0.0
    excess = np.maximum(rise - run, least - rise)
    with np.errstate(divide="ignore", invalid="ignore"):
        here = np.log(curve.predict(sizes))
    reach = np.maximum(np.abs(here - values[place]), np.abs(here - values[place - 1]))
    return Jumps(excess=np.where(is_between, excess, 0.0), reach=np.where(is_between, reach, 0.0))

"""Measured time as alpha times the modelled time plus beta, for one component without load."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from perfdb_git.errors import UsageError

Method = Literal["soft-l1-log", "theil-sen", "relative-least-squares", "least-squares"]

SOFT_L1_SCALE = 0.05
"""Log residual from which a point starts to lose weight."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScaleOffset:
    """``alpha * modelled + beta``.

    Parameters
    ----------
    alpha : float
        Scale, dimensionless.
    beta : float
        Offset, in the unit of the times.
    covariance : ndarray of float64 or None
        Of (alpha, beta), shape ``(2, 2)``; ``None`` where the method gives none (Theil-Sen) or
        no more than two points leave no residual.
    """

    alpha: float
    beta: float
    covariance: NDArray[np.float64] | None

    def predict(self, modelled: ArrayLike) -> NDArray[np.float64]:
        """Return the times predicted, of the shape of ``modelled``.

        Raises
        ------
        UsageError
            ``negative-time`` if one of them is negative.
        """
        times = np.asarray(self.alpha * np.asarray(modelled, np.float64) + self.beta)
        if times.size and float(times.min()) < 0:
            worst = float(np.asarray(modelled, np.float64).ravel()[int(times.argmin())])
            raise UsageError(
                f"{self.alpha:g} * {worst:g} {self.beta:+g} is a negative time",
                code="negative-time",
                remedy="measure smaller sizes, or fit without an offset",
            )
        return times

    def refuse_negative(self, smallest: float, largest: float) -> None:
        """Refuse a line that is negative anywhere between two modelled times.

        Raises
        ------
        UsageError
            ``negative-time``.
        """
        self.predict((smallest, largest))


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleGate:
    """What a scale and an offset need to be told apart.

    Parameters
    ----------
    sizes : int
        Distinct sizes.
    span : float
        Largest size over smallest.
    repeats : int
        Measurements of every size.
    """

    sizes: int = 8
    span: float = 10.0
    repeats: int = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortfall:
    """One requirement of the gate that samples miss.

    Parameters
    ----------
    requirement : str
        ``sizes``, ``span`` or ``repeats``.
    needed, found : float
        For repeats, ``found`` is the fewest of any size.
    """

    requirement: str
    needed: float
    found: float


def sample_shortfalls(size: ArrayLike, gate: SampleGate | None = None) -> tuple[Shortfall, ...]:
    """Return what the samples lack, empty where they pass.

    Parameters
    ----------
    size : array_like
        Size of every single measurement, positive, shape ``(n_samples,)``.
    gate : SampleGate or None
        Eight sizes over a factor of ten with five repeats each where not given.
    """
    wanted = gate or SampleGate()
    sizes, counts = np.unique(np.asarray(size, np.float64), return_counts=True)
    if not len(sizes):
        return (Shortfall(requirement="sizes", needed=wanted.sizes, found=0),)
    found = (
        ("sizes", wanted.sizes, len(sizes)),
        ("span", wanted.span, float(sizes[-1] / sizes[0])),
        ("repeats", wanted.repeats, int(counts.min())),
    )
    return tuple(
        Shortfall(requirement=name, needed=needed, found=have)
        for name, needed, have in found
        if have < needed
    )


def fit_scale_offset(
    modelled: ArrayLike, measured: ArrayLike, method: Method = "soft-l1-log"
) -> ScaleOffset:
    """Fit scale and offset; the default is the least biased under noise and outliers.

    Parameters
    ----------
    modelled, measured : array_like
        Times in one unit, shape ``(n_sizes,)``: the median stands for the repeats of a size.
        Measured ones are positive; at least two modelled ones differ.
    method : str
        ``soft-l1-log``: soft-L1 loss of log(predicted / measured) from a Theil-Sen start;
        ``theil-sen``: median of pairwise slopes, median residual; ``relative-least-squares``:
        weights 1 / measured^2; ``least-squares``: no weights.

    Returns
    -------
    ScaleOffset
        Check it over the domain with ``refuse_negative``.

    Raises
    ------
    ValueError
        For shapes that do not fit, fewer than two distinct modelled times, or measurements that
        are not positive.

    Notes
    -----
    Source: Tofallis, A better measure of relative prediction accuracy, Journal of the Operational
    Research Society 66 (2015); Theil (1950); Sen, JASA 63 (1968).
    """
    x, y = np.asarray(modelled, np.float64), np.asarray(measured, np.float64)
    if x.ndim != 1 or x.shape != y.shape or len(np.unique(x)) < 2:
        raise ValueError("scale and offset need two distinct modelled times, each measured")
    if not np.isfinite(x).all() or not (np.isfinite(y) & (y > 0)).all():
        raise ValueError("modelled times must be finite, measured ones positive and finite")
    order = np.lexsort((y, x))
    return _FITS[method](x[order], y[order])


def _theil_sen(x: NDArray[np.float64], y: NDArray[np.float64]) -> ScaleOffset:
    first, second = np.triu_indices(len(x), 1)
    run = x[second] - x[first]
    apart = run != 0
    alpha = float(np.median((y[second] - y[first])[apart] / run[apart]))
    return ScaleOffset(alpha=alpha, beta=float(np.median(y - alpha * x)), covariance=None)


def _least_squares(x: NDArray[np.float64], y: NDArray[np.float64]) -> ScaleOffset:
    return _weighted(x, y, np.ones(len(x)))


def _relative_least_squares(x: NDArray[np.float64], y: NDArray[np.float64]) -> ScaleOffset:
    return _weighted(x, y, 1 / y**2)


def _weighted(
    x: NDArray[np.float64], y: NDArray[np.float64], weights: NDArray[np.float64]
) -> ScaleOffset:
    """Solve weighted least squares, centred so that a long offset costs no digits."""
    total = weights.sum()
    x_mean, y_mean = (weights * x).sum() / total, (weights * y).sum() / total
    spread = (weights * (x - x_mean) ** 2).sum()
    alpha = float((weights * (x - x_mean) * (y - y_mean)).sum() / spread)
    beta = float(y_mean - alpha * x_mean)
    design = np.column_stack((x, np.ones(len(x))))
    return ScaleOffset(
        alpha=alpha,
        beta=beta,
        covariance=_covariance(design, y - alpha * x - beta, weights),
    )


def _covariance(
    design: NDArray[np.float64], residual: NDArray[np.float64], weights: NDArray[np.float64]
) -> NDArray[np.float64] | None:
    """Return s^2 (J' W J)^-1 with n - 2 degrees of freedom, shape ``(2, 2)``."""
    if len(residual) <= 2:
        return None
    variance = (weights * residual**2).sum() / (len(residual) - 2)
    norms = np.sqrt((weights[:, None] * design**2).sum(axis=0))
    scaled = design / norms
    information = (scaled * weights[:, None]).T @ scaled
    return np.asarray(variance * np.linalg.inv(information) / np.outer(norms, norms))


def _soft_l1_log(x: NDArray[np.float64], y: NDArray[np.float64]) -> ScaleOffset:
    from scipy.optimize import least_squares

    x_unit, y_unit = float(np.abs(x).max()), float(np.median(y))
    u, v = x / x_unit, y / y_unit
    floor = 1e-9 * float(v.min())

    def predicted(pair: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(pair[0] * u + pair[1])

    def residual(pair: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.log(np.maximum(predicted(pair), floor) / v)

    def slopes(pair: NDArray[np.float64]) -> NDArray[np.float64]:
        inverse = 1 / np.maximum(predicted(pair), floor)
        return np.column_stack((u * inverse, inverse))

    start = _positive_start(u, v)
    found = least_squares(
        residual, start, jac=slopes, loss="soft_l1", f_scale=SOFT_L1_SCALE,
        xtol=1e-14, ftol=1e-14, gtol=1e-14, x_scale=(1.0, max(abs(start[1]), 1e-3)),
    )  # fmt: skip
    pair = np.asarray(found.x)
    left = residual(pair)
    weights = 1 / np.sqrt(1 + (left / SOFT_L1_SCALE) ** 2)
    covariance = _covariance(slopes(pair), left, weights)
    units = np.array((y_unit / x_unit, y_unit))
    return ScaleOffset(
        alpha=float(pair[0] * units[0]),
        beta=float(pair[1] * units[1]),
        covariance=None if covariance is None else covariance * np.outer(units, units),
    )


def _positive_start(u: NDArray[np.float64], v: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the Theil-Sen line where it is positive everywhere, else one that is."""
    line = _theil_sen(u, v)
    pair = np.array((line.alpha, line.beta))
    if (pair[0] * u + pair[1] > 0).all():
        return pair
    ratio = float(np.median(v[u > 0] / u[u > 0])) if (u > 0).any() else 0.0
    return np.array((ratio, 0.0 if (u > 0).all() and ratio > 0 else float(np.median(v))))


_FITS: dict[Method, Callable[[NDArray[np.float64], NDArray[np.float64]], ScaleOffset]] = {
    "soft-l1-log": _soft_l1_log,
    "theil-sen": _theil_sen,
    "relative-least-squares": _relative_least_squares,
    "least-squares": _least_squares,
}

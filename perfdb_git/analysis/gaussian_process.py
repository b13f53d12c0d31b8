"""Gaussian process regression for small tables: Matérn 1.5, a length scale for each input.

Timings have outliers, mostly slow ones, and normal noise lets one of them bend the curve around
it. Noise of a t distribution gives every row a factor on its noise variance instead, so that a row
far from what its neighbours say weighs little.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

MOST_ROWS = 2000
_ROOT_3 = math.sqrt(3)
_LENGTH_RANGE = (0.05, 200.0)
_SIGNAL_RANGE = (1e-2, 1e2)
_NUGGET_RANGE = (1e-6, 1.0)
_NOISE_ROUNDS = 4
"""Times that noise factors and hyper-parameters are found in turn; more move nothing."""

_BLOCK = 1024


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GaussianProcess:
    """Parameters of a fitted process.

    Inputs and target are standardised (``(value - center) / spread``); lengths, variances and
    weights belong to the standardised numbers.

    Parameters
    ----------
    inputs : ndarray of float64
        Standardised training inputs, shape ``(n_samples, n_inputs)``.
    weights : ndarray of float64
        ``(K + nugget I)^-1 target``, shape ``(n_samples,)``.
    input_centers, input_spreads, length_scales : ndarray of float64
        Shape ``(n_inputs,)``.
    signal_variance, nugget : float
        Prior variance of the curve, variance of the noise.
    target_center, target_spread : float
        In the unit of the target.
    noise_factors : ndarray of float64 or None
        Factor on the noise variance of each training row, positive, shape ``(n_samples,)``; None
        where all are 1. A further measurement has the factor 1.
    """

    inputs: NDArray[np.float64]
    weights: NDArray[np.float64]
    input_centers: NDArray[np.float64]
    input_spreads: NDArray[np.float64]
    length_scales: NDArray[np.float64]
    signal_variance: float
    nugget: float
    target_center: float
    target_spread: float
    noise_factors: NDArray[np.float64] | None = None
    _inverse_root: list[NDArray[np.float64]] = field(default_factory=list, repr=False, init=False)

    def predict(self, inputs: ArrayLike) -> NDArray[np.float64]:
        """Return the mean, in the unit of the target.

        Parameters
        ----------
        inputs : array_like
            Shape ``(n_queries, n_inputs)``, or ``(n_inputs,)`` for one query.

        Returns
        -------
        ndarray of float64
            Shape ``(n_queries,)``, or ``()``.

        Raises
        ------
        ValueError
            For another number of inputs.
        """
        rows, shape = self._standardised(inputs)
        # Sums by row, and not a matrix product: a batch and its rows one by one give the same bits.
        means = [(self._covariances(part) * self.weights).sum(axis=1) for part in _blocks(rows)]
        result: NDArray[np.float64] = self.target_center + self.target_spread * np.concatenate(
            [*means, np.empty(0)]
        )
        return result.reshape(shape)

    def predict_with_deviation(
        self, inputs: ArrayLike
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the mean and the standard deviation of one further measurement, noise included.

        Parameters
        ----------
        inputs : array_like
            As for ``predict``.

        Returns
        -------
        tuple of ndarray of float64
            Mean and deviation, in the unit of the target.
        """
        rows, shape = self._standardised(inputs)
        root = self._inverse_cholesky()
        deviations = [np.empty(0)]
        for part in _blocks(rows):
            known = np.array([root @ row for row in self._covariances(part)])
            explained = (known**2).sum(axis=1)
            left = np.maximum(self.signal_variance - explained, 0) + self.nugget
            deviations.append(np.sqrt(left) * self.target_spread)
        return self.predict(inputs), np.concatenate(deviations).reshape(shape)

    def _standardised(self, inputs: ArrayLike) -> tuple[NDArray[np.float64], tuple[int, ...]]:
        table = np.asarray(inputs, np.float64)
        rows = np.atleast_2d(table)
        if rows.ndim != 2 or rows.shape[1] != len(self.length_scales):
            raise ValueError(
                f"inputs of shape {table.shape}: need {len(self.length_scales)} columns"
            )
        return (rows - self.input_centers) / self.input_spreads, table.shape[:-1]

    def _covariances(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.signal_variance * _matern(_distances(rows, self.inputs, self.length_scales))

    def _inverse_cholesky(self) -> NDArray[np.float64]:
        if not self._inverse_root:
            covariance = self._covariances(self.inputs)
            factors = 1.0 if self.noise_factors is None else self.noise_factors
            covariance[np.diag_indices(len(covariance))] += self.nugget * factors
            self._inverse_root.append(np.linalg.inv(np.linalg.cholesky(covariance)))
        return self._inverse_root[0]


def fit_gaussian_process(
    inputs: ArrayLike,
    target: ArrayLike,
    *,
    restarts: int = 3,
    seed: int = 0,
    noise_degrees: float | None = None,
) -> GaussianProcess:
    """Fit a process; its hyper-parameters maximise the marginal likelihood.

    Parameters
    ----------
    inputs : array_like
        Shape ``(n_samples, n_inputs)``, finite, 2 to 2,000 rows. Sorted by content before the fit.
    target : array_like
        Shape ``(n_samples,)``, finite, any unit.
    restarts : int
        Starting points of the search, the first fixed, the others drawn by ``seed``.
    seed : int
        Of the starting points.
    noise_degrees : float or None
        Degrees of freedom of t-distributed noise, positive; None is normal noise.

    Returns
    -------
    GaussianProcess
        The same for any order of the rows; the last bits follow the linear algebra library and
        its number of threads.

    Raises
    ------
    ValueError
        For shapes that do not fit, numbers that are not finite, or too few or too many rows.

    Notes
    -----
    Source: Rasmussen & Williams, Gaussian Processes for Machine Learning, MIT Press 2006,
    algorithm 2.1 and equations 4.17, 5.8, 5.9 and 5.12; t noise as a scale mixture of normal
    noise: Jylänki, Vanhatalo & Vehtari, Robust Gaussian process regression with a Student-t
    likelihood, JMLR 12 (2011), section 3.
    """
    table, wanted = _checked(inputs, target)
    order = np.lexsort((wanted, *table.T[::-1]))
    table, wanted = table[order], wanted[order]
    centers, spreads = table.mean(axis=0), _spreads(table)
    target_center, target_spread = float(wanted.mean()), float(_spreads(wanted[:, None])[0])
    rows, values = (table - centers) / spreads, (wanted - target_center) / target_spread
    starts = _starts(rows.shape[1], restarts, seed)
    hyper, factors = _likeliest_with_factors(rows, values, starts, noise_degrees)
    covariance = _noisy(hyper, rows, factors)
    return GaussianProcess(
        inputs=rows,
        weights=np.asarray(np.linalg.solve(covariance, values), np.float64),
        input_centers=centers,
        input_spreads=spreads,
        length_scales=hyper[:-2],
        signal_variance=float(hyper[-2]),
        nugget=float(hyper[-1]),
        target_center=target_center,
        target_spread=target_spread,
        noise_factors=None if noise_degrees is None else factors,
    )


def _likeliest_with_factors(
    rows: NDArray[np.float64],
    values: NDArray[np.float64],
    starts: list[NDArray[np.float64]],
    noise_degrees: float | None,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return hyper-parameters and noise factors, found in turn where the noise is not normal."""
    squares = (rows[:, None, :] - rows[None, :, :]).transpose(2, 0, 1) ** 2
    factors = np.ones(len(rows))
    hyper = _likeliest(squares, values, factors, starts)
    if noise_degrees is not None:
        for _ in range(_NOISE_ROUNDS):
            factors = _noise_factors(hyper, rows, values, factors, noise_degrees)
            hyper = _likeliest(squares, values, factors, [np.log(hyper)])
    return hyper, factors


def _starts(n_inputs: int, restarts: int, seed: int) -> list[NDArray[np.float64]]:
    """Return logarithms of lengths, signal and nugget to start from, each ``(n_inputs + 2,)``."""
    first = np.log(np.array([1.0] * n_inputs + [1.0, 1e-2]))
    draws = np.random.Generator(np.random.PCG64(seed))
    return [
        first,
        *(
            first + (draws.random(len(first)) - 0.5) * math.log(100.0)
            for _ in range(max(1, restarts) - 1)
        ),
    ]


def _likeliest(
    squares: NDArray[np.float64],
    values: NDArray[np.float64],
    factors: NDArray[np.float64],
    starts: list[NDArray[np.float64]],
) -> NDArray[np.float64]:
    """Return length scales, signal variance and nugget, shape ``(n_inputs + 2,)``."""
    from scipy.optimize import minimize

    bounds = np.log(np.array([_LENGTH_RANGE] * len(squares) + [_SIGNAL_RANGE, _NUGGET_RANGE]))
    best, best_loss = np.zeros(0), math.inf
    for start in starts:
        found = minimize(
            _negative_log_likelihood,
            np.clip(start, bounds[:, 0], bounds[:, 1]),
            args=(squares, values, factors),
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
        )
        if float(found.fun) < best_loss:
            best, best_loss = np.asarray(found.x), float(found.fun)
    if not len(best):
        raise ValueError("no starting point has a finite likelihood")
    return np.asarray(np.exp(best))


def _noise_factors(
    hyper: NDArray[np.float64],
    rows: NDArray[np.float64],
    values: NDArray[np.float64],
    factors: NDArray[np.float64],
    degrees: float,
) -> NDArray[np.float64]:
    """Return the expected factor on each row's noise variance, from what the others say of it.

    Of t noise with ``degrees``, a residual of r standard deviations has the expected precision
    (degrees + 1) / (degrees + r^2). The residual is that of the process without the row.
    """
    inverse = np.linalg.inv(_noisy(hyper, rows, factors))
    variance = 1 / np.diag(inverse)
    residual = (inverse @ values) * variance
    plain = np.maximum(variance - hyper[-1] * factors, 0) + hyper[-1]
    return np.asarray((degrees + residual**2 / plain) / (degrees + 1))


def _noisy(
    hyper: NDArray[np.float64], rows: NDArray[np.float64], factors: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the covariance of noisy values at training rows, ``(n_samples, n_samples)``."""
    covariance = hyper[-2] * _matern(_distances(rows, rows, hyper[:-2]))
    covariance[np.diag_indices(len(rows))] += hyper[-1] * factors
    return np.asarray(covariance)


def _negative_log_likelihood(
    logs: NDArray[np.float64],
    squares: NDArray[np.float64],
    values: NDArray[np.float64],
    factors: NDArray[np.float64],
) -> tuple[float, NDArray[np.float64]]:
    """Return the loss and its gradient by the logarithms of lengths, signal and nugget.

    ``squares`` are squared differences of each input, shape ``(n_inputs, n_samples, n_samples)``.
    """
    inverse_squares = np.exp(-2 * logs[:-2])
    signal, nugget = np.exp(logs[-2:])
    distance = np.sqrt(np.tensordot(inverse_squares, squares, 1))
    smooth = signal * _matern(distance)
    covariance = smooth.copy()
    covariance[np.diag_indices(len(values))] += nugget * factors
    try:
        root = np.linalg.cholesky(covariance)
    except np.linalg.LinAlgError:
        return 1e25, np.zeros_like(logs)
    inverse = np.linalg.inv(covariance)
    weights = inverse @ values
    loss = (
        0.5 * float(values @ weights)
        + float(np.log(np.diag(root)).sum())
        + 0.5 * len(values) * math.log(2 * math.pi)
    )
    pull = inverse - np.outer(weights, weights)
    # d k / d log l_j = 3 signal exp(-sqrt(3) r) (difference_j / l_j)^2
    common = pull * (3 * signal * np.exp(-_ROOT_3 * distance))
    by_length = 0.5 * np.tensordot(squares, common, 2) * inverse_squares
    by_signal = 0.5 * float((pull * smooth).sum())
    by_nugget = 0.5 * nugget * float(np.diag(pull) @ factors)
    return loss, np.append(by_length, (by_signal, by_nugget))


def _matern(distance: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the Matérn 1.5 correlation (Rasmussen & Williams, equation 4.17)."""
    scaled = _ROOT_3 * distance
    return np.asarray((1 + scaled) * np.exp(-scaled))


def _distances(
    first: NDArray[np.float64], second: NDArray[np.float64], lengths: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return scaled distances, shape ``(n_first, n_second)``, from differences, not products."""
    total = np.zeros((len(first), len(second)))
    for left, right, length in zip(first.T, second.T, lengths, strict=True):
        total += ((left[:, None] - right[None, :]) / length) ** 2
    return np.sqrt(total)


def _blocks(rows: NDArray[np.float64]) -> list[NDArray[np.float64]]:
    return [rows[start : start + _BLOCK] for start in range(0, len(rows), _BLOCK)]


def _spreads(table: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the standard deviation of every column, 1 where it is constant."""
    spreads = table.std(axis=0)
    flat = spreads <= 1e-12 * np.abs(table).max(axis=0)
    return np.where(flat, 1.0, spreads)


def _checked(
    inputs: ArrayLike, target: ArrayLike
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    table, wanted = np.asarray(inputs, np.float64), np.asarray(target, np.float64)
    if table.ndim != 2 or wanted.shape != table.shape[:1] or not table.shape[1]:
        raise ValueError(f"inputs of shape {table.shape} and target of shape {wanted.shape}")
    if not 2 <= len(table) <= MOST_ROWS:
        raise ValueError(f"{len(table)} rows: a Gaussian process takes 2 to {MOST_ROWS}")
    if not (np.isfinite(table).all() and np.isfinite(wanted).all()):
        raise ValueError("inputs and target must be finite")
    return table, wanted

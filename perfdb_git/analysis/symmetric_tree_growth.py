"""Growth of one symmetric tree from exact whole-number histograms.

A row's gradient is a whole number and its count sits above it in the same float64, so that one
weighted ``bincount`` a feature gives both, and every sum is exact: the order of the rows and the
subtraction of a sibling's histogram cannot change a bit of the result.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_MANTISSA_BITS = 53
_MOST_GRADIENT_BITS = 20
_LEAST_GRADIENT_BITS = 8
_CELLS_AT_ONCE = 32768
"""Histogram cells scored together: the intermediate arrays stay in the cache."""


@dataclass(frozen=True, slots=True)
class Packing:
    """How a count and a sum share one float64: ``count * unit + sum``.

    Parameters
    ----------
    largest : int
        Largest absolute gradient of one row.
    unit : float
        Weight of one row's count; more than twice any absolute sum.
    """

    largest: int
    unit: float

    def unpack(self, packed: NDArray[np.float64]) -> tuple[NDArray[np.float64], ...]:
        """Return counts and sums, each of the shape of ``packed``."""
        counts = packed * (1 / self.unit)
        np.rint(counts, out=counts)
        sums = counts * -self.unit
        sums += packed
        return counts, sums


def packing_for(n_rows: int) -> Packing:
    """Return the packing that keeps the sums over ``n_rows`` rows exact.

    Raises
    ------
    ValueError
        For more rows than leave eight bits to a gradient (about two million).
    """
    row_bits = math.ceil(math.log2(n_rows + 1))
    bits = min(_MOST_GRADIENT_BITS, _MANTISSA_BITS - 2 - 2 * row_bits)
    if bits < _LEAST_GRADIENT_BITS:
        raise ValueError(f"{n_rows} rows are too many for exact sums")
    return Packing(2**bits, float(2 ** (bits + row_bits + 1)))


@dataclass(frozen=True, slots=True, eq=False)
class GrownTree:
    """Questions of one tree and what fell into its leaves.

    Parameters
    ----------
    features, thresholds : ndarray of int64
        Shape ``(depth,)``; features count within the codes given.
    leaf : ndarray of int64
        Leaf of each row, shape ``(n_rows,)``.
    counts, sums : ndarray of float64
        Rows and summed gradients of each leaf, shape ``(2**depth,)``.
    """

    features: NDArray[np.int64]
    thresholds: NDArray[np.int64]
    leaf: NDArray[np.int64]
    counts: NDArray[np.float64]
    sums: NDArray[np.float64]


def grow_tree(
    codes: NDArray[np.uint8],
    gradients: NDArray[np.float64],
    packing: Packing,
    *,
    n_bins: int,
    depth: int,
    regularisation: float,
) -> GrownTree:
    """Grow a tree level by level, at each taking the split that explains most.

    Parameters
    ----------
    codes : ndarray of uint8
        Shape ``(n_features, n_rows)``, below ``n_bins``.
    gradients : ndarray of float64
        Whole numbers, at most ``packing.largest`` in size, shape ``(n_rows,)``.
    packing : Packing
        From ``packing_for`` of at least as many rows.
    n_bins, depth : int
        Bins of a feature at most; levels of the tree.
    regularisation : float
        Added to the count of every leaf (L2), positive.

    Returns
    -------
    GrownTree
        The same for any order of the rows; of equal splits the first feature's lowest wins.
    """
    weights = gradients + packing.unit
    leaf = np.zeros(codes.shape[1], np.int64)
    growth = _Growth(codes, weights, packing, n_bins)
    features, thresholds = np.empty(depth, np.int64), np.empty(depth, np.int64)
    for level in range(depth):
        feature, threshold = _best_split(growth.below, packing, regularisation)
        features[level], thresholds[level] = feature, threshold
        right = codes[feature] > threshold
        if level < depth - 1:
            growth.split(feature, threshold, right)
        leaf = 2 * leaf + right
    packed = np.bincount(leaf, weights, 2**depth).astype(np.float64)
    return GrownTree(features, thresholds, leaf, *packing.unpack(packed))


class _Growth:
    """Sums at or below every threshold, for the leaves so far.

    ``below`` has the shape ``(n_features, n_slots, n_bins)``. A leaf keeps no fixed place in it:
    a split writes the smaller child of every leaf to the leaf's own slot, counted row by row, and
    the larger one behind all of them, by subtraction.
    """

    def __init__(
        self,
        codes: NDArray[np.uint8],
        weights: NDArray[np.float64],
        packing: Packing,
        n_bins: int,
    ) -> None:
        self._codes = codes
        self._weights = weights
        self._packing = packing
        self._slot = np.zeros(codes.shape[1], np.int64)
        self.below = np.empty((len(codes), 1, n_bins))
        _sum_below(codes, self._slot, weights, self.below)

    def split(self, feature: int, threshold: int, right: NDArray[np.bool_]) -> None:
        """Split every leaf; ``right`` says which rows are above the threshold."""
        n_features, n_slots, n_bins = self.below.shape
        counts, _ = self._packing.unpack(self.below[feature])
        right_is_small = 2 * counts[:, threshold] > counts[:, -1]
        in_small = right == right_is_small[self._slot]
        chosen = np.flatnonzero(in_small)
        parents, self.below = self.below, np.empty((n_features, 2 * n_slots, n_bins))
        small = self.below[:, :n_slots]
        codes = self._codes.take(chosen, axis=1)
        _sum_below(codes, self._slot[chosen], self._weights[chosen], small)
        np.subtract(parents, small, out=self.below[:, n_slots:])
        self._slot = np.where(in_small, self._slot, self._slot + n_slots)


def _sum_below(
    codes: NDArray[np.uint8],
    slot: NDArray[np.int64],
    weights: NDArray[np.float64],
    result: NDArray[np.float64],
) -> None:
    """Write packed sums over codes up to each bin, shape ``(n_features, n_slots, n_bins)``."""
    _, n_slots, n_bins = result.shape
    first_cell = slot * n_bins
    cell = np.empty_like(first_cell)
    for column, sums in zip(codes, result, strict=True):
        np.add(column, first_cell, out=cell)
        histogram = np.bincount(cell, weights, n_slots * n_bins)
        np.cumsum(histogram.reshape(n_slots, n_bins), axis=1, out=sums)


def _best_split(
    below: NDArray[np.float64], packing: Packing, regularisation: float
) -> tuple[int, int]:
    """Return feature and threshold with the largest sum of S^2 / (N + regularisation)."""
    n_features, n_slots, n_bins = below.shape
    step = max(1, _CELLS_AT_ONCE // (n_slots * n_bins))
    scores = np.empty((n_features, n_bins), np.float32)
    for start in range(0, n_features, step):
        scores[start : start + step] = _scores(
            below[start : start + step], packing, np.float32(regularisation)
        )
    feature, threshold = divmod(int(scores.argmax()), n_bins)
    return feature, threshold


def _scores(
    below: NDArray[np.float64], packing: Packing, regularisation: np.float32
) -> NDArray[np.float32]:
    """Return the score of every threshold, shape ``(n_features, n_bins)``.

    Source: Chen & Guestrin, XGBoost, KDD 2016, equation 7 (squared loss, without the constant).
    """
    counts, sums = packing.unpack(below)
    left, n_left = sums.astype(np.float32), counts.astype(np.float32)
    right = left[:, :, -1:] - left
    n_right = n_left[:, :, -1:] - n_left
    n_left += regularisation
    n_right += regularisation
    left *= left
    right *= right
    left /= n_left
    right /= n_right
    left += right
    total: NDArray[np.float32] = left.sum(axis=1)
    return total

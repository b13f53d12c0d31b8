"""Byte codes of real features: the quantile bin, 0 to 255, that each value falls into."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

MOST_BINS = 256
FEW_ROWS = 1024
"""Up to so many rows, few large numpy calls beat many small ones, for codes and for trees."""

_FEW_AT_ONCE = 16

_LUMP = 2.0
"""Bins' worth of rows from which one value gets a bin of its own."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class QuantileBins:
    """Inner edges of the bins of every feature.

    A value's code is the number of its feature's edges below it. Values are compared as float32,
    at fitting and at evaluation alike.

    Parameters
    ----------
    edges : ndarray of float32
        Ascending edges of all features, one feature after another, shape ``(n_edges,)``.
    edge_counts : ndarray of uint8
        Edges of each feature, shape ``(n_features,)``; 0 for a constant feature.
    """

    edges: NDArray[np.float32]
    edge_counts: NDArray[np.uint8]
    _table: list[NDArray[np.float32]] = field(default_factory=list, repr=False, init=False)

    def per_feature(self) -> list[NDArray[np.float32]]:
        """Return the edges of each feature, ``n_features`` arrays."""
        ends = np.cumsum(self.edge_counts.astype(np.int64))
        return np.split(self.edges, ends[:-1]) if len(ends) else []

    def padded(self) -> NDArray[np.float32]:
        """Return the edges as a table, shape ``(n_features, most_edges)``, padded with infinity."""
        counts = self.edge_counts.astype(np.int64)
        table = np.full((len(counts), int(counts.max(initial=0))), np.inf, np.float32)
        table[np.arange(table.shape[1]) < counts[:, None]] = self.edges
        return table

    def encode(self, features: NDArray[np.float64]) -> NDArray[np.uint8]:
        """Return the codes of a batch.

        Parameters
        ----------
        features : ndarray of float64
            Shape ``(n_samples, n_features)``; not a number counts as below every edge.

        Returns
        -------
        ndarray of uint8
            Shape ``(n_features, n_samples)``: one contiguous row a feature.
        """
        values = np.ascontiguousarray(features.T, dtype=np.float32)
        if values.shape[1] <= FEW_ROWS:
            return self._few_codes(values)
        codes = np.zeros(values.shape, np.uint8)
        above = np.empty(values.shape[1], np.bool_)
        # Counting edges beats a binary search here: no branch to mispredict, and vectorised.
        for row, code, edges in zip(values, codes, self.per_feature(), strict=True):
            for edge in edges:
                np.greater(row, edge, out=above)
                np.add(code, above.view(np.uint8), out=code)
        return codes

    def _few_codes(self, values: NDArray[np.float32]) -> NDArray[np.uint8]:
        """Compare with all edges at once: few numpy calls, but every feature pays for the most."""
        if not self._table:
            self._table.append(self.padded()[:, None, :])
        codes = np.empty(values.shape, np.uint8)
        for start in range(0, values.shape[1], _FEW_AT_ONCE):
            above = values[:, start : start + _FEW_AT_ONCE, None] > self._table[0]
            np.add.reduce(above, axis=2, dtype=np.uint8, out=codes[:, start : start + _FEW_AT_ONCE])
        return codes


def fit_quantile_bins(features: ArrayLike, n_bins: int = 64) -> QuantileBins:
    """Place the edges so that bins hold about equally many rows.

    Edges lie halfway between neighbouring distinct values, so that rounding of a feature in its
    last bits does not move it to another bin. A value as frequent as two bins keeps one to itself.

    Parameters
    ----------
    features : array_like
        Shape ``(n_samples, n_features)``, finite.
    n_bins : int
        Bins of a feature at most, 2 to 256.

    Returns
    -------
    QuantileBins
        The same for any order of the rows.

    Raises
    ------
    ValueError
        For another shape, no rows, values that are not finite, or ``n_bins`` out of range.
    """
    table = np.asarray(features, dtype=np.float64)
    if table.ndim != 2 or not table.shape[0]:
        raise ValueError(f"features of shape {table.shape}: need rows and columns")
    if not 2 <= n_bins <= MOST_BINS:
        raise ValueError(f"{n_bins} bins: need 2 to {MOST_BINS}")
    with np.errstate(over="ignore"):
        values = table.astype(np.float32)
    if not np.isfinite(values).all():
        raise ValueError("features must be finite, as 32-bit numbers too")
    edges = [_edges_of(np.sort(column), n_bins) for column in values.T]
    return QuantileBins(
        edges=np.concatenate([*edges, np.empty(0, np.float32)]),
        edge_counts=np.array([len(some) for some in edges], np.uint8),
    )


def _edges_of(ordered: NDArray[np.float32], n_bins: int) -> NDArray[np.float32]:
    """Return at most ``n_bins - 1`` edges for sorted values."""
    starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    distinct = ordered[starts].astype(np.float64)
    middles = np.minimum(
        ((distinct[1:] + distinct[:-1]) / 2).astype(np.float32),
        np.nextafter(ordered[starts][1:], np.float32(-np.inf)),
    )
    if len(distinct) <= n_bins:
        return middles
    counts = np.diff(np.append(starts, len(ordered)))
    lumps = counts >= _LUMP * len(ordered) / n_bins
    n_lumps = int(lumps.sum())
    # Every lump takes one bin and cuts the rest into two; the remaining bins share the other rows.
    free = max(1, n_bins - 2 * n_lumps)
    shared = np.where(lumps, 0, counts)
    middle_rank = 2 * np.cumsum(shared) - shared
    part = middle_rank * free // max(1, 2 * int(shared.sum()))
    cuts = (part[1:] != part[:-1]) | lumps[1:] | lumps[:-1]
    edges: NDArray[np.float32] = middles[cuts][: n_bins - 1]
    return edges

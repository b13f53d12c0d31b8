"""Gradient boosting of symmetric trees: settings and fit."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from perfdb_git.analysis.quantile_bins import QuantileBins, fit_quantile_bins
from perfdb_git.analysis.symmetric_tree_growth import GrownTree, grow_tree, packing_for
from perfdb_git.analysis.symmetric_trees import DEEPEST, SymmetricTrees, leaf_numbers

Loss = Literal["squared", "absolute", "huber"]

_LEAF_LIMIT = 32767
_NEVER = 255
"""A threshold that no code exceeds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeSettings:
    """What a fit is asked to do.

    Parameters
    ----------
    rounds : int
        Trees; at cross-validation the most.
    depth : int
        Levels of a tree, 1 to 8.
    learning_rate : float
        Share of each leaf's step that is taken, in (0, 1].
    regularisation : float
        Rows' worth of shrinkage towards zero in every leaf (L2), positive.
    n_bins : int
        Bins of a feature at most, 2 to 256.
    row_fraction, feature_fraction : float
        Share of the rows and of the features that a tree sees, in (0, 1], drawn by ``seed``.
    loss : {"squared", "absolute", "huber"}
        What is minimised; ``huber`` clips residuals at ``huber_limit``.
    huber_limit : float
        In the unit of the target, positive.
    seed : int
        Of the draws of rows and features.
    """

    rounds: int = 1000
    depth: int = 8
    learning_rate: float = 0.08
    regularisation: float = 1.0
    n_bins: int = 64
    row_fraction: float = 1.0
    feature_fraction: float = 1.0
    loss: Loss = "squared"
    huber_limit: float = 0.1
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse settings without a meaning."""
        for name, fine in (
            ("rounds", self.rounds >= 1),
            ("depth", 1 <= self.depth <= DEEPEST),
            ("learning_rate", 0 < self.learning_rate <= 1),
            ("regularisation", self.regularisation > 0 and math.isfinite(self.regularisation)),
            ("row_fraction", 0 < self.row_fraction <= 1),
            ("feature_fraction", 0 < self.feature_fraction <= 1),
            ("loss", self.loss in ("squared", "absolute", "huber")),
            ("huber_limit", self.huber_limit > 0),
        ):
            if not fine:
                raise ValueError(f"{name} {getattr(self, name)!r} is out of range")


class Boosting:
    """A fit in progress: one call of ``grow`` adds one tree.

    Parameters
    ----------
    codes : ndarray of uint8
        Shape ``(n_features, n_samples)``.
    target : ndarray of float64
        Shape ``(n_samples,)``.
    settings : TreeSettings
        ``rounds`` and ``n_bins`` are not looked at.
    """

    def __init__(
        self, codes: NDArray[np.uint8], target: NDArray[np.float64], settings: TreeSettings
    ) -> None:
        # A canonical order makes the drawn subsets, and so the fit, independent of the rows'.
        order = _canonical_order(codes, target)
        self._codes = np.ascontiguousarray(codes[:, order])
        self._target = target[order]
        self._settings = settings
        self._draws = np.random.Generator(np.random.PCG64(settings.seed))
        self._packing = packing_for(len(target))
        self._n_bins = int(codes.max(initial=0)) + 1
        self._sums = np.zeros(len(target), np.int64)
        if settings.loss == "squared":
            self.offset = math.fsum(self._target.tolist()) / len(target)
        else:
            self.offset = float(np.median(self._target))
        reach = float(np.abs(self._target - self.offset).max())
        self.scale = settings.learning_rate * reach / _LEAF_LIMIT if reach else 1.0

    def grow(self) -> tuple[NDArray[np.uint8], NDArray[np.uint8], NDArray[np.int16]]:
        """Add a tree; return its features, thresholds and leaves."""
        settings = self._settings
        rows = _drawn_rows(self._draws, len(self._target), settings.row_fraction)
        columns = _drawn_columns(self._draws, len(self._codes), settings.feature_fraction)
        residual = self._target - (self.offset + self.scale * self._sums)
        seen, codes = residual, self._codes
        if columns is not None:
            codes = codes[columns]
        if rows is not None:
            seen, codes = residual[rows], codes.take(rows, axis=1)
        tree, unit = self._grown(codes, seen)
        leaves = self._leaves(tree, seen, unit)
        features = (tree.features if columns is None else columns[tree.features]).astype(np.uint8)
        thresholds = np.where(tree.thresholds < self._n_bins - 1, tree.thresholds, _NEVER)
        small_thresholds = thresholds.astype(np.uint8)
        if rows is None:
            self._sums += leaves.take(tree.leaf)
        else:
            add_tree(self._sums, self._codes, features, small_thresholds, leaves)
        return features, small_thresholds, leaves

    def _grown(
        self, codes: NDArray[np.uint8], residual: NDArray[np.float64]
    ) -> tuple[GrownTree, float]:
        """Grow a tree on whole-number gradients; return it with the value of one unit."""
        if self._settings.loss == "absolute":
            gradient = np.sign(residual)
        elif self._settings.loss == "huber":
            gradient = np.clip(residual, -self._settings.huber_limit, self._settings.huber_limit)
        else:
            gradient = residual
        unit = float(np.abs(gradient).max()) / self._packing.largest or 1.0
        tree = grow_tree(
            codes,
            np.rint(gradient / unit),
            self._packing,
            n_bins=self._n_bins,
            depth=self._settings.depth,
            regularisation=self._settings.regularisation,
        )
        return tree, unit

    def _leaves(
        self, tree: GrownTree, residual: NDArray[np.float64], unit: float
    ) -> NDArray[np.int16]:
        shrunk = self._settings.learning_rate / (tree.counts + self._settings.regularisation)
        if self._settings.loss == "absolute":
            values = shrunk * tree.counts * _medians_by_leaf(tree, residual)
        else:
            values = shrunk * tree.sums * unit
        return np.clip(np.rint(values / self.scale), -_LEAF_LIMIT, _LEAF_LIMIT).astype(np.int16)


def fit_symmetric_trees(
    features: ArrayLike,
    target: ArrayLike,
    settings: TreeSettings,
    *,
    bins: QuantileBins | None = None,
    progress: Callable[[], object] | None = None,
) -> SymmetricTrees:
    """Fit a boosted sum of symmetric trees.

    Sums are taken over whole numbers, so the result is the same for any order of the rows and any
    number of threads, and depends on the seed only where rows or features are drawn.

    Parameters
    ----------
    features : array_like
        Shape ``(n_samples, n_features)``, finite, at most 256 features.
    target : array_like
        Shape ``(n_samples,)``, finite, any unit.
    settings : TreeSettings
        Rounds, depth and the rest.
    bins : QuantileBins or None
        To share codes with another model over the same features; else placed by quantiles.
    progress : callable or None
        Called after every round.

    Returns
    -------
    SymmetricTrees
        With ``settings.rounds`` trees; predictions are in the unit of the target.

    Raises
    ------
    ValueError
        For shapes that do not fit, no rows, or values that are not finite.

    Notes
    -----
    Source: Friedman, Greedy function approximation: a gradient boosting machine, Annals of
    Statistics 29 (2001), algorithms 2 to 4.
    """
    table, wanted = checked_rows(features, target)
    bins = bins or fit_quantile_bins(table, settings.n_bins)
    boosting = Boosting(bins.encode(table), wanted, settings)
    trees = []
    for _ in range(settings.rounds):
        trees.append(boosting.grow())
        if progress is not None:
            progress()
    return SymmetricTrees(
        bins=bins,
        features=np.stack([tree[0] for tree in trees]),
        thresholds=np.stack([tree[1] for tree in trees]),
        leaves=np.stack([tree[2] for tree in trees]),
        scale=boosting.scale,
        offset=boosting.offset,
    )


def add_tree(
    sums: NDArray[np.int64],
    codes: NDArray[np.uint8],
    features: NDArray[np.uint8],
    thresholds: NDArray[np.uint8],
    leaves: NDArray[np.int16],
) -> None:
    """Add one tree's leaves to ``sums``, shape ``(n_samples,)``, in place."""
    sums += leaves.take(leaf_numbers(list(codes), features.tolist(), list(thresholds)))


def checked_rows(
    features: ArrayLike, target: ArrayLike
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return both as arrays, or raise ``ValueError`` as ``fit_symmetric_trees`` says."""
    table = np.asarray(features, dtype=np.float64)
    wanted = np.asarray(target, dtype=np.float64)
    if table.ndim != 2 or wanted.shape != table.shape[:1] or not table.size:
        raise ValueError(f"features of shape {table.shape} and target of shape {wanted.shape}")
    if table.shape[1] > 256:
        raise ValueError(f"{table.shape[1]} features: at most 256")
    if not np.isfinite(wanted).all():
        raise ValueError("the target must be finite")
    return table, wanted


def _canonical_order(codes: NDArray[np.uint8], target: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return an order that depends on the rows' contents only, shape ``(n_samples,)``."""
    by_target = np.argsort(target, kind="stable")
    rows = np.ascontiguousarray(codes.T[by_target])
    keys = rows.view(np.dtype((np.void, rows.shape[1]))).ravel()
    order: NDArray[np.intp] = by_target[np.argsort(keys, kind="stable")]
    return order


def _drawn_rows(draws: np.random.Generator, count: int, fraction: float) -> NDArray[np.intp] | None:
    """Draw each row with that probability, at least one; ``None`` stands for all."""
    if fraction >= 1:
        return None
    drawn = draws.random(count)
    return np.flatnonzero(drawn <= max(fraction, float(drawn.min())))


def _drawn_columns(
    draws: np.random.Generator, count: int, fraction: float
) -> NDArray[np.intp] | None:
    """Draw that share of the columns, at least one, ascending; ``None`` stands for all."""
    if fraction >= 1:
        return None
    wanted = max(1, round(count * fraction))
    return np.sort(np.argsort(draws.random(count), kind="stable")[:wanted])


def _medians_by_leaf(tree: GrownTree, residual: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the median residual of every leaf, 0 where it is empty."""
    ordered = residual[np.lexsort((residual, tree.leaf))]
    counts = tree.counts.astype(np.int64)
    ends = np.cumsum(counts)
    low = ends - counts + np.maximum(counts - 1, 0) // 2
    high = ends - counts + counts // 2
    last = len(ordered) - 1
    middle = (ordered[np.minimum(low, last)] + ordered[np.minimum(high, last)]) / 2
    return np.where(counts > 0, middle, 0.0)

"""Sums of symmetric trees over byte codes, evaluated with numpy alone.

A symmetric (oblivious) tree asks the same question of every row at one level, so that a leaf's
number is the string of the answers: a handful of byte operations on whole columns.

Source: Kohavi & Li, Oblivious decision trees, IJCAI 1995; Prokhorenkova et al., CatBoost,
NeurIPS 2018, section 4.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from perfdb_git.analysis.quantile_bins import FEW_ROWS, QuantileBins

DEEPEST = 8
"""Levels of a tree at most: the number of a leaf fits into one byte."""

BLOCK_ROWS = 65536
"""Rows at a time: long enough to hide the cost of a numpy call, short enough for the cache."""

_FEW_AT_ONCE = 16

_TREES_IN_32_BITS = 2**15


@dataclass(frozen=True, slots=True, eq=False)
class _SingleTables:
    """What the evaluation of few rows needs, made once."""

    questions: NDArray[np.intp]
    thresholds: NDArray[np.uint8]
    first_leaves: NDArray[np.intp]
    leaves: NDArray[np.int16]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SymmetricTrees:
    """Parameters of a boosted sum of symmetric trees.

    The prediction is ``offset + scale * sum of the trees' leaves``. Leaves are whole numbers, so
    the sum is exact: a batch and its rows one by one give the same bits.

    Parameters
    ----------
    bins : QuantileBins
        Makes the byte codes.
    features, thresholds : ndarray of uint8
        Shape ``(n_trees, depth)``: level d asks whether the code of that feature is above that
        threshold. A threshold of 255 is never exceeded.
    leaves : ndarray of int16
        Shape ``(n_trees, 2**depth)``; the answer of level 0 is the highest bit of the column.
    scale : float
        Value of one unit of a leaf, in the unit of the target.
    offset : float
        Prediction of no trees, in the unit of the target.
    """

    bins: QuantileBins
    features: NDArray[np.uint8]
    thresholds: NDArray[np.uint8]
    leaves: NDArray[np.int16]
    scale: float
    offset: float
    _few: list[_SingleTables] = field(default_factory=list, repr=False, init=False)

    def __post_init__(self) -> None:
        """Refuse arrays that do not fit together."""
        n_trees, depth = self.features.shape
        if not 1 <= depth <= DEEPEST:
            raise ValueError(f"trees of depth {depth}: need 1 to {DEEPEST}")
        if self.thresholds.shape != (n_trees, depth) or self.leaves.shape != (n_trees, 2**depth):
            raise ValueError("features, thresholds and leaves do not fit together")
        if n_trees and int(self.features.max()) >= len(self.bins.edge_counts):
            raise ValueError("a tree asks for a feature that has no bins")

    @property
    def n_trees(self) -> int:
        """Return the number of trees."""
        return int(self.features.shape[0])

    @property
    def n_features(self) -> int:
        """Return the number of features."""
        return len(self.bins.edge_counts)

    @property
    def rounding_bound(self) -> float:
        """Return how far storing leaves as 16-bit numbers can move a prediction at most.

        Half a unit for each tree, in the unit of the target. The fit sees the stored leaves and
        lets later trees correct them, so that held-out figures are those of the stored numbers.
        """
        return self.n_trees * self.scale / 2

    def truncated(self, n_trees: int) -> SymmetricTrees:
        """Return the model made of the first ``n_trees`` trees."""
        return SymmetricTrees(
            bins=self.bins,
            features=self.features[:n_trees],
            thresholds=self.thresholds[:n_trees],
            leaves=self.leaves[:n_trees],
            scale=self.scale,
            offset=self.offset,
        )

    def predict(self, features: ArrayLike) -> NDArray[np.float64]:
        """Return the predictions, in the unit of the target.

        Parameters
        ----------
        features : array_like
            Shape ``(n_samples, n_features)``, or ``(n_features,)`` for one query.

        Returns
        -------
        ndarray of float64
            Shape ``(n_samples,)``, or ``()`` for one query.

        Raises
        ------
        ValueError
            For another number of features.
        """
        table = np.asarray(features, dtype=np.float64)
        rows = np.atleast_2d(table)
        if rows.ndim != 2 or rows.shape[1] != self.n_features:
            raise ValueError(f"features of shape {table.shape}: need {self.n_features} columns")
        sums = np.empty(len(rows), np.int64)
        for start in range(0, len(rows), BLOCK_ROWS):
            codes = self.bins.encode(rows[start : start + BLOCK_ROWS])
            sums[start : start + BLOCK_ROWS] = self.leaf_sums(codes)
        return np.asarray(self.offset + self.scale * sums).reshape(table.shape[:-1])

    def predict_codes(self, codes: NDArray[np.uint8]) -> NDArray[np.float64]:
        """Return the predictions for byte codes, shape ``(n_samples,)``.

        Parameters
        ----------
        codes : ndarray of uint8
            Shape ``(n_features, n_samples)``, as ``bins.encode`` gives them: models that share
            their bins share the codes. Fastest in blocks of 32,768 to 65,536 rows.
        """
        return np.asarray(self.offset + self.scale * self.leaf_sums(codes))

    def leaf_sums(self, codes: NDArray[np.uint8]) -> NDArray[np.int64]:
        """Return the sums of the leaves for byte codes.

        Parameters
        ----------
        codes : ndarray of uint8
            Shape ``(n_features, n_samples)``, as ``bins.encode`` gives them.

        Returns
        -------
        ndarray of int64
            Shape ``(n_samples,)``, in units of ``scale``.
        """
        if codes.shape[1] <= FEW_ROWS:
            return self._few_sums(codes)
        columns, count = list(codes), codes.shape[1]
        sums = np.zeros(count, np.int64)
        # A 16-bit leaf of each of so many trees fits into 32 bits, which are added faster.
        for start in range(0, self.n_trees, _TREES_IN_32_BITS):
            part = slice(start, start + _TREES_IN_32_BITS)
            sums += self._narrow_sums(columns, count, part)
        return sums

    def _narrow_sums(
        self, columns: list[NDArray[np.uint8]], count: int, trees: slice
    ) -> NDArray[np.int32]:
        sums, found = np.zeros((2, count), np.int32)
        # Indices are widened here, once: `take` would do it in a buffer of its own.
        numbers = np.empty(count, np.intp)
        thresholds = [list(row) for row in self.thresholds[trees]]
        asked = zip(
            self.features[trees].tolist(),
            thresholds,
            self.leaves[trees].astype(np.int32),
            strict=True,
        )
        for features, limits, leaves in asked:
            np.copyto(numbers, leaf_numbers(columns, features, limits))
            np.take(leaves, numbers, out=found, mode="wrap")
            np.add(sums, found, out=sums)
        return sums

    def _few_sums(self, codes: NDArray[np.uint8]) -> NDArray[np.int64]:
        """Ask all questions of all trees at once."""
        if not self._few:
            self._few.append(self._single_tables())
        tables = self._few[0]
        rows = np.ascontiguousarray(codes.T)
        sums = np.empty(len(rows), np.int64)
        for start in range(0, len(rows), _FEW_AT_ONCE):
            some = rows[start : start + _FEW_AT_ONCE]
            answers = some.take(tables.questions, axis=1) > tables.thresholds
            numbers = np.packbits(answers, axis=1)
            leaves = tables.leaves.take(numbers + tables.first_leaves)
            sums[start : start + _FEW_AT_ONCE] = np.add.reduce(leaves, axis=1, dtype=np.int64)
        return sums

    def _single_tables(self) -> _SingleTables:
        n_trees, depth = self.features.shape
        # Every tree gets eight questions; those in front of its own are always answered by "no".
        questions = np.zeros((n_trees, DEEPEST), np.intp)
        questions[:, DEEPEST - depth :] = self.features
        thresholds = np.full((n_trees, DEEPEST), 255, np.uint8)
        thresholds[:, DEEPEST - depth :] = self.thresholds
        return _SingleTables(
            questions.ravel(),
            thresholds.ravel(),
            np.arange(n_trees, dtype=np.intp) * 2**depth,
            np.ascontiguousarray(self.leaves).ravel(),
        )


def leaf_numbers(
    columns: list[NDArray[np.uint8]], features: list[int], thresholds: list[np.uint8]
) -> NDArray[np.uint8]:
    """Return the number of the leaf of one tree that each row falls into.

    Parameters
    ----------
    columns : list of ndarray of uint8
        Codes of each feature, ``n_features`` arrays of shape ``(n_samples,)``.
    features : list of int
        Feature of each level, ``depth`` of them, 1 to 8.
    thresholds : list of uint8
        Threshold of each level.

    Returns
    -------
    ndarray of uint8
        Shape ``(n_samples,)``; the answer of the first level is the highest bit.
    """
    leaf = (columns[features[0]] > thresholds[0]).view(np.uint8)
    above = np.empty(len(leaf), np.bool_)
    answer = above.view(np.uint8)
    for feature, threshold in zip(features[1:], thresholds[1:], strict=True):
        np.greater(columns[feature], threshold, out=above)
        np.add(leaf, leaf, out=leaf)
        np.bitwise_or(leaf, answer, out=leaf)
    return leaf

"""How large a model's errors are expected to be, learned from its out-of-fold residuals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from perfdb_git.analysis.quantile_bins import QuantileBins
from perfdb_git.analysis.symmetric_trees import SymmetricTrees
from perfdb_git.analysis.tree_boosting import TreeSettings, fit_symmetric_trees
from perfdb_git.analysis.tree_rounds import select_rounds

SCALE_SETTINGS = TreeSettings(
    rounds=120, depth=5, learning_rate=0.08, regularisation=50.0, feature_fraction=0.5
)
"""Few, shallow, strongly shrunk trees: an error scale is a rough thing."""

_FLOOR_SHARE = 0.05
"""Smallest residual told apart from zero, as a share of the median one."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ErrorScale:
    """``exp`` of trees over log |residual|, within bounds.

    Parameters
    ----------
    trees : SymmetricTrees
        Predict log |residual|.
    lowest, highest : float
        Bounds of the scale, in the unit of the residuals: its 1 % and 99 % quantiles in training,
        so that no query gets a width of nearly nothing or without end.
    """

    trees: SymmetricTrees
    lowest: float
    highest: float

    def predict(self, features: ArrayLike) -> NDArray[np.float64]:
        """Return the scale, ``(n_samples,)`` for features ``(n_samples, n_features)``."""
        return self._bounded(self.trees.predict(features))

    def predict_codes(self, codes: NDArray[np.uint8]) -> NDArray[np.float64]:
        """Return the scale for byte codes of ``trees.bins``, as ``SymmetricTrees`` does."""
        return self._bounded(self.trees.predict_codes(codes))

    def _bounded(self, logs: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(np.clip(np.exp(logs), self.lowest, self.highest))


def fit_error_scale(
    features: ArrayLike,
    residuals: ArrayLike,
    folds: ArrayLike,
    settings: TreeSettings = SCALE_SETTINGS,
    bins: QuantileBins | None = None,
) -> tuple[ErrorScale, NDArray[np.float64]]:
    """Learn the scale, and give every row the scale of models that had not seen it.

    Scores divided by a scale that has seen them come out too small, and their intervals cover too
    little: divide by the second result when calibrating, evaluate the first for queries.

    Parameters
    ----------
    features : array_like
        Shape ``(n_samples, n_features)``.
    residuals : array_like
        Out-of-fold log errors, shape ``(n_samples,)``.
    folds : array_like of int
        Fold of each row, the same kind of folds as behind the residuals, shape ``(n_samples,)``.
    settings : TreeSettings
        Of the trees.
    bins : QuantileBins or None
        Those of another model over the same features, to share its codes at evaluation.

    Returns
    -------
    ErrorScale
        Fitted to all rows.
    ndarray of float64
        Out-of-fold scale of each row, shape ``(n_samples,)``, with the same bounds.
    """
    sizes = np.abs(np.asarray(residuals, np.float64))
    floor = max(_FLOOR_SHARE * float(np.median(sizes)), 1e-12)
    logs = np.log(np.maximum(sizes, floor))
    trees = fit_symmetric_trees(features, logs, settings, bins=bins)
    seen = np.exp(trees.predict(features))
    lowest, highest = (float(bound) for bound in np.quantile(seen, (0.01, 0.99)))
    chosen = select_rounds(
        features, logs, folds, settings, checkpoint_every=settings.rounds, bins=bins
    )
    scale = ErrorScale(trees=trees, lowest=lowest, highest=highest)
    return scale, np.clip(np.exp(chosen.out_of_fold), lowest, highest)

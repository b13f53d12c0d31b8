"""The number of boosting rounds, chosen by cross-validation inside the training rows."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from perfdb_git.analysis.quantile_bins import QuantileBins, fit_quantile_bins
from perfdb_git.analysis.tree_boosting import Boosting, TreeSettings, add_tree, checked_rows


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RoundSelection:
    """Rounds chosen by cross-validation, and the predictions that chose them.

    Parameters
    ----------
    rounds : int
        Number of trees with the smallest mean absolute out-of-fold error.
    checkpoints : ndarray of int64
        Numbers of trees looked at, shape ``(n_checkpoints,)``.
    errors : ndarray of float64
        Mean absolute out-of-fold error at each, in the unit of the target.
    out_of_fold : ndarray of float64
        Prediction of every row by the models that did not see it, at ``rounds``, shape
        ``(n_samples,)``; not a number for rows in no fold.
    """

    rounds: int
    checkpoints: NDArray[np.int64]
    errors: NDArray[np.float64]
    out_of_fold: NDArray[np.float64]


def select_rounds(
    features: ArrayLike,
    target: ArrayLike,
    folds: ArrayLike,
    settings: TreeSettings,
    *,
    checkpoint_every: int = 50,
    patience: int = 4,
    bins: QuantileBins | None = None,
    progress: Callable[[], object] | None = None,
) -> RoundSelection:
    """Choose the number of rounds by cross-validation inside the rows given.

    All folds grow side by side; it stops once the error has not improved for ``patience``
    checkpoints, or at ``settings.rounds``.

    Parameters
    ----------
    features, target : array_like
        As for ``fit_symmetric_trees``.
    folds : array_like of int
        Fold of each row, shape ``(n_samples,)``; a negative one trains always and is never tested.
    settings : TreeSettings
        ``rounds`` is the most that are tried.
    checkpoint_every, patience : int
        Rounds between two looks; looks without improvement before it stops.
    bins : QuantileBins or None
        As for the fit; else each fold places its own.
    progress : callable or None
        Called after every round of every fold.

    Returns
    -------
    RoundSelection

    Raises
    ------
    ValueError
        As for the fit, for fewer than two groups of rows, or folds of another length.
    """
    table, wanted = checked_rows(features, target)
    fold_of = np.asarray(folds)
    if fold_of.shape != wanted.shape:
        raise ValueError(f"folds of shape {fold_of.shape} for {len(wanted)} rows")
    names = np.unique(fold_of[fold_of >= 0])
    if not len(names) or len(np.unique(fold_of)) < 2:
        raise ValueError("cross-validation needs a fold to test and other rows to train on")
    parts = [_Fold(table, wanted, fold_of == name, settings, bins) for name in names]
    trace = _Trace(wanted, parts)
    for done in range(1, settings.rounds + 1):
        for part in parts:
            part.grow()
            if progress is not None:
                progress()
        if done % checkpoint_every == 0 or done == settings.rounds:
            trace.look(done)
            if trace.looks_since_best >= patience:
                break
    return trace.selection()


class _Trace:
    """Errors at the checkpoints so far, and the predictions at the best of them."""

    def __init__(self, target: NDArray[np.float64], parts: list[_Fold]) -> None:
        self._target = target
        self._parts = parts
        self._checkpoints: list[int] = []
        self._errors: list[float] = []
        self._best = np.full(len(target), np.nan)

    @property
    def looks_since_best(self) -> int:
        return len(self._errors) - 1 - int(np.argmin(self._errors))

    def look(self, rounds: int) -> None:
        predicted = np.full(len(self._target), np.nan)
        for part in self._parts:
            predicted[part.tested] = part.predicted()
        errors = np.abs(predicted - self._target)
        errors = errors[np.isfinite(errors)].tolist()
        self._checkpoints.append(rounds)
        self._errors.append(math.fsum(errors) / len(errors))
        if self.looks_since_best == 0:
            self._best = predicted

    def selection(self) -> RoundSelection:
        return RoundSelection(
            rounds=self._checkpoints[int(np.argmin(self._errors))],
            checkpoints=np.array(self._checkpoints, np.int64),
            errors=np.array(self._errors),
            out_of_fold=self._best,
        )


class _Fold:
    """The fit on all rows outside one fold, and its running predictions inside."""

    def __init__(
        self,
        table: NDArray[np.float64],
        target: NDArray[np.float64],
        inside: NDArray[np.bool_],
        settings: TreeSettings,
        bins: QuantileBins | None,
    ) -> None:
        bins = bins or fit_quantile_bins(table[~inside], settings.n_bins)
        self.tested = np.flatnonzero(inside)
        self._boosting = Boosting(bins.encode(table[~inside]), target[~inside], settings)
        self._codes = bins.encode(table[inside])
        self._sums = np.zeros(len(self.tested), np.int64)

    def grow(self) -> None:
        add_tree(self._sums, self._codes, *self._boosting.grow())

    def predicted(self) -> NDArray[np.float64]:
        return np.asarray(self._boosting.offset + self._boosting.scale * self._sums)

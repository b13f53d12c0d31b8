"""Boosted symmetric trees over roofline efficiency: one model a slice, learned and evaluated.

The target is log(latency / physical base), so that the trees learn the share of a plain estimate
that is reached. Sizes and rates of the settings come from cross-validation inside training rows;
see docs/adr/006-forms-of-calibration.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from perfdb_git.analysis.nonnegative_sums import fit_nonnegative_sum
from perfdb_git.analysis.symmetric_trees import SymmetricTrees
from perfdb_git.analysis.tree_boosting import TreeSettings, fit_symmetric_trees
from perfdb_git.errors import UsageError
from perfdb_git.operations.features.feature_set import SUM_OF_PARTS
from perfdb_git.operations.features.registry import FEATURE_SETS

if TYPE_CHECKING:
    from perfdb_git.operations.features.feature_set import Columns, FeatureSet, Seconds
    from perfdb_git.operations.features.hardware import Hardware


_LEAST_PART_ROWS = 200
"""Fewer rows of large sizes say less of the weights than all rows do."""

_FOLD_SETTINGS = TreeSettings(rounds=700, learning_rate=0.12, feature_fraction=0.25)


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeRecipe:
    """How the trees of one operation are fitted.

    Attributes
    ----------
    features : str
        Key of `FEATURE_SETS`.
    slice_by : tuple of str
        Dimensions; each combination of their values has a model of its own.
    settings : TreeSettings
        Of every model.
    bases : tuple of str
        Physical bases; predictions are the geometric mean of one model each. The weights of
        `SUM_OF_PARTS` are learned.
    parts_from : Mapping[str, float]
        Least sizes of the rows that those weights are learned from: where parts that grow matter.
    fold_settings : TreeSettings
        Of the models behind an interval: coarser, so that six folds cost little more than one
        fit; being less exact they tend to make intervals wider, not narrower.
    """

    features: str
    slice_by: tuple[str, ...]
    settings: TreeSettings
    bases: tuple[str, ...]
    parts_from: Mapping[str, float] = field(default_factory=dict)
    fold_settings: TreeSettings = _FOLD_SETTINGS


RECIPES: Mapping[str, TreeRecipe] = {
    "gemm": TreeRecipe(
        features="gemm/1",
        slice_by=("dtype",),
        settings=TreeSettings(rounds=1500, learning_rate=0.08, feature_fraction=0.4),
        bases=("tiled",),
    ),
    "gemm-beyond": TreeRecipe(
        features="gemm/1",
        slice_by=("dtype",),
        settings=TreeSettings(rounds=500, depth=6, learning_rate=0.08, feature_fraction=0.5),
        bases=(SUM_OF_PARTS,),
        parts_from={"m": 256},
        fold_settings=TreeSettings(rounds=250, depth=6, learning_rate=0.16, feature_fraction=0.5),
    ),
    "attention_prefill": TreeRecipe(
        features="attention-prefill/1",
        slice_by=("head_size",),
        settings=TreeSettings(rounds=1500, learning_rate=0.08, feature_fraction=0.4),
        bases=("roofline",),
    ),
    "attention_decode": TreeRecipe(
        features="attention-decode/1",
        slice_by=("kv_cache_dtype",),
        settings=TreeSettings(rounds=2000, learning_rate=0.12, feature_fraction=0.2),
        bases=("roofline",),
    ),
}
"""Inside the range of the evidence by operation; ``gemm-beyond`` outside it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceOfTrees:
    """The models of one slice, one for each base of the recipe.

    ``part_weights`` are those of `SUM_OF_PARTS`, positive ones alone; none without such a base.
    """

    recipe: TreeRecipe
    hardware: Hardware
    models: tuple[SymmetricTrees, ...]
    part_weights: Mapping[str, float] = field(default_factory=dict)

    def predict(self, columns: Columns) -> Seconds:
        """Return latencies in seconds, ``(n,)``, of queries of this slice."""
        features = _feature_set(self.recipe)
        described = features.compute(columns, self.hardware)
        logs = [
            np.log(features.named_base(base, columns, self.hardware, self.part_weights))
            + model.predict(described)
            for base, model in zip(self.recipe.bases, self.models, strict=True)
        ]
        return np.asarray(np.exp(np.mean(logs, axis=0)))


@dataclass(frozen=True, slots=True, kw_only=True)
class SlicedTrees:
    """All slices of a recipe by the values of ``slice_by``, as text."""

    recipe: TreeRecipe
    slices: Mapping[tuple[str, ...], SliceOfTrees]

    def predict(self, columns: Columns) -> Seconds:
        """Return latencies in seconds, ``(n,)``.

        Raises
        ------
        UsageError
            'unknown-slice' where no training row had these values.
        """
        seconds = np.full(len(columns[self.recipe.slice_by[0]]), np.nan)
        for values, rows in slices_of(columns, self.recipe.slice_by).items():
            if values not in self.slices:
                raise UsageError(
                    f"no training row has {', '.join(self.recipe.slice_by)} of {values}",
                    code="unknown-slice",
                    remedy="fit with rows of that slice",
                )
            seconds[rows] = self.slices[values].predict(rows_of(columns, rows))
        return seconds


def fit_sliced_trees(
    recipe: TreeRecipe,
    columns: Columns,
    latency: Seconds,
    hardware: Hardware,
    progress: Callable[[], object] | None = None,
) -> SlicedTrees:
    """Fit one model for each slice and base.

    Parameters
    ----------
    recipe : TreeRecipe
        What to fit.
    columns : Mapping[str, ndarray]
        Training rows: the inputs of the feature set and the dimensions of ``slice_by``.
    latency : ndarray
        Seconds, ``(n,)``.
    hardware : Hardware
        The device's facts.
    progress : callable or None
        Called after every round.
    """
    return SlicedTrees(
        recipe=recipe,
        slices={
            values: fit_slice(recipe, rows_of(columns, rows), latency[rows], hardware, progress)
            for values, rows in slices_of(columns, recipe.slice_by).items()
        },
    )


def fit_slice(
    recipe: TreeRecipe,
    columns: Columns,
    latency: Seconds,
    hardware: Hardware,
    progress: Callable[[], object] | None = None,
) -> SliceOfTrees:
    """Fit the rows of one slice; arguments as `fit_sliced_trees`."""
    features = _feature_set(recipe)
    described = features.compute(columns, hardware)
    weights = _learned_weights(recipe, columns, latency, hardware)
    models = []
    for place, base in enumerate(recipe.bases):
        target = np.log(latency / features.named_base(base, columns, hardware, weights))
        # Another seed for each base: their errors should have little in common.
        settings = replace(recipe.settings, seed=recipe.settings.seed + place)
        models.append(fit_symmetric_trees(described, target, settings, progress=progress))
    return SliceOfTrees(
        recipe=recipe, hardware=hardware, models=tuple(models), part_weights=weights
    )


def _learned_weights(
    recipe: TreeRecipe, columns: Columns, latency: Seconds, hardware: Hardware
) -> dict[str, float]:
    """Return the positive weights of the feature set's parts; none where no base needs them."""
    if SUM_OF_PARTS not in recipe.bases:
        return {}
    features = _feature_set(recipe)
    assert features.parts is not None
    count = len(latency)
    large = np.ones(count, np.bool_)
    for name, least in recipe.parts_from.items():
        large &= np.broadcast_to(columns[name], count) >= least
    if large.sum() < _LEAST_PART_ROWS:
        large[:] = True
    parts = features.parts(columns, hardware)
    table = np.column_stack([np.broadcast_to(part, count)[large] for part in parts.values()])
    weights = fit_nonnegative_sum(table, latency[large])
    return {
        name: weight for name, weight in zip(parts, weights.tolist(), strict=True) if weight > 0
    }


def slices_of(
    columns: Columns, slice_by: tuple[str, ...]
) -> dict[tuple[str, ...], NDArray[np.intp]]:
    """Return the rows of each combination of values, as text, sorted by it."""
    parts = [np.unique(columns[name], return_inverse=True) for name in slice_by]
    code = np.zeros(len(columns[slice_by[0]]), dtype=np.intp)
    for values, place in parts:
        code = code * len(values) + place
    found = {}
    for number in np.unique(code).tolist():
        rows = np.flatnonzero(code == number)
        found[tuple(str(columns[name][rows[0]]) for name in slice_by)] = rows
    return found


def rows_of(columns: Columns, rows: NDArray[np.intp]) -> dict[str, NDArray[np.generic]]:
    """Return some rows of every column."""
    return {name: values[rows] for name, values in columns.items()}


def _feature_set(recipe: TreeRecipe) -> FeatureSet:
    return FEATURE_SETS[recipe.features]

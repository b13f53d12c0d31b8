"""Fitting boosted trees to one slice: inside the measured range, and beyond it.

The settings are those of `perfdb_git.calibration.fitting_trees.RECIPES`. Intervals inside come
from folds over rows and over whole lines; beyond the range they widen by a rate learned from
models that had not seen the tail.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from perfdb_git.analysis.conformal import (
    DistanceWidening,
    conformal_quantile,
    fit_distance_widening,
)
from perfdb_git.calibration.fitting_trees import RECIPES, SliceOfTrees, TreeRecipe, fit_slice
from perfdb_git.calibration.slice_fits import SliceRequest, some_rows
from perfdb_git.calibration.tree_intervals import (
    SliceWithInterval,
    fit_slice_with_interval,
    tree_predictor,
)
from perfdb_git.errors import InvalidInputError
from perfdb_git.model.calibration import FittedModel
from perfdb_git.model.spreading import Spread
from perfdb_git.providers.fitted_models import (
    OneWidth,
    TwoRegimes,
    encode_interval,
    encode_trees,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from perfdb_git.calibration.slice_fits import Columns, Fit, Seconds
    from perfdb_git.operations.features.hardware import Hardware

LEAST_ROWS = 200
_FOLDS = 3
_TAILS_OCTAVES = (1.0, 2.0)
"""Tails to leave out; the first with rows enough is taken: it keeps most of what the model has."""

_NEAREST_OCTAVES = 1 / 8
"""Rows that follow the cut more closely say nothing of how errors grow with the distance."""

_LEAST_TAIL_ROWS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """Recipes of one feature set, and what its sweeps look like.

    ``line_by`` are the dimensions that rows of one sweep share, ``along`` is the one that varies
    in it: tails are cut along it.
    """

    inside: str
    beyond: str | None
    line_by: tuple[str, ...]
    along: str


_HEADS = ("query_heads", "kv_heads", "head_size")
_PLANS: Mapping[str, _Plan] = {
    "gemm/1": _Plan(inside="gemm", beyond="gemm-beyond", line_by=("n", "k"), along="m"),
    "attention-prefill/1": _Plan(
        inside="attention_prefill", beyond=None, line_by=_HEADS, along="query_length"
    ),
    "attention-decode/1": _Plan(
        inside="attention_decode", beyond=None, line_by=_HEADS, along="kv_cache_length"
    ),
}


def cannot_fit_trees(request: SliceRequest) -> str | None:
    """Say why trees cannot be fitted to these rows; None if they can."""
    if request.features is None or request.features.name not in _PLANS:
        return "boosted trees need a feature set with a recipe"
    if len(request.latency) < LEAST_ROWS:
        return f"fewer than {LEAST_ROWS} rows"
    return None


def fit_of_trees(request: SliceRequest) -> Fit:
    """Return what fits trees to some rows of a slice, for cross-validation."""
    recipe = _recipe(request, _plan(request).inside)
    return functools.partial(tree_predictor, recipe, _hardware(request))


def rounds_of_trees(request: SliceRequest) -> int:
    """Return about how many rounds `fit_tree_slice` takes."""
    plan = _plan(request)
    recipe = RECIPES[plan.inside]
    far = RECIPES[plan.beyond or plan.inside]
    tail = far.fold_settings.rounds * len(far.bases)
    beyond = far.settings.rounds * len(far.bases) if plan.beyond else 0
    folds = 2 * _FOLDS * recipe.fold_settings.rounds
    return recipe.settings.rounds + folds + tail + beyond


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeFit:
    """The models of a slice, and what cross-validation says of the one inside.

    ``errors`` are log(predicted / measured) of every row by a model that had not seen it, ``(n,)``;
    folds leave out rows and take the coarser settings of the models behind intervals.
    """

    inside: FittedModel
    beyond: FittedModel | None
    errors: Seconds


def fit_tree_slice(
    request: SliceRequest,
    progress: Callable[[], object] | None = None,
    spread: Spread = map,
) -> TreeFit:
    """Fit the model inside the range and, where its recipe has one, the model beyond.

    Parameters
    ----------
    request : SliceRequest
        The rows.
    progress : callable or None
        Called after every round.
    spread : Spread
        Where the folds behind the interval are fitted.

    Raises
    ------
    InvalidInputError
        'too-few-records' where the rows do not suffice for an interval.
    """
    plan = _plan(request)
    recipe = _recipe(request, plan.inside)
    fitted = _with_interval(request, plan, recipe, progress, spread)
    if plan.beyond is None:
        rate = _learned_rate(request, recipe, fitted, progress)
        return TreeFit(inside=_inside(request, fitted, rate), beyond=None, errors=fitted.row_errors)
    far = _recipe(request, plan.beyond)
    beyond = _beyond(request, far, fitted, progress)
    return TreeFit(inside=_inside(request, fitted, None), beyond=beyond, errors=fitted.row_errors)


def _with_interval(
    request: SliceRequest,
    plan: _Plan,
    recipe: TreeRecipe,
    progress: Callable[[], object] | None,
    spread: Spread,
) -> SliceWithInterval:
    columns = _repeated(request)
    fitted = fit_slice_with_interval(
        recipe,
        columns,
        request.latency,
        _hardware(request),
        line_by=_line_by(plan, columns),
        level=request.level,
        folds=_FOLDS,
        progress=progress,
        spread=spread,
    )
    widths = (fitted.widths.measured.pooled, fitted.widths.unmeasured.pooled)
    if not all(math.isfinite(width) for width in widths):
        raise InvalidInputError(
            f"{len(request.latency)} training records of slice {request.name} are too few",
            code="too-few-records",
            document="calibration spec",
            remedy="measure more, or slice less",
        )
    return fitted


def _inside(
    request: SliceRequest, fitted: SliceWithInterval, widening: DistanceWidening | None
) -> FittedModel:
    points = fitted.points
    interval = encode_interval(
        TwoRegimes(
            widths=fitted.widths,
            on_line=fitted.on_line,
            off_line=fitted.off_line,
            line_by=fitted.line_by,
            lines=fitted.lines,
        ),
        folds=f"{_FOLDS} of rows, {_FOLDS} of whole lines",
        residuals=2 * len(request.latency),
        bins=points.models[0].bins,
        widening=widening,
    )
    return encode_trees(
        points.models,
        features=points.recipe.features,
        bases=points.recipe.bases,
        interval=interval,
    )


def _beyond(
    request: SliceRequest,
    recipe: TreeRecipe,
    fitted: SliceWithInterval,
    progress: Callable[[], object] | None,
) -> FittedModel | None:
    """Return the model beyond the range; None where no tail can be cut to judge it."""
    widening = _learned_rate(request, recipe, fitted, progress)
    if widening is None:
        return None
    model = fit_slice(recipe, _repeated(request), request.latency, _hardware(request), progress)
    width = _interior_width(request, fitted)
    interval = encode_interval(
        OneWidth(level=request.level, width=width),
        folds="tails",
        residuals=2 * len(request.latency),
        bins=model.models[0].bins,
        widening=widening,
    )
    return encode_trees(
        model.models,
        features=recipe.features,
        bases=recipe.bases,
        part_weights=model.part_weights,
        interval=interval,
    )


def _interior_width(request: SliceRequest, fitted: SliceWithInterval) -> float:
    """Return the median half-width of the training rows."""
    return float(np.median(fitted.predict(_repeated(request))[1]))


def _learned_rate(
    request: SliceRequest,
    recipe: TreeRecipe,
    fitted: SliceWithInterval,
    progress: Callable[[], object] | None,
) -> DistanceWidening | None:
    """Learn how intervals widen from models that had not seen the upper tail."""
    along = request.columns[_plan(request).along]
    if len(along) == 1 or along.min() <= 0:
        return None
    for cut in _TAILS_OCTAVES:
        kept = along <= along.max() / 2**cut
        if kept.sum() < LEAST_ROWS:
            return None
        octaves = np.log2(along / along[kept].max())
        tail = octaves > _NEAREST_OCTAVES
        if tail.sum() >= max(_LEAST_TAIL_ROWS, 1 / (1 - request.level)):
            break
    else:
        return None
    columns = _repeated(request)
    model = _without_tail(request, recipe, columns, kept, progress)
    predicted = model.predict(some_rows(columns, tail, len(tail)))
    over = np.abs(np.log(predicted / request.latency[tail])) / _interior_width(request, fitted)
    if math.isinf(conformal_quantile(over, request.level)):
        return None
    return fit_distance_widening(over, octaves[tail], request.level)


def _without_tail(
    request: SliceRequest,
    recipe: TreeRecipe,
    columns: Columns,
    kept: NDArray[np.bool_],
    progress: Callable[[], object] | None,
) -> SliceOfTrees:
    """Fit without the tail, by the coarser settings; what they miss by makes intervals wider."""
    recipe = replace(recipe, settings=recipe.fold_settings)
    rows = some_rows(columns, kept, len(kept))
    return fit_slice(recipe, rows, request.latency[kept], _hardware(request), progress)


def _repeated(request: SliceRequest) -> dict[str, NDArray[np.generic]]:
    """Return the columns at full length, as folds take rows of all of them."""
    count = len(request.latency)
    return {
        name: np.repeat(values, count) if len(values) == 1 else values
        for name, values in request.columns.items()
    }


def _line_by(plan: _Plan, columns: Columns) -> tuple[str, ...]:
    """Return the dimensions of lines, and the input with most values where no line is told apart.

    A slice of one line only has no other line to leave out; its folds leave out whole sizes.
    """
    if any(len(np.unique(columns[name])) > 1 for name in plan.line_by):
        return plan.line_by
    return (plan.along,)


def _plan(request: SliceRequest) -> _Plan:
    assert request.features is not None
    return _PLANS[request.features.name]


def _hardware(request: SliceRequest) -> Hardware:
    assert request.hardware is not None
    return request.hardware


def _recipe(request: SliceRequest, name: str) -> TreeRecipe:
    recipe = RECIPES[name]
    return replace(
        recipe,
        settings=replace(recipe.settings, seed=request.seed),
        fold_settings=replace(recipe.fold_settings, seed=request.seed),
    )

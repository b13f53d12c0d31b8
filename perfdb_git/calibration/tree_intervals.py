"""Prediction intervals of sliced trees: an error scale, and widths for two kinds of query.

A line is what rows of one sweep share, such as (n, k) of a matrix product measured at many m. A
query on a measured line lies between its neighbours; one on a new line does not, and its errors
are those of models that had not seen the whole line.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from perfdb_git.analysis.conformal import (
    TwoRegimeWidths,
    fit_conformal_widths,
    group_folds,
    row_folds,
)
from perfdb_git.analysis.error_scale import ErrorScale, fit_error_scale
from perfdb_git.calibration.fitting_trees import (
    SliceOfTrees,
    TreeRecipe,
    fit_slice,
)
from perfdb_git.calibration.slice_fits import FoldErrors
from perfdb_git.model.spreading import Spread
from perfdb_git.operations.features.registry import FEATURE_SETS

if TYPE_CHECKING:
    from perfdb_git.calibration.slice_fits import Predict
    from perfdb_git.operations.features.feature_set import Columns, Seconds
    from perfdb_git.operations.features.hardware import Hardware


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceWithInterval:
    """One slice's model for points, error scales, and half-widths for both kinds of query.

    ``lines`` holds the codes of the measured lines, sorted; ``row_errors`` log(predicted /
    measured) of every training row by a model of the row folds that had not seen it.
    """

    points: SliceOfTrees
    on_line: ErrorScale
    off_line: ErrorScale
    widths: TwoRegimeWidths
    line_by: tuple[str, ...]
    lines: NDArray[np.float64]
    row_errors: NDArray[np.float64]

    def predict(self, columns: Columns) -> tuple[Seconds, Seconds]:
        """Return latencies in seconds and half-widths on the logarithm, each ``(n,)``.

        Features and their byte codes are computed once for all three models.
        """
        recipe, hardware = self.points.recipe, self.points.hardware
        features, model = FEATURE_SETS[recipe.features], self.points.models[0]
        # Codes compare float32, which features are already: widening them would only cost time.
        codes = model.bins.encode(cast("Seconds", features.compute(columns, hardware)))
        seconds = features.bases[recipe.bases[0]](columns, hardware)
        seconds = seconds * np.exp(model.predict_codes(codes))
        codes_of_lines = line_codes(columns, self.line_by)
        place = np.minimum(np.searchsorted(self.lines, codes_of_lines), len(self.lines) - 1)
        known = self.lines[place] == codes_of_lines
        scale = np.where(
            known, self.on_line.predict_codes(codes), self.off_line.predict_codes(codes)
        )
        return seconds, self.widths.predict(scale, known)


def fit_slice_with_interval(
    recipe: TreeRecipe,
    columns: Columns,
    latency: Seconds,
    hardware: Hardware,
    *,
    line_by: tuple[str, ...],
    level: float = 0.9,
    folds: int = 3,
    progress: Callable[[], object] | None = None,
    spread: Spread = map,
) -> SliceWithInterval:
    """Fit a slice, and calibrate its intervals by folds inside the rows given.

    Parameters
    ----------
    recipe : TreeRecipe
        With one base.
    columns : Mapping[str, ndarray]
        Training rows of one slice.
    latency : ndarray
        Seconds, ``(n,)``.
    hardware : Hardware
        The device's facts.
    line_by : tuple of str
        Numeric dimensions that rows of one sweep share.
    level : float
        Coverage asked for.
    folds : int
        Of each kind.
    progress : callable or None
        Called after every round here, and for all rounds of a fold at its end.
    spread : Spread
        Where the folds are fitted.
    """
    lines = line_codes(columns, line_by)
    ways = (row_folds(len(latency), folds), group_folds(lines, folds))
    # Asked for before the model of all rows is fitted, which other processes need not wait for.
    coarser = replace(recipe, settings=recipe.fold_settings)
    fit = functools.partial(tree_predictor, coarser, hardware)
    asked = [FoldErrors(fit, columns, latency, dealt, spread) for dealt in ways]
    points = fit_slice(recipe, columns, latency, hardware, progress)
    described = FEATURE_SETS[recipe.features].compute(columns, hardware)
    scales, widths, found = [], [], []
    for dealt, one in zip(ways, asked, strict=True):
        errors, _ = one.collect(functools.partial(_rounds_done, coarser, progress))
        scale, seen = fit_error_scale(described, errors, dealt, bins=points.models[0].bins)
        found.append(errors)
        scales.append(scale)
        widths.append(fit_conformal_widths(np.abs(errors) / seen, level))
    return SliceWithInterval(
        points=points,
        on_line=scales[0],
        off_line=scales[1],
        widths=TwoRegimeWidths(measured=widths[0], unmeasured=widths[1]),
        line_by=line_by,
        lines=np.unique(lines),
        row_errors=found[0],
    )


def tree_predictor(
    recipe: TreeRecipe, hardware: Hardware, columns: Columns, latency: Seconds
) -> Predict:
    """Fit some rows, and return the prediction; the scale of its errors is not known yet."""
    model = fit_slice(recipe, columns, latency, hardware)

    def predict(some: Columns) -> tuple[Seconds, Seconds]:
        predicted = model.predict(some)
        return predicted, np.ones_like(predicted)

    return predict


def _rounds_done(recipe: TreeRecipe, progress: Callable[[], object] | None) -> None:
    """Tell of a fold's rounds, which may have been done by another process."""
    if progress is not None:
        for _ in range(recipe.settings.rounds * len(recipe.bases)):
            progress()


def line_codes(columns: Columns, line_by: tuple[str, ...]) -> NDArray[np.float64]:
    """Return one number a row, equal where all of ``line_by`` are."""
    code = np.zeros(len(columns[line_by[0]]))
    for name in line_by:
        # Three sizes of 17 bits fit exactly into a float64; larger ones may share a code, which
        # only chooses between two widths.
        code = code * 2.0**17 + columns[name]
    return code

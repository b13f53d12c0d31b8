"""Choosing and fitting the form of one slice."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from perfdb_git.analysis.conformal import group_folds
from perfdb_git.calibration.choosing import choose, tried_forms
from perfdb_git.calibration.fit_curves import (
    CURVE_FORMS,
    cannot_fit,
    fit_small_slice,
    small_form_errors,
)
from perfdb_git.calibration.fit_trees import (
    cannot_fit_trees,
    fit_of_trees,
    fit_tree_slice,
    rounds_of_trees,
)
from perfdb_git.calibration.slice_fits import FoldErrors, SliceFit, SliceRequest
from perfdb_git.errors import InvalidInputError
from perfdb_git.model.calibration import Form
from perfdb_git.model.spreading import Spread

if TYPE_CHECKING:
    from perfdb_git.calibration.slice_fits import Seconds

_TREE_FOLDS = 5
_SMALL_FORMS: tuple[Form, ...] = (*CURVE_FORMS, "gaussian-process")


def fit_slice_forms(
    request: SliceRequest,
    progress: Callable[[float], object] | None = None,
    spread: Spread = map,
) -> SliceFit:
    """Fit the form that errs least on rows of the slice that the fit had not seen.

    Parameters
    ----------
    request : SliceRequest
        The rows, and the forms to choose from.
    progress : callable or None
        Called with the share that is done.
    spread : Spread
        Where folds of boosted trees are fitted; other forms take no time.

    Raises
    ------
    InvalidInputError
        'no-form' where none of the forms can be fitted, 'too-few-records'.
    """
    notes = {form: note for form in request.forms if (note := _obstacle(request, form))}
    possible = tuple(form for form in request.forms if form not in notes)
    if not possible:
        reasons = "; ".join(f"{form}: {note}" for form, note in notes.items())
        raise InvalidInputError(
            f"no form fits slice {request.name} ({reasons})",
            code="no-form",
            document="calibration spec",
            pointer="/parts",
            remedy="allow a form that can read these inputs",
        )
    if "boosted-trees" not in possible:
        return fit_small_slice(request, possible, notes)
    small = tuple(form for form in possible if form in _SMALL_FORMS)
    return _fit_with_trees(request, small, notes, progress, spread)


def _obstacle(request: SliceRequest, form: Form) -> str | None:
    if form == "boosted-trees":
        return cannot_fit_trees(request)
    if form not in _SMALL_FORMS:
        return "fitted by 'perfdb calibrate scale-offset' alone"
    return cannot_fit(request, form)


def _fit_with_trees(
    request: SliceRequest,
    small: tuple[Form, ...],
    notes: Mapping[Form, str],
    progress: Callable[[float], object] | None,
    spread: Spread,
) -> SliceFit:
    errors: dict[Form, Seconds] = {}
    if small:
        points = request.points()
        folds = group_folds(points, _TREE_FOLDS, request.seed)
        trees = FoldErrors(fit_of_trees(request), request.columns, request.latency, folds, spread)
        errors = {form: small_form_errors(request, form, folds) for form in small}
        errors["boosted-trees"] = trees.collect()[0]
        groups = np.unique(points, axis=0, return_inverse=True)[1].reshape(-1)
        chosen = choose(errors, groups.astype(np.float64))
        if chosen != "boosted-trees":
            return fit_small_slice(request, small, notes)
    done = [0]
    total = rounds_of_trees(request)

    def advance() -> None:
        done[0] += 1
        if progress is not None:
            progress(done[0] / total)

    fit_of_all = fit_tree_slice(request, advance, spread)
    only = dict(notes)
    if not small:
        errors["boosted-trees"] = fit_of_all.errors
        only["boosted-trees"] = "the only form that can be fitted; error of coarser folds over rows"
    return SliceFit(
        inside=fit_of_all.inside,
        beyond=fit_of_all.beyond,
        tried=tried_forms(request.forms, errors, "boosted-trees", only),
    )

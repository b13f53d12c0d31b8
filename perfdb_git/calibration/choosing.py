"""Choosing among forms by errors of rows that the fit had not seen, all of them training rows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from perfdb_git.model.calibration import Form

if TYPE_CHECKING:
    from numpy.typing import NDArray

    FloatArray: TypeAlias = NDArray[np.float64]

SIMPLEST_FIRST: tuple[Form, ...] = (
    "affine",
    "step-table",
    "log-log-curve",
    "scale-offset",
    "gaussian-process",
    "boosted-trees",
)

_STANDARD_ERRORS = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TriedForm:
    """A form beside what cross-validation inside the training rows says of it.

    ``error_pct`` is the mean absolute log error in percent over ``rows`` rows, ``None`` where the
    form was not tried; ``note`` says why not.
    """

    form: Form
    error_pct: float | None = None
    rows: int = 0
    chosen: bool = False
    note: str | None = None


def choose(errors: Mapping[Form, FloatArray], groups: FloatArray) -> Form:
    """Return the simplest form that is within two standard errors of the best.

    Parameters
    ----------
    errors : mapping of str to ndarray
        Signed log errors of the same rows for each form, ``(n,)``; NaN where a row was not left
        out.
    groups : ndarray
        What was left out together, ``(n,)``; the standard error is one of group means.

    Notes
    -----
    Source: Hastie, Tibshirani & Friedman, The elements of statistical learning, section 7.10 (with
    one standard error there, of unpaired errors; here they are paired and two are asked for).
    """
    means = {form: group_means(np.abs(values), groups) for form, values in errors.items()}
    best = min(means, key=lambda form: (float(means[form].mean()), SIMPLEST_FIRST.index(form)))
    for form in SIMPLEST_FIRST:
        if form == best:
            break
        if form in means and not _loses(means[form], means[best]):
            return form
    return best


def gains(simple: FloatArray, rival: FloatArray, groups: FloatArray) -> bool:
    """Return whether a rival errs less than a simpler model by over two standard errors.

    Parameters
    ----------
    simple, rival : ndarray
        Signed log errors of the same rows, ``(n,)``; NaN where a row was not left out.
    groups : ndarray
        As in `choose`.
    """
    return _loses(group_means(np.abs(simple), groups), group_means(np.abs(rival), groups))


def _loses(means: FloatArray, best: FloatArray) -> bool:
    lost = means - best
    deviation = float(lost.std(ddof=1)) / math.sqrt(len(lost)) if len(lost) > 1 else 0.0
    return float(lost.mean()) > _STANDARD_ERRORS * deviation


def group_means(values: FloatArray, groups: FloatArray) -> FloatArray:
    """Return the mean of the finite values of each group that has any, by ascending group."""
    known = ~np.isnan(values)
    _, place = np.unique(groups[known], return_inverse=True)
    return np.asarray(np.bincount(place, values[known]) / np.bincount(place))


def tried_forms(
    forms: Sequence[Form],
    errors: Mapping[Form, FloatArray],
    chosen: Form,
    notes: Mapping[Form, str],
) -> tuple[TriedForm, ...]:
    """Return every form of a part with its error, in the part's order."""
    found = []
    for form in forms:
        values = errors.get(form)
        known = None if values is None else np.abs(values[~np.isnan(values)])
        found.append(
            TriedForm(
                form=form,
                error_pct=None if known is None else 100 * float(known.mean()),
                rows=0 if known is None else len(known),
                chosen=form == chosen,
                note=notes.get(form),
            )
        )
    return tuple(found)

"""Fitting the forms of small tables: curves over one input, and a Gaussian process over several.

The form is chosen, and its interval made, from errors of training rows that the fit had not seen.
Of a curve, inner sizes are left out and the ends never: beyond them no curve interpolates. What an
extended curve is worth comes from leaving whole tails out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from perfdb_git.analysis.conformal import (
    DistanceWidening,
    cautious_level,
    conformal_quantile,
    group_folds,
    least_scores,
)
from perfdb_git.analysis.curves import (
    MOST_STEP_SIZES,
    AffineCurve,
    LogLogCurve,
    StepTable,
    fit_affine,
    fit_log_log_curve,
    fit_step_table,
)
from perfdb_git.analysis.gaussian_process import MOST_ROWS, GaussianProcess, fit_gaussian_process
from perfdb_git.analysis.jumps import jumps_around
from perfdb_git.analysis.sized_widths import SizedWidths, fit_sized_widths, tells_sizes_apart
from perfdb_git.calibration.choosing import choose, gains, tried_forms
from perfdb_git.calibration.slice_fits import (
    SliceFit,
    SliceRequest,
    out_of_fold,
)
from perfdb_git.calibration.tail_widening import learn_widening, widen_each_side
from perfdb_git.errors import InvalidInputError
from perfdb_git.model.calibration import FittedModel, Form, IntervalCalibration
from perfdb_git.providers.fitted_models import (
    OneWidth,
    encode_curve,
    encode_gaussian_process,
    encode_interval,
)

if TYPE_CHECKING:
    from perfdb_git.calibration.slice_fits import Columns, Fit, Places, Predict, Seconds

_FOLDS = 10
_LEAST_POINTS = 12
"""Of several inputs: of fewer, a process knows no more than that they exist."""

_ENDS = 2
_STEPS = 16
_NOISE_DEGREES = 4.0
"""Of t noise around a process, tried beside normal noise: some tables have outliers."""

Curve = AffineCurve | StepTable | LogLogCurve

CURVE_FORMS: tuple[Form, ...] = ("affine", "step-table", "log-log-curve")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kind:
    """How one form fits the rows of a request; ``noise_degrees`` are of a process alone."""

    request: SliceRequest
    form: Form
    noise_degrees: float | None = None

    def fit(self, columns: Columns, latency: Seconds) -> Curve | GaussianProcess:
        """Return the form's parameters."""
        if self.form == "gaussian-process":
            target = np.log(latency / self.base(columns))
            return fit_gaussian_process(
                self.inputs(columns),
                target,
                seed=self.request.seed,
                noise_degrees=self.noise_degrees,
            )
        size = columns[self.request.inputs[0]]
        if self.form == "affine":
            return fit_affine(size, latency)
        if self.form == "step-table":
            return fit_step_table(size, latency, min(_STEPS, max(1, len(np.unique(size)) // 4)))
        return fit_log_log_curve(size, latency)

    def predictor(self, columns: Columns, latency: Seconds) -> Predict:
        """Fit, and return the prediction."""
        fitted = self.fit(columns, latency)

        def predict(some: Columns) -> tuple[Seconds, Seconds]:
            if isinstance(fitted, GaussianProcess):
                logs, deviation = fitted.predict_with_deviation(self.inputs(some))
                return self.base(some) * np.exp(logs), deviation
            predicted = fitted.predict(some[self.request.inputs[0]])
            return predicted, np.ones_like(predicted)

        return predict

    def jump_predictor(self, columns: Columns, latency: Seconds) -> Predict:
        """Fit a log-log curve; return the prediction, with the errors that its jumps cover."""
        curve = fit_log_log_curve(columns[self.request.inputs[0]], latency)

        def predict(some: Columns) -> tuple[Seconds, Seconds]:
            size = some[self.request.inputs[0]]
            return curve.predict(size), jumps_around(curve, size).covered

        return predict

    def inputs(self, columns: Columns) -> Seconds:
        """Return what a process reads, ``(n, n_inputs)``: features, or octaves of the inputs."""
        features, hardware = self.request.features, self.request.hardware
        if features is None or hardware is None:
            return np.column_stack([np.log2(columns[name]) for name in self.request.inputs])
        table = features.compute(columns, hardware)
        return np.asarray(table[:, [place for place, _ in self.varying()]], np.float64)

    def varying(self) -> list[tuple[int, str]]:
        """Return place and name of the features that are not the same in all rows."""
        features, hardware = self.request.features, self.request.hardware
        assert features is not None
        assert hardware is not None
        table = features.compute(self.request.columns, hardware)
        return [
            (place, name)
            for place, name in enumerate(features.names(hardware))
            if bool((table[:, place] != table[0, place]).any())
        ]

    def base(self, columns: Columns) -> Seconds:
        """Return the physical base of each row; 1 without features."""
        features, hardware = self.request.features, self.request.hardware
        if features is None or hardware is None:
            return np.ones(1)
        return features.base(columns, hardware)

    def encode(
        self, columns: Columns, latency: Seconds, interval: IntervalCalibration
    ) -> FittedModel:
        """Fit, and return the model as a document states it."""
        fitted = self.fit(columns, latency)
        if not isinstance(fitted, GaussianProcess):
            return encode_curve(fitted, size=self.request.inputs[0], interval=interval)
        features, hardware = self.request.features, self.request.hardware
        if features is None or hardware is None:
            return encode_gaussian_process(fitted, inputs=self.request.inputs, interval=interval)
        return encode_gaussian_process(
            fitted,
            inputs=[name for _, name in self.varying()],
            features=features.name,
            base=next(iter(features.bases)),
            interval=interval,
        )


def cannot_fit(request: SliceRequest, form: Form) -> str | None:
    """Say why a form of small tables cannot be fitted to these rows; None if it can."""
    if form in CURVE_FORMS and len(request.inputs) > 1:
        return f"{len(request.inputs)} inputs, a curve has one"
    if form == "step-table" and len(np.unique(request.points())) > MOST_STEP_SIZES:
        return f"more than {MOST_STEP_SIZES} sizes"
    if form == "gaussian-process" and request.features is None and request.points().min() <= 0:
        return "an input is 0, and a Gaussian process reads its octaves"
    if form == "gaussian-process" and len(request.latency) > MOST_ROWS:
        return f"more than {MOST_ROWS} rows"
    return None


def fit_small_slice(
    request: SliceRequest, forms: tuple[Form, ...], notes: Mapping[Form, str]
) -> SliceFit:
    """Choose among forms of small tables, and fit the chosen one to all rows.

    Parameters
    ----------
    request : SliceRequest
        The rows.
    forms : tuple of str
        Those that `cannot_fit` has nothing against, at least one.
    notes : mapping of str to str
        Why the others were not tried.

    Raises
    ------
    InvalidInputError
        'too-few-records' where the rows do not suffice for an interval.
    """
    folds = _folds(request)
    found = {form: _tried(request, form, folds) for form in forms}
    errors = {form: tried.errors for form, tried in found.items()}
    chosen = choose(errors, _point_groups(request))
    kind = found[chosen].kind
    widths, widening = _interval(found[chosen], folds)
    interval = encode_interval(
        widths,
        folds="points, the ends of a curve always kept" if len(request.inputs) == 1 else "points",
        residuals=int((folds >= 0).sum()),
        widening=widening,
    )
    inside = kind.encode(request.columns, request.latency, interval)
    return SliceFit(
        inside=inside,
        beyond=None,
        tried=tried_forms(request.forms, errors, chosen, notes),
    )


def small_form_errors(request: SliceRequest, form: Form, folds: Places) -> Seconds:
    """Return log(predicted / measured) of every row by models that had not seen its fold."""
    return _tried(request, form, folds).errors


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tried:
    """What models of a kind say of rows that they had not seen; see `out_of_fold`."""

    kind: _Kind
    errors: Seconds
    scales: Seconds


def _tried(request: SliceRequest, form: Form, folds: Places) -> _Tried:
    """Return a form as cross-validation sees it; a process has t noise only where that gains."""
    plain = _tried_kind(_Kind(request=request, form=form), folds)
    if form != "gaussian-process":
        return plain
    kind = _Kind(request=request, form=form, noise_degrees=_NOISE_DEGREES)
    robust = _tried_kind(kind, folds)
    groups = _point_groups(request)
    return robust if gains(plain.errors, robust.errors, groups) else plain


def _tried_kind(kind: _Kind, folds: Places) -> _Tried:
    fit: Fit = kind.predictor
    errors, scales = out_of_fold(fit, kind.request.columns, kind.request.latency, folds)
    return _Tried(kind=kind, errors=errors, scales=scales)


def _point_groups(request: SliceRequest) -> Seconds:
    """Return one number for each row, the same for rows of equal inputs."""
    place = np.unique(request.points(), axis=0, return_inverse=True)[1]
    return place.reshape(-1).astype(np.float64)


def _interval(
    tried: _Tried, folds: Places
) -> tuple[OneWidth | SizedWidths, DistanceWidening | None]:
    """Return half-widths by size where errors are many enough to tell, else one for all."""
    kind, left_out = tried.kind, folds >= 0
    request, points = kind.request, kind.request.points()
    if kind.form in CURVE_FORMS and tells_sizes_apart(points[left_out, 0]):
        scores = np.abs(tried.errors)
        if kind.form == "log-log-curve":
            # What the rule of jumps covers however narrow an interval is needs no width.
            covered = out_of_fold(kind.jump_predictor, request.columns, request.latency, folds)[1]
            scores = np.where(scores <= covered, 0.0, scores)
        ends = (float(points.min()), float(points.max()))
        sized = fit_sized_widths(points[left_out, 0], scores[left_out], request.level, ends=ends)
        return widen_each_side(request, kind.predictor, sized), None
    by_deviation, level = kind.form == "gaussian-process", request.level
    if by_deviation:
        level = cautious_level(level, len(np.unique(_point_groups(request))))
    width = conformal_quantile((np.abs(tried.errors) / tried.scales)[left_out], level)
    if math.isinf(width):
        raise _too_few(request)
    one = OneWidth(level=request.level, width=width, by_deviation=by_deviation)
    return one, learn_widening(request, kind.predictor, width)


def _folds(request: SliceRequest) -> Places:
    """Deal points to folds; the ends of a curve to none."""
    points = request.points()
    if len(request.inputs) > 1:
        distinct = len(np.unique(points, axis=0))
        if distinct < _LEAST_POINTS:
            raise _too_few(request)
        return group_folds(points, min(_FOLDS, distinct), request.seed)
    sizes, place = np.unique(points[:, 0], return_inverse=True)
    if len(sizes) < _least_sizes(request):
        raise _too_few(request)
    folds = np.arange(len(sizes)) % _FOLDS
    folds[[0, -1]] = -1
    return np.asarray(folds[place], np.int64)


def _least_sizes(request: SliceRequest) -> int:
    """Return how few sizes of a curve carry the level: its ends give no error."""
    return least_scores(request.level) + _ENDS


def _too_few(request: SliceRequest) -> InvalidInputError:
    if len(request.inputs) > 1:
        least = f"measure at least {_LEAST_POINTS} points"
    else:
        least = (
            f"measure at least {_least_sizes(request)} sizes beside those held out, "
            "or ask a lower level"
        )
    return InvalidInputError(
        f"{len(request.latency)} training records of slice {request.name} are too few for a fit "
        f"with an interval of {request.level:.0%}",
        code="too-few-records",
        document="calibration spec",
        remedy=f"{least}, or slice less",
    )

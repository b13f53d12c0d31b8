"""Answers of the calibration revision that the policy names for operation and device."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from perfdb_git.errors import InvalidInputError, NoEvidenceError, UsageError
from perfdb_git.model.estimate import (
    CostEstimate,
    CostSupport,
    Diagnostics,
    Explanation,
    Method,
    MetricEstimate,
    Provenance,
    Uncertainty,
    Validity,
    ValidityKind,
)
from perfdb_git.model.held_out import ErrorStatistics
from perfdb_git.model.query import CostQuery
from perfdb_git.providers.calibration_models import CalibrationDocument
from perfdb_git.providers.calibration_selection import (
    NAME,
    RESPONSE,
    CalibrationSelection,
    interval_rule,
)
from perfdb_git.providers.calibration_slices import SelectedSlice, Unanswered

if TYPE_CHECKING:
    from perfdb_git.providers.calibrated_points import CalibratedPoints


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    """One query's answer; ``points`` holds the one row."""

    document: CalibrationDocument
    selected: SelectedSlice
    points: CalibratedPoints
    note: str | None
    distance: float
    nearest: float | None

    @property
    def item_form(self) -> str:
        return self.points.predictor.form

    @property
    def seconds(self) -> float:
        return float(self.points.seconds[0])


class CalibratedProvider:
    """Learned latencies between measured points, and a stated distance beyond them.

    Inside the range of every input an answer is ``interpolated``, and its distance is that to the
    nearest record of the training sets where ``evidence`` is given, else 0. Outside it is
    ``extrapolated``, and its distance is the largest one to the range of an input; so is an answer
    in a gap wider than the policy's limit. What is too far, the limits of policy and query refuse.

    Parameters
    ----------
    selection : CalibrationSelection
        The revisions that the policy names.
    """

    def __init__(self, selection: CalibrationSelection) -> None:
        self._selection = selection
        self._policy = selection.policy
        self._memo: tuple[CostQuery, _Answer | Unanswered] | None = None

    @property
    def name(self) -> str:
        """``calibrated``."""
        return NAME

    @property
    def method(self) -> Method:
        """``calibrated``."""
        return "calibrated"

    @property
    def revision(self) -> str:
        """Provider revision, with the digest of the calibrations that the policy selects."""
        return self._selection.revision

    def supports(self, query: CostQuery) -> CostSupport:
        """Say whether the selected revision has a slice and a model for the query."""
        answer = self._answer(query)
        if isinstance(answer, Unanswered):
            return CostSupport(
                provider=self.name,
                answerable=False,
                code=answer.code,
                reason=answer.reason,
                method=self.method,
                blocking=answer.blocking,
                missing_fields=answer.missing,
                near_misses=answer.near,
            )
        kind = self._kind(answer)
        return CostSupport(
            provider=self.name,
            answerable=True,
            code=kind,
            reason=f"calibration {answer.document.sha256[:12]} ({answer.item_form}), {kind}",
            method=self.method,
        )

    def estimate(self, query: CostQuery) -> CostEstimate:
        """Predict the latency with its interval."""
        answer = self._answer(query)
        if isinstance(answer, Unanswered):
            raise NoEvidenceError(answer.reason, code=answer.code)
        metric = MetricEstimate(value=answer.seconds, unit="s", uncertainty=_interval(answer))
        return CostEstimate(
            metrics={RESPONSE: metric},
            method=self.method,
            stochastic=None,
            validity=Validity(
                kind=self._kind(answer),
                distance_octaves=_distance(answer),
                domain={
                    name: {"minimum": limits.minimum, "maximum": limits.maximum}
                    for name, limits in answer.selected.slice.domain.items()
                },
            ),
            provenance=Provenance(
                provider=self.name,
                revision=self.revision,
                record_ids=(),
                source_revisions=(),
                calibration=answer.document.sha256,
                commit=None,
            ),
            diagnostics=Diagnostics(
                missing_context=answer.selected.unstated,
                assumptions=tuple(
                    f"{name} = {value} assumed: the calibration knows no other for this query"
                    for name, value in answer.selected.assumed.items()
                ),
                notes=tuple(self._notes(answer)),
            ),
        )

    def explain(self, query: CostQuery) -> Explanation:
        """Show the revision, the slice, the place in its domain and what it was judged by."""
        answer = self._answer(query)
        if isinstance(answer, Unanswered):
            steps = [f"{answer.code}: {answer.reason}"]
        else:
            item = answer.selected.slice
            steps = [
                f"calibration {answer.document.path}",
                f"slice {answer.selected.number} with terms "
                f"{', '.join(f'{k} = {v}' for k, v in item.terms.items()) or '(none)'}",
                *(
                    f"{name} = {value:g}, measured {item.domain[name].minimum:g} to "
                    f"{item.domain[name].maximum:g}"
                    for name, value in answer.selected.inputs.items()
                ),
                f"{self._kind(answer)}: {answer.seconds:.6g} s by {answer.item_form}",
                *self._notes(answer),
            ]
        return Explanation(provider=self.name, revision=self.revision, steps=tuple(steps))

    def _answer(self, query: CostQuery) -> _Answer | Unanswered:
        memo = self._memo
        if memo is None or memo[0] is not query:
            try:
                found = self._find(query)
            except InvalidInputError as error:
                found = Unanswered(code=error.code, reason=error.message)
            memo = self._memo = (query, found)
        return memo[1]

    def _find(self, query: CostQuery) -> _Answer | Unanswered:
        document = self._selection.document(query.operation, query.deployment.device)
        if isinstance(document, Unanswered):
            return document
        selected = self._selection.select(document, query.coordinates())
        if isinstance(selected, Unanswered):
            return selected
        return self._place(document, selected)

    def _place(
        self, document: CalibrationDocument, selected: SelectedSlice
    ) -> _Answer | Unanswered:
        # Imported here: a query that no calibration answers needs none of it.
        from perfdb_git.providers.calibrated_points import (
            evaluate,
            jump_note,
            model_for,
            octaves_outside,
        )

        item, selection = selected.slice, self._selection
        inputs = {name: np.array([value]) for name, value in selected.inputs.items()}
        outside = octaves_outside(inputs, item.domain, selection.is_zero_legal)
        predictor = model_for(
            item, frozenset(outside), selection.predictor_of(document, selected.number)
        )
        if isinstance(predictor, Unanswered):
            return predictor
        distance = np.max([np.zeros(1), *outside.values()], axis=0)
        beyond = bool(outside)
        try:
            points = evaluate(predictor, item, inputs, beyond=beyond, distances=distance)
        except UsageError as error:
            return Unanswered(code=error.code, reason=error.message)
        if not points.has_value()[0]:
            return Unanswered(code="no-value", reason="the model has no positive value there")
        training = None if beyond else selection.training_points(document, selected.number)
        nearest = math.nan if training is None else float(training.octaves(inputs)[0])
        return _Answer(
            document=document,
            selected=selected,
            points=points,
            note=jump_note(points, inputs),
            distance=float(distance[0]),
            nearest=None if math.isnan(nearest) else nearest,
        )

    def _kind(self, answer: _Answer) -> ValidityKind:
        limit = self._policy.limits.max_extrapolation_octaves
        gap = answer.nearest if answer.nearest is not None and limit is not None else 0.0
        is_far = limit is not None and gap > limit
        return "extrapolated" if answer.points.beyond or is_far else "interpolated"

    def _notes(self, answer: _Answer) -> Iterator[str]:
        points = answer.points
        if answer.note is not None:
            yield answer.note
        if points.beyond and math.isnan(points.half_widths[0]):
            yield "no interval: none is calibrated outside the domain"
        calibration, training = answer.document.value, answer.selected.slice.training
        yield f"family {calibration.family}, form {answer.item_form}"
        yield (
            f"trained on {training.records} records of {len(training.record_sets)} record set(s), "
            f"digest {training.digest}"
        )
        report = calibration.held_out_report
        if report.overall is not None:
            yield f"held out: {_errors(report.overall)}"
        terms = {name: str(value) for name, value in answer.selected.slice.terms.items()}
        for group in report.groups:
            if terms.get(group.by) == group.value:
                yield f"held out, {group.by} = {group.value}: {_errors(group.errors)}"
        if answer.nearest is None and not points.beyond:
            yield "the distance is that to the domain: the training records are not at hand"
        level = points.predictor.level
        if level is not None and level != self._policy.interval.level:
            yield f"the interval is calibrated at level {level:g}, whatever the policy asks for"


def _distance(answer: _Answer) -> float:
    if answer.points.beyond:
        return answer.distance
    return max(0.0, answer.nearest or 0.0)


def _interval(answer: _Answer) -> Uncertainty | None:
    points, half_width = answer.points, float(answer.points.half_widths[0])
    item = answer.selected.slice
    model = item.beyond if points.beyond and item.beyond is not None else item.inside
    if math.isnan(half_width) or model.interval is None:
        return None
    factor = math.exp(half_width)
    bounds = answer.seconds / factor, answer.seconds * factor
    if not all(map(math.isfinite, bounds)):
        return None
    return Uncertainty(
        kind="prediction",
        level=model.interval.level,
        lower=bounds[0],
        upper=bounds[1],
        sample_count=model.interval.residuals,
        rule=interval_rule(
            model.interval.method, beyond=points.beyond, over_jump=bool(points.over_jump[0])
        ),
    )


def _errors(errors: ErrorStatistics) -> str:
    return f"MAPE {errors.mape_pct:.3g} %, p95 {errors.p95_pct:.3g} % of {errors.n}"

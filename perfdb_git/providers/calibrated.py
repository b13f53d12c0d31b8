"""Answers of the calibration revision that the policy names for operation and device."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perfdb_git.errors import InvalidInputError, NoEvidenceError
from perfdb_git.formats.digests import sha256_hex
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
from perfdb_git.model.exclusion import EXCLUDED
from perfdb_git.model.held_out import ErrorStatistics
from perfdb_git.model.policy import CalibrationChoice, Policy
from perfdb_git.model.query import CostQuery
from perfdb_git.model.vocabulary import Vocabulary
from perfdb_git.operations.work_inputs import in_work_terms
from perfdb_git.providers.calibration_models import CalibrationDocument, CalibrationModels
from perfdb_git.providers.calibration_slices import SelectedSlice, Unanswered, select_slice
from perfdb_git.providers.evidence import EvidenceReader
from perfdb_git.providers.matching import Matcher
from perfdb_git.providers.protocol import NOT_SELECTED

if TYPE_CHECKING:
    from perfdb_git.providers.calibrated_points import CalibratedPoint

REVISION = 2
"""Raised whenever the same calibration and query give another answer."""

RESPONSE = "latency"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    document: CalibrationDocument
    selected: SelectedSlice
    point: CalibratedPoint
    nearest: float | None

    @property
    def item_form(self) -> str:
        return self.point.predictor.form


class CalibratedProvider:
    """Learned latencies between measured points, and a stated distance beyond them.

    Inside the range of every input an answer is ``interpolated``, and its distance is that to the
    nearest record of the training sets where ``evidence`` is given, else 0. Outside it is
    ``extrapolated``, and its distance is the largest one to the range of an input; so is an answer
    in a gap wider than the policy's limit. What is too far, the limits of policy and query refuse.

    Parameters
    ----------
    calibrations : CalibrationModels
        Revisions of the snapshot; one is read only when the policy names it for the query.
    vocabulary : Vocabulary
        Dimensions in force.
    policy : Policy
        Names the revisions, and the rules of matching.
    evidence : EvidenceReader or None
        Records, for the distance to the nearest one.
    excluded : collection of str
        Revisions that may not answer though the policy names them, by SHA-256.
    """

    def __init__(
        self,
        calibrations: CalibrationModels,
        vocabulary: Vocabulary,
        policy: Policy,
        *,
        evidence: EvidenceReader | None = None,
        excluded: Collection[str] = (),
    ) -> None:
        self._calibrations = calibrations
        self._vocabulary = vocabulary
        self._policy = policy
        self._evidence = evidence
        self._excluded = frozenset(excluded)
        self._matcher = Matcher(vocabulary, policy.matching)
        self._memo: tuple[CostQuery, _Answer | Unanswered] | None = None

    @property
    def name(self) -> str:
        """``calibrated``."""
        return "calibrated"

    @property
    def method(self) -> Method:
        """``calibrated``."""
        return "calibrated"

    @property
    def revision(self) -> str:
        """Provider revision, with the digest of the calibrations that the policy selects."""
        chosen = sorted(
            f"{choice.response} {choice.operation} {choice.device} {choice.revision}"
            + (f" {EXCLUDED}" if choice.revision in self._excluded else "")
            for choice in self._policy.calibrations
        )
        return f"{self.name}/{REVISION}+{sha256_hex(chr(10).join(chosen).encode())[:12]}"

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
        metric = MetricEstimate(value=answer.point.seconds, unit="s", uncertainty=_interval(answer))
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
                notes=(*answer.point.notes, *self._notes(answer)),
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
                f"{self._kind(answer)}: {answer.point.seconds:.6g} s by {answer.item_form}",
                *answer.point.notes,
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
        choice = self._choice(query)
        if isinstance(choice, Unanswered):
            return choice
        if choice.revision in self._excluded:
            return Unanswered(
                code=EXCLUDED,
                reason=f"calibration {choice.revision[:12]} is excluded from this question",
            )
        document = self._calibrations.document(choice.revision)
        calibration = document.value
        stated = (calibration.response, calibration.operation, calibration.device)
        if stated != (choice.response, choice.operation, choice.device):
            return Unanswered(
                code="calibration-mismatch",
                reason=f"the calibration that the policy names is of {', '.join(stated)}",
            )
        selected = select_slice(
            calibration,
            in_work_terms(query.coordinates(), calibration.inputs, self._vocabulary),
            self._matcher,
            refuse_open=self._policy.matching.query_unknown == "refuse",
        )
        if isinstance(selected, Unanswered):
            return selected
        return self._place(document, selected)

    def _place(
        self, document: CalibrationDocument, selected: SelectedSlice
    ) -> _Answer | Unanswered:
        # Imported here: a query that no calibration answers needs none of it.
        from perfdb_git.providers.calibrated_points import evaluate, octaves_outside
        from perfdb_git.providers.nearest_training import nearest_training_octaves

        item, inputs = selected.slice, selected.inputs
        outside = octaves_outside(inputs, item.domain, self._is_zero_legal)
        point = evaluate(
            selected,
            outside,
            lambda beyond: self._calibrations.predictor(
                document.sha256, selected.number, beyond=beyond
            ),
        )
        if isinstance(point, Unanswered):
            return point
        nearest = None
        if self._evidence is not None and not point.beyond:
            nearest = nearest_training_octaves(
                self._evidence, document.value, item, inputs, self._is_zero_legal
            )
        return _Answer(document=document, selected=selected, point=point, nearest=nearest)

    def _choice(self, query: CostQuery) -> CalibrationChoice | Unanswered:
        named = [
            choice
            for choice in self._policy.calibrations
            if choice.response == RESPONSE and choice.operation == query.operation
        ]
        device = query.deployment.device
        if named and device is None:
            return Unanswered(
                code="missing-input", reason="the device is unknown", missing=("device",)
            )
        found = [choice for choice in named if choice.device == device]
        if not found:
            where = "" if device is None else f" on {device}"
            return Unanswered(
                code=NOT_SELECTED,
                reason=f"policy {self._policy.name} selects no calibration revision of "
                f"{query.operation}{where}",
            )
        if len(found) > 1:
            return Unanswered(
                code="two-calibrations",
                reason=f"policy {self._policy.name} selects {len(found)} calibrations of "
                f"{query.operation} on {device}",
                blocking=True,
            )
        return found[0]

    def _kind(self, answer: _Answer) -> ValidityKind:
        limit = self._policy.limits.max_extrapolation_octaves
        gap = answer.nearest if answer.nearest is not None and limit is not None else 0.0
        is_far = limit is not None and gap > limit
        return "extrapolated" if answer.point.beyond or is_far else "interpolated"

    def _is_zero_legal(self, name: str) -> bool:
        return self._vocabulary.dimensions[name].zero

    def _notes(self, answer: _Answer) -> Iterator[str]:
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
        if answer.nearest is None and not answer.point.beyond:
            yield "the distance is that to the domain: the training records are not at hand"
        level = answer.point.predictor.level
        if level is not None and level != self._policy.interval.level:
            yield f"the interval is calibrated at level {level:g}, whatever the policy asks for"


def _distance(answer: _Answer) -> float:
    if answer.point.beyond:
        return answer.point.octaves
    return max(0.0, answer.nearest or 0.0)


def _interval(answer: _Answer) -> Uncertainty | None:
    point, bounds = answer.point, answer.point.bounds
    item = answer.selected.slice
    model = item.beyond if point.beyond and item.beyond is not None else item.inside
    if bounds is None or model.interval is None or not all(map(math.isfinite, bounds)):
        return None
    suffix = "-widened" if point.beyond else "-over-jump" if point.notes else ""
    return Uncertainty(
        kind="prediction",
        level=model.interval.level,
        lower=bounds[0],
        upper=bounds[1],
        sample_count=model.interval.residuals,
        rule=f"{model.interval.method}{suffix}",
    )


def _errors(errors: ErrorStatistics) -> str:
    return f"MAPE {errors.mape_pct:.3g} %, p95 {errors.p95_pct:.3g} % of {errors.n}"

"""From a calibration spec to a calibration revision: split, fit inside, judge once at the end."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from perfdb_git.calibration.assembling import PreparedSlice, assemble
from perfdb_git.calibration.choosing import TriedForm
from perfdb_git.calibration.documents import document_file
from perfdb_git.calibration.fit_forms import fit_slice_forms
from perfdb_git.calibration.forbidden import forbidden_in_spec
from perfdb_git.calibration.judging import held_out_of, judge
from perfdb_git.calibration.slice_fits import SliceFit, SliceRequest
from perfdb_git.calibration.slices import (
    columns_of,
    of_operation,
    trained_by,
    training_slices,
)
from perfdb_git.calibration.splits import Assignment, build_split, find_leaks
from perfdb_git.errors import InvalidInputError, NoEvidenceError
from perfdb_git.model.calibration import (
    Calibration,
    CalibrationSpec,
    SpecPart,
    SpecReference,
)
from perfdb_git.model.splits import Split, SplitRecipe
from perfdb_git.model.spreading import Spread
from perfdb_git.model.vocabulary import Vocabulary
from perfdb_git.operations.features.feature_set import FeatureSet
from perfdb_git.operations.features.hardware import Hardware
from perfdb_git.operations.features.registry import FEATURE_SETS
from perfdb_git.providers.fitted_models import hardware_from_numbers
from perfdb_git.storage.snapshot import EvidenceSnapshot

Progress: TypeAlias = Callable[[int, int, str], object]

SPEC_DOCUMENT = "calibration spec"
_STEPS = 1000
"""Progress of one slice is told in so many steps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TriedSlice:
    """What cross-validation said of the forms of one slice."""

    name: str
    split: str
    records: int
    forms: tuple[TriedForm, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FitResult:
    """What a fit gives: the documents to write, and what was tried."""

    splits: tuple[Split, ...]
    calibration: Calibration
    tried: tuple[TriedSlice, ...]

    @property
    def documents(self) -> tuple[Split | Calibration, ...]:
        """All documents, splits first."""
        return (*self.splits, self.calibration)


def fit_calibration(
    snapshot: EvidenceSnapshot,
    spec: CalibrationSpec,
    *,
    reference: SpecReference | None = None,
    document: str = SPEC_DOCUMENT,
    progress: Progress | None = None,
    spread: Spread = map,
) -> FitResult:
    """Fit a spec to the evidence of a snapshot; nothing is written.

    Forms are chosen, and intervals made, by cross-validation inside the training records. The
    held-out records are asked once, of the finished revision.

    Parameters
    ----------
    snapshot : EvidenceSnapshot
        Where the records stand.
    spec : CalibrationSpec
        What to fit.
    reference : SpecReference or None
        Name and digest of the spec's file, for the revision.
    document : str
        Its path, for messages.
    progress : callable or None
        Called with steps done, steps in all, and the slice.
    spread : Spread
        Where the folds of cross-validation are fitted.

    Raises
    ------
    InvalidInputError
        'forbidden-input', 'leak', 'varying-dimension', 'unknown-input', 'ambiguous-slice',
        'input-slices', 'unknown-feature-set', 'bad-base-numbers', 'no-response',
        'too-few-records' or 'no-form', and what splits raise.
    NoEvidenceError
        'no-records', or 'empty-side' where nothing trains or nothing judges.
    """
    vocabulary = snapshot.vocabulary()
    _refuse_forbidden(spec, vocabulary, document)
    splits: dict[str, Split] = {}
    assignments: dict[str, Assignment] = {}
    prepared: list[PreparedSlice] = []
    for number, part in enumerate(spec.parts):
        split, assignment = build_split(snapshot, _narrowed(part))
        sha256 = document_file(split)[1]
        _require_honest(assignment, spec, vocabulary, document, number)
        splits[sha256], assignments[sha256] = split, assignment
        prepared += _prepare(spec, number, sha256, assignment, vocabulary, document)
    _refuse_shared_records(prepared, assignments, spec, document)
    fits = _fit_all(prepared, progress, spread)
    calibration = assemble(snapshot, spec, reference, prepared, fits)
    judged = judge(calibration, assignments, vocabulary, document=document)
    return FitResult(
        splits=tuple(splits.values()),
        calibration=replace(calibration, held_out_report=judged.report(spec.response)),
        tried=tuple(map(_tried, prepared, fits)),
    )


def _fit_all(
    prepared: Sequence[PreparedSlice], progress: Progress | None, spread: Spread
) -> list[SliceFit]:
    fits = []
    for place, item in enumerate(prepared):
        advance = _slice_progress(progress, place, prepared)
        fits.append(fit_slice_forms(item.request, advance, spread))
        if progress is not None:
            progress(_STEPS * (place + 1), _STEPS * len(prepared), item.request.name)
    return fits


def _tried(item: PreparedSlice, fit: SliceFit) -> TriedSlice:
    return TriedSlice(
        name=item.request.name,
        split=item.split,
        records=len(item.rows.records),
        forms=fit.tried,
    )


def _refuse_forbidden(spec: CalibrationSpec, vocabulary: Vocabulary, document: str) -> None:
    for found in forbidden_in_spec(spec, vocabulary):
        raise InvalidInputError(
            f"{found.name}: {found.reason}",
            code="forbidden-input",
            document=document,
            pointer=found.pointer,
            remedy="fit from dimensions that make the work take longer",
        )
    for number, part in enumerate(spec.parts):
        both = sorted(set(spec.inputs) & set(part.slice_by))
        if both:
            raise InvalidInputError(
                f"{both[0]} is an input and slices as well",
                code="input-slices",
                document=document,
                pointer=f"/parts/{number}/slice_by",
                remedy="a slice states it as a term, which features can read too",
            )


def _narrowed(part: SpecPart) -> SplitRecipe:
    """Return the part's split over the records of its terms alone."""
    records = part.split.records
    return replace(part.split, records=replace(records, terms={**records.terms, **part.terms}))


def _require_honest(
    assignment: Assignment,
    spec: CalibrationSpec,
    vocabulary: Vocabulary,
    document: str,
    number: int,
) -> None:
    """Refuse a point on both sides, an empty side, and records without a positive response."""
    for leak in find_leaks(assignment, vocabulary):
        raise InvalidInputError(
            f"{leak.point} trains as {leak.train} and judges as {leak.held_out}",
            code="leak",
            document=document,
            pointer=f"/parts/{number}/split",
            remedy="let the rule look at all that tells points apart, and at nothing else",
        )
    records = assignment.records
    ours = of_operation(records, spec.operation)
    for side, mask in (("trains", assignment.train), ("is held out", assignment.held_out)):
        chosen = records.subset(mask & ours)
        if not len(chosen):
            raise NoEvidenceError(
                f"no record of {spec.operation} {side} by split {spec.parts[number].split.name}",
                code="empty-side",
                remedy="select more records, or another fraction",
            )
        if not bool((chosen.metric(spec.response) > 0).all()):
            raise InvalidInputError(
                f"a record that {side} has no positive {spec.response}",
                code="no-response",
                document=document,
                pointer=f"/parts/{number}/split/records",
                remedy="narrow the selection, or retract the record",
            )


def _prepare(
    spec: CalibrationSpec,
    number: int,
    split: str,
    assignment: Assignment,
    vocabulary: Vocabulary,
    document: str,
) -> list[PreparedSlice]:
    part = spec.parts[number]
    features = _features(part, document, number)
    hardware = None if features is None else _hardware(spec, document)
    prepared = []
    for rows in training_slices(
        part,
        assignment,
        operation=spec.operation,
        inputs=spec.inputs,
        vocabulary=vocabulary,
        document=document,
    ):
        columns = columns_of(rows.records, spec.inputs, rows.terms, spec.operation, features)
        request = SliceRequest(
            name=f"{part.split.name}: {rows.name(part.slice_by)}",
            columns=columns,
            latency=rows.records.metric(spec.response),
            inputs=spec.inputs,
            forms=part.forms,
            features=features,
            hardware=hardware,
            level=spec.level,
            seed=spec.seed,
        )
        prepared.append(PreparedSlice(part=part, split=split, rows=rows, request=request))
    return prepared


def _features(part: SpecPart, document: str, number: int) -> FeatureSet | None:
    if part.features is None:
        return None
    name = f"{part.features.name}/{part.features.version}"
    if name not in FEATURE_SETS:
        raise InvalidInputError(
            f"no feature set {name}",
            code="unknown-feature-set",
            document=document,
            pointer=f"/parts/{number}/features",
            remedy=f"known: {', '.join(FEATURE_SETS)}",
        )
    return FEATURE_SETS[name]


def _hardware(spec: CalibrationSpec, document: str) -> Hardware:
    numbers = {} if spec.base is None else spec.base.numbers
    return hardware_from_numbers(numbers, device=spec.device, document=document)


def _refuse_shared_records(
    prepared: Sequence[PreparedSlice],
    assignments: Mapping[str, Assignment],
    spec: CalibrationSpec,
    document: str,
) -> None:
    """Refuse records of two slices, on two sides of two splits, or that terms do not give back."""
    seen: set[str] = set()
    for item in prepared:
        ids = set(item.rows.records.ids())
        assignment = assignments[item.split]
        again = trained_by(assignment, spec.operation, item.rows.all_terms())
        if set(again.ids()) != ids or ids & seen:
            raise InvalidInputError(
                f"the terms of slice {item.request.name} hold for records of another one",
                code="ambiguous-slice",
                document=document,
                pointer="/parts",
                remedy="slice by what tells them apart",
            )
        seen |= ids
    for assignment in assignments.values():
        shared = seen.intersection(held_out_of(assignment, spec.operation).ids())
        if shared:
            raise InvalidInputError(
                f"record {min(shared)} trains by one split and judges by another",
                code="leak",
                document=document,
                pointer="/parts",
                remedy="let the splits select different records",
            )


def _slice_progress(
    progress: Progress | None, place: int, prepared: Sequence[PreparedSlice]
) -> Callable[[float], object] | None:
    if progress is None:
        return None
    name = prepared[place].request.name

    def advance(share: float) -> None:
        done = round(_STEPS * (place + min(share, 1.0)))
        progress(done, _STEPS * len(prepared) + 1, name)

    return advance

"""Calibrations, their specs and validations: honest inputs, and references that resolve.

What needs the records themselves, such as a held-out error worked out again, is no matter of one
document's text and is judged elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from perfdb_git.calibration.forbidden import (
    ForbiddenInput,
    forbidden_in_spec,
    forbidden_inputs,
)
from perfdb_git.checks.checked_snapshot import CheckedDocument, CheckedSnapshot
from perfdb_git.checks.rules import Check, Rule
from perfdb_git.checks.split_checks import (
    BAD_BUCKET_RANGE,
    SPLIT_BY_REPEAT,
    UNKNOWN_RECORD_SET,
    device_findings,
    missing_sets,
    recipe_findings,
    term_findings,
)
from perfdb_git.checks.terms import (
    UNKNOWN_DIMENSION,
    UNKNOWN_OPERATION,
    UNKNOWN_TERM,
    hint,
    pointer,
)
from perfdb_git.errors import InvalidInputError
from perfdb_git.formats.arrays import decode_parameters
from perfdb_git.model.calibration import Calibration, CalibrationSpec, FittedModel
from perfdb_git.model.findings import Finding
from perfdb_git.model.held_out import HeldOutReport
from perfdb_git.model.validation import Validation
from perfdb_git.model.values import Scalar
from perfdb_git.model.vocabulary import Vocabulary
from perfdb_git.storage import layout

UNKNOWN_ROW = Rule(
    code="unknown-row",
    documentation="Records that a validation compares are rows of their record sets.",
    remedy="rows count from 0",
)
FORBIDDEN_INPUT = Rule(
    code="forbidden-input",
    documentation="Calibrations read causal dimensions of the vocabulary and nothing else.",
    remedy="fit again from dimensions that make the work take longer",
)
UNKNOWN_SPLIT = Rule(
    code="unknown-split",
    documentation="The split of every calibration exists.",
    remedy="add the split file that the calibration was fitted with",
)
BAD_ARRAY = Rule(
    code="bad-array",
    documentation="Stored arrays have the bytes that their shape and type call for.",
    remedy="write the document with perfdb instead of by hand",
)
BAD_DOMAIN = Rule(
    code="bad-domain",
    documentation="Every slice states an ordered range for every declared input.",
    remedy="write the calibration with perfdb instead of by hand",
)
REPORT_COUNTS = Rule(
    code="report-counts",
    documentation="The parts of a held-out report add up to its held-out records.",
    remedy="write the report with perfdb instead of by hand",
)


def judge_calibration(snapshot: CheckedSnapshot, document: CheckedDocument) -> Iterator[Finding]:
    """Yield what is wrong with one calibration revision, its references apart."""
    if document.kind != "calibration":
        return
    calibration = document.as_model(Calibration)
    if calibration is None:
        return
    yield from _report(document, calibration.held_out_report)
    for number, item in enumerate(calibration.slices):
        where = f"/slices/{number}"
        for name in calibration.inputs:
            limits = item.domain.get(name)
            if limits is None or limits.minimum > limits.maximum:
                yield BAD_DOMAIN.broken(
                    document.path, f"input {name} has no ordered range", pointer=f"{where}/domain"
                )
        for key, model in (("inside", item.inside), ("beyond", item.beyond)):
            if model is not None:
                yield from _arrays(document, model, f"{where}/{key}")
    vocabulary = snapshot.vocabulary
    if vocabulary is None:
        return
    yield from _forbidden(document, forbidden_inputs(calibration, vocabulary))
    yield from _series(document, calibration.operation, calibration.device, vocabulary)
    yield from _terms(document, calibration.terms, "/terms", vocabulary)
    for number, item in enumerate(calibration.slices):
        yield from _terms(document, item.terms, f"/slices/{number}/terms", vocabulary)


def judge_spec(snapshot: CheckedSnapshot, document: CheckedDocument) -> Iterator[Finding]:
    """Yield what is wrong with one calibration spec."""
    vocabulary = snapshot.vocabulary
    spec = document.as_model(CalibrationSpec) if document.kind == "calibration-spec" else None
    if spec is None:
        return
    for number, part in enumerate(spec.parts):
        yield from recipe_findings(document, part.split, f"/parts/{number}/split", vocabulary)
    if vocabulary is not None:
        yield from _forbidden(document, forbidden_in_spec(spec, vocabulary))
        for number, part in enumerate(spec.parts):
            for name, values in part.terms.items():
                # An unknown name is a forbidden input already.
                for place, value in enumerate(values if name in vocabulary.dimensions else ()):
                    where = f"/parts/{number}/terms{pointer(name, place)}"
                    yield from term_findings(document, name, value, where, vocabulary)
        yield from _series(document, spec.operation, spec.device, vocabulary)


def judge_validation(snapshot: CheckedSnapshot, document: CheckedDocument) -> Iterator[Finding]:
    """Yield what is wrong with one validation, its references apart."""
    validation = document.as_model(Validation) if document.kind == "validation" else None
    if validation is None:
        return
    yield from _report(document, validation.held_out_report)
    if snapshot.vocabulary is not None:
        operation, device = validation.operation, validation.target.device
        where = "/target/device"
        yield from _series(document, operation, device, snapshot.vocabulary, where)


def _series(
    document: CheckedDocument,
    operation: str,
    device: str,
    vocabulary: Vocabulary,
    where: str = "/device",
) -> Iterator[Finding]:
    if operation not in vocabulary.operations:
        yield UNKNOWN_OPERATION.broken(
            document.path,
            f"unknown operation {operation!r}{hint(operation, vocabulary.operations)}",
            pointer="/operation",
        )
    yield from device_findings(document, device, where, vocabulary)


def _terms(
    document: CheckedDocument,
    terms: Mapping[str, Scalar | None],
    where: str,
    vocabulary: Vocabulary,
) -> Iterator[Finding]:
    for name, value in terms.items():
        # An unknown name is a forbidden input already.
        if value is not None and name in vocabulary.dimensions:
            yield from term_findings(document, name, value, f"{where}{pointer(name)}", vocabulary)


def _forbidden(document: CheckedDocument, found: Iterator[ForbiddenInput]) -> Iterator[Finding]:
    for item in found:
        yield FORBIDDEN_INPUT.broken(
            document.path, f"{item.name}: {item.reason}", pointer=item.pointer
        )


def _arrays(document: CheckedDocument, model: FittedModel, where: str) -> Iterator[Finding]:
    groups = [(f"{where}/parameters", model.parameters)]
    if model.interval is not None:
        groups.append((f"{where}/interval/parameters", model.interval.parameters))
    for there, parameters in groups:
        try:
            decode_parameters(parameters, document=document.path, pointer=there)
        except InvalidInputError as error:
            yield BAD_ARRAY.broken(document.path, error.reason, pointer=error.pointer)


def _report(document: CheckedDocument, report: HeldOutReport) -> Iterator[Finding]:
    answered = report.held_out - report.refused
    parts = [report.interpolated, report.extrapolated]
    stated = 0 if report.overall is None else report.overall.n
    apart = sum(part.n for part in parts if part is not None)
    if stated != answered or (any(parts) and apart != answered):
        yield REPORT_COUNTS.broken(
            document.path,
            f"{answered} of {report.held_out} held-out records are answered, the errors are "
            f"those of {stated}, in parts of {apart}",
            pointer="/held_out_report",
        )


def judge_references(snapshot: CheckedSnapshot) -> Iterator[Finding]:
    """Yield references of calibrations and validations that lead nowhere."""
    yield from _split_references(snapshot)
    if not snapshot.is_walked(layout.RECORDS):
        return
    rows = {facts.sha256: facts.row_count for facts in snapshot.record_sets}
    for document in snapshot.documents("calibration"):
        calibration = document.as_model(Calibration)
        for number, item in enumerate(() if calibration is None else calibration.slices):
            where = f"/slices/{number}/training/record_sets"
            yield from missing_sets(document, item.training.record_sets, where, rows)
    for document in snapshot.documents("validation"):
        validation = document.as_model(Validation)
        for number, pair in enumerate(() if validation is None else validation.pairs):
            for key, name in (("simulated", pair.simulated), ("measured", pair.measured)):
                yield from _missing_row(document, name, f"/pairs/{number}/{key}", rows)


def _split_references(snapshot: CheckedSnapshot) -> Iterator[Finding]:
    if not snapshot.is_walked(layout.SPLITS):
        return
    known = {d.sha256 for d in snapshot.documents("split") if d.content is not None}
    for document in snapshot.documents("calibration"):
        calibration = document.as_model(Calibration)
        for number, item in enumerate(() if calibration is None else calibration.slices):
            if item.split not in known:
                yield UNKNOWN_SPLIT.broken(
                    document.path,
                    f"there is no split {item.split}",
                    pointer=f"/slices/{number}/split",
                )


def _missing_row(
    document: CheckedDocument, name: str, where: str, rows: Mapping[str, int | None]
) -> Iterator[Finding]:
    sha256, _, row = name.partition("#")
    if sha256 not in rows:
        yield UNKNOWN_RECORD_SET.broken(
            document.path, f"there is no record set {sha256}", pointer=where
        )
        return
    count = rows[sha256]
    # A longer number is no row of any file, and reading it could take long.
    if count is not None and (len(row) > len(str(count)) or int(row) >= count):
        yield UNKNOWN_ROW.broken(
            document.path, f"the record set has {count} rows, there is no #{row}", pointer=where
        )


CALIBRATIONS = Check(
    id="calibrations",
    documentation="Calibrations and validations are honest about what they rest on.",
    rules=(
        FORBIDDEN_INPUT,
        UNKNOWN_SPLIT,
        UNKNOWN_RECORD_SET,
        UNKNOWN_ROW,
        BAD_ARRAY,
        BAD_DOMAIN,
        REPORT_COUNTS,
        SPLIT_BY_REPEAT,
        BAD_BUCKET_RANGE,
        UNKNOWN_DIMENSION,
        UNKNOWN_OPERATION,
        UNKNOWN_TERM,
    ),
    judge_document=lambda snapshot, document: (
        *judge_calibration(snapshot, document),
        *judge_spec(snapshot, document),
        *judge_validation(snapshot, document),
    ),
    judge_snapshot=judge_references,
)

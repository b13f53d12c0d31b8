"""Splits: sides that keep together what belongs together, and evidence that is pinned."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from perfdb_git.calibration.splits import recipe_faults
from perfdb_git.checks.checked_snapshot import CheckedDocument, CheckedSnapshot
from perfdb_git.checks.rules import Check, Rule
from perfdb_git.checks.terms import (
    UNKNOWN_DIMENSION,
    UNKNOWN_OPERATION,
    UNKNOWN_TERM,
    hint,
    pointer,
    term_fault,
)
from perfdb_git.model.findings import Finding
from perfdb_git.model.records import Retraction
from perfdb_git.model.splits import RecordSelection, Split, SplitRecipe
from perfdb_git.model.values import Scalar
from perfdb_git.model.vocabulary import Vocabulary
from perfdb_git.storage import layout

SPLIT_BY_REPEAT = Rule(
    code="split-by-repeat",
    documentation="Splits go by work size, shape or session, never by repeat.",
    remedy="name dimensions or upstream keys of the work in the key and in what is hashed",
)
BAD_BUCKET_RANGE = Rule(
    code="bad-bucket-range",
    documentation="Training and held-out buckets are parts of all buckets that do not overlap.",
    remedy="write at_least below below, both within 0 and the modulus, or 1 without one",
)
SPLIT_COUNTS = Rule(
    code="split-counts",
    documentation="The two sides of a split and what it leaves out are all of its records.",
    remedy="write the split with perfdb instead of by hand",
)
UNKNOWN_RECORD_SET = Rule(
    code="unknown-record-set",
    documentation="Record sets that a split, calibration or validation rests on exist.",
    remedy="restore the file: evidence that something rests on is retracted, never removed",
)
RETRACTED_TRAINING = Rule(
    code="retracted-training",
    severity="warning",
    documentation="Splits and calibrations do not rest on records that were retracted later.",
    remedy="split and fit again without the retracted records, and promote the new revision",
)


def judge_split(snapshot: CheckedSnapshot, document: CheckedDocument) -> Iterator[Finding]:
    """Yield what is wrong with one split, its references apart."""
    if document.kind != "split":
        return
    split = document.as_model(Split)
    if split is None:
        return
    yield from recipe_findings(document, split.recipe, "/recipe", snapshot.vocabulary)
    counts = split.membership
    total = counts.train_records + counts.held_out_records + counts.unused_records
    if total != counts.records:
        yield SPLIT_COUNTS.broken(
            document.path, f"{total} of {counts.records} records are placed", pointer="/membership"
        )


def judge_split_references(snapshot: CheckedSnapshot) -> Iterator[Finding]:
    """Yield splits of record sets that do not exist, or of records that were retracted since."""
    if not snapshot.is_walked(layout.RECORDS):
        return
    rows = {facts.sha256: facts.row_count for facts in snapshot.record_sets}
    retracted = _retracted(snapshot)
    for document in snapshot.documents("split"):
        split = document.as_model(Split)
        if split is None:
            continue
        stated = split.membership
        yield from missing_sets(document, stated.record_sets, "/membership/record_sets", rows)
        pinned = set(stated.record_sets)
        for target in sorted(retracted - set(stated.retracted)):
            if target.partition("#")[0] in pinned:
                yield RETRACTED_TRAINING.broken(
                    document.path, f"{target} was retracted since", pointer="/membership"
                )


def recipe_findings(
    document: CheckedDocument, recipe: SplitRecipe, where: str, vocabulary: Vocabulary | None
) -> Iterator[Finding]:
    """Yield what is wrong with a recipe, wherever it stands in its document."""
    rules = {rule.code: rule for rule in (SPLIT_BY_REPEAT, BAD_BUCKET_RANGE)}
    for fault in recipe_faults(recipe):
        yield rules[fault.code].broken(
            document.path, fault.message, pointer=f"{where}{fault.pointer}"
        )
    if vocabulary is None:
        return
    yield from _selection(document, recipe.records, f"{where}/records", vocabulary)
    if recipe.cut is not None and recipe.cut.dimension not in vocabulary.dimensions:
        yield _unknown_dimension(
            document, recipe.cut.dimension, f"{where}/cut/dimension", vocabulary
        )


def _selection(
    document: CheckedDocument, selection: RecordSelection, where: str, vocabulary: Vocabulary
) -> Iterator[Finding]:
    for number, operation in enumerate(selection.operations):
        if operation not in vocabulary.operations:
            yield UNKNOWN_OPERATION.broken(
                document.path,
                f"unknown operation {operation!r}{hint(operation, vocabulary.operations)}",
                pointer=f"{where}/operations/{number}",
            )
    yield from device_findings(document, selection.device, f"{where}/device", vocabulary)
    for name, values in selection.terms.items():
        for number, value in enumerate(values):
            there = f"{where}/terms{pointer(name, number)}"
            yield from term_findings(document, name, value, there, vocabulary)


def device_findings(
    document: CheckedDocument, device: str, where: str, vocabulary: Vocabulary
) -> Iterator[Finding]:
    """Yield that a device is no canonical term."""
    if "device" in vocabulary.dimensions:
        yield from term_findings(document, "device", device, where, vocabulary)


def term_findings(
    document: CheckedDocument, name: str, value: Scalar, where: str, vocabulary: Vocabulary
) -> Iterator[Finding]:
    """Yield that a dimension is unknown, or its value no canonical term."""
    if name not in vocabulary.dimensions:
        yield _unknown_dimension(document, name, where, vocabulary)
        return
    fault = term_fault(vocabulary.dimensions[name], value)
    if fault is not None:
        yield UNKNOWN_TERM.broken(document.path, f"{name}: {fault}", pointer=where)


def _unknown_dimension(
    document: CheckedDocument, name: str, where: str, vocabulary: Vocabulary
) -> Finding:
    return UNKNOWN_DIMENSION.broken(
        document.path,
        f"unknown dimension {name!r}{hint(name, vocabulary.dimensions)}",
        pointer=where,
    )


def _retracted(snapshot: CheckedSnapshot) -> set[str]:
    found = (document.as_model(Retraction) for document in snapshot.documents("retraction"))
    return {retraction.target for retraction in found if retraction is not None}


def missing_sets(
    document: CheckedDocument,
    record_sets: Sequence[str],
    where: str,
    rows: Mapping[str, int | None],
) -> Iterator[Finding]:
    """Yield the record sets that do not exist; ``rows`` holds those that do."""
    for number, sha256 in enumerate(record_sets):
        if sha256 not in rows:
            yield UNKNOWN_RECORD_SET.broken(
                document.path, f"there is no record set {sha256}", pointer=f"{where}/{number}"
            )


SPLITS = Check(
    id="splits",
    documentation="Splits keep what belongs together on one side, and pin their evidence.",
    rules=(
        SPLIT_BY_REPEAT,
        BAD_BUCKET_RANGE,
        SPLIT_COUNTS,
        UNKNOWN_RECORD_SET,
        RETRACTED_TRAINING,
        UNKNOWN_DIMENSION,
        UNKNOWN_OPERATION,
        UNKNOWN_TERM,
    ),
    judge_document=judge_split,
    judge_snapshot=judge_split_references,
)

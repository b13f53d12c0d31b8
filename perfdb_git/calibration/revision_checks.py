"""Stored calibration revisions against the evidence: every figure is worked out again."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from typing import TypeAlias

from perfdb_git.calibration.judging import held_out_of, judge
from perfdb_git.calibration.passed_revisions import PassedRevisions
from perfdb_git.calibration.slices import trained_by, training_records
from perfdb_git.calibration.splits import Assignment, find_leaks, replay_split
from perfdb_git.errors import InvalidInputError, NoEvidenceError, UsageError
from perfdb_git.model.calibration import Calibration
from perfdb_git.model.findings import Finding
from perfdb_git.model.held_out import ErrorStatistics, HeldOutReport
from perfdb_git.storage.calibration_documents import CalibrationDocuments
from perfdb_git.storage.documents import StoredDocument
from perfdb_git.storage.snapshot import EvidenceSnapshot

Progress: TypeAlias = Callable[[int, int, str], object]

TOLERANCE = 1e-9
"""Largest relative difference of a figure that is worked out again."""


def check_revisions(
    snapshot: EvidenceSnapshot, *, progress: Progress | None = None, remember: bool = False
) -> tuple[Finding, ...]:
    """Work out the held-out report and the training digests of every revision again.

    Parameters
    ----------
    snapshot : EvidenceSnapshot
        Where revisions, splits and records stand.
    progress : callable or None
        Called with revisions done, all of them, and the path.
    remember : bool
        Whether to skip revisions that passed before with the same inputs and the same code, and
        to remember those that pass; see `PassedRevisions`.

    Returns
    -------
    tuple of Finding
        'split-not-reproduced', 'leak', 'training-digest', 'held-out-error', or the code of what
        keeps a revision from being evaluated.
    """
    documents = CalibrationDocuments(snapshot)
    assignments: dict[str, Assignment] = {}
    passed = PassedRevisions(snapshot, documents) if remember else None
    found: list[Finding] = []
    total = len(documents.calibration_paths)
    for done, sha256 in enumerate(documents.calibration_paths):
        path = documents.calibration_paths[sha256]
        try:
            stored = documents.calibration(sha256)
            if passed is None or not passed.holds(stored):
                faults = list(_revision_findings(snapshot, documents, stored, assignments))
                if passed is not None and not faults:
                    passed.remember(stored)
                found += faults
        except (InvalidInputError, NoEvidenceError, UsageError) as error:
            document = error.document if isinstance(error, InvalidInputError) else path
            pointer = error.pointer if isinstance(error, InvalidInputError) else None
            found.append(figure_finding(error.code, document, error.message, pointer, error.remedy))
        if progress is not None:
            progress(done + 1, total, path)
    return tuple(found)


def assignments_of(snapshot: EvidenceSnapshot, calibration: Calibration) -> dict[str, Assignment]:
    """Return the splits of a revision, worked out again, by SHA-256.

    Raises
    ------
    InvalidInputError
        'unknown-split', 'split-not-reproduced'.
    NoEvidenceError
        'missing-record-set'.
    """
    documents = CalibrationDocuments(snapshot)
    found: dict[str, Assignment] = {}
    _replay(snapshot, documents, calibration, found)
    return found


def _replay(
    snapshot: EvidenceSnapshot,
    documents: CalibrationDocuments,
    calibration: Calibration,
    assignments: dict[str, Assignment],
) -> None:
    for item in calibration.slices:
        if item.split not in assignments:
            split = documents.split(item.split)
            assignments[item.split] = replay_split(snapshot, split.value, document=split.path)


def _revision_findings(
    snapshot: EvidenceSnapshot,
    documents: CalibrationDocuments,
    stored: StoredDocument[Calibration],
    assignments: dict[str, Assignment],
) -> Iterator[Finding]:
    calibration, path = stored.value, stored.path
    _replay(snapshot, documents, calibration, assignments)
    yield from _leak_findings(snapshot, calibration, path, assignments)
    yield from _training_findings(calibration, path, assignments)
    judged = judge(calibration, assignments, snapshot.vocabulary(), document=path)
    again = judged.report(calibration.response)
    for pointer, text in report_differences(calibration.held_out_report, again):
        yield figure_finding(
            "held-out-error",
            path,
            f"stated is {text}",
            f"/held_out_report{pointer}",
            "fit it again with 'perfdb calibrate fit'; a revision is never edited",
        )


def _leak_findings(
    snapshot: EvidenceSnapshot,
    calibration: Calibration,
    path: str,
    assignments: Mapping[str, Assignment],
) -> Iterator[Finding]:
    remedy = "fit again with a split that keeps all records of a point on one side"
    splits = dict.fromkeys(item.split for item in calibration.slices)
    for split in splits:
        for leak in find_leaks(assignments[split], snapshot.vocabulary())[:1]:
            text = f"{leak.point} trains as {leak.train} and judges as {leak.held_out}"
            yield figure_finding("leak", path, text, "/slices", remedy)
    trained: set[str] = set()
    for item in calibration.slices:
        terms = [{**calibration.terms, **item.terms}]
        trained.update(trained_by(assignments[item.split], calibration.operation, terms).ids())
    for split in splits:
        shared = trained.intersection(held_out_of(assignments[split], calibration.operation).ids())
        if shared:
            yield figure_finding(
                "leak", path, f"record {min(shared)} trains and judges", "/slices", remedy
            )


def _training_findings(
    calibration: Calibration, path: str, assignments: Mapping[str, Assignment]
) -> Iterator[Finding]:
    """Compare training records; slices that state one digest share them."""
    for number, item in enumerate(calibration.slices):
        sharing = [
            {**calibration.terms, **other.terms}
            for other in calibration.slices
            if (other.split, other.training.digest) == (item.split, item.training.digest)
        ]
        records = trained_by(assignments[item.split], calibration.operation, sharing)
        again = training_records(records)
        if again != item.training:
            yield figure_finding(
                "training-digest",
                path,
                f"the split trains {again.records} records with digest {again.digest}, stated are "
                f"{item.training.records} with {item.training.digest}",
                f"/slices/{number}/training",
                "fit it again; the records behind a revision do not change",
            )


def report_differences(stated: HeldOutReport, again: HeldOutReport) -> Iterator[tuple[str, str]]:
    """Yield the JSON pointer and both values of every figure that is not reproduced."""
    for name in ("response", "held_out", "refused", "records_digest", "level"):
        one, other = getattr(stated, name), getattr(again, name)
        if one != other:
            yield f"/{name}", f"{one}, worked out is {other}"
    for name in ("overall", "interpolated", "extrapolated"):
        yield from _statistics(f"/{name}", getattr(stated, name), getattr(again, name))
    ours = {(group.by, group.value): group.errors for group in again.groups}
    for number, group in enumerate(stated.groups):
        other = ours.pop((group.by, group.value), None)
        yield from _statistics(f"/groups/{number}", group.errors, other)
    for by, value in ours:
        yield "/groups", f"no group {by} {value}, worked out is one"


def _statistics(
    pointer: str, stated: ErrorStatistics | None, again: ErrorStatistics | None
) -> Iterator[tuple[str, str]]:
    if stated is None or again is None:
        if stated is not again:
            yield pointer, f"{stated}, worked out is {again}"
        return
    for item in fields(ErrorStatistics):
        one, other = getattr(stated, item.name), getattr(again, item.name)
        if not _reproduced(one, other):
            yield f"{pointer}/{item.name}", f"{one}, worked out is {other}"


def _reproduced(stated: float | None, again: float | None) -> bool:
    if stated is None or again is None:
        return stated is again
    # A bias of exactly nothing may come out as the rounding of its terms, in percent.
    return math.isclose(stated, again, rel_tol=TOLERANCE, abs_tol=TOLERANCE)


def figure_finding(
    code: str, document: str, message: str, pointer: str | None, remedy: str | None
) -> Finding:
    """Return a figure's fault as a finding; each of them is an error."""
    return Finding(
        code=code,
        severity="error",
        document=document,
        message=message,
        pointer=pointer,
        remedy=remedy,
    )

"""A calibration revision for a reader: its held-out errors, and the rows that it misses most."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from perfdb_git.calibration.judging import judge
from perfdb_git.calibration.revision_checks import assignments_of
from perfdb_git.errors import InvalidInputError, UsageError
from perfdb_git.model.calibration import Calibration
from perfdb_git.model.held_out import HeldOutReport
from perfdb_git.model.values import Scalar
from perfdb_git.storage import layout
from perfdb_git.storage.calibration_documents import CalibrationDocuments
from perfdb_git.storage.documents import StoredDocument
from perfdb_git.storage.snapshot import EvidenceSnapshot

WORST = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class MissedRow:
    """A held-out record that was predicted badly; times in the response's SI unit."""

    record: str
    measured: float
    predicted: float
    lower: float
    upper: float
    error_pct: float
    extrapolated: bool
    size: float
    labels: dict[str, Scalar | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class RevisionReport:
    """What a reader wants to know of one revision."""

    sha256: str
    path: str
    spec: str | None
    family: str
    response: str
    operation: str
    device: str
    forms: dict[str, int]
    held_out_report: HeldOutReport
    worst: tuple[MissedRow, ...]


def find_revision(snapshot: EvidenceSnapshot, prefix: str) -> StoredDocument[Calibration]:
    """Return the one revision whose SHA-256 begins so.

    Raises
    ------
    InvalidInputError
        'unknown-calibration'.
    UsageError
        'ambiguous-calibration'.
    """
    documents = CalibrationDocuments(snapshot)
    found = [sha256 for sha256 in documents.calibration_paths if sha256.startswith(prefix)]
    if not found or not prefix:
        raise InvalidInputError(
            f"the snapshot has no calibration {prefix!r}",
            code="unknown-calibration",
            document=layout.CALIBRATIONS,
            remedy="the file names there are the revisions; a beginning will do",
        )
    if len(found) > 1:
        raise UsageError(
            f"{len(found)} calibrations begin with {prefix!r}",
            code="ambiguous-calibration",
            remedy="give more digits",
        )
    return documents.calibration(found[0])


def report_revision(
    snapshot: EvidenceSnapshot, prefix: str, *, worst: int = WORST
) -> RevisionReport:
    """Return the stored report of a revision, with the rows that it misses most.

    Parameters
    ----------
    snapshot : EvidenceSnapshot
        Where the revision and its records stand.
    prefix : str
        Beginning of its SHA-256.
    worst : int
        How many rows.

    Raises
    ------
    InvalidInputError, NoEvidenceError, UsageError
        As `find_revision`, and where splits or records are not there.
    """
    stored = find_revision(snapshot, prefix)
    calibration = stored.value
    forms: dict[str, int] = {}
    for item in calibration.slices:
        forms[item.inside.form] = forms.get(item.inside.form, 0) + 1
    return RevisionReport(
        sha256=stored.sha256,
        path=stored.path,
        spec=None if calibration.spec is None else calibration.spec.name,
        family=calibration.family,
        response=calibration.response,
        operation=calibration.operation,
        device=calibration.device,
        forms=dict(sorted(forms.items())),
        held_out_report=calibration.held_out_report,
        worst=_worst(snapshot, stored, worst),
    )


def _worst(
    snapshot: EvidenceSnapshot, stored: StoredDocument[Calibration], count: int
) -> tuple[MissedRow, ...]:
    calibration = stored.value
    assignments = assignments_of(snapshot, calibration)
    judged = judge(calibration, assignments, snapshot.vocabulary(), document=stored.path)
    rows = judged.predictions
    assert rows.lower is not None
    assert rows.upper is not None
    assert rows.extrapolated is not None
    error = 100 * (rows.predicted / rows.measured - 1)
    sizes = np.where(np.isnan(error), -1.0, np.abs(error))
    order = np.argsort(-sizes, kind="stable")[: min(count, int(rows.answered.sum()))]
    return tuple(
        MissedRow(
            record=rows.ids[place],
            measured=float(rows.measured[place]),
            predicted=float(rows.predicted[place]),
            lower=float(rows.lower[place]),
            upper=float(rows.upper[place]),
            error_pct=float(error[place]),
            extrapolated=bool(rows.extrapolated[place]),
            size=float(judged.size[place]),
            labels={name: _label(values[place]) for name, values in judged.groupings.items()},
        )
        for place in order.tolist()
    )


def _label(value: object) -> Scalar | None:
    return value if value is None or isinstance(value, str | int | float) else str(value)

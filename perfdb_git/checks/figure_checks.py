"""Figures of calibrations and validations, worked out again from the records."""

from __future__ import annotations

from collections.abc import Iterator

from perfdb_git.calibration.revision_checks import Progress, check_revisions
from perfdb_git.calibration.validation_checks import check_validations
from perfdb_git.checks.change import Change, ChangedFile
from perfdb_git.checks.checked_snapshot import CheckedSnapshot
from perfdb_git.checks.rules import Check, Rule
from perfdb_git.model.findings import Finding
from perfdb_git.storage import layout
from perfdb_git.storage.index import IndexRebuiltError
from perfdb_git.storage.snapshot import EvidenceSnapshot

HELD_OUT_ERROR = Rule(
    code="held-out-error",
    documentation="Stored parameters and the records give the errors that a document states.",
    remedy="fit or validate it again; what is stored is never edited",
)
LEAK = Rule(
    code="leak",
    documentation="No record, and no repeat of one, both trains and judges.",
    remedy="fit again with a split that keeps all records of a point on one side",
)
SPLIT_NOT_REPRODUCED = Rule(
    code="split-not-reproduced",
    documentation="A split's rule holds out the keys that the split states.",
    remedy="write the split with perfdb instead of by hand",
)
TRAINING_DIGEST = Rule(
    code="training-digest",
    documentation="A revision states the records that its splits train.",
    remedy="fit it again; the records behind a revision do not change",
)
VALIDATION_PAIR = Rule(
    code="validation-pair",
    documentation="A validation pairs records of its simulator with measurements of their points.",
    remedy="validate it again with 'perfdb validate'; a validation is never edited",
)
NOT_WORKED_OUT = Rule(
    code="figure-not-worked-out",
    documentation="Every calibration and validation can be worked out from the snapshot.",
    remedy="repair the document that is named",
)

_FOLDERS = tuple(
    f"{folder}/"
    for folder in (
        layout.RETRACTIONS,
        layout.SPLITS,
        layout.CALIBRATIONS,
        layout.VALIDATIONS,
    )
)
_RULES = (HELD_OUT_ERROR, LEAK, SPLIT_NOT_REPRODUCED, TRAINING_DIGEST, VALIDATION_PAIR)


def figure_findings(
    evidence: EvidenceSnapshot, *, remember: bool, progress: Progress | None = None
) -> Iterator[Finding]:
    """Yield every figure of the snapshot that its records and parameters do not give.

    Parameters
    ----------
    evidence : EvidenceSnapshot
        The snapshot.
    remember : bool
        Whether what passed before with the same inputs and code is skipped.
    progress : callable or None
        Called with revisions done, all of them, and the path.

    Raises
    ------
    RepositoryUnavailableError
        If an object of the snapshot cannot be read here.
    """
    rules = {rule.code: rule for rule in _RULES}
    known: set[tuple[str, str, str | None]] = set()
    for fault in _faults(evidence, remember, progress):
        # One broken record set keeps many revisions from being worked out: it is named once.
        place = (fault.code, fault.document, fault.pointer)
        if fault.code in rules:
            yield rules[fault.code].broken(
                fault.document, fault.message, pointer=fault.pointer, remedy=fault.remedy
            )
        elif place not in known:
            known.add(place)
            yield NOT_WORKED_OUT.broken(
                fault.document, fault.message, pointer=fault.pointer, remedy=fault.remedy
            )


def _faults(
    evidence: EvidenceSnapshot, remember: bool, progress: Progress | None
) -> tuple[Finding, ...]:
    try:
        found = check_revisions(evidence, progress=progress, remember=remember)
        return (*found, *check_validations(evidence))
    except IndexRebuiltError:
        # The index was wrong and is gone: the second try reads Git alone.
        found = check_revisions(evidence, progress=progress, remember=remember)
        return (*found, *check_validations(evidence))


def judge_figures(snapshot: CheckedSnapshot) -> Iterator[Finding]:
    """Yield the figures of a snapshot that are not reproduced; none without its index."""
    if snapshot.evidence is not None and snapshot.vocabulary is not None:
        yield from figure_findings(snapshot.evidence, remember=True, progress=snapshot.progress)


def judge_figures_of_change(change: Change) -> Iterator[Finding]:
    """Yield the head's figures that are not reproduced, where the change can have touched any.

    Splits pin the record sets that they deal, so records that only come in touch none.
    """
    if any(_touches_figures(file) for file in change.files):
        yield from judge_figures(change.head)


def _touches_figures(file: ChangedFile) -> bool:
    if file.path.startswith(f"{layout.RECORDS}/"):
        return file.old is not None
    return file.path == layout.VOCABULARY or file.path.startswith(_FOLDERS)


CALIBRATION_FIGURES = Check(
    id="calibration-figures",
    documentation="Errors that calibrations and validations state are worked out again.",
    rules=(*_RULES, NOT_WORKED_OUT),
    judge_snapshot=judge_figures,
    judge_change=judge_figures_of_change,
)

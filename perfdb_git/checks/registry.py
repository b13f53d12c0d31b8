"""The one table of checks, and how they are run."""

from __future__ import annotations

import gc
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

from perfdb_git.checks.append_only import APPEND_ONLY
from perfdb_git.checks.calibrated_profile_checks import CALIBRATED_PROFILES
from perfdb_git.checks.calibration_checks import CALIBRATIONS
from perfdb_git.checks.change import Change, ReviewBase
from perfdb_git.checks.checked_snapshot import CheckedSnapshot
from perfdb_git.checks.conflicts import CONFLICTS
from perfdb_git.checks.document_checks import (
    CANONICAL_BYTES,
    DIGESTS,
    FOLDERS,
    SCHEMA_COPIES,
    SCHEMAS,
)
from perfdb_git.checks.duplicates import DUPLICATES
from perfdb_git.checks.existing_evidence import ExistingEvidence
from perfdb_git.checks.figure_checks import CALIBRATION_FIGURES, figure_findings
from perfdb_git.checks.finding_lines import with_lines
from perfdb_git.checks.gate_checks import GATES
from perfdb_git.checks.judge_changes import JUDGES
from perfdb_git.checks.layout_checks import LAYOUT
from perfdb_git.checks.merged_branches import MERGE, judge_merged
from perfdb_git.checks.physical_limits import PHYSICAL_LIMITS
from perfdb_git.checks.plan_checks import PLAN_LOCKS, PLANS
from perfdb_git.checks.policy_checks import POLICIES
from perfdb_git.checks.profile_checks import SYSTEM_PROFILES
from perfdb_git.checks.profile_history_checks import PROFILE_HISTORY
from perfdb_git.checks.record_contents import MANIFESTS, RECORD_CONTENTS
from perfdb_git.checks.references import REFERENCES
from perfdb_git.checks.rules import Check, Rule
from perfdb_git.checks.signatures import SIGNATURES
from perfdb_git.checks.source_labels import SOURCES
from perfdb_git.checks.split_checks import SPLITS
from perfdb_git.checks.text_checks import TEXTS
from perfdb_git.checks.timing_checks import PIPELINES, TIMING_PROFILES
from perfdb_git.checks.vocabulary_checks import VOCABULARY_CHECK
from perfdb_git.errors import UsageError
from perfdb_git.formats.schemas import SchemaStore
from perfdb_git.model.findings import Finding
from perfdb_git.storage.profile_history import ProfileHistory
from perfdb_git.storage.snapshot import EvidenceSnapshot
from perfdb_git.storage.sources import ObjectSource

CHECKS: tuple[Check, ...] = (
    LAYOUT,
    SCHEMAS,
    SCHEMA_COPIES,
    CANONICAL_BYTES,
    DIGESTS,
    FOLDERS,
    REFERENCES,
    RECORD_CONTENTS,
    MANIFESTS,
    VOCABULARY_CHECK,
    POLICIES,
    SYSTEM_PROFILES,
    SPLITS,
    CALIBRATIONS,
    CALIBRATION_FIGURES,
    GATES,
    CALIBRATED_PROFILES,
    TIMING_PROFILES,
    PIPELINES,
    PLANS,
    PLAN_LOCKS,
    PROFILE_HISTORY,
    DUPLICATES,
    TEXTS,
    APPEND_ONLY,
    SOURCES,
    CONFLICTS,
    PHYSICAL_LIMITS,
    JUDGES,
    MERGE,
    SIGNATURES,
)

RULES: tuple[Rule, ...] = tuple(
    {rule.code: rule for check in CHECKS for rule in check.rules}.values()
)
"""Every rule of every check, each once."""

Progress: TypeAlias = Callable[[int, int, str], None]
"""Called with the files done, their number, and the path of the last one."""


def run_checks(
    source: ObjectSource,
    *,
    select: Collection[str] = (),
    ignore: Collection[str] = (),
    progress: Progress | None = None,
    schemas: SchemaStore | None = None,
    history: ProfileHistory | None = None,
    evidence: EvidenceSnapshot | None = None,
    base: ReviewBase | None = None,
) -> tuple[Finding, ...]:
    """Check the evidence of a snapshot, or what it changes.

    Parameters
    ----------
    source : ObjectSource
        A commit, or the files of a work tree.
    select : collection of str
        Ids of checks and codes of rules to judge by; empty for all.
    ignore : collection of str
        Ids and codes to leave out.
    progress : callable or None
        See `Progress`.
    schemas : SchemaStore or None
        Judges the documents; None takes the package's own schemas.
    history : ProfileHistory or None
        Earlier profiles, which a changed one must not share name and version with; None leaves
        that unjudged.
    evidence : EvidenceSnapshot or None
        The same snapshot with its index and cache, so that figures of calibrations are worked out
        again; None leaves them unjudged.
    base : ReviewBase or None
        What the snapshot is a change of: documents that the merge base has byte for byte are then
        not judged again one by one, and checks of the change itself run too.

    Returns
    -------
    tuple of Finding
        Sorted by document, row and code.

    Raises
    ------
    UsageError
        'unknown-check'.
    RepositoryUnavailableError
        If an object of the snapshot cannot be read here.
    """
    _require_known((*select, *ignore))
    store = SchemaStore() if schemas is None else schemas
    existing = None if base is None else ExistingEvidence(base.tip)
    head = CheckedSnapshot(
        source,
        schemas=store,
        history=history,
        known=existing,
        evidence=evidence,
        progress=progress,
    )
    change = None
    if base is not None and existing is not None:
        merge_base = CheckedSnapshot(base.merge_base, schemas=store, known=existing, shared=head)
        change = Change(base=merge_base, head=head, existing=existing, signed=base.signed)
    chosen = [check for check in CHECKS if _is_wanted(check, select, ignore)]
    findings: list[Finding] = []
    with _no_garbage_collection():
        for check, finding in _found(head, change, chosen, progress):
            names = (check.id, finding.code)
            if (not select or any(n in select for n in names)) and finding.code not in ignore:
                findings.append(finding)
        return tuple(with_lines(sorted(findings, key=_order), head))


def check_calibrations(
    evidence: EvidenceSnapshot, *, progress: Progress | None = None
) -> tuple[Finding, ...]:
    """Work every figure of a snapshot's calibrations out again, and judge them by its gates.

    Parameters
    ----------
    evidence : EvidenceSnapshot
        The snapshot; what passed before is worked out all the same.
    progress : Progress or None
        Called with revisions done, all of them, and the path.

    Returns
    -------
    tuple of Finding
        Sorted by document, row and code.
    """
    figures = figure_findings(evidence, remember=False, progress=progress)
    others = run_checks(evidence.source, select=[GATES.id, CALIBRATED_PROFILES.id])
    return tuple(sorted((*figures, *others), key=_order))


def _found(
    head: CheckedSnapshot,
    change: Change | None,
    checks: Collection[Check],
    progress: Progress | None,
) -> Iterator[tuple[Check, Finding]]:
    by_document = [check for check in checks if check.judge_document or check.judge_addition]
    files = head.files if change is None else change.judged_files
    for done, file in enumerate(files if by_document else (), start=1):
        document = head.document(file)
        for check in by_document:
            if check.judge_document is not None:
                yield from _named(check, check.judge_document(head, document))
            if change is not None and check.judge_addition and file in change.additions:
                yield from _named(check, check.judge_addition(change, document))
        if progress is not None:
            progress(done, len(files), file.path)
    for check in checks:
        if change is not None and check.judge_change is not None:
            yield from _named(check, check.judge_change(change))
        elif check.judge_snapshot is not None:
            yield from _named(check, check.judge_snapshot(head))
    if change is not None:
        yield from judge_merged(change, checks)


def _named(check: Check, findings: Iterable[Finding]) -> Iterator[tuple[Check, Finding]]:
    return ((check, finding) for finding in findings)


def _is_wanted(check: Check, select: Collection[str], ignore: Collection[str]) -> bool:
    return check.id not in ignore and (not select or not check.names.isdisjoint(select))


def _require_known(names: Collection[str]) -> None:
    known = frozenset[str]().union(*(check.names for check in CHECKS))
    for name in names:
        if name not in known:
            raise UsageError(
                f"there is no check called {name!r}",
                code="unknown-check",
                remedy=f"checks: {', '.join(check.id for check in CHECKS)}",
            )


def _order(finding: Finding) -> tuple[bytes, int, str, str, str]:
    row = -1 if finding.row is None else finding.row
    pointer = finding.pointer or ""
    return (finding.document.encode("utf-8"), row, finding.code, pointer, finding.message)


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Spare the collector the rows: it would walk them many times and find no cycle."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()

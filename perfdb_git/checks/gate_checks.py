"""Gates: the document itself, and what of the snapshot does not pass it."""

from __future__ import annotations

from collections.abc import Iterator

from perfdb_git.checks.checked_snapshot import CheckedDocument, CheckedSnapshot
from perfdb_git.checks.gate_judging import (
    GATE_EXCEEDED,
    GATE_NOT_MET,
    LOOSENED_GATE,
    JudgedRevision,
    JudgedValidation,
    gate_findings,
    loosened,
    validation_gate_findings,
)
from perfdb_git.checks.rules import Check, Rule
from perfdb_git.checks.split_checks import device_findings
from perfdb_git.checks.terms import UNKNOWN_OPERATION, UNKNOWN_TERM, hint, pointer
from perfdb_git.model.calibration import Calibration
from perfdb_git.model.findings import Finding
from perfdb_git.model.gates import ErrorLimits, GateLimits, Gates
from perfdb_git.model.policy import Policy
from perfdb_git.model.validation import Validation
from perfdb_git.model.vocabulary import Vocabulary
from perfdb_git.storage import layout

TWO_GATES = Rule(
    code="two-gates",
    documentation="A response, operation and device has its gates once.",
    remedy="keep one of the two entries",
)
EMPTY_GATE = Rule(
    code="gate-that-nothing-passes",
    documentation="The smallest coverage that a gate asks for is below the largest.",
    remedy="write the smaller one as min_coverage",
)


def promoted_revisions(snapshot: CheckedSnapshot) -> frozenset[str]:
    """Return the SHA-256 of every calibration that a policy of a snapshot names."""
    policies = (document.as_model(Policy) for document in snapshot.documents("policy"))
    return frozenset(
        choice.revision
        for policy in policies
        if policy is not None
        for choice in policy.calibrations
    )


def judged_revisions(snapshot: CheckedSnapshot) -> Iterator[JudgedRevision]:
    """Yield every valid calibration revision of a snapshot."""
    promoted = promoted_revisions(snapshot)
    for document in snapshot.documents("calibration"):
        calibration = document.as_model(Calibration)
        if calibration is not None:
            named = layout.document_name(document.path) in promoted
            yield JudgedRevision(path=document.path, calibration=calibration, promoted=named)


def judged_validations(snapshot: CheckedSnapshot) -> Iterator[JudgedValidation]:
    """Yield every valid validation of a snapshot."""
    for document in snapshot.documents("validation"):
        validation = document.as_model(Validation)
        if validation is not None:
            yield JudgedValidation(path=document.path, validation=validation)


def judge_gates(snapshot: CheckedSnapshot) -> Iterator[Finding]:
    """Yield what is wrong with the gates, and what is in use without passing them.

    A revision that no policy names is remarked on where it comes in, and not at every check.
    """
    gates = snapshot.gates
    if gates is None:
        return
    yield from _document_findings(snapshot, gates)
    in_use = (item for item in judged_revisions(snapshot) if item.promoted)
    yield from gate_findings(gates, in_use)
    yield from validation_gate_findings(gates, judged_validations(snapshot))


def judge_gates_of_change(base: CheckedSnapshot, head: CheckedSnapshot) -> Iterator[Finding]:
    """Yield what a proposed change adds or promotes without passing the gates.

    Parameters
    ----------
    base : CheckedSnapshot
        The merge base: its gates judge. Where it has none, those that the change brings do.
    head : CheckedSnapshot
        What is proposed.
    """
    if head.gates is not None:
        yield from _document_findings(head, head.gates)
    yield from loosened(base.gates, head.gates)
    gates = base.gates or head.gates
    if gates is None:
        return
    revisions, validations = set[tuple[str, bool]](), set[str]()
    if base.gates is not None:
        # What the merge base has and names was judged by the same gates when it came in.
        revisions = {(item.path, item.promoted) for item in judged_revisions(base)}
        validations = {item.path for item in judged_validations(base)}
    yield from gate_findings(
        gates,
        (item for item in judged_revisions(head) if (item.path, item.promoted) not in revisions),
    )
    yield from validation_gate_findings(
        gates, (item for item in judged_validations(head) if item.path not in validations)
    )


def _document_findings(snapshot: CheckedSnapshot, gates: Gates) -> Iterator[Finding]:
    (document,) = snapshot.documents("gates")
    yield from _empty_gates(document, gates.defaults, pointer("defaults"))
    first: dict[tuple[str, str, str], int] = {}
    for number, item in enumerate(gates.series):
        key = (item.response, item.operation, item.device)
        if key in first:
            yield TWO_GATES.broken(
                document.path,
                f"entry {first[key]} is for {', '.join(key)} too",
                pointer=pointer("series", number),
            )
        first.setdefault(key, number)
        limits = gates.limits_for(*key)
        yield from _empty_gates(document, limits, pointer("series", number, "limits"))
    if snapshot.vocabulary is not None:
        yield from _names(document, gates, snapshot.vocabulary)


def _empty_gates(document: CheckedDocument, limits: GateLimits, where: str) -> Iterator[Finding]:
    parts: dict[str, ErrorLimits] = {"inside": limits.inside, "beyond": limits.beyond}
    for part, errors in parts.items():
        if errors.min_coverage is None or errors.max_coverage is None:
            continue
        if errors.min_coverage > errors.max_coverage:
            yield EMPTY_GATE.broken(
                document.path,
                f"coverage is at least {errors.min_coverage:g} and at most {errors.max_coverage:g}",
                pointer=f"{where}/{part}",
            )


def _names(document: CheckedDocument, gates: Gates, vocabulary: Vocabulary) -> Iterator[Finding]:
    for number, item in enumerate(gates.series):
        if item.operation not in vocabulary.operations:
            yield UNKNOWN_OPERATION.broken(
                document.path,
                f"unknown operation {item.operation!r}"
                f"{hint(item.operation, vocabulary.operations)}",
                pointer=pointer("series", number, "operation"),
            )
        where = pointer("series", number, "device")
        yield from device_findings(document, item.device, where, vocabulary)


GATES = Check(
    id="gates",
    documentation="Calibrations in use reach what the repository asks of them.",
    rules=(
        GATE_EXCEEDED,
        GATE_NOT_MET,
        LOOSENED_GATE,
        TWO_GATES,
        EMPTY_GATE,
        UNKNOWN_OPERATION,
        UNKNOWN_TERM,
    ),
    judge_snapshot=judge_gates,
    judge_change=lambda change: judge_gates_of_change(change.base, change.head),
)

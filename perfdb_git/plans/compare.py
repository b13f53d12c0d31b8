"""A lock against other evidence: which answers would change, by how much, and through what."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from perfdb_git.database import DatabaseSnapshot
from perfdb_git.errors import InvalidInputError
from perfdb_git.model.plan_lock import CompositionResult, LockedAnswer, LockedQuery, PlanLock
from perfdb_git.plans.composing import SECONDS, AnsweredQuery
from perfdb_git.plans.differences import (
    Difference,
    compare_queries,
    compare_results,
    log_ratio,
    rounding_slack_ps,
)
from perfdb_git.plans.lock import locked_query, vocabulary_digest
from perfdb_git.plans.resolving import PlanResolver, Progress
from perfdb_git.plans.tracked import BAD_PLAN_QUERY, BAD_STAGE_QUERY, Question

Reason: TypeAlias = Literal[
    "retraction",
    "new-records",
    "calibration",
    "profile",
    "provider",
    "pipeline",
    "vocabulary",
    "policy",
    "evidence",
]
"""Why an answer changed.

What the answers themselves show comes first: records that were retracted or are new, another
calibration, other profiles, another version of a provider. Only where they show nothing of it, a
changed vocabulary or policy is named, and else ``evidence``.
"""

_PROFILED = ("analytical", "fallback")
_RECORDED = ("measured", "simulated")


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryChange:
    """One query whose outcome another snapshot changes.

    ``locked`` or ``current`` is ``None`` where the pipeline asks it on one side only. ``log_ratio``
    is ln(current / locked), ``None`` where an answer is on one side only.
    """

    name: str
    locked: LockedQuery | None
    current: LockedQuery | None
    log_ratio: float | None
    reasons: tuple[Reason, ...]
    differences: tuple[Difference, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanDifference:
    """What another snapshot would change of a locked plan; nothing was changed.

    ``changes`` are sorted by the size of the change, answers that come or go first. ``result`` are
    the differences of the composed number.
    """

    plan: str
    locked_commit: str
    commit: str | None
    queries: int
    changes: tuple[QueryChange, ...]
    locked_result: CompositionResult
    current_result: CompositionResult
    result: tuple[Difference, ...]
    plan_changed: bool

    @property
    def is_equal(self) -> bool:
        """Whether nothing would change."""
        return not self.changes and not self.result


def compare_lock(
    snapshot: DatabaseSnapshot,
    lock: PlanLock,
    *,
    plan_changed: bool,
    progress: Progress | None = None,
) -> PlanDifference:
    """Resolve a locked plan at another snapshot.

    Parameters
    ----------
    snapshot : DatabaseSnapshot
        The other evidence.
    lock : PlanLock
        The plan and its answers.
    plan_changed : bool
        Whether the snapshot's own plan of that name is another one; passed on.
    progress : callable or None
        See `Progress`.

    Raises
    ------
    InvalidInputError
        Where the snapshot lacks the policy, pipeline or profile that the plan names.
    RepositoryUnavailableError
        Where evidence is not here.
    """
    resolver = PlanResolver(snapshot, lock.plan, document=lock.source.path)
    facts = _SnapshotFacts.of(snapshot, resolver, lock)
    questions = resolver.questions()
    answered: list[AnsweredQuery] = []
    current: dict[str, LockedQuery] = {}
    for done, question in enumerate(questions, start=1):
        outcome = _ask(resolver, question)
        if isinstance(outcome, AnsweredQuery):
            answered.append(outcome)
            current[question.name] = locked_query(outcome)
        else:
            current[question.name] = outcome
        if progress is not None:
            progress(done, len(questions), question.name)
    result = _result(resolver, answered, len(questions))
    return PlanDifference(
        plan=lock.plan.name,
        locked_commit=lock.commit,
        commit=snapshot.commit,
        queries=len(questions),
        changes=_changes(lock, current, facts),
        locked_result=lock.result,
        current_result=result,
        result=compare_results(
            lock.result, result, slack_ps=rounding_slack_ps(lock.queries)
        ).differences,
        plan_changed=plan_changed,
    )


def _ask(resolver: PlanResolver, question: Question) -> AnsweredQuery | LockedQuery:
    """Return the answer, or the outcome of a query that the vocabulary does not let be asked."""
    try:
        return resolver.answer(question.track(resolver.snapshot.vocabulary))
    except InvalidInputError as error:
        if error.code not in (BAD_PLAN_QUERY, BAD_STAGE_QUERY):
            raise
        return LockedQuery(
            name=question.name,
            multiplicity=question.multiplicity,
            query_digest="",
            code=error.code,
            answer=None,
        )


def _result(
    resolver: PlanResolver, answered: Sequence[AnsweredQuery], asked: int
) -> CompositionResult:
    if len(answered) == asked:
        return resolver.compose(answered)
    return CompositionResult(
        kind=resolver.plan.composition.kind,
        value=None,
        unit=SECONDS,
        makespan_ps=None,
        evidence=None,
        uncertainty=None,
        uncertainty_code="incomplete",
        left_out=(),
    )


def _changes(
    lock: PlanLock, current: Mapping[str, LockedQuery], facts: _SnapshotFacts
) -> tuple[QueryChange, ...]:
    locked = {query.name: query for query in lock.queries}
    found = []
    for name in dict.fromkeys((*locked, *current)):
        change = _change(name, locked.get(name), current.get(name), facts)
        if change is not None:
            found.append(change)
    return tuple(sorted(found, key=_order))


def _order(change: QueryChange) -> tuple[float, bytes]:
    size = math.inf if change.log_ratio is None else abs(change.log_ratio)
    return (-size, change.name.encode("utf-8"))


def _change(
    name: str, locked: LockedQuery | None, current: LockedQuery | None, facts: _SnapshotFacts
) -> QueryChange | None:
    differences: tuple[Difference, ...] = ()
    if locked is not None and current is not None:
        differences = compare_queries(locked, current, same_commit=False).differences
        if not differences:
            return None
    old = None if locked is None else locked.answer
    new = None if current is None else current.answer
    gone = locked is None or current is None
    return QueryChange(
        name=name,
        locked=locked,
        current=current,
        # Two outcomes without an answer are no change of size.
        log_ratio=0.0 if old is None and new is None else log_ratio(old, new),
        reasons=("pipeline",) if gone else _reasons(old, new, current, facts),
        differences=differences,
    )


@dataclass(frozen=True, slots=True)
class _SnapshotFacts:
    """What of the snapshot can explain a change."""

    retracted: frozenset[str]
    vocabulary_changed: bool
    policy_changed: bool

    @classmethod
    def of(
        cls, snapshot: DatabaseSnapshot, resolver: PlanResolver, lock: PlanLock
    ) -> _SnapshotFacts:
        targets = (document.value.target for document in snapshot.evidence.retractions())
        return cls(
            retracted=frozenset(targets),
            vocabulary_changed=vocabulary_digest(snapshot) != lock.vocabulary,
            policy_changed=resolver.policy.reference.digest != lock.policy.digest,
        )

    def retracts(self, record: str) -> bool:
        """Tell whether a record, or the whole record set that it stands in, is retracted."""
        return record in self.retracted or record.partition("#")[0] in self.retracted


def _reasons(
    old: LockedAnswer | None,
    new: LockedAnswer | None,
    current: LockedQuery | None,
    facts: _SnapshotFacts,
) -> tuple[Reason, ...]:
    if current is not None and current.code in (BAD_PLAN_QUERY, BAD_STAGE_QUERY):
        return ("vocabulary",)
    shown = tuple(_shown_reasons(old, new, facts))
    if shown:
        return shown
    rules: list[Reason] = []
    if facts.vocabulary_changed:
        rules.append("vocabulary")
    if facts.policy_changed:
        rules.append("policy")
    return tuple(rules) or ("evidence",)


def _shown_reasons(
    old: LockedAnswer | None, new: LockedAnswer | None, facts: _SnapshotFacts
) -> Iterator[Reason]:
    """Yield what the two answers show by themselves."""
    before, after = _recorded_ids(old), _recorded_ids(new)
    if any(facts.retracts(record) for record in before):
        yield "retraction"
    if after - before:
        yield "new-records"
    calibrations = [None if answer is None else answer.calibration for answer in (old, new)]
    if calibrations[0] != calibrations[1] and calibrations[1] is not None:
        yield "calibration"
    if old is None or new is None or old.provider != new.provider:
        return
    (old_number, _, old_digest), (new_number, _, new_digest) = (
        answer.provider_revision.partition("+") for answer in (old, new)
    )
    if old_number != new_number:
        yield "provider"
    elif old.provider in _PROFILED and old_digest != new_digest:
        yield "profile"


def _recorded_ids(answer: LockedAnswer | None) -> frozenset[str]:
    """Return the records that an answer states, none where a model made it."""
    if answer is None or answer.method not in _RECORDED:
        return frozenset()
    return frozenset(answer.record_ids)

"""A lock asked again: the same commit, the same queries, and whether the answers are the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from perfdb_git.database import DatabaseSnapshot, PerformanceDatabase
from perfdb_git.errors import InvalidInputError, RepositoryUnavailableError
from perfdb_git.model.plan import Plan
from perfdb_git.model.plan_lock import CompositionResult, LockedQuery, LockedVersions, PlanLock
from perfdb_git.model.values import JsonValue
from perfdb_git.plans.composing import AnsweredQuery
from perfdb_git.plans.differences import (
    Comparison,
    Difference,
    compare_queries,
    compare_results,
    rounding_slack_ps,
)
from perfdb_git.plans.lock import locked_query, present_versions, tree_ids, vocabulary_digest
from perfdb_git.plans.resolving import PlanResolver, Progress
from perfdb_git.plans.tracked import Question
from perfdb_git.storage.plan_documents import PlanDocuments, plan_digest

Verdict: TypeAlias = Literal["equal", "differs", "unavailable"]

UNKNOWN_REVISION = "unknown-provider-revision"
NOT_ASKED = "not-asked"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryVerdict:
    """What became of one locked query.

    ``code`` and ``reason`` say why an answer is no longer available; ``None`` where it is.
    """

    name: str
    verdict: Verdict
    locked: LockedQuery
    differences: tuple[Difference, ...] = ()
    code: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """A lock against what its own commit answers.

    ``fingerprint`` are differences of what the answers depend on: trees, vocabulary, policy,
    plan and provider revisions. ``result`` is that of the composed number, ``None`` where it
    cannot be composed. ``largest_difference`` is the largest relative difference of calculated
    values that counts as none.
    """

    plan: str
    commit: str
    locked_versions: LockedVersions
    versions: LockedVersions
    fingerprint: tuple[Difference, ...]
    queries: tuple[QueryVerdict, ...]
    locked_result: CompositionResult
    result: tuple[Difference, ...] | None
    largest_difference: float

    @property
    def verdict(self) -> Verdict:
        """``differs`` if anything does, else ``unavailable`` if anything is, else ``equal``."""
        verdicts = {query.verdict for query in self.queries}
        if self.fingerprint or self.result or "differs" in verdicts:
            return "differs"
        return "unavailable" if "unavailable" in verdicts or self.result is None else "equal"


def verify_lock(
    database: PerformanceDatabase, lock: PlanLock, *, progress: Progress | None = None
) -> Verification:
    """Resolve a lock's plan at the lock's own commit, and compare.

    Parameters
    ----------
    database : PerformanceDatabase
        Holds the commit.
    lock : PlanLock
        As `read_plan_lock` returned it.
    progress : callable or None
        See `Progress`.

    Raises
    ------
    RepositoryUnavailableError
        Where the commit, or something that every answer needs, is not here.
    InvalidInputError
        Where the commit holds no such plan, policy or pipeline.
    """
    snapshot = database.at(lock.commit)
    resolver = PlanResolver(snapshot, lock.plan, document=lock.source.path)
    questions = {question.name: question for question in resolver.questions()}
    revisions = snapshot.provider_revisions(resolver.policy)
    known = _known_revisions(revisions)
    judge = _Judge(resolver, questions, known, _known_revisions(lock.revisions) - known)
    verdicts = []
    for done, locked in enumerate(lock.queries, start=1):
        verdicts.append(judge.verdict(locked))
        if progress is not None:
            progress(done, len(lock.queries), locked.name)
    result = judge.compare_result(lock, verdicts)
    return Verification(
        plan=lock.plan.name,
        commit=lock.commit,
        locked_versions=lock.versions,
        versions=present_versions(),
        fingerprint=(
            *_fingerprint(snapshot, lock, revisions, resolver.policy.reference.digest),
            *_unlocked(questions, lock),
        ),
        queries=tuple(verdicts),
        locked_result=lock.result,
        result=None if result is None else result.differences,
        largest_difference=max(
            (item.largest_within for item in (*judge.comparisons, result) if item is not None),
            default=0.0,
        ),
    )


class _Judge:
    """Asks one locked query after another, and keeps the answers for the composed number."""

    def __init__(
        self,
        resolver: PlanResolver,
        questions: Mapping[str, Question],
        known: frozenset[str],
        foreign: frozenset[str],
    ) -> None:
        self._resolver = resolver
        self._questions = questions
        self._known = known
        self._foreign = sorted(foreign)
        self.comparisons: list[Comparison] = []
        self.answered: list[AnsweredQuery] = []

    def verdict(self, locked: LockedQuery) -> QueryVerdict:
        question = self._questions.get(locked.name)
        if question is None:
            return QueryVerdict(
                name=locked.name,
                verdict="differs",
                locked=locked,
                differences=(_difference("name", locked.name, None),),
            )
        answer = locked.answer
        if answer is not None and _number(answer.provider_revision) not in self._known:
            return _unavailable(
                locked,
                UNKNOWN_REVISION,
                f"{_number(answer.provider_revision)} answered it, which this perfdb does not have",
            )
        try:
            answered = self._resolver.answer(question.track(self._resolver.snapshot.vocabulary))
        except RepositoryUnavailableError as error:
            return _unavailable(locked, error.code, error.message)
        current = locked_query(answered)
        if self._foreign and _provider(locked) != _provider(current):
            return _unavailable(
                locked,
                UNKNOWN_REVISION,
                f"{', '.join(self._foreign)} had a say, which this perfdb does not have",
            )
        self.answered.append(answered)
        compared = compare_queries(locked, current, same_commit=True)
        self.comparisons.append(compared)
        return QueryVerdict(
            name=locked.name,
            verdict="differs" if compared.differences else "equal",
            locked=locked,
            differences=compared.differences,
        )

    def compare_result(self, lock: PlanLock, verdicts: Sequence[QueryVerdict]) -> Comparison | None:
        """Compose again; ``None`` where an answer is not available."""
        if any(item.verdict == "unavailable" for item in verdicts):
            return None
        current = self._resolver.compose(self.answered)
        return compare_results(lock.result, current, slack_ps=rounding_slack_ps(lock.queries))


def _unavailable(locked: LockedQuery, code: str, reason: str) -> QueryVerdict:
    return QueryVerdict(
        name=locked.name, verdict="unavailable", locked=locked, code=code, reason=reason
    )


def _provider(query: LockedQuery) -> str | None:
    return None if query.answer is None else query.answer.provider


def _number(revision: str) -> str:
    """Return ``<name>/<n>`` of a provider's revision, without the digest of what it reads."""
    return revision.partition("+")[0]


def _known_revisions(revisions: Mapping[str, str]) -> frozenset[str]:
    return frozenset(_number(revision) for revision in revisions.values())


def _fingerprint(
    snapshot: DatabaseSnapshot, lock: PlanLock, revisions: Mapping[str, str], policy: str
) -> tuple[Difference, ...]:
    """Return what the lock says of its commit and the commit does not."""
    trees = tree_ids(snapshot)
    pairs: list[tuple[str, JsonValue, JsonValue]] = [
        (f"trees/{name}", lock.trees.get(name), trees.get(name))
        for name in sorted({*lock.trees, *trees})
    ]
    pairs += [
        ("vocabulary", lock.vocabulary, vocabulary_digest(snapshot)),
        ("policy", lock.policy.digest, policy),
        ("plan", lock.source.digest, _plan_digest(snapshot, lock.plan)),
    ]
    pairs += [
        (f"revisions/{tier}", lock.revisions.get(tier), revisions.get(tier))
        for tier in sorted({*lock.revisions, *revisions})
        # Another number is for the queries that it answered to say.
        if _number(lock.revisions.get(tier, "")) == _number(revisions.get(tier, ""))
    ]
    return tuple(_difference(*pair) for pair in pairs if pair[1] != pair[2])


def _unlocked(questions: Mapping[str, Question], lock: PlanLock) -> tuple[Difference, ...]:
    """Return the questions of the plan that the lock has no answer for."""
    names = {query.name for query in lock.queries}
    return tuple(
        _difference(f"queries/{name}", None, NOT_ASKED) for name in questions if name not in names
    )


def _plan_digest(snapshot: DatabaseSnapshot, plan: Plan) -> str | None:
    """Return the digest of the plan of that name at the commit, ``None`` where there is none."""
    try:
        document = PlanDocuments(snapshot.evidence).plan(plan.name)
    except InvalidInputError:
        return None
    return plan_digest(document.value)


def _difference(field: str, locked: JsonValue, current: JsonValue) -> Difference:
    return Difference(field=field, locked=locked, current=current, relative=None)

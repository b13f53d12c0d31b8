"""The history of one answer along first parents: where it changed, and through what."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from perfdb_git.database import PerformanceDatabase
from perfdb_git.errors import InvalidInputError, RepositoryUnavailableError
from perfdb_git.model.policy import Policy
from perfdb_git.review.answers import (
    Answer,
    AskedSnapshot,
    ChangedField,
    changed_fields,
    log_ratio,
    refused,
)
from perfdb_git.review.documents import DocumentChange, changed_documents
from perfdb_git.review.inputs import InputComparison, SnapshotInputs, Subject, values_of
from perfdb_git.review.reasons import Reason, ReasonFinder
from perfdb_git.review.tracked import TrackedQuery
from perfdb_git.storage import layout
from perfdb_git.storage.git import Commit

_FOLDERS = (layout.EVIDENCE, layout.PROFILES, layout.SCHEMAS)
"""What an answer can depend on: the folders that its cache key names."""

Ending: TypeAlias = Literal["root", "shallow", "limit"]

SHALLOW = "shallow-history"


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryStep:
    """One commit at which the answer became another one.

    Attributes
    ----------
    commit : str
        Full commit id.
    committer_time : int
        Seconds since 1970.
    author, summary : str
        Who wrote the commit, without the address, and its first line.
    is_merge : bool
        Whether the commit has several parents.
    before, after : Answer
        The answer at its first parent, and at the commit; ``before`` is ``None`` where history
        begins or is cut off.
    changed : tuple of str
        In what they differ.
    log_ratio : float or None
        ln(after / before) of the main metric.
    reasons : tuple of Reason
        What made the difference.
    documents : tuple of DocumentChange
        What the commit changed of the evidence.
    """

    commit: str
    committer_time: int
    author: str
    summary: str
    is_merge: bool
    before: Answer | None
    after: Answer
    changed: tuple[ChangedField, ...]
    log_ratio: float | None
    reasons: tuple[Reason, ...]
    documents: tuple[DocumentChange, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerHistory:
    """The answer and the commits that made it what it is, newest first.

    Attributes
    ----------
    head : str
        Full commit id at which the walk began.
    answer : Answer
        The answer there.
    steps : tuple of HistoryStep
        Where it changed.
    commits : int
        Commits walked.
    evaluated : int
        Commits at which the query was asked.
    ends : str
        ``root`` where history begins, ``shallow`` where this clone's ends, ``limit`` where enough
        steps were found.
    """

    head: str
    answer: Answer
    steps: tuple[HistoryStep, ...]
    commits: int
    evaluated: int
    ends: Ending


class AnswerHistorian:
    """Walks the first parents of a commit and asks one query where its evidence differs.

    Parameters
    ----------
    database : PerformanceDatabase
        The repository.
    query : TrackedQuery
        The question.
    policy : str
        Name of the policy; each commit's own one of that name answers.
    external : mapping of str to Policy or None
        Policies that are the same at every commit, by name.
    ages_matter : bool
        Whether answers depend on commit times, so that every commit has to be asked.
    progress : callable or None
        Called with the commits walked, their number so far, and the last one.
    """

    def __init__(
        self,
        database: PerformanceDatabase,
        query: TrackedQuery,
        *,
        policy: str,
        external: Mapping[str, Policy] | None = None,
        ages_matter: bool = False,
        progress: Callable[[int, int, str], None] | None = None,
    ) -> None:
        self._database = database
        self._store = database.store
        self._query = query
        self._policy = policy
        self._external = external
        self._ages_matter = ages_matter
        self._progress = progress
        self._ends: Ending = "root"
        self._root: tuple[str, tuple[str | None, ...]] = ("", ())
        self._commits = 0
        self._evaluated = 0

    def history(self, commit: str, *, limit: int | None = None) -> AnswerHistory:
        """Return where the answer changed, from a commit back to the beginning.

        Parameters
        ----------
        commit : str
            Full commit id.
        limit : int or None
            Steps at most.

        Raises
        ------
        RepositoryUnavailableError
            Where an object is missing; the end of a shallow clone's history is no error.
        """
        steps: list[HistoryStep] = []
        first: Answer | None = None
        newer: _Evaluated | None = None
        for state in self._states(commit):
            evaluated = self._evaluate(state, newer)
            if newer is None or first is None:
                first = evaluated.answer
            else:
                step = self._step(evaluated, newer)
                if step is not None:
                    steps.append(step)
                if limit is not None and len(steps) >= limit:
                    self._ends = "limit"
                    break
            newer = evaluated
        else:
            # At the end of a shallow clone nobody can tell where the answer came from.
            if newer is not None and newer.answer.is_resolved and self._ends == "root":
                steps.append(self._beginning(newer))
        assert first is not None
        return AnswerHistory(
            head=commit,
            answer=first,
            steps=tuple(steps),
            commits=self._commits,
            evaluated=self._evaluated,
            ends=self._ends,
        )

    def _states(self, head: str) -> Iterator[_State]:
        """Yield each run of commits with equal evidence: its newest and its oldest commit."""
        state: _State | None = None
        for commit in self._walk(head):
            trees = self._trees(commit)
            if state is not None and trees == state.trees and not self._ages_matter:
                state = _State(trees=trees, newest=state.newest, oldest=commit)
                continue
            if state is not None:
                yield state
            state = _State(trees=trees, newest=commit, oldest=commit)
        if state is not None:
            yield state

    def _walk(self, head: str) -> Iterator[Commit]:
        try:
            for commit in self._store.first_parents(head):
                self._commits += 1
                if self._progress is not None:
                    self._progress(self._commits, self._commits, commit.id)
                yield commit
        except RepositoryUnavailableError as error:
            if error.code != SHALLOW:
                raise
            self._ends = "shallow"

    def _trees(self, commit: Commit) -> tuple[str | None, ...]:
        if commit.tree != self._root[0]:
            found = tuple(self._store.lookup(commit.tree, folder) for folder in _FOLDERS)
            self._root = (commit.tree, found)
        return self._root[1]

    def _evaluate(self, state: _State, newer: _Evaluated | None) -> _Evaluated:
        inputs = SnapshotInputs(
            AskedSnapshot(self._database.at(state.oldest.id), external=self._external)
        )
        comparison = None if newer is None else InputComparison(inputs, newer.inputs)
        try:
            if comparison is not None and newer is not None and not newer.is_broken:
                limits = self._query.query.evidence_policy
                differing = comparison.differing(Subject.of(self._query), self._policy, limits)
                if not differing:
                    return _Evaluated(state, inputs, newer.answer, is_broken=False)
            self._evaluated += 1
            answer = inputs.asked.answer(
                values_of(self._query), self._query.query.evidence_policy, self._policy
            )
        except InvalidInputError as error:
            # Evidence that was broken at some commit answered nothing there.
            answer = refused(error.code, f"the evidence of the commit is invalid: {error.message}")
            return _Evaluated(state, inputs, answer, is_broken=True)
        return _Evaluated(state, inputs, answer, is_broken=False)

    def _step(self, older: _Evaluated, newer: _Evaluated) -> HistoryStep | None:
        """Return the step from an older state to the newer one, where the answers differ."""
        if newer.answer is older.answer:
            return None
        changed = changed_fields(older.answer, newer.answer)
        if not changed:
            return None
        return self._made(newer.state.oldest, older, newer, changed)

    def _made(
        self,
        commit: Commit,
        older: _Evaluated,
        newer: _Evaluated,
        changed: tuple[ChangedField, ...],
    ) -> HistoryStep:
        reasons: tuple[Reason, ...] = ()
        if not older.is_broken and not newer.is_broken:
            comparison = InputComparison(older.inputs, newer.inputs)
            limits = self._query.query.evidence_policy
            differing = comparison.differing(Subject.of(self._query), self._policy, limits)
            reasons = ReasonFinder(comparison).reasons(
                self._query, self._policy, differing, (older.answer, newer.answer)
            )
        return self._written(commit, older.answer, newer.answer, changed, reasons)

    def _beginning(self, first: _Evaluated) -> HistoryStep:
        return self._written(first.state.oldest, None, first.answer, ("answer",), ())

    def _written(
        self,
        commit: Commit,
        before: Answer | None,
        after: Answer,
        changed: tuple[ChangedField, ...],
        reasons: tuple[Reason, ...],
    ) -> HistoryStep:
        parent = commit.parents[0] if commit.parents else None
        return HistoryStep(
            commit=commit.id,
            committer_time=commit.committer_time,
            author=author_name(commit),
            summary=commit.summary,
            is_merge=len(commit.parents) > 1,
            before=before,
            after=after,
            changed=changed,
            log_ratio=None if before is None else log_ratio(before, after),
            reasons=reasons,
            documents=changed_documents(self._store, parent, commit.id),
        )


@dataclass(frozen=True, slots=True)
class _State:
    """Commits one after the other with the same evidence."""

    trees: tuple[str | None, ...]
    newest: Commit
    oldest: Commit


@dataclass(frozen=True, slots=True)
class _Evaluated:
    """A state with its answer; ``is_broken`` where its evidence is invalid."""

    state: _State
    inputs: SnapshotInputs
    answer: Answer
    is_broken: bool


def author_name(commit: Commit) -> str:
    """Return the name of a commit's author as Git has it, without the address."""
    return commit.author.rpartition(" <")[0] or commit.author.partition("<")[0].strip()

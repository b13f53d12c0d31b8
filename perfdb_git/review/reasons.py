"""Why an answer changed: found by changing one part at a time, never guessed.

Where only one part behind an answer differs, it is the reason. Where several do, the query is
asked again with each of them alone taken from the other side.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields, replace

from perfdb_git.model.policy import Policy
from perfdb_git.model.vocabulary import Vocabulary
from perfdb_git.resolution.composition import ResolverParts, compose_resolver
from perfdb_git.resolution.resolver import CostResolver
from perfdb_git.review.answers import (
    Answer,
    answer_of,
    asked_query,
    changed_fields,
)
from perfdb_git.review.inputs import (
    InputComparison,
    InputKind,
    SnapshotInputs,
    Subject,
    meaning_of,
    rules_of,
    values_of,
)
from perfdb_git.review.overlay import RECORD_CHANGES, OverlaidRecords
from perfdb_git.review.tracked import TrackedQuery

MOST_NAMED = 5
"""Documents that one reason names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """One part that changed the answer, in words, with the documents it came by."""

    kind: InputKind
    text: str
    documents: tuple[str, ...] = ()


class ReasonFinder:
    """Finds what of a change made answers different.

    Parameters
    ----------
    comparison : InputComparison
        Both snapshots, part by part.
    """

    def __init__(self, comparison: InputComparison) -> None:
        self._comparison = comparison
        self._base = comparison.base.asked
        self._head = comparison.head.asked
        self._resolvers: dict[tuple[str, frozenset[str]], CostResolver] = {}

    def reasons(
        self,
        query: TrackedQuery,
        policy: str,
        differing: Sequence[InputKind],
        answers: tuple[Answer, Answer],
    ) -> tuple[Reason, ...]:
        """Return the parts that made the difference, each by itself.

        Parameters
        ----------
        query : TrackedQuery
            The query.
        policy : str
            Name of the policy it was asked under.
        differing : sequence of str
            Parts that differ, from `InputComparison.differing`.
        answers : tuple of Answer
            Before and after.
        """
        kinds = self._effective(query, policy, differing, answers)
        return tuple(self._reason(kind, query, policy, answers) for kind in kinds)

    def _effective(
        self,
        query: TrackedQuery,
        policy: str,
        differing: Sequence[InputKind],
        answers: tuple[Answer, Answer],
    ) -> Sequence[InputKind]:
        old, new = self._base.policy(policy), self._head.policy(policy)
        comparable = self._base.vocabulary is not None and self._head.vocabulary is not None
        if len(differing) < 2 or not comparable:
            return differing
        if isinstance(old, Answer) or isinstance(new, Answer):
            return differing
        before, after = answers

        def asked(taken: Collection[InputKind]) -> Answer:
            return self._mixed(query, policy, (old, new), frozenset(taken))

        alone = [kind for kind in differing if changed_fields(before, asked({kind}))]
        if alone:
            return alone
        # Only together do they change the answer: each without which it would not be what it is.
        everything = set(differing)
        needed = [kind for kind in differing if changed_fields(after, asked(everything - {kind}))]
        return needed or differing

    def _mixed(
        self,
        query: TrackedQuery,
        policy: str,
        policies: tuple[Policy, Policy],
        taken: frozenset[InputKind],
    ) -> Answer:
        key = (policy, frozenset(taken))
        side = self._head if "vocabulary" in taken else self._base
        vocabulary = side.vocabulary
        assert vocabulary is not None
        asked = asked_query(values_of(query), query.query.evidence_policy, vocabulary)
        if isinstance(asked, Answer):
            return asked
        if key not in self._resolvers:
            self._resolvers[key] = compose_resolver(self._parts(policies, taken))
        return answer_of(self._resolvers[key].resolve(asked))

    def _parts(self, policies: tuple[Policy, Policy], taken: frozenset[InputKind]) -> ResolverParts:
        """Return the parts of the base with those taken that the head has instead."""
        old, new = policies
        base, head = self._base.parts(old), self._head.parts(new)
        rules = new if "policy" in taken else old
        policy = replace(
            rules,
            calibrations=(new if "calibration" in taken else old).calibrations,
            system_profiles=(new if "profile" in taken else old).system_profiles,
        )
        return replace(
            base,
            records=self._records(taken),
            profiles=(head if "profile" in taken else base).profiles,
            validations=(head if "validation" in taken else base).validations,
            calibrations=(head if "calibration" in taken else base).calibrations,
            vocabulary=(head if "vocabulary" in taken else base).vocabulary,
            reference_time=(head if "age" in taken else base).reference_time,
            policy=policy,
        )

    def _records(self, taken: frozenset[InputKind]) -> OverlaidRecords:
        evidence = (self._base.snapshot.evidence, self._head.snapshot.evidence)
        return OverlaidRecords(*evidence, taken & frozenset(RECORD_CHANGES))

    def _reason(
        self, kind: InputKind, query: TrackedQuery, policy: str, answers: tuple[Answer, Answer]
    ) -> Reason:
        describe = _RECORD_WORDS.get(kind)
        subject = Subject.of(query)
        base, head = self._comparison.base, self._comparison.head
        if describe is not None:
            sets = _record_sets(kind, base, head, subject)
            behind = {item.partition("#")[0] for answer in answers for item in answer.record_ids}
            # Those behind one of the two answers, else all: without an answer nothing is behind it.
            named = [path for sha256, path in sets if sha256 in behind] or [p for _, p in sets]
            return Reason(kind=kind, text=describe, documents=tuple(named[:MOST_NAMED]))
        if kind == "calibration":
            return _calibration_reason(base, head, subject, policy)
        if kind == "profile":
            return _profile_reason(base, head, subject, policy)
        if kind == "policy":
            return _policy_reason(base.asked.policy(policy), head.asked.policy(policy))
        if kind == "vocabulary":
            return _vocabulary_reason(self._base.vocabulary, self._head.vocabulary)
        return Reason(kind=kind, text=_OTHER_WORDS[kind])


_RECORD_WORDS: dict[InputKind, str] = {
    "new-records": "new records",
    "removed-records": "records removed",
    "retraction": "records retracted, or a retraction taken back",
}
_OTHER_WORDS: dict[InputKind, str] = {
    "validation": "another set of validations judges the simulated records",
    "age": "ages are judged at another commit time",
}


def _record_sets(
    kind: InputKind, base: SnapshotInputs, head: SnapshotInputs, subject: Subject
) -> list[tuple[str, str]]:
    """Return SHA-256 and path of the record sets of a kind of change."""
    old, new = base.entries(subject), head.entries(subject)
    if kind == "new-records":
        side, blobs = head, new.keys() - old.keys()
    elif kind == "removed-records":
        side, blobs = base, old.keys() - new.keys()
    else:
        side, blobs = head, {blob for blob in old.keys() & new.keys() if old[blob] != new[blob]}
    evidence = side.asked.snapshot.evidence
    return sorted(
        (
            (item.sha256, item.path)
            for key in evidence.series_keys()
            if subject.holds(key)
            for item in evidence.record_sets(key)
            if item.entry.blob in blobs
        ),
        key=lambda pair: pair[1],
    )


def _calibration_reason(
    base: SnapshotInputs, head: SnapshotInputs, subject: Subject, policy: str
) -> Reason:
    old, new = (_selected(side, side.asked.policy(policy), subject) for side in (base, head))
    if not old:
        text = f"calibration {_short(new)} promoted"
    elif not new:
        text = f"calibration {_short(old)} no longer selected"
    elif old == new:
        text = f"the file of calibration {_short(new)} came or went"
    else:
        text = f"calibration {_short(new)} promoted in place of {_short(old)}"
    return Reason(kind="calibration", text=text)


def _selected(side: SnapshotInputs, policy: Policy | Answer, subject: Subject) -> list[str]:
    if isinstance(policy, Answer):
        return []
    return [revision for revision, _ in side.calibrations(policy, subject)]


def _profile_reason(
    base: SnapshotInputs, head: SnapshotInputs, subject: Subject, policy: str
) -> Reason:
    old, new = (
        []
        if isinstance(in_force, Answer)
        else [name for _, name, _ in side.profiles(in_force, subject)]
        for side, in_force in ((base, base.asked.policy(policy)), (head, head.asked.policy(policy)))
    )
    if old == new:
        return Reason(kind="profile", text=f"system profile {', '.join(new)} changed")
    text = f"system profile {', '.join(new) or 'none'} in place of {', '.join(old) or 'none'}"
    return Reason(kind="profile", text=text)


def _policy_reason(old: Policy | Answer, new: Policy | Answer) -> Reason:
    if isinstance(old, Answer) or isinstance(new, Answer):
        text = "the policy came" if isinstance(old, Answer) else "the policy went"
        return Reason(kind="policy", text=text)
    before, after = rules_of(old), rules_of(new)
    names = [
        item.name
        for item in fields(before)
        if getattr(before, item.name) != getattr(after, item.name)
    ]
    return Reason(kind="policy", text=f"rules of the policy changed: {', '.join(names)}")


def _vocabulary_reason(old: Vocabulary | None, new: Vocabulary | None) -> Reason:
    if old is None or new is None:
        text = "there was no vocabulary before" if old is None else "the vocabulary is gone"
        return Reason(kind="vocabulary", text=text)
    names = sorted(
        name
        for before, after in zip(meaning_of(old), meaning_of(new), strict=True)
        for name in before.keys() | after.keys()
        if before.get(name) != after.get(name)
    )
    shown = ", ".join(names[:MOST_NAMED])
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return Reason(kind="vocabulary", text=f"the vocabulary's {shown}{more} changed")


def _short(revisions: Sequence[str]) -> str:
    return ", ".join(revision[:12] for revision in revisions)

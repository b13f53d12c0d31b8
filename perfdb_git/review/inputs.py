"""What the answer to one query rests on, at one snapshot, part by part.

Two snapshots with equal parts give equal answers, so nothing needs to be asked again; and where
they differ, the parts that differ are the only possible reasons.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, TypeAlias

from perfdb_git.errors import InvalidInputError
from perfdb_git.model.policy import Policy
from perfdb_git.model.query import EvidencePolicy
from perfdb_git.model.records import SeriesKey
from perfdb_git.model.values import Scalar
from perfdb_git.model.vocabulary import Dimension, Vocabulary
from perfdb_git.resolution.admission import Admission
from perfdb_git.review.answers import Answer, AskedSnapshot
from perfdb_git.review.tracked import TrackedQuery
from perfdb_git.storage import layout
from perfdb_git.storage.calibration_documents import CalibrationDocuments

InputKind: TypeAlias = Literal[
    "new-records",
    "removed-records",
    "retraction",
    "validation",
    "calibration",
    "profile",
    "policy",
    "vocabulary",
    "age",
]

_NO_LIMITS = EvidencePolicy()
_Entries: TypeAlias = Mapping[str, tuple[int, ...] | None]
"""Retracted rows by blob, of the record sets of one operation and device."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What of a query decides which records, profiles and calibrations can answer it."""

    operation: str
    device: str | None

    @classmethod
    def of(cls, query: TrackedQuery) -> Subject:
        """Return the subject of a query."""
        return cls(operation=query.query.operation, device=query.query.deployment.device)

    def holds(self, key: SeriesKey) -> bool:
        """Tell whether a series can answer."""
        return key.operation == self.operation and self.device in (None, key.device)


class SnapshotInputs:
    """The parts of one snapshot, compared with those of another one.

    Parameters
    ----------
    asked : AskedSnapshot
        The snapshot.
    """

    def __init__(self, asked: AskedSnapshot) -> None:
        self.asked = asked
        self._entries: dict[Subject, _Entries] = {}
        self._simulated: dict[Subject, bool] = {}

    def entries(self, subject: Subject) -> _Entries:
        """Return the retracted rows by blob of every record set that can answer."""
        if subject not in self._entries:
            evidence = self.asked.snapshot.evidence
            self._entries[subject] = {
                item.entry.blob: item.entry.retracted
                for key in evidence.series_keys()
                if subject.holds(key)
                for item in evidence.record_sets(key)
            }
        return self._entries[subject]

    def is_simulated(self, subject: Subject) -> bool:
        """Tell whether simulated records can answer, which validations admit."""
        if subject not in self._simulated:
            keys = self.asked.snapshot.evidence.series_keys()
            self._simulated[subject] = any(
                subject.holds(key) and key.kind == "simulated" for key in keys
            )
        return self._simulated[subject]

    @cached_property
    def validations(self) -> str | None:
        """Git tree id of all validations."""
        return self.asked.snapshot.evidence.source.object_id(layout.VALIDATIONS)

    def calibrations(self, policy: Policy, subject: Subject) -> tuple[tuple[str, str | None], ...]:
        """Return the revisions that the policy selects, with the Git blob of each."""
        return tuple(
            (choice.revision, self._calibration_blob(choice.revision))
            for choice in policy.calibrations
            if choice.operation == subject.operation and subject.device in (None, choice.device)
        )

    def _calibration_blob(self, revision: str) -> str | None:
        path = self._documents.calibration_paths.get(revision)
        return None if path is None else self.asked.snapshot.evidence.source.object_id(path)

    def profiles(self, policy: Policy, subject: Subject) -> tuple[tuple[str, str, str], ...]:
        """Return device, name and digest of the system profiles that the policy selects."""
        return tuple(
            (device, name, self.profile_digest(name))
            for device, name in sorted(policy.system_profiles.items())
            if subject.device in (None, device)
        )

    def profile_digest(self, name: str) -> str:
        """Return the digest of a profile's document, or why there is none."""
        try:
            return self.asked.snapshot.evidence.system_profile_digest(name)
        except InvalidInputError as error:
            return error.code

    @cached_property
    def _documents(self) -> CalibrationDocuments:
        return CalibrationDocuments(self.asked.snapshot.evidence)


class InputComparison:
    """Which parts differ between two snapshots, query by query."""

    def __init__(self, base: SnapshotInputs, head: SnapshotInputs) -> None:
        self.base = base
        self.head = head

    def differing(
        self, subject: Subject, policy: str, limits: EvidencePolicy = _NO_LIMITS
    ) -> tuple[InputKind, ...]:
        """Return the parts behind a query's answers that differ; none means equal answers.

        Parameters
        ----------
        subject : Subject
            What of the query decides which parts can answer.
        limits : EvidencePolicy
            The query's own limits.
        policy : str
            Name of the policy it is asked under.
        """
        if self.base.asked.vocabulary is None or self.head.asked.vocabulary is None:
            both = self.base.asked.vocabulary is self.head.asked.vocabulary
            return () if both else ("vocabulary",)
        old, new = self.base.asked.policy(policy), self.head.asked.policy(policy)
        found: list[InputKind] = []
        if not self._same_vocabulary:
            found.append("vocabulary")
        if isinstance(old, Answer) or isinstance(new, Answer):
            if old != new:
                found.append("policy")
            return tuple(found)
        found += self._record_changes(subject)
        found += self._document_changes(subject, old, new)
        if self._ages_matter(limits, old, new):
            found.append("age")
        return tuple(found)

    def _record_changes(self, subject: Subject) -> list[InputKind]:
        old, new = self.base.entries(subject), self.head.entries(subject)
        found: list[InputKind] = []
        if new.keys() - old.keys():
            found.append("new-records")
        if old.keys() - new.keys():
            found.append("removed-records")
        if any(old[blob] != new[blob] for blob in old.keys() & new.keys()):
            found.append("retraction")
        simulated = self.base.is_simulated(subject) or self.head.is_simulated(subject)
        if simulated and self.base.validations != self.head.validations:
            found.append("validation")
        return found

    def _document_changes(self, subject: Subject, old: Policy, new: Policy) -> list[InputKind]:
        found: list[InputKind] = []
        if self.base.calibrations(old, subject) != self.head.calibrations(new, subject):
            found.append("calibration")
        if self.base.profiles(old, subject) != self.head.profiles(new, subject):
            found.append("profile")
        if old is not new and rules_of(old) != rules_of(new):
            found.append("policy")
        return found

    def _ages_matter(self, limits: EvidencePolicy, old: Policy, new: Policy) -> bool:
        times = [side.asked.snapshot.evidence.committer_time for side in (self.base, self.head)]
        return times[0] != times[1] and any(
            Admission(policy=policy, limits=limits, reference_time=None).freshness_limited
            for policy in (old, new)
        )

    @cached_property
    def _same_vocabulary(self) -> bool:
        old, new = self.base.asked.vocabulary, self.head.asked.vocabulary
        assert old is not None and new is not None
        return old is new or meaning_of(old) == meaning_of(new)


def rules_of(policy: Policy) -> Policy:
    """Return a policy without its selections and its prose: tiers, rules and limits."""
    return replace(policy, description="", calibrations=(), system_profiles={})


def meaning_of(vocabulary: Vocabulary) -> tuple[Mapping[str, Dimension], Mapping[str, object]]:
    """Return what canonical queries depend on: no prose, and no aliases of typed input."""
    dimensions = {
        name: replace(
            item, description="", shorthands={}, terms=dict.fromkeys(sorted(item.terms), ())
        )
        for name, item in vocabulary.dimensions.items()
    }
    operations = {
        name: replace(item, description="") for name, item in vocabulary.operations.items()
    }
    return dimensions, operations


def values_of(query: TrackedQuery) -> dict[str, Scalar]:
    """Return a query's known dimensions by flat name."""
    return query.query.coordinates()

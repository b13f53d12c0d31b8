"""What a pull request changes, as the checks see it: where it started, and what it proposes.

The two ends are the merge base, whose gates and schemas judge, and the head. What others merged
since is no part of either; it is met in `Change.existing`, the tip of the base branch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from perfdb_git.checks.checked_snapshot import CheckedSnapshot
from perfdb_git.checks.existing_evidence import ExistingEvidence
from perfdb_git.checks.vocabulary_meaning import meaning_changes
from perfdb_git.database import DEFAULT_POLICY
from perfdb_git.model.gates import GateLimits
from perfdb_git.model.policy import Policy
from perfdb_git.model.records import Retraction
from perfdb_git.model.system_profile import SystemProfile
from perfdb_git.storage import layout
from perfdb_git.storage.commit_signatures import SignedCommit
from perfdb_git.storage.snapshot import EvidenceSnapshot
from perfdb_git.storage.sources import ObjectSource, SourceFile

_MAX_ROW_DIGITS = 18


class SignatureVerifier(Protocol):
    """Knows who may sign."""

    def fault(self, commit: SignedCommit) -> str | None:
        """Say why a signature does not count, or None where it does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedHistory:
    """The commits of a change, and who judges their signatures."""

    commits: tuple[SignedCommit, ...]
    signers: SignatureVerifier


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewBase:
    """What a change is judged against: the merge base, and the tip of the base branch.

    ``signed`` holds the commits of the change where their signatures are to be judged.
    """

    merge_base: ObjectSource
    tip: EvidenceSnapshot
    signed: SignedHistory | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedFile:
    """A path of the evidence folders whose content or mode differs; None is an absent file."""

    path: str
    old: SourceFile | None
    new: SourceFile | None

    @property
    def is_new_content(self) -> bool:
        """Whether the head has a content at this path that the merge base has not."""
        return self.new is not None and (self.old is None or self.old.id != self.new.id)


class Change:
    """A proposed change of the evidence.

    Parameters
    ----------
    base : CheckedSnapshot
        The merge base: what the proposal started from.
    head : CheckedSnapshot
        What it proposes.
    existing : ExistingEvidence
        Record sets of the base branch's tip, which may be ahead of the merge base.
    signed : SignedHistory or None
        Commits whose signatures are to be judged.
    """

    def __init__(
        self,
        *,
        base: CheckedSnapshot,
        head: CheckedSnapshot,
        existing: ExistingEvidence,
        signed: SignedHistory | None = None,
    ) -> None:
        self.signed = signed
        self.base = base
        self.head = head
        self.existing = existing
        self._profiles: dict[str, SystemProfile | None] = {}

    @cached_property
    def files(self) -> tuple[ChangedFile, ...]:
        """Every path that differs, sorted; all of a folder that the head's walk refuses differ."""
        before = {file.path: file for file in self.base.files}
        after = {file.path: file for file in self.head.files}
        return tuple(
            ChangedFile(path=path, old=before.get(path), new=after.get(path))
            for path in sorted(before.keys() | after.keys(), key=str.encode)
            if before.get(path) != after.get(path)
        )

    @cached_property
    def additions(self) -> frozenset[SourceFile]:
        """The head's files whose content is new at their path."""
        return frozenset(c.new for c in self.files if c.is_new_content and c.new is not None)

    @cached_property
    def judged_files(self) -> tuple[SourceFile, ...]:
        """The head's files that are judged in full.

        What the merge base has byte for byte was judged when it came in. All are judged again
        where the judges themselves change: a schema altered or removed, or a vocabulary that means
        something else.
        """
        if self.judges_anew:
            return self.head.files
        return tuple([c.new for c in self.files if c.new is not None])

    @cached_property
    def judges_anew(self) -> bool:
        """Whether a document that was right at the merge base may be wrong at the head."""
        schemas = any(
            file.old is not None and file.path.startswith(f"{layout.SCHEMAS}/")
            for file in self.files
        )
        if schemas:
            return True
        if self.base.object_id(layout.VOCABULARY) == self.head.object_id(layout.VOCABULARY):
            return False
        before, after = self.base.vocabulary, self.head.vocabulary
        return before is None or after is None or bool(meaning_changes(before, after))

    @cached_property
    def policy(self) -> Policy | None:
        """The default policy of the merge base, or the head's where the base has none."""
        return _default_policy(self.base) or _default_policy(self.head)

    def gate_limits(self, response: str, operation: str, device: str) -> GateLimits:
        """Return the limits of the merge base's gates, or of the head's where the base has none."""
        gates = self.base.gates or self.head.gates
        return GateLimits() if gates is None else gates.limits_for(response, operation, device)

    def system_profile(self, device: str) -> SystemProfile | None:
        """Return the profile that the merge base's policy selects for a device.

        A device that the merge base knows no profile of is judged by the head's.
        """
        if device not in self._profiles:
            found = _selected_profile(self.base, device)
            self._profiles[device] = found or _selected_profile(self.head, device)
        return self._profiles[device]

    @cached_property
    def retracted(self) -> Mapping[str, frozenset[int] | None]:
        """Retracted rows at the head by record set; None stands for all of its rows."""
        found: dict[str, frozenset[int] | None] = {}
        for document in self.head.documents("retraction"):
            retraction = document.as_model(Retraction)
            if retraction is None:
                continue
            sha256, _, row = retraction.target.partition("#")
            before = found.get(sha256, frozenset())
            # A longer number is no row of any file, and reading it could take long.
            if not row or before is None:
                found[sha256] = None
            elif len(row) <= _MAX_ROW_DIGITS:
                found[sha256] = before | {int(row)}
        return found


def _default_policy(snapshot: CheckedSnapshot) -> Policy | None:
    for document in snapshot.documents("policy"):
        if document.path == layout.policy_path(DEFAULT_POLICY):
            return document.as_model(Policy)
    return None


def _selected_profile(snapshot: CheckedSnapshot, device: str) -> SystemProfile | None:
    policy = _default_policy(snapshot)
    name = None if policy is None else policy.system_profiles.get(device)
    paths = () if name is None else layout.system_profile_paths(name)
    for document in snapshot.documents("system-profile"):
        if document.path in paths:
            return document.as_model(SystemProfile)
    return None

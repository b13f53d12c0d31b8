"""What a pull request changes, as the checks see it: where it started, and what it proposes.

The two ends are the merge base, whose gates and schemas judge, and the head. What others merged
since is no part of either; it is met in `Change.existing`, the tip of the base branch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from perfdb_git.checks.checked_snapshot import RECORD_SET, CheckedDocument, CheckedSnapshot
from perfdb_git.checks.existing_evidence import ExistingEvidence
from perfdb_git.checks.folders import place_of
from perfdb_git.checks.vocabulary_meaning import meaning_changes
from perfdb_git.storage import layout
from perfdb_git.storage.snapshot import EvidenceSnapshot
from perfdb_git.storage.sources import ObjectSource, SourceFile


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewBase:
    """What a change is judged against: the merge base, and the tip of the base branch."""

    merge_base: ObjectSource
    tip: EvidenceSnapshot


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
    """

    def __init__(
        self, *, base: CheckedSnapshot, head: CheckedSnapshot, existing: ExistingEvidence
    ) -> None:
        self.base = base
        self.head = head
        self.existing = existing

    @cached_property
    def files(self) -> tuple[ChangedFile, ...]:
        """Every path that differs, sorted; a folder that cannot be walked at the head has none."""
        before = {file.path: file for file in self.base.files}
        after = {file.path: file for file in self.head.files}
        return tuple(
            ChangedFile(path=path, old=before.get(path), new=after.get(path))
            for path in sorted(before.keys() | after.keys(), key=str.encode)
            if before.get(path) != after.get(path)
        )

    def new_documents(self, kind: str) -> Iterator[CheckedDocument]:
        """Yield the head's documents of a kind whose content is new there, sorted by path."""
        for changed in self.files:
            place = place_of(changed.path)
            if changed.is_new_content and place is not None and place.kind == kind:
                assert changed.new is not None
                yield self.head.document(changed.new)

    def new_record_sets(self) -> Iterator[CheckedDocument]:
        """Yield the record sets that the head adds or alters; each one's rows are dropped next."""
        yield from self.new_documents(RECORD_SET)

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
        if schemas or self.head.vocabulary is None:
            return True
        if self.base.vocabulary is None:
            return True
        return bool(meaning_changes(self.base.vocabulary, self.head.vocabulary))

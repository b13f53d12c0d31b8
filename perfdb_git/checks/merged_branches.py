"""Two branches that are right alone and wrong together: the change merged with the base's tip.

The merge is made by path, as git makes it before it looks into a file: what one side changed is
taken from that side. A path that both sides changed is a finding, since nobody has judged what a
merge of its lines would say.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from perfdb_git.checks.change import Change
from perfdb_git.checks.checked_snapshot import RECORD_SET, CheckedSnapshot
from perfdb_git.checks.rules import Check, Rule
from perfdb_git.model.findings import Finding
from perfdb_git.storage import layout
from perfdb_git.storage.folders import ROOTS, place_of
from perfdb_git.storage.sources import ObjectSource, SourceFile

CHANGED_ON_BOTH_SIDES = Rule(
    code="changed-on-both-sides",
    documentation="A document changes in one branch at a time.",
    remedy="merge the base branch into the change, or rebase it, and check again",
)

_REMARK = " (after a merge with the base branch)"


class MergedSource:
    """The files of two snapshots merged by path.

    Parameters
    ----------
    change : Change
        The merge base and the head.
    tip : CheckedSnapshot
        The tip of the base branch.
    """

    commit: None = None
    committer_time: None = None

    def __init__(self, change: Change, tip: CheckedSnapshot) -> None:
        base, head, other = _by_path(change.base), _by_path(change.head), _by_path(tip)
        self.conflicts: list[str] = []
        self._sources: dict[SourceFile, CheckedSnapshot] = {}
        for path in sorted(base.keys() | head.keys() | other.keys(), key=str.encode):
            old, ours, theirs = base.get(path), head.get(path), other.get(path)
            if ours not in (old, theirs) and theirs != old:
                self.conflicts.append(path)
            chosen, snapshot = (theirs, tip) if ours == old else (ours, change.head)
            if chosen is not None:
                self._sources[chosen] = snapshot
        self._ids = {file.path: file.id for file in self._sources}

    def object_id(self, path: str) -> str | None:
        """Return the id of the file at `path`, or None where there is none."""
        return self._ids.get(path)

    def files(self, path: str) -> tuple[SourceFile, ...]:
        """Return every file below the directory `path`."""
        return tuple(file for file in self._sources if file.path.startswith(f"{path}/"))

    def read(self, file: SourceFile) -> bytes:
        """Return a file's content from the side that it was taken from."""
        return self._sources[file].read(file)


def _by_path(snapshot: CheckedSnapshot) -> Mapping[str, SourceFile]:
    return {file.path: file for file in snapshot.files}


def judge_merge(change: Change) -> Iterator[Finding]:
    """Yield paths that both branches changed since the merge base."""
    tip = _tip(change)
    if tip is None:
        return
    for path in MergedSource(change, tip).conflicts:
        yield CHANGED_ON_BOTH_SIDES.broken(
            path, "changed here and, in another way, on the base branch since the merge base"
        )


def judge_merged(change: Change, checks: Collection[Check]) -> Iterator[tuple[Check, Finding]]:
    """Yield what is wrong with the merge and with neither of the merged branches."""
    tip = _tip(change)
    if tip is None:
        return
    source = MergedSource(change, tip)
    merged = CheckedSnapshot(
        source, schemas=change.head.schemas, known=change.existing, shared=change.head
    )
    alone = {
        _place(finding)
        for snapshot in (change.head, tip)
        for _, finding in _judge(snapshot, _new_files(change, tip, snapshot), checks)
    }
    for check, finding in _judge(merged, _new_files(change, tip, merged), checks):
        if _place(finding) not in alone:
            yield check, replace(finding, message=finding.message + _REMARK)


def _place(finding: Finding) -> tuple[str, str, str | None, int | None]:
    """What is wrong where; counts in messages differ between a branch and the merge."""
    return finding.code, finding.document, finding.pointer, finding.row


def _tip(change: Change) -> CheckedSnapshot | None:
    """Return the tip of the base branch; None where the change starts from it."""
    source: ObjectSource = change.existing.snapshot.source
    if source.commit == change.base.commit:
        return None
    if all(source.object_id(folder) == change.base.object_id(folder) for folder in ROOTS):
        return None
    return CheckedSnapshot(
        source, schemas=change.head.schemas, known=change.existing, shared=change.head
    )


def _new_files(
    change: Change, tip: CheckedSnapshot, snapshot: CheckedSnapshot
) -> Iterator[SourceFile]:
    """Yield the files to judge one by one: what a side brought that the other can make wrong."""
    base = set(change.base.files)
    same_words = change.head.object_id(layout.VOCABULARY) == tip.object_id(layout.VOCABULARY)
    for file in snapshot.files:
        place = place_of(file.path)
        is_record_set = place is not None and place.kind == RECORD_SET
        # Rows depend on no other document but the vocabulary.
        if file not in base and not (is_record_set and same_words):
            yield file


def _judge(
    snapshot: CheckedSnapshot, files: Iterator[SourceFile], checks: Collection[Check]
) -> Iterator[tuple[Check, Finding]]:
    for file in files:
        document = snapshot.document(file)
        for check in checks:
            if check.judge_document is not None:
                yield from ((check, item) for item in check.judge_document(snapshot, document))
    for check in checks:
        if check.judge_snapshot is not None:
            yield from ((check, item) for item in check.judge_snapshot(snapshot))


MERGE = Check(
    id="merge",
    documentation="The change can be merged with what the base branch has since become.",
    rules=(CHANGED_ON_BOTH_SIDES,),
    judge_change=judge_merge,
)

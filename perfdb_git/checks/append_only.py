"""Merged evidence stays: whatever the merge base holds, the head holds byte for byte.

Trees are compared, not commits: a file that a merge commit dropped, or that one commit removed and
another brought back altered, differs between the two ends however it came to be.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from perfdb_git.checks.change import Change, ChangedFile
from perfdb_git.checks.rules import Check, Rule
from perfdb_git.model.findings import Finding
from perfdb_git.storage import layout
from perfdb_git.storage.folders import is_remark
from perfdb_git.storage.sources import SourceFile

CHANGED_EVIDENCE = Rule(
    code="changed-evidence",
    documentation="Merged evidence keeps its bytes.",
    remedy="restore it; correct it with 'perfdb retract' and new evidence beside it",
)
REMOVED_EVIDENCE = Rule(
    code="removed-evidence",
    documentation="Merged evidence is never removed.",
    remedy="restore it; evidence that is wrong is retracted, not removed",
)
RENAMED_EVIDENCE = Rule(
    code="renamed-evidence",
    documentation="Merged evidence keeps its path.",
    remedy="move it back",
)
CHANGED_MODE = Rule(
    code="changed-mode",
    documentation="Merged evidence keeps its file mode.",
    remedy="restore it with its mode",
)
NOT_COMPARABLE = Rule(
    code="not-comparable",
    documentation="Folders of evidence can be compared with the merge base.",
    remedy="repair what the layout check names; until then nobody can tell what was removed",
)

APPEND_ONLY_FOLDERS = (
    layout.RECORDS,
    layout.MANIFESTS,
    layout.SPLITS,
    layout.CALIBRATIONS,
    layout.VALIDATIONS,
    layout.RETRACTIONS,
)
"""Specs of calibrations stand among these and are edited by hand: they are left out."""

_CONSEQUENCES: Mapping[str, str] = {
    layout.RETRACTIONS: "; what it retracted would count again",
    layout.MANIFESTS: "; record sets that name it would have no environment",
    layout.SPLITS: "; calibrations fitted with it could not be judged again",
}


def judge_append_only(change: Change) -> Iterator[Finding]:
    """Yield merged evidence that the head has not, or has otherwise."""
    comparable = []
    for folder in APPEND_ONLY_FOLDERS:
        if change.base.is_walked(folder) and change.head.is_walked(folder):
            comparable.append(folder)
        else:
            yield NOT_COMPARABLE.broken(folder, "the folder cannot be walked whole")
    added = {
        changed.new.id: changed.new.path
        for changed in change.files
        if changed.old is None and changed.new is not None
    }
    for changed in change.files:
        place = _folder(changed.path)
        if place in comparable and changed.old is not None:
            yield from _judge(change, changed, changed.old, added, _CONSEQUENCES.get(place, ""))


def _folder(path: str) -> str:
    """Return the append-only folder that a path is in; empty for none."""
    if path.startswith(f"{layout.CALIBRATION_SPECS}/") or is_remark(path):
        return ""
    return next((name for name in APPEND_ONLY_FOLDERS if path.startswith(f"{name}/")), "")


def _judge(
    change: Change,
    changed: ChangedFile,
    old: SourceFile,
    added: Mapping[str, str],
    consequence: str,
) -> Iterator[Finding]:
    commit = change.base.commit
    restore = f"git restore --source {commit} -- {changed.path}"
    if changed.new is not None:
        if changed.new.mode != old.mode:
            yield CHANGED_MODE.broken(
                changed.path,
                f"the file mode was {old.mode:o} and is {changed.new.mode:o}",
                remedy=f"run '{restore}'",
            )
        if changed.new.id != old.id:
            yield CHANGED_EVIDENCE.broken(
                changed.path,
                "merged evidence was edited: the file has other bytes than at the merge base",
                remedy=f"run '{restore}'; {CHANGED_EVIDENCE.remedy.partition('; ')[2]}",
            )
    elif old.id in added:
        yield RENAMED_EVIDENCE.broken(
            changed.path,
            f"merged evidence was moved to {added[old.id]}",
            remedy=f"run 'git mv {added[old.id]} {changed.path}'",
        )
    else:
        yield REMOVED_EVIDENCE.broken(
            changed.path,
            f"merged evidence is gone{consequence}",
            remedy=f"run '{restore}'; {REMOVED_EVIDENCE.remedy.partition('; ')[2]}",
        )


APPEND_ONLY = Check(
    id="append-only",
    documentation="Evidence of the merge base stands unchanged at the head.",
    rules=(
        CHANGED_EVIDENCE,
        REMOVED_EVIDENCE,
        RENAMED_EVIDENCE,
        CHANGED_MODE,
        NOT_COMPARABLE,
    ),
    judge_change=judge_append_only,
)

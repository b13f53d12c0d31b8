"""Which documents a change adds, changes and removes, by their folders."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from perfdb_git.storage import layout
from perfdb_git.storage.git import Change, GitStore

DocumentKind: TypeAlias = Literal[
    "record-set",
    "manifest",
    "split",
    "calibration",
    "calibration-spec",
    "validation",
    "retraction",
    "policy",
    "vocabulary",
    "system-profile",
    "timing-profile",
    "pipeline",
    "plan",
    "schema",
    "other",
]
ChangeKind: TypeAlias = Literal["added", "changed", "removed"]

FOLDERS = (layout.EVIDENCE, layout.PROFILES, layout.PIPELINES, layout.SCHEMAS)
"""What makes an evidence repository; files elsewhere have no part in answers."""

_KINDS: tuple[tuple[str, DocumentKind], ...] = (
    (layout.RECORDS, "record-set"),
    (layout.MANIFESTS, "manifest"),
    (layout.SPLITS, "split"),
    (layout.CALIBRATION_SPECS, "calibration-spec"),
    (layout.CALIBRATIONS, "calibration"),
    (layout.VALIDATIONS, "validation"),
    (layout.RETRACTIONS, "retraction"),
    (layout.POLICIES, "policy"),
    (layout.SYSTEM_PROFILES, "system-profile"),
    (layout.PROFILES, "timing-profile"),
    (layout.PLANS, "plan"),
    (layout.PIPELINES, "pipeline"),
    (layout.SCHEMAS, "schema"),
)
"""The first folder that holds a path decides."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentChange:
    """One file that differs between two commits; ``old`` and ``new`` are its blobs."""

    kind: DocumentKind
    change: ChangeKind
    path: str
    old: str | None
    new: str | None


def changed_documents(store: GitStore, base: str | None, head: str) -> tuple[DocumentChange, ...]:
    """Return the documents that differ between two commits, sorted by path.

    A walk that compares object ids: equal folders are never read.

    Parameters
    ----------
    store : GitStore
        The repository.
    base : str or None
        Full commit id; ``None`` stands for an empty tree.
    head : str
        Full commit id.

    Raises
    ------
    InvalidInputError, RepositoryUnavailableError
        What `GitStore.changed_paths` raises.
    """
    old = None if base is None else store.read_commit(base).tree
    new = store.read_commit(head).tree
    changes = (
        _document_change(change)
        for folder in FOLDERS
        for change in store.changed_paths(
            None if old is None else store.lookup(old, folder),
            store.lookup(new, folder),
            prefix=folder,
        )
    )
    return tuple(sorted(changes, key=lambda change: change.path.encode()))


def kind_of(path: str) -> DocumentKind:
    """Return the kind of document that stands at a path."""
    if path == layout.VOCABULARY:
        return "vocabulary"
    return next((kind for folder, kind in _KINDS if path.startswith(f"{folder}/")), "other")


def of_kind(changes: tuple[DocumentChange, ...], kind: DocumentKind) -> Iterator[DocumentChange]:
    """Yield the changes of one kind of document."""
    return (change for change in changes if change.kind == kind)


def _document_change(change: Change) -> DocumentChange:
    kind: ChangeKind = "changed"
    if change.old is None:
        kind = "added"
    elif change.new is None:
        kind = "removed"
    return DocumentChange(
        kind=kind_of(change.path),
        change=kind,
        path=change.path,
        old=None if change.old is None else change.old.id,
        new=None if change.new is None else change.new.id,
    )

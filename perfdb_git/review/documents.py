"""Which documents a change adds, changes and removes, by their folders."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias, cast, get_args

from perfdb_git.storage.folders import ROOTS, place_of
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
    "gates",
    "vocabulary",
    "system-profile",
    "timing-profile",
    "pipeline",
    "plan",
    "plan-lock",
    "schema",
    "other",
]
_KINDS = frozenset[str | None](get_args(DocumentKind))
ChangeKind: TypeAlias = Literal["added", "changed", "removed"]


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
        for folder in ROOTS
        for change in store.changed_paths(
            None if old is None else store.lookup(old, folder),
            store.lookup(new, folder),
            prefix=folder,
        )
    )
    return tuple(sorted(changes, key=lambda change: change.path.encode()))


def kind_of(path: str) -> DocumentKind:
    """Return the kind of document that stands at a path."""
    place = place_of(path)
    kind = None if place is None else place.kind
    return cast("DocumentKind", kind) if kind in _KINDS else "other"


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

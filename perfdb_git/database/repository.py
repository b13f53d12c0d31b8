"""An evidence repository, and how its snapshots are opened."""

from __future__ import annotations

from pathlib import Path
from typing import TypedDict, Unpack

from perfdb_git.database.snapshot import DatabaseSnapshot
from perfdb_git.errors import UsageError
from perfdb_git.storage.git import GitStore, ResolvedRevision
from perfdb_git.storage.index import Progress
from perfdb_git.storage.segment_store import SegmentStore
from perfdb_git.storage.shared_reads import SharedReads
from perfdb_git.storage.snapshot import EvidenceSnapshot
from perfdb_git.storage.sources import GitSource, SnapshotSource, WorktreeSource

DEFAULT_REVISION = "HEAD"


class IndexSettings(TypedDict, total=False):
    """How derived data are kept and made; see `PerformanceDatabase`."""

    cache_directory: Path | None
    progress: Progress | None
    jobs: int | None
    segment_store: SegmentStore | None


class PerformanceDatabase:
    """An evidence repository, read at any revision.

    Parameters
    ----------
    store : GitStore
        The Git repository; a bare one will do.
    cache_directory : Path or None
        Where derived data lives; ``None`` is ``PERFDB_CACHE_DIR`` or the user's cache directory.
    progress : Progress or None
        Called while an index is built.
    jobs : int or None
        How many processes may build it; ``None`` takes as many as there are usable CPUs.
    segment_store : SegmentStore or None
        Where index files are kept; ``None`` takes the cache directory.
    """

    def __init__(self, store: GitStore, **settings: Unpack[IndexSettings]) -> None:
        self.store = store
        self._settings = settings
        self._shared = SharedReads()

    @classmethod
    def open(cls, path: Path | str = ".", **settings: Unpack[IndexSettings]) -> PerformanceDatabase:
        """Open the repository that holds ``path``; settings are those of the class.

        Raises
        ------
        RepositoryUnavailableError
            When there is none, or it cannot be read.
        """
        return cls(GitStore.open(path), **settings)

    def at(self, revision: str = DEFAULT_REVISION) -> DatabaseSnapshot:
        """Return the snapshot at a revision; its full commit id is the fingerprint."""
        resolved = self.store.resolve_revision(revision)
        return self._snapshot(GitSource(self.store, resolved.commit), resolved)

    def worktree(self) -> DatabaseSnapshot:
        """Return the uncommitted files as a snapshot; its answers are marked ``uncommitted``.

        Raises
        ------
        UsageError
            When the repository has no work tree.
        """
        root = self.store.work_tree
        if root is None:
            raise UsageError(
                "a bare repository has no work tree", code="no-work-tree", remedy="use --at REV"
            )
        return self._snapshot(WorktreeSource(root), None)

    def _snapshot(
        self, source: SnapshotSource, revision: ResolvedRevision | None
    ) -> DatabaseSnapshot:
        evidence = EvidenceSnapshot(source, shared=self._shared, **self._settings)
        return DatabaseSnapshot(evidence, revision=revision)

"""What a worker opens the very snapshot by that the asking process has."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from perfdb_git.database import DatabaseSnapshot, PerformanceDatabase
from perfdb_git.distribution.clones import clone_with, is_url
from perfdb_git.distribution.shared_segments import Progress, SharedSegments
from perfdb_git.errors import ClusterUnavailableError, RepositoryUnavailableError, UsageError
from perfdb_git.model.result import Message


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotAddress:
    """A repository and a commit of it.

    Attributes
    ----------
    repository : str
        A path on the worker, or a URL to clone from.
    commit : str
        Full commit id.
    segments : str or None
        URL of the place of shared index files; None makes the index from the clone.
    """

    repository: str
    commit: str
    segments: str | None = None

    def open(self) -> DatabaseSnapshot:
        """Open the snapshot on this machine.

        Raises
        ------
        ClusterUnavailableError
            'worker-without-repository' or 'worker-lacks-commit' where this machine has no such
            clone, or not the commit, and as `clone_with`.
        """
        path = Path(self.repository)
        if is_url(self.repository):
            path = clone_with(self.repository, self.commit)
        shared = None if self.segments is None else SharedSegments(self.segments)
        try:
            # A worker is one of several processes already: it starts no others.
            database = PerformanceDatabase.open(path, jobs=1, segment_store=shared)
        except RepositoryUnavailableError as error:
            raise ClusterUnavailableError(
                "a worker has no clone of the repository",
                code="worker-without-repository",
                remedy="name with --worker-repo where one is, or a URL to clone from",
            ) from error
        try:
            return database.at(self.commit)
        except RepositoryUnavailableError as error:
            raise ClusterUnavailableError(
                f"a worker's clone does not have commit {self.commit}",
                code="worker-lacks-commit",
                remedy="push it and fetch it there, or give --worker-repo a URL that has it",
            ) from error


def share_snapshot(
    snapshot: DatabaseSnapshot,
    *,
    repository: str | None = None,
    segments: str | None = None,
    progress: Progress | None = None,
) -> tuple[SnapshotAddress, tuple[Message, ...]]:
    """Return what workers open a snapshot by, after sharing its index files.

    Parameters
    ----------
    snapshot : DatabaseSnapshot
        The snapshot; of a commit.
    repository : str or None
        Where a worker has a clone, or a URL to clone from; None is where it is here.
    segments : str or None
        URL of the place of shared index files, which is filled with what it lacks.
    progress : callable or None
        Called with files done, their number, and the name of the last one.

    Raises
    ------
    UsageError
        'uncommitted-files', or as `SharedSegments`.
    """
    if snapshot.commit is None:
        raise UsageError(
            "uncommitted files are on this machine only, and workers have clones of their own",
            code="uncommitted-files",
            remedy="commit them, or leave --workers and --dask out",
        )
    remarks: tuple[Message, ...] = ()
    if segments is not None:
        if "://" not in segments:
            segments = str(Path(segments).resolve())  # a worker stands somewhere else
        shared = SharedSegments(segments, snapshot.evidence.cache.root)
        shared.publish(snapshot.evidence, progress)
        remarks = shared.warnings
    address = SnapshotAddress(
        repository=repository or snapshot.evidence.source.address.path,
        commit=snapshot.commit,
        segments=segments,
    )
    return address, remarks

"""Deriving a snapshot's index from Git once more, and saying what of it is stored otherwise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from perfdb_git.formats.schemas import SchemaStore
from perfdb_git.storage import layout
from perfdb_git.storage.catalogue import build_catalogue
from perfdb_git.storage.directory_catalogue import DirectoryCatalogue
from perfdb_git.storage.index_build import IndexBuilder, Progress
from perfdb_git.storage.record_folders import files_of, record_folders
from perfdb_git.storage.segment_store import (
    SegmentStore,
    catalogue_name,
    directory_name,
    segment_name,
)
from perfdb_git.storage.segment_worker import Outcome, verify_file
from perfdb_git.storage.segment_workers import in_processes
from perfdb_git.storage.segments import build_segment, without_garbage_collection
from perfdb_git.storage.sources import SnapshotSource, SourceFile


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexFault:
    """An index file that is not what Git says.

    Attributes
    ----------
    path : str
        The record set or folder that it is about.
    file : str
        Its name in the cache directory.
    fault : str
        ``truncated``, ``damaged`` (its checksums say so) or ``differs`` (they hold).
    """

    path: str
    file: str
    fault: Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexVerification:
    """The outcome: how many record sets there are, how many are not indexed, and every fault."""

    record_sets: int
    not_indexed: int
    faults: tuple[IndexFault, ...]


class IndexVerifier:
    """Compares the index of one snapshot with Git; what is wrong is discarded.

    Parameters
    ----------
    source : SnapshotSource
        The snapshot's files.
    store : SegmentStore
        Where index files are kept.
    schemas : SchemaStore
        Judges headers.
    progress : callable or None
        Called while record sets are read; see `Progress`.
    jobs : int or None
        How many processes may work at once; None takes as many as there are usable CPUs.
    """

    def __init__(
        self,
        source: SnapshotSource,
        store: SegmentStore,
        schemas: SchemaStore,
        *,
        progress: Progress | None = None,
        jobs: int | None = None,
    ) -> None:
        self._source = source
        self._store = store
        self._schemas = schemas
        self._progress = progress
        self._jobs = jobs
        self._faults: list[IndexFault] = []

    def verify(self, digest: str, retracted: Mapping[str, set[int] | None]) -> IndexVerification:
        """Derive every index file again and compare.

        Parameters
        ----------
        digest : str
            Names the catalogue of the snapshot.
        retracted : mapping
            Retracted rows by SHA-256 of the record set, None for all.

        Raises
        ------
        InvalidInputError, RepositoryUnavailableError
            If a record set is invalid or cannot be read.
        """
        folders = [(item, files_of(self._source, item)) for item in record_folders(self._source)]
        files = {file.id: file for _, found in folders for file in found}
        outcomes = self._segment_outcomes(list(files.values()))
        for blob, outcome in outcomes.items():
            self._note(files[blob].path, segment_name(blob), outcome)
        builder = IndexBuilder(self._source, _Unstored(self._store), self._schemas)
        listed = []
        for folder, found in folders:
            content = builder.directory_content(folder, found)
            self._compare(folder.path, directory_name(folder.identity), content)
            listed.append((folder, DirectoryCatalogue(content)))
        name = catalogue_name(digest)
        self._compare(layout.RECORDS, name, build_catalogue(listed, retracted))
        return IndexVerification(
            record_sets=len(files),
            not_indexed=sum(outcome == "absent" for outcome in outcomes.values()),
            faults=tuple(self._faults),
        )

    def _segment_outcomes(self, files: Sequence[SourceFile]) -> dict[str, Outcome]:
        found: dict[str, Outcome] = {}

        def on_done(file: SourceFile, outcome: Outcome) -> None:
            found[file.id] = outcome
            if self._progress is not None:
                self._progress(len(found), len(files), file.path)

        root = self._store.local_root
        in_processes("verify", self._source, root, files, jobs=self._jobs, on_done=on_done)
        with without_garbage_collection():
            for file in files:
                if file.id not in found:
                    content = self._source.read(file)
                    segment = build_segment(content, document=file.path, schemas=self._schemas)
                    on_done(file, verify_file(self._store, segment_name(file.id), segment))
        return found

    def _compare(self, path: str, name: str, wanted: bytes) -> None:
        self._note(path, name, verify_file(self._store, name, wanted))

    def _note(self, path: str, name: str, outcome: Outcome) -> None:
        if outcome not in ("equal", "absent"):
            self._faults.append(IndexFault(path=path, file=name, fault=outcome))


class _Unstored:
    """A store that keeps nothing new: verifying an index does not complete it."""

    local_root: None = None

    def __init__(self, store: SegmentStore) -> None:
        self._store = store
        self.has = store.has
        self.load = store.load
        self.discard = store.discard

    def store(self, name: str, content: bytes) -> None:
        """Forget the content."""

"""Making what an index lacks: segments, catalogues of folders, the catalogue of a snapshot."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from perfdb_git.formats.schemas import SchemaStore
from perfdb_git.storage.block_file import DamagedFileError
from perfdb_git.storage.catalogue import Folder, build_catalogue
from perfdb_git.storage.catalogue_entries import CatalogueEntry
from perfdb_git.storage.directory_catalogue import DirectoryCatalogue, build_directory_catalogue
from perfdb_git.storage.record_folders import files_of, record_folders, require_countable
from perfdb_git.storage.segment_store import SegmentStore, directory_name, segment_name
from perfdb_git.storage.segments import Segment, build_segment, without_garbage_collection
from perfdb_git.storage.sources import SnapshotSource, SourceFile

Progress: TypeAlias = Callable[[int, int, str], None]
"""Called with the record sets done, their number, and the path of the last one."""


class IndexBuilder:
    """Makes index files of one snapshot from Git where they are absent or damaged.

    Parameters
    ----------
    source : SnapshotSource
        The snapshot's files.
    store : SegmentStore
        Where index files are kept.
    schemas : SchemaStore
        Judges headers.
    progress : callable or None
        Called while record sets are read in; see `Progress`.
    jobs : int or None
        How many processes may work at once; None takes as many as there are usable CPUs. Little
        work is done in this one.

    Attributes
    ----------
    segments_built : int
        How many segments were made for this object.
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
        self.segments_built = 0

    def catalogue(self, retracted: Mapping[str, set[int] | None]) -> bytes:
        """Return the catalogue of the snapshot, making every segment that it lacks.

        Raises
        ------
        InvalidInputError, RepositoryUnavailableError
            If a record set is invalid or cannot be read.
        """
        folders = record_folders(self._source)
        lacking = {
            folder.identity: folder
            for folder in reversed(folders)
            if not self._store.has(directory_name(folder.identity))
        }
        files = {item.path: files_of(self._source, item) for item in lacking.values()}
        require_countable(sum(map(len, files.values())))
        self._make_segments([file for found in files.values() for file in found])
        return build_catalogue(
            [(folder, self.directory(folder, files.get(folder.path))) for folder in folders],
            retracted,
        )

    def complete(self) -> None:
        """Make every segment that the snapshot lacks, those of listed record sets too.

        Raises
        ------
        InvalidInputError, RepositoryUnavailableError
            As `catalogue`.
        """
        folders = record_folders(self._source)
        self._make_segments([file for item in folders for file in files_of(self._source, item)])

    def directory(
        self, folder: Folder, files: Sequence[SourceFile] | None = None
    ) -> DirectoryCatalogue:
        """Return the catalogue of a folder, made anew where it is absent or damaged.

        Parameters
        ----------
        folder : Folder
            One of the snapshot.
        files : sequence of SourceFile or None
            Its record-set files, if they were listed already.
        """
        name = directory_name(folder.identity)
        buffer = self._store.load(name)
        if buffer is not None:
            try:
                return DirectoryCatalogue(buffer)
            except DamagedFileError:
                self._store.discard(name)
        if files is None:
            files = files_of(self._source, folder)
            self._make_segments(files)
        content = self.directory_content(folder, files)
        self._store.store(name, content)
        return DirectoryCatalogue(content)

    def directory_content(self, folder: Folder, files: Sequence[SourceFile]) -> bytes:
        """Return the catalogue of a folder with these files, whatever the store has of it."""
        skipped = len(folder.path) + 1
        return build_directory_catalogue([self._entry(file, skipped) for file in files])

    def segment(self, file: SourceFile) -> Segment:
        """Return the segment of a record-set file, made where it is absent.

        Raises
        ------
        DamagedFileError
            If the store has a damaged one.
        InvalidInputError, RepositoryUnavailableError
            If the record set is invalid or cannot be read.
        """
        buffer = self._store.load(segment_name(file.id))
        return Segment(self._make_segment(file) if buffer is None else buffer)

    def _entry(self, file: SourceFile, skipped: int) -> CatalogueEntry:
        try:
            segment = self.segment(file)
        except DamagedFileError:
            self._store.discard(segment_name(file.id))
            segment = self.segment(file)
        return CatalogueEntry(
            path=file.path[skipped:],
            blob=file.id,
            sha256=segment.sha256,
            row_count=segment.row_count,
            header=segment.header,
        )

    def _make_segment(self, file: SourceFile) -> bytes:
        content = build_segment(self._source.read(file), document=file.path, schemas=self._schemas)
        self._store.store(segment_name(file.id), content)
        self.segments_built += 1
        return content

    def _make_segments(self, files: Sequence[SourceFile]) -> None:
        by_blob = {file.id: file for file in files if not self._store.has(segment_name(file.id))}
        lacking = list(by_blob.values())
        done = 0

        def on_made(file: SourceFile) -> None:
            nonlocal done
            done += 1
            if self._progress is not None:
                self._progress(done, len(lacking), file.path)

        if lacking:
            # Imported here: usually there is nothing to make.
            from perfdb_git.storage.segment_workers import in_processes

            def count(file: SourceFile, _outcome: str) -> None:
                self.segments_built += 1
                on_made(file)

            root = self._store.local_root
            in_processes("make", self._source, root, lacking, jobs=self._jobs, on_done=count)
        with without_garbage_collection():
            for file in lacking:
                if not self._store.has(segment_name(file.id)):
                    self._make_segment(file)
                    on_made(file)

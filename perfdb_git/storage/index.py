"""The index: segments and a catalogue in the cache directory, made from Git where missing.

Deleting or damaging any of it costs time and changes nothing else. A question about one series
reads the snapshot's catalogue, those of the folders that hold the series, and its segments.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from perfdb_git.errors import RepositoryUnavailableError
from perfdb_git.formats.codec import decode
from perfdb_git.formats.schemas import SchemaStore
from perfdb_git.model.records import RecordSetHeader, Retraction, SeriesKey
from perfdb_git.model.result import Message
from perfdb_git.storage import layout
from perfdb_git.storage.block_file import DamagedFileError
from perfdb_git.storage.cache_directory import CacheDirectory
from perfdb_git.storage.catalogue import Catalogue, Folder, snapshot_digest
from perfdb_git.storage.catalogue_entries import (
    CatalogueEntry,
    RetractedRows,
    SeriesFacts,
    SeriesSummary,
)
from perfdb_git.storage.documents import DocumentCache, StoredDocument
from perfdb_git.storage.index_build import IndexBuilder, Progress
from perfdb_git.storage.record_folders import files_of, record_folders
from perfdb_git.storage.segment_store import (
    SegmentStore,
    catalogue_name,
    directory_name,
    segment_name,
)
from perfdb_git.storage.segments import Segment
from perfdb_git.storage.sources import SnapshotSource, SourceFile

if TYPE_CHECKING:
    from perfdb_git.storage.index_verify import IndexVerification

__all__ = ["EvidenceIndex", "IndexRebuiltError", "Progress"]

_MAX_ROW_DIGITS = 18

T = TypeVar("T")


class IndexRebuiltError(RepositoryUnavailableError):
    """The index did not say what Git says; it was dropped, so a second try reads Git alone.

    Whoever computed something from the snapshot has to compute it again.
    """

    def __init__(self, path: str) -> None:
        super().__init__(
            f"the index of {path} did not agree with Git and was dropped",
            code="index-rebuilt",
            remedy="run the command again: the index is made anew",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexCoverage:
    """How many record sets a snapshot has and how many are indexed, and whether they are listed."""

    record_sets: int
    indexed: int
    has_catalogue: bool

    @property
    def is_complete(self) -> bool:
        """Whether a question about records would have nothing to make."""
        return self.has_catalogue and self.indexed == self.record_sets


class EvidenceIndex:
    """The records of one snapshot as columns.

    Parameters
    ----------
    source : SnapshotSource
        The snapshot's files.
    cache : CacheDirectory
        Where parsed retractions are kept.
    schemas : SchemaStore
        Judges headers and retractions.
    store : SegmentStore or None
        Where segments and catalogues are kept; None takes `cache`.
    progress : callable or None
        Called while record sets are read in; see `Progress`.
    jobs : int or None
        How many processes may read record sets in; see `IndexBuilder`.
    segments : dict or None
        Open segments by blob, which indexes of other snapshots may share.
    headers : dict or None
        Decoded headers by blob, shared likewise.

    Attributes
    ----------
    generation : int
        Grows with every `IndexRebuiltError`: entries handed out before are no longer valid.
    """

    def __init__(
        self,
        source: SnapshotSource,
        cache: CacheDirectory,
        schemas: SchemaStore,
        *,
        store: SegmentStore | None = None,
        progress: Progress | None = None,
        jobs: int | None = None,
        segments: dict[str, Segment] | None = None,
        headers: dict[str, RecordSetHeader] | None = None,
    ) -> None:
        self._source = source
        self._store: SegmentStore = cache if store is None else store
        self._cache = cache
        self._schemas = schemas
        self._progress = progress
        self._jobs = jobs
        self._documents = DocumentCache(cache, schemas)
        self._builder = IndexBuilder(source, self._store, schemas, progress=progress, jobs=jobs)
        self._segments: dict[str, Segment] = {} if segments is None else segments
        self._headers: dict[str, RecordSetHeader] = {} if headers is None else headers
        self._catalogue: Catalogue | None = None
        self.generation = 0

    @property
    def segments_built(self) -> int:
        """How many segments this object had to make."""
        return self._builder.segments_built

    @functools.cached_property
    def digest(self) -> str:
        """64 hexadecimal digits that change whenever any record or retraction does."""
        return snapshot_digest(
            self._source.object_id(layout.RECORDS), self._source.object_id(layout.RETRACTIONS)
        )

    @property
    def warnings(self) -> tuple[Message, ...]:
        """What the user should know: empty, or that the cache cannot be written."""
        return self._cache.warnings

    def series(self) -> tuple[SeriesSummary, ...]:
        """Return every series, sorted by device, operation and kind."""
        return self._with_catalogue(lambda catalogue: catalogue.series)

    def facts(self) -> dict[SeriesKey, SeriesFacts]:
        """Return what the headers of each series say together, without reading any."""
        return self._with_catalogue(
            lambda catalogue: {
                summary.key: facts
                for summary, facts in zip(catalogue.series, catalogue.facts(), strict=True)
            }
        )

    def entries(self, key: SeriesKey) -> tuple[CatalogueEntry, ...]:
        """Return the record sets of one series, sorted by path; none for an unknown series."""
        return self._with_catalogue(lambda catalogue: self._entries(catalogue, key))

    def find(self, prefix: str) -> list[tuple[str, SeriesKey]]:
        """Return SHA-256 and series of the record sets whose SHA-256 begins so, sorted."""
        return self._with_catalogue(lambda catalogue: catalogue.find(prefix))

    def header(self, entry: CatalogueEntry) -> RecordSetHeader:
        """Return a record set's header, decoded once for all snapshots that have the file."""
        if entry.blob not in self._headers:
            header = decode(RecordSetHeader, entry.header, document=entry.path)
            self._headers[entry.blob] = header
        return self._headers[entry.blob]

    def with_segment(self, entry: CatalogueEntry, use: Callable[[Segment], T]) -> T:
        """Apply a function to a record set's segment, making it anew where it is damaged.

        Raises
        ------
        InvalidInputError, RepositoryUnavailableError
            If it has to be made and the record set is invalid or cannot be read.
        """
        try:
            return use(self._segment(entry))
        except DamagedFileError:
            self._drop_segment(entry)
        try:
            return use(self._segment(entry))
        except DamagedFileError as error:
            # The segment is fresh, so the catalogue that led to it is the wrong one.
            raise self.reject(entry) from error

    def coverage(self) -> IndexCoverage:
        """Count what is indexed, without making anything."""
        folders = record_folders(self._source)
        blobs = {file.id for folder in folders for file in files_of(self._source, folder)}
        catalogues = [self._catalogue_name, *(directory_name(item.identity) for item in folders)]
        return IndexCoverage(
            record_sets=len(blobs),
            indexed=sum(self._store.has(segment_name(blob)) for blob in blobs),
            has_catalogue=all(map(self._store.has, catalogues)),
        )

    def build(self) -> None:
        """Make everything that the index of the snapshot lacks.

        Raises
        ------
        InvalidInputError, RepositoryUnavailableError
            If a record set is invalid or cannot be read.
        """
        self._builder.complete()
        self._with_catalogue(lambda catalogue: None)

    def verify(self) -> IndexVerification:
        """Derive the index from Git once more and compare; what is wrong is discarded.

        Raises
        ------
        InvalidInputError, RepositoryUnavailableError
            If a record set is invalid or cannot be read.
        """
        from perfdb_git.storage.index_verify import IndexVerifier

        self._catalogue = None
        self._segments.clear()
        verifier = IndexVerifier(
            self._source,
            self._store,
            self._schemas,
            progress=self._progress,
            jobs=self._jobs,
        )
        return verifier.verify(self.digest, self._retracted())

    def reject(self, entry: CatalogueEntry) -> IndexRebuiltError:
        """Forget what the index says of a record set, and return the error to raise."""
        self._drop_segment(entry)
        folders = () if self._catalogue is None else self._catalogue.folders
        for folder in folders:
            if entry.path.startswith(f"{folder.path}/"):
                self._store.discard(directory_name(folder.identity))
        self._drop_catalogue()
        self.generation += 1
        return IndexRebuiltError(entry.path)

    def retractions(self) -> tuple[StoredDocument[Retraction], ...]:
        """Return every retraction of the snapshot, sorted by path.

        Raises
        ------
        InvalidInputError
            If one breaks its schema.
        """
        return tuple(
            self._documents.read(self._source, file, Retraction, kind="retraction")
            for file in self._source.files(layout.RETRACTIONS)
            if file.path.endswith(layout.JSON_SUFFIX)
        )

    @property
    def _catalogue_name(self) -> str:
        return catalogue_name(self.digest)

    def _with_catalogue(self, use: Callable[[Catalogue], T]) -> T:
        try:
            return use(self._open_catalogue())
        except DamagedFileError:
            self._drop_catalogue()
            return use(self._open_catalogue())

    def _drop_segment(self, entry: CatalogueEntry) -> None:
        self._segments.pop(entry.blob, None)
        self._headers.pop(entry.blob, None)
        self._store.discard(segment_name(entry.blob))

    def _drop_catalogue(self) -> None:
        self._catalogue = None
        self._store.discard(self._catalogue_name)

    def _open_catalogue(self) -> Catalogue:
        if self._catalogue is None:
            buffer = self._store.load(self._catalogue_name)
            if buffer is None:
                buffer = self._builder.catalogue(self._retracted())
                self._store.store(self._catalogue_name, buffer)
                self._keep_cache_small()
            self._catalogue = Catalogue(buffer)
        return self._catalogue

    def _retracted(self) -> dict[str, set[int] | None]:
        return _retracted_rows([item.value for item in self.retractions()])

    def _keep_cache_small(self) -> None:
        if self.segments_built and not self._cache.warnings:
            # Imported here: usually nothing was made.
            from perfdb_git.storage.cache_collection import collect_if_due
            from perfdb_git.storage.cache_limit import cache_limit

            collect_if_due(self._cache.root, cache_limit(), added=self.segments_built)

    def _entries(self, catalogue: Catalogue, key: SeriesKey) -> tuple[CatalogueEntry, ...]:
        parts = catalogue.parts(key)
        if not parts:
            return ()
        retracted, left_out = catalogue.retracted(), catalogue.left_out()
        found: list[CatalogueEntry] = []
        for place, number in parts:
            folder = catalogue.folders[place]
            found += self._folder_entries(folder, number, retracted)
        if left_out:
            found = [entry for entry in found if entry.path not in left_out]
        return tuple(sorted(found, key=lambda entry: entry.path) if len(parts) > 1 else found)

    def _folder_entries(
        self, folder: Folder, number: int, retracted: RetractedRows
    ) -> list[CatalogueEntry]:
        try:
            listed = self._builder.directory(folder)
            return listed.entries(number, folder=folder.path, retracted=retracted)
        except DamagedFileError:
            self._store.discard(directory_name(folder.identity))
            listed = self._builder.directory(folder)
            return listed.entries(number, folder=folder.path, retracted=retracted)

    def _segment(self, entry: CatalogueEntry) -> Segment:
        segment = self._segments.get(entry.blob)
        if segment is None:
            segment = self._builder.segment(SourceFile(entry.path, entry.blob))
            if segment.sha256 != entry.sha256 or segment.row_count != entry.row_count:
                raise DamagedFileError("segment and catalogue disagree")
            self._segments[entry.blob] = segment
        return segment


def _retracted_rows(retractions: Sequence[Retraction]) -> dict[str, set[int] | None]:
    """Return the retracted rows by record set; None stands for all rows."""
    result: dict[str, set[int] | None] = {}
    for retraction in retractions:
        sha256, _, row = retraction.target.partition("#")
        if not row:
            result[sha256] = None
            continue
        rows = result.setdefault(sha256, set())
        # A longer number is no row of any file, and reading it could take long.
        if rows is not None and len(row) <= _MAX_ROW_DIGITS:
            rows.add(int(row))
    return result

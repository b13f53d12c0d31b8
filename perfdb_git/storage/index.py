"""The index: segments and a catalogue in the cache directory, made from Git where missing.

Deleting or damaging any of it costs time and changes nothing else. Segments are made one after the
other; two processes that make the same one write equal bytes under different temporary names.
"""

from __future__ import annotations

import functools
import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeAlias, TypeVar

from perfdb_git.errors import RepositoryUnavailableError
from perfdb_git.formats.codec import decode
from perfdb_git.formats.schemas import SchemaStore
from perfdb_git.model.records import RecordSetHeader, Retraction, SeriesKey
from perfdb_git.model.result import Message
from perfdb_git.storage import layout
from perfdb_git.storage.block_file import DamagedFileError
from perfdb_git.storage.cache_directory import CacheDirectory
from perfdb_git.storage.catalogue import (
    Catalogue,
    CatalogueEntry,
    SeriesSummary,
    build_catalogue,
    snapshot_digest,
)
from perfdb_git.storage.documents import DocumentCache, StoredDocument
from perfdb_git.storage.segments import Segment, build_segment
from perfdb_git.storage.sources import ObjectSource, SourceFile

INDEX_FORMAT = 1
"""Part of every path: raised when segments or catalogues change, or rows are judged anew."""

_MAX_ROW_DIGITS = 18

Progress: TypeAlias = Callable[[int, int, str], None]
"""Called with the record sets done, their number, and the path of the last one."""

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


class EvidenceIndex:
    """The records of one snapshot as columns.

    Parameters
    ----------
    source : ObjectSource
        The snapshot's files.
    cache : CacheDirectory
        Where segments and catalogues are kept.
    schemas : SchemaStore
        Judges headers and retractions.
    progress : callable or None
        Called while record sets are read in; see `Progress`.
    segments : dict or None
        Open segments by blob, which indexes of other snapshots may share.
    headers : dict or None
        Decoded headers by blob, shared likewise.

    Attributes
    ----------
    segments_built : int
        How many segments this object had to make.
    generation : int
        Grows with every `IndexRebuiltError`: entries handed out before are no longer valid.
    """

    def __init__(
        self,
        source: ObjectSource,
        cache: CacheDirectory,
        schemas: SchemaStore,
        *,
        progress: Progress | None = None,
        segments: dict[str, Segment] | None = None,
        headers: dict[str, RecordSetHeader] | None = None,
    ) -> None:
        self._source = source
        self._cache = cache
        self._schemas = schemas
        self._documents = DocumentCache(cache, schemas)
        self._progress = progress
        self._segments: dict[str, Segment] = {} if segments is None else segments
        self._headers: dict[str, RecordSetHeader] = {} if headers is None else headers
        self._catalogue: Catalogue | None = None
        self.segments_built = 0
        self.generation = 0

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
        return self._with_catalogue(lambda catalogue: catalogue.series())

    def entries(self, key: SeriesKey) -> tuple[CatalogueEntry, ...]:
        """Return the record sets of one series, sorted by path; none for an unknown series."""
        return self._with_catalogue(lambda catalogue: catalogue.entries(key))

    def find(self, prefix: str) -> list[tuple[str, SeriesKey, int]]:
        """Return SHA-256, series and place of the record sets whose SHA-256 begins so."""
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

    def reject(self, entry: CatalogueEntry) -> IndexRebuiltError:
        """Forget what the index says of a record set, and return the error to raise."""
        self._drop_segment(entry)
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
        return f"index/v{INDEX_FORMAT}/catalogues/{self.digest}.catalogue"

    def _with_catalogue(self, use: Callable[[Catalogue], T]) -> T:
        try:
            return use(self._open_catalogue())
        except DamagedFileError:
            self._drop_catalogue()
            return use(self._open_catalogue())

    def _drop_segment(self, entry: CatalogueEntry) -> None:
        self._segments.pop(entry.blob, None)
        self._headers.pop(entry.blob, None)
        self._cache.discard(_segment_name(entry.blob))

    def _drop_catalogue(self) -> None:
        self._catalogue = None
        self._cache.discard(self._catalogue_name)

    def _open_catalogue(self) -> Catalogue:
        if self._catalogue is None:
            buffer = self._cache.load(self._catalogue_name)
            if buffer is None:
                buffer = build_catalogue(self._all_entries())
                self._cache.store(self._catalogue_name, buffer)
            self._catalogue = Catalogue(buffer)
        return self._catalogue

    def _all_entries(self) -> list[CatalogueEntry]:
        files = [
            file
            for file in self._source.files(layout.RECORDS)
            if file.path.endswith(layout.JSON_SUFFIX)
        ]
        retracted = _retracted_rows([document.value for document in self.retractions()])
        entries = []
        with _no_garbage_collection():
            for done, file in enumerate(files, start=1):
                entries.append(self._entry(file, retracted))
                if self._progress is not None:
                    self._progress(done, len(files), file.path)
        return entries

    def _entry(self, file: SourceFile, retracted: dict[str, set[int] | None]) -> CatalogueEntry:
        try:
            segment = self._load_segment(file)
        except DamagedFileError:
            self._cache.discard(_segment_name(file.id))
            segment = self._load_segment(file)
        rows = retracted.get(segment.sha256, set())
        return CatalogueEntry(
            path=file.path,
            blob=file.id,
            sha256=segment.sha256,
            row_count=segment.row_count,
            header=segment.header,
            retracted=None
            if rows is None
            else tuple(sorted(row for row in rows if row < segment.row_count)),
        )

    def _segment(self, entry: CatalogueEntry) -> Segment:
        segment = self._segments.get(entry.blob)
        if segment is None:
            segment = self._load_segment(SourceFile(entry.path, entry.blob))
            if segment.sha256 != entry.sha256 or segment.row_count != entry.row_count:
                raise DamagedFileError("segment and catalogue disagree")
            self._segments[entry.blob] = segment
        return segment

    def _load_segment(self, file: SourceFile) -> Segment:
        name = _segment_name(file.id)
        buffer = self._cache.load(name)
        if buffer is None:
            content = self._source.read(file)
            buffer = build_segment(content, document=file.path, schemas=self._schemas)
            self._cache.store(name, buffer)
            self.segments_built += 1
        return Segment(buffer)


def _segment_name(blob: str) -> str:
    return f"index/v{INDEX_FORMAT}/segments/{blob[:2]}/{blob}.segment"


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


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Spare the collector the rows: it would walk them many times and find no cycle."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()

"""The evidence of one commit, or of the files of a work tree, as typed values."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

from perfdb_git.errors import (
    InvalidInputError,
    RepositoryUnavailableError,
    UsageError,
)
from perfdb_git.formats.codec import decode
from perfdb_git.formats.schemas import SchemaStore
from perfdb_git.model.policy import Policy
from perfdb_git.model.records import Manifest, RecordSetHeader, Retraction, SeriesKey, VerifiedRow
from perfdb_git.model.result import Message
from perfdb_git.model.system_profile import SystemProfile
from perfdb_git.model.vocabulary import Vocabulary
from perfdb_git.storage import layout
from perfdb_git.storage.cache_directory import CacheDirectory
from perfdb_git.storage.catalogue_entries import SeriesSummary
from perfdb_git.storage.documents import DocumentCache, StoredDocument
from perfdb_git.storage.index import EvidenceIndex, Progress
from perfdb_git.storage.record_sets import IndexedRecordSet
from perfdb_git.storage.segment_store import SegmentStore
from perfdb_git.storage.segments import split_record_set
from perfdb_git.storage.shared_reads import SharedReads
from perfdb_git.storage.sources import SnapshotSource, SourceFile
from perfdb_git.storage.verified_rows import verified_rows

T = TypeVar("T")

MIN_PREFIX = 4
"""Fewest digits of an id that stand for it."""

_HEX = re.compile(r"[0-9a-f]{1,64}")


class _HasAddress(Protocol):
    @property
    def sha256(self) -> str: ...


class EvidenceSnapshot:
    """Records, retractions, manifests, vocabulary, policies and system profiles of one snapshot.

    Nothing is read before it is asked for; the index is opened, and made where missing, by the
    first question about records.

    Parameters
    ----------
    source : SnapshotSource
        The snapshot's files.
    schemas : SchemaStore or None
        Judges documents; None takes the package's own schemas.
    cache_directory : Path or None
        Where derived data are kept; None takes `default_cache_directory`.
    progress : callable or None
        Called while record sets are read in; see `Progress`.
    jobs : int or None
        How many processes may read record sets in; None takes as many as there are usable CPUs.
    segment_store : SegmentStore or None
        Where index files are kept; None takes the cache directory.
    shared : SharedReads or None
        What other snapshots of the same repository have read already.
    """

    def __init__(
        self,
        source: SnapshotSource,
        *,
        schemas: SchemaStore | None = None,
        cache_directory: Path | None = None,
        progress: Progress | None = None,
        jobs: int | None = None,
        segment_store: SegmentStore | None = None,
        shared: SharedReads | None = None,
    ) -> None:
        self.source = source
        self._shared = shared = SharedReads() if shared is None else shared
        self._views_generation = 0
        self._schemas = SchemaStore() if schemas is None else schemas
        self._cache = CacheDirectory(cache_directory)
        self._documents = DocumentCache(self._cache, self._schemas, decoded=self._shared.documents)
        self._read: dict[str, StoredDocument[Any]] = {}
        self._views: dict[SeriesKey, tuple[IndexedRecordSet, ...]] = {}
        self._by_address: dict[str, IndexedRecordSet] = {}
        self._index = EvidenceIndex(
            source,
            self._cache,
            self._schemas,
            store=segment_store,
            progress=progress,
            jobs=jobs,
            segments=shared.segments,
            headers=shared.headers,
        )

    @property
    def commit(self) -> str | None:
        """Full commit id, or ``None`` for uncommitted files."""
        return self.source.commit

    @property
    def committer_time(self) -> int | None:
        """Committer time of the snapshot in seconds since 1970; ``None`` when uncommitted."""
        return self.source.committer_time

    @property
    def records_digest(self) -> str:
        """64 hexadecimal digits that change whenever any record or retraction does."""
        return self._index.digest

    @property
    def generation(self) -> int:
        """Grows with every `IndexRebuiltError`.

        Whatever was computed from record sets handed out before has to be computed again.
        """
        return self._index.generation

    @property
    def index(self) -> EvidenceIndex:
        """The index behind the record sets."""
        return self._index

    @property
    def cache(self) -> CacheDirectory:
        """Where derived data of the snapshot are kept."""
        return self._cache

    @property
    def warnings(self) -> tuple[Message, ...]:
        """What the user should know: empty, or that the cache cannot be written."""
        return self._cache.warnings

    def tree_ids(self) -> dict[str, str | None]:
        """Return the Git tree ids of evidence, profiles and schemas; None for an absent one."""
        folders = (layout.EVIDENCE, layout.PROFILES, layout.SCHEMAS)
        return {folder: self.source.object_id(folder) for folder in folders}

    # --- records ---

    def series_keys(self) -> tuple[SeriesKey, ...]:
        """Return every series, sorted by device, operation and kind."""
        return tuple(summary.key for summary in self._index.series())

    def series(self) -> tuple[SeriesSummary, ...]:
        """Return every series with its counts, retracted rows included."""
        return self._index.series()

    def record_sets(self, key: SeriesKey) -> tuple[IndexedRecordSet, ...]:
        """Return the record sets of one series, sorted by path; none for an unknown series."""
        if self._views_generation != self._index.generation:
            self._views.clear()
            self._by_address.clear()
            self._views_generation = self._index.generation
        if key not in self._views:
            views = tuple(IndexedRecordSet(self._index, item) for item in self._index.entries(key))
            self._views[key] = views
            self._by_address.update((view.sha256, view) for view in views)
        return self._views[key]

    def find_record_set(self, prefix: str) -> IndexedRecordSet:
        """Return the record set whose SHA-256 begins with `prefix`.

        Raises
        ------
        UsageError
            'unknown-id', or 'ambiguous-id' with the candidates.
        """
        found = self.matching_record_sets(prefix)
        if len(found) == 1:
            return found[0]
        if not found:
            raise UsageError(
                f"no record set of this snapshot has an id that begins with {prefix!r}",
                code="unknown-id",
                remedy=f"give at least {MIN_PREFIX} digits; 'perfdb list' shows what there is",
            )
        raise UsageError(
            f"{len(found)} record sets have an id that begins with {prefix!r}",
            code="ambiguous-id",
            remedy="give more digits: " + ", ".join(item.sha256[:16] for item in found[:5]),
        )

    def matching_record_sets(self, prefix: str) -> tuple[IndexedRecordSet, ...]:
        """Return the record sets whose SHA-256 begins with `prefix` of at least 4 digits."""
        if len(prefix) < MIN_PREFIX or _HEX.fullmatch(prefix) is None:
            return ()
        found = self._index.find(prefix)
        for key in dict.fromkeys(key for _, key in found):
            self.record_sets(key)
        return tuple(self._by_address[sha256] for sha256, _ in found)

    def verified_rows(self, record_set: _HasAddress, rows: Sequence[int]) -> list[VerifiedRow]:
        """Re-read rows from the Git object behind a record set.

        Parameters
        ----------
        record_set : IndexedRecordSet
            One of this snapshot.
        rows : sequence of int
            From 0.

        Raises
        ------
        IndexRebuiltError
            If the index says anything else than Git: it has been dropped, `generation` has grown,
            and the whole question has to be asked again with new record sets.
        RepositoryUnavailableError
            If the object cannot be read.
        """
        entry = self._view(record_set.sha256).entry
        return verified_rows(self._index, self._shared, self.source, entry, rows)

    def record_set_documents(
        self, device: str, operation: str
    ) -> Iterator[tuple[str, RecordSetHeader, list[list[Any]]]]:
        """Yield path, header and all rows of every record set of a device and operation.

        Read from Git, not from the index; sorted by path, whatever the kind.
        """
        views = [
            view
            for key in self.series_keys()
            if (key.device, key.operation) == (device, operation)
            for view in self.record_sets(key)
        ]
        for view in sorted(views, key=lambda view: view.path):
            header, rows = self.read_record_set(view)
            yield view.path, header, rows

    def read_record_set(
        self, record_set: IndexedRecordSet
    ) -> tuple[RecordSetHeader, list[list[Any]]]:
        """Return the header and all rows of a record set, read from Git, not from the index."""
        entry = record_set.entry
        blob = self.source.read(SourceFile(entry.path, entry.blob))
        header, rows = split_record_set(blob, document=entry.path, schemas=self._schemas)
        return decode(RecordSetHeader, header, document=entry.path), rows

    def retractions(self) -> tuple[StoredDocument[Retraction], ...]:
        """Return every retraction, sorted by path."""
        return self._index.retractions()

    def _view(self, sha256: str) -> IndexedRecordSet:
        fresh = self._views_generation == self._index.generation
        return (self._by_address.get(sha256) if fresh else None) or self.find_record_set(sha256)

    # --- documents ---

    def vocabulary(self) -> Vocabulary:
        """Return the vocabulary.

        Raises
        ------
        RepositoryUnavailableError
            'no-vocabulary': this is no evidence repository, or not yet at this commit.
        """
        document = self.document(layout.VOCABULARY, Vocabulary, "vocabulary")
        if document is None:
            raise RepositoryUnavailableError(
                f"{self._where()} has no {layout.VOCABULARY}, so it is no evidence repository",
                code="no-vocabulary",
                remedy="name another with --repo or --at, or make one with 'perfdb init'",
            )
        return document.value

    def policies(self) -> tuple[str, ...]:
        """Return the names of all policies, sorted."""
        names = self._names(layout.POLICIES, (layout.YAML_SUFFIX,))
        return tuple(name for name in names if layout.policy_path(name) != layout.GATES)

    def policy(self, name: str) -> tuple[Policy, str]:
        """Return a policy and ``sha256:<digest of its file>``.

        Raises
        ------
        InvalidInputError
            'unknown-policy' where there is none of that name.
        """
        path = layout.policy_path(name)
        # Where a policy called gates would stand, the gates do.
        document = None if path == layout.GATES else self.document(path, Policy, "policy")
        if document is None:
            raise _unknown(path, "policy", self.policies(), self._where())
        return document.value, f"sha256:{document.sha256}"

    def system_profiles(self) -> tuple[str, ...]:
        """Return the names of all system profiles, sorted."""
        return self._names(layout.SYSTEM_PROFILES, layout.DOCUMENT_SUFFIXES)

    def system_profile(self, name: str) -> SystemProfile:
        """Return the system profile of that name.

        Raises
        ------
        InvalidInputError
            'unknown-system-profile' where there is none, 'name-stands-twice' where there are two.
        """
        return self._system_profile(name).value

    def system_profile_digest(self, name: str) -> str:
        """Return ``sha256:<digest of that profile's file>``."""
        return f"sha256:{self._system_profile(name).sha256}"

    def manifests(self) -> tuple[str, ...]:
        """Return the SHA-256 of every environment manifest, sorted."""
        return self._names(layout.MANIFESTS, (layout.JSON_SUFFIX,))

    def manifest(self, sha256: str) -> Manifest:
        """Return the environment manifest with that digest.

        Raises
        ------
        InvalidInputError
            'unknown-manifest', or 'wrong-digest' where the file does not have the digest that its
            name states.
        """
        path = layout.manifest_path(sha256)
        document = self.document(path, Manifest, "manifest")
        if document is None:
            raise InvalidInputError(
                f"{self._where()} has no such environment manifest",
                code="unknown-manifest",
                document=path,
                remedy="add the manifest file that the record set was imported with",
            )
        if document.sha256 != sha256:
            raise InvalidInputError(
                f"the file's SHA-256 is {document.sha256}",
                code="wrong-digest",
                document=path,
                remedy="a manifest is never edited: restore it, and add the new one beside it",
            )
        return document.value

    def _system_profile(self, name: str) -> StoredDocument[SystemProfile]:
        paths = layout.system_profile_paths(name)
        found = [self.document(path, SystemProfile, "system-profile") for path in paths]
        present = [document for document in found if document is not None]
        if not present:
            raise _unknown(paths[-1], "system-profile", self.system_profiles(), self._where())
        if len(present) > 1:
            raise InvalidInputError(
                f"stands beside {present[0].path}",
                code="name-stands-twice",
                document=present[1].path,
                remedy="remove one of the two",
            )
        return present[0]

    def document(self, path: str, cls: type[T], kind: str) -> StoredDocument[T] | None:
        """Return the document of a kind that stands at a path, or None where there is none."""
        if path not in self._read:
            blob = self.source.object_id(path)
            if blob is None:
                return None
            file = SourceFile(path, blob)
            self._read[path] = self._documents.read(self.source, file, cls, kind=kind)
        return self._read[path]

    def _names(self, folder: str, suffixes: Sequence[str]) -> tuple[str, ...]:
        names = {
            layout.document_name(file.path)
            for file in self.source.files(folder)
            if file.path.endswith(tuple(suffixes)) and file.path.count("/") == folder.count("/") + 1
        }
        return tuple(sorted(name for name in names if name is not None))

    def _where(self) -> str:
        return "the work tree" if self.commit is None else f"commit {self.commit}"


def _unknown(path: str, kind: str, known: Sequence[str], where: str) -> InvalidInputError:
    listed = ", ".join(known) if known else "none"
    return InvalidInputError(
        f"{where} has no such {kind.replace('-', ' ')}",
        code=f"unknown-{kind}",
        document=path,
        remedy=f"it has: {listed}",
    )

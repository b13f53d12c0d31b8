"""The files of one snapshot as the checks see them: each read once, strictly, when asked for."""

from __future__ import annotations

from functools import cached_property
from typing import Any, TypeVar

from perfdb_git.checks.record_set_facts import (
    KnownRecordSets,
    RecordSetFacts,
    observations_digest,
)
from perfdb_git.errors import InvalidInputError
from perfdb_git.formats.codec import decode
from perfdb_git.formats.digests import sha256_hex
from perfdb_git.formats.schemas import SchemaStore, Violation
from perfdb_git.formats.strict_json import read_json, read_json_rows
from perfdb_git.formats.strict_yaml import read_yaml
from perfdb_git.model.gates import Gates
from perfdb_git.model.records import RecordSetHeader
from perfdb_git.model.vocabulary import Vocabulary
from perfdb_git.storage import layout
from perfdb_git.storage.folders import FALLBACK_PATHS, ROOTS, SCHEMA_KIND, Place, place_of
from perfdb_git.storage.index import Progress
from perfdb_git.storage.profile_history import ProfileHistory
from perfdb_git.storage.record_columns import BadRowsError, ColumnData, read_columns
from perfdb_git.storage.snapshot import EvidenceSnapshot
from perfdb_git.storage.sources import ObjectSource, SourceFile

T = TypeVar("T")

RECORD_SET = "record-set"


class CheckedDocument:
    """One file, parsed and judged by its schema when first asked.

    Parameters
    ----------
    path : str
        Where it stands.
    place : Place or None
        What belongs there; None for a file that is no document.
    content : bytes or None
        None where it could not be read.
    fault : InvalidInputError or None
        Why it could not be read.
    schemas : SchemaStore
        Judges it.
    """

    def __init__(
        self,
        path: str,
        place: Place | None,
        content: bytes | None,
        fault: InvalidInputError | None,
        schemas: SchemaStore,
    ) -> None:
        self.path = path
        self.place = place
        self.content = content
        self._unread = fault
        self._schemas = schemas

    @property
    def kind(self) -> str | None:
        """The kind of document that belongs where it stands."""
        return None if self.place is None else self.place.kind

    @cached_property
    def sha256(self) -> str:
        """Content address; only of a file that could be read."""
        assert self.content is not None
        return sha256_hex(self.content)

    @property
    def value(self) -> Any:
        """The parsed document; None where it is not strict JSON or YAML."""
        return self._parsed[0]

    @property
    def fault(self) -> InvalidInputError | None:
        """Why there is no value."""
        return self._parsed[1]

    @cached_property
    def violations(self) -> list[Violation]:
        """What the document breaks of its schema; empty where it could not be parsed."""
        place = self.place
        if place is None or place.kind == SCHEMA_KIND or self.fault is not None:
            return []
        value = self.value
        if place.kind == RECORD_SET and isinstance(value, dict):
            # The schema says nothing of cells, and is slow: it need not see them.
            rows = value.get("rows")
            value = {**value, "rows": []} if isinstance(rows, list) else value
        kind = place.kind
        default = (kind, 1) if place.by_folder and kind is not None else None
        return self._schemas.iter_violations(
            value, document=self.path, expected_kind=kind, default=default
        )

    @property
    def is_valid(self) -> bool:
        """Whether it was read and obeys its schema."""
        return self.place is not None and self.fault is None and not self.violations

    def as_model(self, cls: type[T]) -> T | None:
        """Return the document as a model object, or None where it is not valid."""
        return decode(cls, self.value, document=self.path) if self.is_valid else None

    @cached_property
    def header(self) -> RecordSetHeader | None:
        """The header of a valid record set."""
        if self.kind != RECORD_SET or not self.is_valid:
            return None
        entries = {key: item for key, item in self.value.items() if key != "rows"}
        return decode(RecordSetHeader, entries, document=self.path)

    @cached_property
    def columns(self) -> list[ColumnData | None] | None:
        """The cells of a record set as numbers by column; None where a cell is wrong."""
        if self.header is None:
            return None
        try:
            return read_columns(self.value["rows"], self.value["columns"])
        except BadRowsError:
            return None

    @cached_property
    def _parsed(self) -> tuple[Any, InvalidInputError | None]:
        if self.content is None or self.place is None:
            return None, self._unread
        try:
            if self.path.endswith(layout.YAML_SUFFIX):
                return read_yaml(self.content, document=self.path), None
            reader = read_json_rows if self.place.kind == RECORD_SET else read_json
            return reader(self.content, document=self.path), None
        except InvalidInputError as error:
            return None, error


class CheckedSnapshot:
    """The evidence folders of one snapshot.

    Parameters
    ----------
    source : ObjectSource
        A commit, or the files of a work tree.
    schemas : SchemaStore or None
        Judges the documents; None takes the package's own schemas.
    history : ProfileHistory or None
        What stood under ``profiles`` before; None leaves that unjudged.
    evidence : EvidenceSnapshot or None
        The same snapshot with its index and cache, for figures that follow from records; None
        leaves those unjudged.
    progress : callable or None
        Called while such figures are worked out: revisions done, all of them, and the path.
    known : KnownRecordSets or None
        Saves reading record sets of which only the facts are wanted.
    shared : CheckedSnapshot or None
        Another snapshot; documents that it has too, byte for byte, are parsed and judged once.
    """

    def __init__(
        self,
        source: ObjectSource,
        *,
        schemas: SchemaStore | None = None,
        history: ProfileHistory | None = None,
        evidence: EvidenceSnapshot | None = None,
        progress: Progress | None = None,
        known: KnownRecordSets | None = None,
        shared: CheckedSnapshot | None = None,
    ) -> None:
        self.progress = progress
        self.history = history
        self.evidence = evidence
        self._shared = shared
        self._known = known
        self.schemas = SchemaStore() if schemas is None else schemas
        self._source = source
        self._kept: dict[str, CheckedDocument] = {}
        self._latest: CheckedDocument | None = None
        self._facts: dict[str, RecordSetFacts] = {}

    @property
    def commit(self) -> str | None:
        """Full commit id, or None for uncommitted files."""
        return self._source.commit

    def object_id(self, path: str) -> str | None:
        """Return the id of a file or folder; None where it is absent or refused."""
        try:
            return self._source.object_id(path)
        except InvalidInputError:
            return None

    def read(self, file: SourceFile) -> bytes:
        """Return a file's content."""
        return self._source.read(file)

    @property
    def files(self) -> tuple[SourceFile, ...]:
        """Every file of the evidence folders that a strict walk reaches, sorted by path."""
        return self._walked[0]

    @property
    def walk_faults(self) -> tuple[InvalidInputError, ...]:
        """Why folders could not be walked whole, each fault once."""
        return self._walked[1]

    def is_walked(self, folder: str) -> bool:
        """Tell whether every file of a folder is known: what is not there is then absent."""
        return folder not in self._walked[2]

    @cached_property
    def file_set(self) -> frozenset[SourceFile]:
        """All files, to look one up by path, content and mode."""
        return frozenset(self.files)

    @cached_property
    def paths(self) -> frozenset[str]:
        """The paths of all files."""
        return frozenset(file.path for file in self.files)

    @cached_property
    def schema_paths(self) -> frozenset[str]:
        """The paths of the snapshot's own copies of schemas."""
        return frozenset(path for path in self.paths if path.startswith(f"{layout.SCHEMAS}/"))

    def document(self, file: SourceFile) -> CheckedDocument:
        """Return a file as a document; the rows of only the latest record set are kept."""
        if file.path in self._kept:
            return self._kept[file.path]
        if self._latest is not None and self._latest.path == file.path:
            return self._latest
        place = place_of(file.path)
        is_small = place is not None and place.kind != RECORD_SET
        if is_small and self._shared is not None and file in self._shared.file_set:
            return self._shared.document(file)
        content, fault = self._read(file)
        document = CheckedDocument(file.path, place, content, fault, self.schemas)
        if document.kind == RECORD_SET:
            self._latest = document
            if file.path not in self._facts and content is not None:
                self._facts[file.path] = _facts(document)
        elif place is not None:
            self._kept[file.path] = document
        return document

    def documents(self, kind: str) -> tuple[CheckedDocument, ...]:
        """Return every document of a kind, sorted by path; not for record sets."""
        return tuple(self.document(file) for file in self._by_kind.get(kind, ()))

    @property
    def record_sets(self) -> tuple[RecordSetFacts, ...]:
        """What is known of every readable record set, sorted by path."""
        for file in self._by_kind.get(RECORD_SET, ()):
            if file.path not in self._facts:
                known = None if self._known is None else self._known.facts(file)
                if known is None:
                    self.document(file)
                else:
                    self._facts[file.path] = known
        return tuple(self._facts[path] for path in sorted(self._facts))

    @cached_property
    def vocabulary(self) -> Vocabulary | None:
        """The vocabulary, or None where there is no valid one."""
        for document in self.documents("vocabulary"):
            return document.as_model(Vocabulary)
        return None

    @cached_property
    def gates(self) -> Gates | None:
        """The gates, or None where there are no valid ones."""
        for document in self.documents("gates"):
            return document.as_model(Gates)
        return None

    @cached_property
    def released_schemas(self) -> dict[str, bytes]:
        """The schemas that judge, by their paths below ``schemas``."""
        return {
            layout.schema_path(kind, version).removeprefix(
                f"{layout.SCHEMAS}/"
            ): self.schemas.schema_bytes(kind, version)
            for kind in self.schemas.kinds()
            for version in self.schemas.known_versions(kind)
        }

    @cached_property
    def _by_kind(self) -> dict[str | None, list[SourceFile]]:
        found: dict[str | None, list[SourceFile]] = {}
        for file in self.files:
            place = place_of(file.path)
            found.setdefault(None if place is None else place.kind, []).append(file)
        return found

    def _read(self, file: SourceFile) -> tuple[bytes | None, InvalidInputError | None]:
        try:
            return self._source.read(file), None
        except InvalidInputError as error:
            return None, error

    @cached_property
    def _walked(
        self,
    ) -> tuple[tuple[SourceFile, ...], tuple[InvalidInputError, ...], frozenset[str]]:
        files: dict[str, SourceFile] = {}
        faults: dict[tuple[str, str], InvalidInputError] = {}
        failed: set[str] = set()
        paths = list(ROOTS)
        for path in paths:
            try:
                found = self._find(path)
            except InvalidInputError as error:
                faults.setdefault((error.document, error.code), error)
                failed.add(path)
                # One odd name must not hide the faults of all other folders.
                if path in ROOTS:
                    paths += [inner for inner in FALLBACK_PATHS if inner.startswith(f"{path}/")]
            else:
                files.update((file.path, file) for file in found)
        ordered = tuple(files[path] for path in sorted(files, key=str.encode))
        return ordered, tuple(faults[key] for key in sorted(faults)), frozenset(failed)

    def _find(self, path: str) -> tuple[SourceFile, ...]:
        if path not in ROOTS and path.endswith(layout.DOCUMENT_SUFFIXES):
            blob = self._source.object_id(path)
            return () if blob is None else (SourceFile(path, blob),)
        return self._source.files(path)


def _facts(document: CheckedDocument) -> RecordSetFacts:
    header, columns = document.header, document.columns
    return RecordSetFacts(
        path=document.path,
        sha256=document.sha256,
        row_count=None if header is None else len(document.value["rows"]),
        environment=None if header is None else header.environment,
        device=None if header is None else header.device,
        operation=None if header is None else header.operation,
        observations=None
        if columns is None
        else observations_digest(document.value["columns"], columns),
    )

"""Documents of a snapshot as model objects, parsed and judged once for each content.

The verdict and the parsed value are remembered in the cache, so that the usual command needs
neither the YAML parser nor the schema validator, whose imports alone take a tenth of a second.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

from perfdb_git import __version__
from perfdb_git.formats.codec import decode
from perfdb_git.formats.digests import sha256_hex
from perfdb_git.formats.schemas import SchemaStore
from perfdb_git.formats.strict_json import read_json
from perfdb_git.formats.strict_yaml import read_yaml
from perfdb_git.storage.cache_directory import CacheDirectory
from perfdb_git.storage.layout import YAML_SUFFIX
from perfdb_git.storage.sources import ObjectSource, SourceFile

T = TypeVar("T")

DOCUMENT_FORMAT = 1

DecodedDocuments: TypeAlias = dict[tuple[str, str, str, type], Any]
"""Model objects by blob id, suffix, kind and class."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredDocument(Generic[T]):
    """A document with the place and the content address of its file."""

    path: str
    sha256: str
    value: T


class DocumentCache:
    """Reads documents strictly, judges them by schema and remembers the outcome.

    Parameters
    ----------
    cache : CacheDirectory
        Where parsed documents are kept; damaging them costs time only.
    schemas : SchemaStore
        Judges the documents.
    decoded : dict or None
        Model objects by content, kind and class, which other snapshots may share.
    """

    def __init__(
        self,
        cache: CacheDirectory,
        schemas: SchemaStore,
        *,
        decoded: DecodedDocuments | None = None,
    ) -> None:
        self._cache = cache
        self._schemas = schemas
        self._decoded: DecodedDocuments = {} if decoded is None else decoded
        self._schema_digests: dict[str, str] = {}

    def read(
        self, source: ObjectSource, file: SourceFile, cls: type[T], *, kind: str
    ) -> StoredDocument[T]:
        """Return a document.

        Parameters
        ----------
        source : ObjectSource
            Where the file comes from; it is always read, so a missing object is found.
        file : SourceFile
            The file; ``.yaml`` is read as YAML, anything else as JSON.
        cls : type
            The model class.
        kind : str
            The kind of schema that it must name.

        Raises
        ------
        InvalidInputError
            If the file breaks its format or its schema.
        RepositoryUnavailableError
            If it cannot be read.
        """
        content = source.read(file)
        key = (file.id, _suffix(file), kind, cls)
        if key not in self._decoded:
            self._decoded[key] = decode(cls, self._value(content, file, kind), document=file.path)
        return StoredDocument(path=file.path, sha256=sha256_hex(content), value=self._decoded[key])

    def _value(self, content: bytes, file: SourceFile, kind: str) -> Any:
        name = self._name(file, kind)
        value = self._remembered(name)
        if value is None:
            reader = read_yaml if file.path.endswith(YAML_SUFFIX) else read_json
            value = reader(content, document=file.path)
            self._schemas.validate(value, document=file.path, expected_kind=kind)
            self._remember(name, value)
        return value

    def _name(self, file: SourceFile, kind: str) -> str:
        key = "\n".join((file.id, _suffix(file), kind, self._schema_digest(kind), __version__))
        digest = sha256_hex(key.encode("utf-8"))
        return f"documents/v{DOCUMENT_FORMAT}/{digest[:2]}/{digest}.json"

    def _schema_digest(self, kind: str) -> str:
        if kind not in self._schema_digests:
            digest = hashlib.sha256()
            for version in self._schemas.known_versions(kind):
                digest.update(hashlib.sha256(self._schemas.schema_bytes(kind, version)).digest())
            self._schema_digests[kind] = digest.hexdigest()
        return self._schema_digests[kind]

    def _remembered(self, name: str) -> Any:
        stored = self._cache.read(name)
        if stored is None:
            return None
        digest, _, text = stored.partition(b"\n")
        if digest.decode("ascii", "replace") != sha256_hex(text):
            self._cache.discard(name)
            return None
        return json.loads(text)

    def _remember(self, name: str, value: Any) -> None:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8")
        self._cache.store(name, sha256_hex(text).encode("ascii") + b"\n" + text)


def _suffix(file: SourceFile) -> str:
    """Return what decides how the bytes are read, so that it is part of every key."""
    return file.path.rpartition(".")[2]

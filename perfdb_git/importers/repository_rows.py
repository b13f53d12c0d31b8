"""The rows that an evidence repository already holds of the files of one tool."""

from __future__ import annotations

from collections.abc import Mapping

from perfdb_git.formats.codec import decode
from perfdb_git.formats.schemas import SchemaStore
from perfdb_git.importers.known_rows import KnownRows
from perfdb_git.model.records import RecordSetHeader
from perfdb_git.storage.layout import RECORDS, slug
from perfdb_git.storage.record_sets import StatedRecordSet
from perfdb_git.storage.segments import split_record_set
from perfdb_git.storage.sources import WorktreeSource


class RepositoryRows:
    """Reads the rows of a work tree, each series of a file once.

    Parameters
    ----------
    worktree : WorktreeSource
        The files of the repository.
    tool : str
        Whose record sets count.
    schemas : SchemaStore
        What they must obey.
    """

    def __init__(self, worktree: WorktreeSource, *, tool: str, schemas: SchemaStore) -> None:
        self._worktree = worktree
        self._tool = tool
        self._schemas = schemas
        self._known: dict[str, KnownRows] = {}
        self._loaded: set[tuple[str, str, str]] = set()

    def of(self, name: str) -> KnownRows:
        """Return what was loaded of a file."""
        return self._known.setdefault(name, KnownRows())

    def load(self, name: str, device: str, operation: str) -> None:
        """Read what the repository holds of a file, for one device and operation.

        Raises
        ------
        InvalidInputError
            For a record set that breaks its format.
        """
        series = (name, device, operation)
        if series in self._loaded:
            return
        self._loaded.add(series)
        known = self.of(name)
        for file in self._worktree.files(f"{RECORDS}/{slug(device)}/{slug(operation)}"):
            content = self._worktree.read(file)
            stated = StatedRecordSet(content, document=file.path).header
            source = stated.get("source")
            if not isinstance(source, Mapping) or source.get("file") != name:
                continue
            if source.get("tool") != self._tool:
                continue
            value, rows = split_record_set(content, document=file.path, schemas=self._schemas)
            known.add(decode(RecordSetHeader, value, document=file.path), rows)

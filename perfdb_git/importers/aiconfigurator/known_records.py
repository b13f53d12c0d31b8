"""Records of aiconfigurator's tables that a repository holds already.

The same table may come again in a later wheel, or have been imported with a mapping. A row is known
when a record of a table of that name agrees in every known dimension and in every metric. Labels,
source columns, revision, session and environment do not count: they differ between importers and
between wheels, and the number is the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import repeat
from typing import TypeAlias

from perfdb_git.formats.codec import decode
from perfdb_git.formats.schemas import SchemaStore
from perfdb_git.importers.aiconfigurator.headers import TOOL
from perfdb_git.importers.source_files import git_blob
from perfdb_git.model.records import RecordSetHeader
from perfdb_git.storage.layout import RECORDS
from perfdb_git.storage.record_sets import StatedRecordSet
from perfdb_git.storage.segments import split_record_set
from perfdb_git.storage.sources import SourceFile, WorktreeSource

Row: TypeAlias = tuple[Hashable, ...]


class KnownTables:
    """Which tables a work tree holds records of.

    Parameters
    ----------
    worktree : WorktreeSource
        The files of the repository.
    schemas : SchemaStore
        What record sets must obey.
    """

    def __init__(self, worktree: WorktreeSource, *, schemas: SchemaStore) -> None:
        self._worktree = worktree
        self._schemas = schemas
        self._files: dict[str, list[SourceFile]] = {}
        for file in worktree.files(RECORDS):
            stated = StatedRecordSet(worktree.read(file), document=file.path).header
            source = stated.get("source")
            if isinstance(source, Mapping) and source.get("tool") == TOOL:
                self._files.setdefault(str(source.get("file")), []).append(file)

    def records_of(self, table: str) -> KnownRecords | None:
        """Return the records of a table by its name, or None where there are none."""
        files = self._files.get(table)
        if files is None:
            return None
        return KnownRecords(self._worktree, files, self._schemas)


class KnownRecords:
    """The records of one table: a multiset, so that each answers for one row only."""

    def __init__(
        self, worktree: WorktreeSource, files: Sequence[SourceFile], schemas: SchemaStore
    ) -> None:
        self._worktree = worktree
        self._schemas = schemas
        self._files = {file.path: file for file in files}

    def holds(self, path: str, content: bytes) -> bool:
        """Tell whether this very file is there; its records then answer for no other rows."""
        file = self._files.get(path)
        if file is None or file.id != git_blob(content):
            return False
        del self._files[path]
        return True

    @cached_property
    def _rows(self) -> Counter[Row]:
        """The rows of all files that were not found to be held when this was first asked for."""
        found: Counter[Row] = Counter()
        for file in self._files.values():
            content = self._worktree.read(file)
            value, rows = split_record_set(content, document=file.path, schemas=self._schemas)
            header = decode(RecordSetHeader, value, document=file.path)
            cells = list(zip(*rows, strict=True)) if rows else [()] * len(header.columns)
            columns = {
                column.name: cells[place]
                for place, column in enumerate(header.columns)
                if column.role != "source"
            }
            found.update(_facts(header, columns, len(rows)))
        return found

    def take(
        self, header: RecordSetHeader, columns: Mapping[str, Sequence[Hashable]], rows: int
    ) -> list[bool]:
        """Tell which rows are known, and use up the records that answer for them.

        Parameters
        ----------
        header : RecordSetHeader
            Of the rows.
        columns : mapping of str to sequence
            Dimensions and metrics, None where unknown.
        rows : int
            How many there are.
        """
        known = []
        for row in _facts(header, columns, rows):
            known.append(self._rows[row] > 0)
            if known[-1]:
                self._rows[row] -= 1
        return known


def _facts(
    header: RecordSetHeader, columns: Mapping[str, Sequence[Hashable]], rows: int
) -> Iterator[Row]:
    """Yield what counts of each row, the same whether a fact is a constant or a column."""
    facts: dict[str, Iterator[Hashable]] = {
        name: repeat(value, rows) for name, value in header.context.items() if value is not None
    }
    facts |= {name: iter(cells) for name, cells in columns.items()}
    names = tuple(sorted(facts))
    return zip(repeat(names, rows), *(facts[name] for name in names), strict=True)

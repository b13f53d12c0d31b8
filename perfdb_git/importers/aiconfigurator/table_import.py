"""One table of an aiconfigurator database: from its bytes to record sets and a report."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from perfdb_git.formats.digests import sha256_hex
from perfdb_git.formats.schemas import SchemaStore
from perfdb_git.importers.aiconfigurator.arrow_columns import ArrowColumns
from perfdb_git.importers.aiconfigurator.database_files import (
    DatabaseFiles,
    TableFile,
    read_document,
    read_table_bytes,
    read_text,
)
from perfdb_git.importers.aiconfigurator.headers import TablePlace
from perfdb_git.importers.aiconfigurator.judging import JudgedTable, judge_table
from perfdb_git.importers.aiconfigurator.kinds import KINDS
from perfdb_git.importers.aiconfigurator.known_records import KnownRecords
from perfdb_git.importers.aiconfigurator.meaning import Operation
from perfdb_git.importers.aiconfigurator.report import ImportedTable, Mislabelled
from perfdb_git.importers.aiconfigurator.roofline import (
    BelowRoofline,
    DataSheet,
    below_roofline,
    data_sheet_of,
)
from perfdb_git.importers.aiconfigurator.set_building import BuiltSet, SetBuilder, cells_of
from perfdb_git.importers.aiconfigurator.sidecars import collection_of
from perfdb_git.importers.aiconfigurator.sorted_rows import RowGroup, SortedRows, sort_rows
from perfdb_git.importers.record_sets import SourceFile
from perfdb_git.importers.source_files import git_blob
from perfdb_git.model.vocabulary import Vocabulary

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Integers: TypeAlias = NDArray[np.int64]
    Numbers: TypeAlias = NDArray[np.int64] | NDArray[np.float64]

_LABEL_COLUMNS = {
    "directory_version": "version",
    "device_label": "device",
    "directory_framework": "framework",
}


@dataclass(slots=True, kw_only=True)
class _Counts:
    """What a report says of the rows of one table, added up set by set."""

    records: int = 0
    known: int = 0
    record_sets: int = 0
    unresolved: int = 0
    repeated: set[int] = field(default_factory=set)
    mislabelled: dict[tuple[str, str, str], set[int]] = field(default_factory=dict)
    roofline: BelowRoofline = field(default_factory=BelowRoofline)
    operations: dict[str, None] = field(default_factory=dict)


class TableImport:
    """Reads one table and builds its record sets, one after another.

    Parameters
    ----------
    files : DatabaseFiles
        The database.
    table : TableFile
        The table, of a known kind.
    revision : str or None
        Upstream revision.
    vocabulary : Vocabulary
        What values must be legal in.
    schemas : SchemaStore
        What headers must obey.

    Raises
    ------
    InvalidInputError
        The table or its sidecar cannot be read, or is not what its kind of table is.
    """

    def __init__(
        self,
        files: DatabaseFiles,
        table: TableFile,
        *,
        revision: str | None,
        vocabulary: Vocabulary,
        schemas: SchemaStore,
    ) -> None:
        content = read_table_bytes(files, table)
        self._columns = ArrowColumns(content, document=table.name)
        self._vocabulary = vocabulary
        self._schemas = schemas
        self._sheet: DataSheet | None = data_sheet_of(read_text(files, table.specification))
        sidecar = read_document(files, table.sidecar)
        self._place = TablePlace(
            table=table,
            kind=KINDS[table.kind],
            collection=collection_of(sidecar, table.kind, document=table.sidecar),
            source=SourceFile(
                file=table.name,
                sha256=sha256_hex(content),
                git_blob=git_blob(content),
                revision=revision,
            ),
        )
        self._judged = judge_table(self._columns, self._place, vocabulary)
        self._counts = _Counts()

    @property
    def judged(self) -> JudgedTable:
        """Which rows can be records, and why others cannot."""
        return self._judged

    def sets(self, known: KnownRecords | None) -> Iterator[BuiltSet]:
        """Yield the record sets of all good rows that are new."""
        for operation, numbers in self._judged.rows:
            if len(numbers) == 0:
                continue
            rows = self._sorted(operation, numbers)
            self._counts.operations[operation.name] = None
            # By row number: two operations may share the rows of a table.
            self._counts.repeated.update(rows.row_numbers[rows.repeated].tolist())
            if known is None:
                for built in self._built(rows):
                    self._note_oddities(built, rows)
                    yield self._counted(built)
                continue
            new = self._new_rows(rows, known)
            self._counts.known += len(rows) - len(new)
            if len(new):
                yield from map(self._counted, self._built(self._sorted(operation, new)))

    def report(self) -> ImportedTable:
        """Return what became of the table, once all sets were taken."""
        counts, table = self._counts, self._place.table
        return ImportedTable(
            file=table.name,
            kind=table.kind,
            rows=len(self._columns),
            records=counts.records,
            known=counts.known,
            record_sets=counts.record_sets,
            operations=tuple(counts.operations),
            repeated_rows=len(counts.repeated),
            mislabelled=tuple(
                Mislabelled(label=label, rows_say=rows_say, path_says=path_says, rows=len(rows))
                for (label, rows_say, path_says), rows in sorted(counts.mislabelled.items())
            ),
            unresolved_times=counts.unresolved,
            roofline=counts.roofline,
            unstated_columns=self._judged.unstated,
            status=self._place.collection.status,
            bad_rows=self._judged.bad_rows,
            faults=self._judged.faults,
        )

    def _sorted(self, operation: Operation, numbers: Integers) -> SortedRows:
        return sort_rows(
            self._columns,
            operation,
            numbers,
            sources=self._judged.sources,
            vocabulary=self._vocabulary,
        )

    def _built(self, rows: SortedRows) -> Iterator[BuiltSet]:
        skipped = tuple(str(fault) for fault in self._judged.faults)
        return SetBuilder(
            self._place,
            rows,
            skipped=skipped,
            vocabulary=self._vocabulary,
            schemas=self._schemas,
        ).sets()

    def _new_rows(self, rows: SortedRows, known: KnownRecords) -> Integers:
        """Return the numbers of rows that no record answers for, ascending."""
        import numpy as np

        new = np.ones(len(rows), dtype=np.bool_)
        unlike = []
        for built in self._built(rows):
            self._note_oddities(built, rows)
            if known.holds(built.path, built.content):
                new[built.group.start : built.group.stop] = False
            else:
                unlike.append(built)
        for built in unlike:
            group = built.group
            taken = known.take(built.header, cells_of(built, rows), len(group))
            new[group.start : group.stop] = ~np.array(taken, dtype=np.bool_)
        return np.sort(rows.row_numbers[new])

    def _counted(self, built: BuiltSet) -> BuiltSet:
        self._counts.records += len(built.group)
        self._counts.record_sets += 1
        return built

    def _note_oddities(self, built: BuiltSet, rows: SortedRows) -> None:
        """Count what is odd about the rows of a set, whether they are new or not."""
        counts, group = self._counts, built.group
        counts.unresolved += sum(_unknown(values, group) for _, values in rows.metrics)
        for label, path_says in built.header.source.labels.items():
            rows_say = str(group.labels[_LABEL_COLUMNS[label]])
            key = (label, rows_say, path_says)
            numbers = rows.row_numbers[group.start : group.stop].tolist()
            counts.mislabelled.setdefault(key, set()).update(numbers)
        judged = below_roofline(built, rows, self._sheet, self._vocabulary)
        counts.roofline = counts.roofline.joined(judged)


def _unknown(values: Numbers, group: RowGroup) -> int:
    import numpy as np

    return int(np.isnan(values[group.start : group.stop]).sum())

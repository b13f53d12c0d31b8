"""What an import of an aiconfigurator database is asked for, and what it reports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from perfdb_git.importers.aiconfigurator.judging import FaultyRows
from perfdb_git.importers.aiconfigurator.roofline import BelowRoofline


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseImportRequest:
    """What to import, from where, to where.

    Parameters
    ----------
    repository : Path
        The folder that holds ``evidence``.
    database : Path
        A wheel, read in place, or a folder with ``systems/data`` below it.
    source_revision : str or None
        Upstream revision; None takes the distribution's name and version where they are stated.
    skip_bad_rows, dry_run, commit : bool
        As for `perfdb_git.importers.requests.ImportRequest`.
    """

    repository: Path
    database: Path
    source_revision: str | None = None
    skip_bad_rows: bool = False
    dry_run: bool = False
    commit: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Mislabelled:
    """Rows of a table whose label contradicts the one in its path; both are kept."""

    label: str
    rows_say: str
    path_says: str
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedTable:
    """What became of one table.

    Attributes
    ----------
    file, kind : str
        Its name, and the kind of table that it is.
    rows : int
        Rows of the file.
    records, known : int
        New records, and rows that the repository held already. A row of some kinds makes two
        records.
    record_sets, operations : int, tuple of str
        Files that are new, and the operations of all records.
    repeated_rows : int
        Rows that share all dimensions and labels with another; every one is a record.
    mislabelled : tuple of Mislabelled
        By label and its value.
    unresolved_times : int
        Times of 0, stored as null with the reason.
    roofline : BelowRoofline
        Against the data sheet beside the table.
    unstated_columns : tuple of str
        Columns that the importer does not know, kept verbatim as source columns.
    status : str or None
        What the sidecar says of the table.
    bad_rows, faults : int, tuple of FaultyRows
        How many rows were left out, and why.
    """

    file: str
    kind: str
    rows: int
    records: int
    known: int
    record_sets: int
    operations: tuple[str, ...]
    repeated_rows: int
    mislabelled: tuple[Mislabelled, ...]
    unresolved_times: int
    roofline: BelowRoofline
    unstated_columns: tuple[str, ...]
    status: str | None
    bad_rows: int
    faults: tuple[FaultyRows, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedKind:
    """The sums of one kind of table."""

    kind: str
    tables: int
    rows: int
    records: int
    known: int
    record_sets: int
    repeated_rows: int
    mislabelled_rows: int
    unresolved_times: int
    judged_rows: int
    below_roofline: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseImportReport:
    """The outcome of an import.

    Attributes
    ----------
    source_revision : str or None
        As recorded.
    tables : tuple of ImportedTable
        Each table, sorted by name.
    unknown_tables : tuple of str
        Tables of kinds that the importer does not know; nothing of them is imported.
    written : int
        New files, manifests among them.
    size : int
        Bytes of the new record sets.
    commit : str or None
        The commit that holds them.
    dry_run : bool
        Whether nothing was written.
    """

    source_revision: str | None
    tables: tuple[ImportedTable, ...]
    unknown_tables: tuple[str, ...]
    written: int
    size: int
    commit: str | None
    dry_run: bool

    @property
    def records(self) -> int:
        """How many records are new."""
        return sum(table.records for table in self.tables)

    @property
    def known(self) -> int:
        """How many rows the repository held already."""
        return sum(table.known for table in self.tables)

    @property
    def kinds(self) -> tuple[ImportedKind, ...]:
        """The sums of each kind of table, sorted by name."""
        by_kind: dict[str, list[ImportedTable]] = {}
        for table in self.tables:
            by_kind.setdefault(table.kind, []).append(table)
        return tuple(_sums(kind, tables) for kind, tables in sorted(by_kind.items()))

    @property
    def mislabelled(self) -> Mapping[str, tuple[int, int]]:
        """Contradicted labels to how many rows have one and how many tables hold such rows."""
        found: dict[str, tuple[int, int]] = {}
        for table in self.tables:
            for label in dict.fromkeys(item.label for item in table.mislabelled):
                rows, tables = found.get(label, (0, 0))
                here = sum(item.rows for item in table.mislabelled if item.label == label)
                found[label] = rows + here, tables + 1
        return found


def _sums(kind: str, tables: list[ImportedTable]) -> ImportedKind:
    return ImportedKind(
        kind=kind,
        tables=len(tables),
        rows=sum(table.rows for table in tables),
        records=sum(table.records for table in tables),
        known=sum(table.known for table in tables),
        record_sets=sum(table.record_sets for table in tables),
        repeated_rows=sum(table.repeated_rows for table in tables),
        mislabelled_rows=sum(item.rows for table in tables for item in table.mislabelled),
        unresolved_times=sum(table.unresolved_times for table in tables),
        judged_rows=sum(table.roofline.judged for table in tables),
        below_roofline=sum(table.roofline.below for table in tables),
    )

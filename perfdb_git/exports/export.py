"""The records of a snapshot, or some of them, written as one table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, TypeAlias

from perfdb_git import __version__
from perfdb_git.comparison.contexts import known_context, row_context
from perfdb_git.comparison.groups import Reading, chosen_record_sets, row_fits
from perfdb_git.comparison.selections import EVERYTHING, Choice, Selection
from perfdb_git.database import DatabaseSnapshot
from perfdb_git.exports.columns import ExportColumn, UnitChoice, table_columns
from perfdb_git.exports.record_rows import RecordSetRows, RowBlock
from perfdb_git.exports.row_writers import RowEncoder, RowWriter
from perfdb_git.formats.codec import encode
from perfdb_git.model.records import RecordSetHeader
from perfdb_git.model.values import JsonValue, Scalar
from perfdb_git.operations.units import UNITS
from perfdb_git.storage.record_sets import IndexedRecordSet

TABLE_VERSION = "perfdb-records/1"
"""Layout of the table: raised when a column changes its name, type or meaning."""

ExportFormat: TypeAlias = Literal["csv", "parquet", "arrow"]
Progress: TypeAlias = Callable[[int, int, str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportRequest:
    """Which records to export, and how.

    Attributes
    ----------
    choices : tuple of Choice
        Records that any of these asks for; all where empty.
    texts : tuple of str
        The choices as the user wrote them.
    units : str
        Whether metrics are in SI units, or in those of the records.
    retracted : bool
        Whether retracted records are in the table.
    """

    choices: tuple[Choice, ...] = ()
    texts: tuple[str, ...] = ()
    units: UnitChoice = "si"
    retracted: bool = False


@dataclass(slots=True)
class _ChosenSet:
    """A record set with what asks for it: readings, each with the only rows it asks for."""

    view: IndexedRecordSet
    asked: list[tuple[Reading, frozenset[int] | None]] = field(default_factory=list)


class RecordExport:
    """The table that a request asks for; nothing but headers is read before `write`.

    Parameters
    ----------
    snapshot : DatabaseSnapshot
        Where the records stand.
    request : ExportRequest
        Which of them, and how.

    Attributes
    ----------
    columns : tuple of ExportColumn
        The columns of the table.
    row_count : int
        Rows written so far.

    Raises
    ------
    UsageError
        For a record that is not there.
    InvalidInputError
        For a dimension that the vocabulary has not.
    """

    def __init__(self, snapshot: DatabaseSnapshot, request: ExportRequest) -> None:
        self._snapshot = snapshot
        self._request = request
        self._chosen = _chosen_sets(snapshot, request)
        self.columns: tuple[ExportColumn, ...] = table_columns(
            [chosen.view for chosen in self._chosen], snapshot.vocabulary, request.units
        )
        self.row_count = 0

    @cached_property
    def metadata(self) -> dict[str, JsonValue]:
        """What a reader of the table has to know: snapshot, versions, columns with their units.

        Raises
        ------
        InvalidInputError
            Where an environment manifest is missing.
        """
        headers = [chosen.view.entry.header for chosen in self._chosen]
        environments = sorted({header["environment"] for header in headers})
        evidence = self._snapshot.evidence
        units = sorted({column.unit for column in self.columns if column.unit is not None})
        return {
            "table": TABLE_VERSION,
            "version": __version__,
            "commit": self._snapshot.commit,
            "uncommitted": self._snapshot.commit is None,
            "committer_time": evidence.committer_time,
            "schemas": [
                *sorted({header["schema"] for header in headers}),
                self._snapshot.vocabulary.schema,
            ],
            "vocabulary": self._snapshot.vocabulary.name,
            "selection": list(self._request.texts),
            "retracted_included": self._request.retracted,
            "record_sets": len(self._chosen),
            "columns": [encode(column) for column in self.columns],
            "units": {unit: encode(UNITS[unit]) for unit in units},
            "environments": {sha: encode(evidence.manifest(sha)) for sha in environments},
        }

    def write(
        self, encoder: RowEncoder, writer: RowWriter, progress: Progress | None = None
    ) -> None:
        """Write all rows, sorted by device, operation, kind, path and row.

        Parameters
        ----------
        encoder : RowEncoder
            Encodes them.
        writer : RowWriter
            Takes them; the caller closes it.
        progress : callable or None
            Called with the record sets done, their number, and the path of the next one.

        Raises
        ------
        InvalidInputError
            For evidence that breaks its format.
        RepositoryUnavailableError
            Where an object is missing, or the index disagreed with Git and was dropped.
        """
        for done, chosen in enumerate(self._chosen):
            if progress is not None:
                progress(done, len(self._chosen), chosen.view.path)
            for block in self._blocks(chosen):
                writer.append(encoder.encode(block))
                self.row_count += block.row_count

    def _blocks(self, chosen: _ChosenSet) -> Iterator[RowBlock]:
        evidence = self._snapshot.evidence
        header, rows = evidence.read_record_set(chosen.view)
        if header != chosen.view.header:
            raise evidence.index.reject(chosen.view.entry)
        numbers = self._numbers(chosen, header, rows)
        cells = RecordSetRows(chosen.view, header, rows, self.columns, self._request.units)
        yield from cells.blocks(numbers)

    def _numbers(
        self, chosen: _ChosenSet, header: RecordSetHeader, rows: Sequence[list[JsonValue]]
    ) -> Sequence[int]:
        """Return the numbers of the rows to write."""
        retracted = chosen.view.entry.retracted
        gone: frozenset[int] = frozenset()
        if not self._request.retracted:
            gone = frozenset(range(len(rows)) if retracted is None else retracted)
        if not gone and any(_takes_all(header, *asked) for asked in chosen.asked):
            return range(len(rows))
        shared = known_context(header)
        return [
            number
            for number, cells in enumerate(rows)
            if number not in gone and _is_asked(number, header, shared, cells, chosen.asked)
        ]


def _chosen_sets(snapshot: DatabaseSnapshot, request: ExportRequest) -> list[_ChosenSet]:
    found: dict[str, _ChosenSet] = {}
    for choice in request.choices or (EVERYTHING,):
        reading = Reading(choice=choice, where=EVERYTHING, across=frozenset(), metrics=frozenset())
        for view, only in chosen_record_sets(snapshot, reading):
            if view.entry.retracted is None and not request.retracted:
                continue
            found.setdefault(view.sha256, _ChosenSet(view)).asked.append((reading, only))
    return sorted(found.values(), key=lambda chosen: _order(chosen.view))


def _order(view: IndexedRecordSet) -> tuple[str, str, str, str]:
    key = view.entry.series
    return key.device, key.operation, key.kind, view.path


def _takes_all(header: RecordSetHeader, reading: Reading, only: frozenset[int] | None) -> bool:
    """Tell whether a reading asks for every row; the header has been judged already."""
    if not isinstance(reading.choice, Selection):
        return only is None
    columns = {column.name for column in header.columns if column.role == "dimension"}
    return columns.isdisjoint(reading.choice.dimensions)


def _is_asked(
    number: int,
    header: RecordSetHeader,
    shared: Mapping[str, Scalar],
    cells: Sequence[JsonValue],
    asked: Sequence[tuple[Reading, frozenset[int] | None]],
) -> bool:
    context = {**shared, **row_context(header, tuple(cells))}
    return any(
        (only is None or number in only) and row_fits(context, reading) for reading, only in asked
    )

"""Records of a snapshot as columns: dimensions, one metric in SI units, upstream columns, ids."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from perfdb_git.errors import InvalidInputError, NoEvidenceError, UsageError
from perfdb_git.model.records import ROW_NUMBER, RecordSetHeader, record_id
from perfdb_git.model.splits import RecordSelection
from perfdb_git.model.values import Scalar
from perfdb_git.operations.units import UNITS
from perfdb_git.providers.observations import CENTERS
from perfdb_git.storage.record_sets import IndexedRecordSet
from perfdb_git.storage.snapshot import EvidenceSnapshot

if TYPE_CHECKING:
    from numpy.typing import NDArray

    FloatArray: TypeAlias = NDArray[np.float64]
    IntArray: TypeAlias = NDArray[np.int64]
    BoolArray: TypeAlias = NDArray[np.bool_]

LATENCY = "latency"

Cell: TypeAlias = str | int | float | bool | None
Point: TypeAlias = tuple[tuple[str, ...], tuple[Cell, ...]]
"""Names and values of all known dimensions of a record."""

_FACTS: Mapping[str, Callable[[RecordSetHeader], str | None]] = {
    "@git_blob": lambda header: header.source.git_blob,
    "@sha256": lambda header: header.source.sha256,
    "@file": lambda header: header.source.file,
    "@tool": lambda header: header.source.tool,
    "@session": lambda header: header.session,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordBlock:
    """The selected rows of one record set; ``numbers`` are their row numbers, from 0."""

    sha256: str
    path: str
    header: RecordSetHeader
    rows: Sequence[Sequence[Any]]
    numbers: IntArray

    def dimension(self, name: str) -> list[Cell] | None:
        """Return a dimension's value for each row; None if the set does not state it."""
        found = self._cells("dimension", name)
        if found is None and name in self.header.context:
            return [self.header.context[name]] * len(self.rows)
        return found

    def upstream(self, name: str) -> list[Cell] | None:
        """Return what the source wrote under a name; None if it wrote nothing.

        Source columns come first, then ``source.keys``, then dimensions; ``@`` begins the name of
        a fact of the header.
        """
        size = len(self.rows)
        if name in _FACTS:
            return [_FACTS[name](self.header)] * size
        found = self._cells("source", name)
        if found is None and name in self.header.source.keys:
            return [self.header.source.keys[name]] * size
        return self.dimension(name) if found is None else found

    def metric(self, name: str) -> FloatArray:
        """Return the typical value of a metric for each row in its SI unit, NaN where unknown."""
        values = np.full(len(self.rows), np.nan)
        for place, unit in self._metric_places(name):
            missing = np.isnan(values)
            if not missing.any():
                break
            cells = [_center(row[place]) for row in self.rows]
            # Exactly the scalar conversion, element by element.
            converted: Any = UNITS[unit].to_si(np.array(cells, dtype=np.float64))  # type: ignore[arg-type]
            values = np.where(missing, converted, values)
        return values

    def points(self, ignored: Collection[str]) -> list[Point]:
        """Return all known dimensions of each row."""
        columns = {item.name for item in self.header.columns if item.role == "dimension"}
        known = {name for name, value in self.header.context.items() if value is not None}
        names = tuple(sorted((columns | known) - set(ignored)))
        values = [self.dimension(name) or [] for name in names]
        return [(names, cells) for cells in zip(*values, strict=True)]

    def full_rows(self) -> list[str]:
        """Return each row as text, without its row number."""
        kept = [
            place
            for place, column in enumerate(self.header.columns)
            if (column.role, column.name) != ("source", ROW_NUMBER)
        ]
        return [repr([row[place] for place in kept]) for row in self.rows]

    def subset(self, mask: BoolArray) -> RecordBlock:
        """Return the block with only the rows of a mask of shape ``(n_rows,)``."""
        rows = [row for row, wanted in zip(self.rows, mask, strict=True) if wanted]
        return replace(self, rows=rows, numbers=self.numbers[mask])

    def _cells(self, role: str, name: str) -> list[Cell] | None:
        for place, column in enumerate(self.header.columns):
            if (column.role, column.name) == (role, name):
                return [row[place] for row in self.rows]
        return None

    def _metric_places(self, name: str) -> list[tuple[int, str]]:
        """Return place and unit of the columns that can give the typical value, best first."""
        found: dict[str, tuple[int, str]] = {}
        for place, column in enumerate(self.header.columns):
            if (column.role, column.name) == ("metric", name) and column.statistic is not None:
                assert column.unit is not None
                found[column.statistic] = (place, column.unit)
        return [found[statistic] for statistic in ("sample", *CENTERS) if statistic in found]


def _center(cell: Any) -> float:
    if isinstance(cell, list | tuple):
        return float(statistics.median(cell))
    return float("nan") if cell is None else float(cell)


class SelectedRecords:
    """Records as columns, all of one length, in the order of their record sets and rows.

    Parameters
    ----------
    blocks : sequence of RecordBlock
        The selected rows by record set.
    retracted : sequence of str
        Ids of the records of these sets that would have been selected but are retracted.
    """

    def __init__(self, blocks: Sequence[RecordBlock], retracted: Sequence[str] = ()) -> None:
        self.blocks = tuple(block for block in blocks if len(block.rows))
        self.retracted = tuple(retracted)

    def __len__(self) -> int:
        return sum(len(block.rows) for block in self.blocks)

    @property
    def record_sets(self) -> tuple[str, ...]:
        """SHA-256 of the record sets that hold the records, sorted."""
        return tuple(sorted(block.sha256 for block in self.blocks))

    def ids(self) -> list[str]:
        """Return the record ids."""
        return [
            record_id(block.sha256, number)
            for block in self.blocks
            for number in block.numbers.tolist()
        ]

    def sessions(self) -> list[str]:
        """Return the session of each record."""
        return [block.header.session for block in self.blocks for _ in block.rows]

    def values(self, dimension: str) -> list[Cell]:
        """Return a dimension's value for each record, None where unknown."""
        return [
            value
            for block in self.blocks
            for value in block.dimension(dimension) or [None] * len(block.rows)
        ]

    def numbers(self, dimension: str) -> FloatArray:
        """Return a numeric dimension, shape ``(n_records,)``, NaN where unknown.

        Raises
        ------
        UsageError
            'not-numeric' where a record has a text there.
        """
        cells = self.values(dimension)
        if any(isinstance(cell, str | bool) for cell in cells):
            raise UsageError(f"dimension {dimension!r} is not a number", code="not-numeric")
        return np.array(cells, dtype=np.float64)

    def upstream(self, name: str) -> list[Cell]:
        """Return what the source wrote under a name for each record, None where nothing."""
        return [
            value
            for block in self.blocks
            for value in block.upstream(name) or [None] * len(block.rows)
        ]

    def metric(self, name: str = LATENCY) -> FloatArray:
        """Return the typical value of a metric, shape ``(n_records,)``, in its SI unit.

        The median of raw samples, else the recorded statistic that comes first in
        `perfdb_git.providers.observations.CENTERS`; NaN where a record has none.
        """
        return np.concatenate([np.empty(0), *(block.metric(name) for block in self.blocks)])

    def points(self, ignored: Collection[str] = ()) -> list[Point]:
        """Return all known dimensions of each record, without the ignored ones."""
        return [point for block in self.blocks for point in block.points(ignored)]

    def subset(self, mask: BoolArray) -> SelectedRecords:
        """Return the records of a mask of shape ``(n_records,)``."""
        blocks = []
        start = 0
        for block in self.blocks:
            end = start + len(block.rows)
            blocks.append(block.subset(mask[start:end]))
            start = end
        return SelectedRecords(blocks, self.retracted)


def select_records(
    snapshot: EvidenceSnapshot,
    selection: RecordSelection,
    *,
    record_sets: Collection[str] | None = None,
    left_out: Collection[str] = (),
) -> SelectedRecords:
    """Return the records of a snapshot that a selection names, read from their Git objects.

    Parameters
    ----------
    snapshot : EvidenceSnapshot
        Where the records stand.
    selection : RecordSelection
        Which ones.
    record_sets : collection of str or None
        SHA-256 of the only record sets to look at; with it, a retraction that came later has no
        effect. None takes all record sets, without retracted records.
    left_out : collection of str
        Ids of records to leave out.

    Raises
    ------
    NoEvidenceError
        'missing-record-set', or 'no-records' where nothing is selected.
    UsageError
        'unknown-fact' for a name that begins with ``@`` and is no fact.
    """
    require_facts(selection.where)
    pinned = None if record_sets is None else frozenset(record_sets)
    blocks: list[RecordBlock] = []
    retracted: list[str] = []
    for view in _views(snapshot, selection, pinned):
        block = _selected(snapshot, view, selection)
        if block is None:
            continue
        live = view.live() if pinned is None else None
        if live is not None:
            gone = block.subset(~live[block.numbers])
            block = block.subset(live[block.numbers])
            if len(block.rows):
                retracted += [record_id(view.sha256, number) for number in gone.numbers.tolist()]
        blocks.append(_without(block, left_out))
    selected = SelectedRecords(blocks, retracted)
    if not len(selected):
        raise NoEvidenceError(
            f"no records of {', '.join(selection.operations)} on {selection.device} are selected",
            code="no-records",
            remedy="'perfdb list' shows what there is",
        )
    return selected


def require_facts(names: Collection[str]) -> None:
    """Refuse a name that begins with ``@`` and is no fact of a header.

    Raises
    ------
    UsageError
        'unknown-fact'.
    """
    for name in names:
        if name.startswith("@") and name not in _FACTS:
            raise UsageError(
                f"{name!r} is no fact of a record set",
                code="unknown-fact",
                remedy=f"facts: {', '.join(_FACTS)}",
            )


def _views(
    snapshot: EvidenceSnapshot, selection: RecordSelection, pinned: frozenset[str] | None
) -> list[IndexedRecordSet]:
    """Return the record sets of the selected series, only the pinned ones where some are."""
    views = [
        view
        for key in snapshot.series_keys()
        if key.device == selection.device
        and key.operation in selection.operations
        and key.kind in selection.kinds
        for view in snapshot.record_sets(key)
        if pinned is None or view.sha256 in pinned
    ]
    missing = (pinned or frozenset()) - {view.sha256 for view in views}
    if missing:
        raise NoEvidenceError(
            f"record set {min(missing)} is not among the selected series",
            code="missing-record-set",
            remedy="name a snapshot that has it",
        )
    return views


def _selected(
    snapshot: EvidenceSnapshot, view: IndexedRecordSet, selection: RecordSelection
) -> RecordBlock | None:
    """Return the rows of one record set that a selection names; None if there are none."""
    if _is_refused(view.header, selection):
        return None
    header, rows = snapshot.read_record_set(view)
    block = RecordBlock(
        sha256=view.sha256,
        path=view.path,
        header=header,
        rows=rows,
        numbers=np.arange(len(rows), dtype=np.int64),
    )
    mask = np.ones(len(rows), dtype=np.bool_)
    for name, allowed in selection.terms.items():
        mask &= _among(block.dimension(name), allowed, len(rows))
    for name, allowed in selection.where.items():
        mask &= _among(block.upstream(name), allowed, len(rows))
    return block.subset(mask) if mask.any() else None


def _is_refused(header: RecordSetHeader, selection: RecordSelection) -> bool:
    """Tell whether the header alone rules out every row, so that none has to be read."""
    columns = {(column.role, column.name) for column in header.columns}
    constants = {**header.context, **header.source.keys}
    constants |= {name: fact(header) for name, fact in _FACTS.items()}
    terms = any(
        ("dimension", name) not in columns and header.context.get(name) not in allowed
        for name, allowed in selection.terms.items()
    )
    return terms or any(
        not {("source", name), ("dimension", name)} & columns and constants.get(name) not in allowed
        for name, allowed in selection.where.items()
    )


def _among(cells: list[Cell] | None, allowed: tuple[Scalar, ...], size: int) -> BoolArray:
    if cells is None:
        return np.zeros(size, dtype=np.bool_)
    wanted = frozenset(allowed)
    return np.fromiter((cell in wanted for cell in cells), dtype=np.bool_, count=size)


def _without(block: RecordBlock, left_out: Collection[str]) -> RecordBlock:
    prefix = f"{block.sha256}#"
    rows = [int(name[len(prefix) :]) for name in left_out if name.startswith(prefix)]
    return block.subset(~np.isin(block.numbers, rows)) if rows else block


def cell_text(cell: Cell, *, document: str, column: str) -> str:
    """Return a cell as the text that keys and hashes are made of.

    Integers are decimal, other numbers take their shortest form, text stays as it is.

    Raises
    ------
    InvalidInputError
        'unknown-key' where the cell is unknown.
    """
    if isinstance(cell, str):
        return cell
    if cell is None:
        raise InvalidInputError(
            f"column {column!r} is unknown in some selected record, so it cannot be a key",
            code="unknown-key",
            document=document,
            remedy="narrow the selection, or leave the column out of the key",
        )
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return repr(cell)

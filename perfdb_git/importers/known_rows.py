"""Which rows an evidence repository already holds, so that an import adds only new ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import repeat

from perfdb_git.model.records import ROW_NUMBER, RecordSetHeader

Row = tuple[Hashable, ...]


class KnownRows:
    """A multiset of rows, equal where a new import of the same file would give the same row.

    Compared are kind, tool, file, upstream keys, date of measurement, context, dimensions,
    metrics and source columns. Left out are what changes from one import to the next: source
    revision, digests, session name, row number, importer and mapping version, environment. A
    fact counts the same in a header and in a column, since a longer file may turn a constant
    into a column.
    """

    def __init__(self) -> None:
        self._rows: dict[Hashable, Counter[Row]] = {}

    def add(self, header: RecordSetHeader, rows: Sequence[Sequence[object]]) -> None:
        """Note the rows of a record set."""
        self._rows.setdefault(_family(header), Counter()).update(_rows(header, rows))

    def new_indices(
        self, header: RecordSetHeader, rows: Sequence[Sequence[object]]
    ) -> list[int] | None:
        """Return the indices of rows that are not known yet, or ``None`` if all are new.

        Each known row answers for one row only, so real repeats stay.
        """
        known = self._rows.get(_family(header))
        if not known:
            return None
        used: Counter[Row] = Counter()
        new: list[int] = []
        for index, row in enumerate(_rows(header, rows)):
            if known[row] > used[row]:
                used[row] += 1
            else:
                new.append(index)
        return new


def _family(header: RecordSetHeader) -> Hashable:
    source = header.source
    names = tuple(name for name, _ in _facts(header))
    return (header.kind, source.tool, source.file, source.measured_at, names)


def _facts(header: RecordSetHeader) -> list[tuple[tuple[str, ...], object]]:
    """Return (name, constant) or (name, column index as `_Index`) of every fact, sorted by name."""
    facts: list[tuple[tuple[str, ...], object]] = [
        *((("dimension", name), value) for name, value in header.context.items()),
        *((("source", name), _text(value)) for name, value in header.source.keys.items()),
    ]
    for index, column in enumerate(header.columns):
        if column.role == "metric":
            parts = ("metric", column.name, str(column.statistic), str(column.unit))
            facts.append((parts, _Index(index)))
        elif column.role == "dimension" or column.name != ROW_NUMBER:
            facts.append(((column.role, column.name), _Index(index)))
    return sorted(facts, key=lambda fact: fact[0])


class _Index(int):
    """Position of a column, told apart from a constant integer."""


def _rows(header: RecordSetHeader, rows: Sequence[Sequence[object]]) -> Iterator[Row]:
    columns: list[Iterable[Hashable]] = []
    for name, fact in _facts(header):
        if not isinstance(fact, _Index):
            columns.append(repeat(_hashable(fact), len(rows)))
        elif name[0] == "source":
            columns.append([_text(row[fact]) for row in rows])
        else:
            columns.append([_hashable(row[fact]) for row in rows])
    return zip(*columns, strict=True)


def _text(value: object) -> str | None:
    """Return a label's text, the same for 1, 1.0, "1" and "1.0".

    Whether a column is read as numbers depends on the whole file, and canonical JSON writes 1.0
    as 1.
    """
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, str):
        return value.removesuffix(".0")
    return None if value is None else str(value)


def _hashable(value: object) -> Hashable:
    if isinstance(value, list | tuple):
        return tuple(value)
    if isinstance(value, Mapping):
        return str(value)
    assert isinstance(value, Hashable)
    return value

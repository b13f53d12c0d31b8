"""The rows of a series that can answer the questions of one group, ready to be looked up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from perfdb_git.analysis.coordinate_join import CoordinateJoin
from perfdb_git.model.values import Scalar
from perfdb_git.providers.evidence import RecordSetView
from perfdb_git.providers.matching import Matcher

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]
    Integers: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RowBlock:
    """Rows that know the same numeric dimensions; the others are open in them.

    Attributes
    ----------
    names : tuple of str
        The dimensions by which they are found.
    join : CoordinateJoin
        Finds their cells.
    places : ndarray of int64
        Place of each row's record set among those of the series, ``(n_rows,)``.
    rows : ndarray of int64
        Its number in the set, ``(n_rows,)``.
    """

    names: tuple[str, ...]
    join: CoordinateJoin
    places: Integers
    rows: Integers


def row_blocks(
    record_sets: Sequence[RecordSetView],
    terms: Mapping[str, Scalar],
    names: Sequence[str],
    matcher: Matcher,
) -> list[RowBlock]:
    """Return the live rows that agree with terms, by what they know of the numbers.

    Parameters
    ----------
    record_sets : sequence of RecordSetView
        Those of the series, in their order.
    terms : Mapping[str, Scalar]
        Terms that the questions state.
    names : sequence of str
        Numeric dimensions that the questions state.
    matcher : Matcher
        Says which dimensions are compared, and which are material.
    """
    wanted = matcher.relevant(terms)
    numeric = tuple(matcher.relevant(dict.fromkeys(names, 0)))
    collected: dict[tuple[str, ...], list[_Rows]] = {}
    for place, record_set in enumerate(record_sets):
        if _agrees(record_set, wanted, matcher):
            for known, rows in _by_knowledge(record_set, place, numeric, matcher):
                collected.setdefault(known, []).append(rows)
    return [_block(known, parts) for known, parts in collected.items()]


@dataclass(frozen=True, slots=True)
class _Rows:
    place: int
    numbers: Integers
    columns: tuple[Floats, ...]


def _agrees(record_set: RecordSetView, wanted: Mapping[str, Scalar], matcher: Matcher) -> bool:
    context = record_set.header.context
    columns = record_set.header.dimension_columns
    for name, value in wanted.items():
        known = context.get(name)
        if known is not None:
            if known != value:
                return False
        elif name in columns or matcher.is_material(name):
            # A column holds numbers, which no term equals.
            return False
    return True


def _by_knowledge(
    record_set: RecordSetView, place: int, names: Sequence[str], matcher: Matcher
) -> list[tuple[tuple[str, ...], _Rows]]:
    """Split the live rows of a set by the dimensions that they know."""
    context = record_set.header.context
    columns: dict[str, Floats] = {}
    for name in names:
        stated = context.get(name)
        if isinstance(stated, str):
            return []
        column = record_set.dimension(name) if stated is None else None
        if stated is not None:
            column = np.full(record_set.row_count, float(stated))
        if column is not None:
            columns[name] = column
        elif matcher.is_material(name):
            return []
    live = record_set.live()
    kept = np.ones(record_set.row_count, np.bool_) if live is None else live.copy()
    pattern = np.zeros(record_set.row_count, np.int64)
    for bit, (name, column) in enumerate(columns.items()):
        unknown = np.isnan(column)
        if not unknown.any():
            continue
        if matcher.is_material(name):
            kept &= ~unknown
        else:
            pattern |= unknown.astype(np.int64) << bit
    found = []
    for value in np.unique(pattern[kept]).tolist():
        numbers = np.flatnonzero(kept & (pattern == value))
        known = tuple(name for bit, name in enumerate(columns) if not value >> bit & 1)
        found.append((known, _Rows(place, numbers, tuple(columns[n][numbers] for n in known))))
    return found


def _block(names: tuple[str, ...], parts: Sequence[_Rows]) -> RowBlock:
    columns = [
        np.concatenate([part.columns[place] for part in parts]) for place in range(len(names))
    ]
    rows = np.concatenate([part.numbers for part in parts])
    places = np.repeat(
        np.array([part.place for part in parts], np.int64), [len(part.numbers) for part in parts]
    )
    join = CoordinateJoin(columns, len(rows))
    return RowBlock(names=names, join=join, places=places, rows=rows)

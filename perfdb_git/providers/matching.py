"""Which records answer a query exactly, and what would have to change where none does."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from perfdb_git.model.policy import MatchingRules
from perfdb_git.model.values import Scalar, plain_number
from perfdb_git.model.vocabulary import Vocabulary
from perfdb_git.providers.evidence import RecordSetView

if TYPE_CHECKING:
    from perfdb_git.providers.evidence import BoolArray

_SERIES_DIMENSIONS = frozenset({"operation", "device"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """The rows of one record set that agree with the query."""

    record_set: RecordSetView
    rows: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """The outcome of matching.

    ``open_values`` holds, for every dimension that records know and the query does not, the
    recorded values; more than one value there makes the match ambiguous. ``unstated`` are
    dimensions that the query states and some matching record does not know.
    """

    candidates: tuple[Candidate, ...]
    open_values: Mapping[str, tuple[Scalar, ...]] = field(default_factory=dict)
    partly_open: tuple[str, ...] = ()
    unstated: tuple[str, ...] = ()

    @property
    def deciding(self) -> dict[str, tuple[Scalar, ...]]:
        """Dimensions whose value the query must state, with the values on record."""
        return {name: values for name, values in self.open_values.items() if len(values) > 1}

    @property
    def row_count(self) -> int:
        """Matching records."""
        return sum(len(candidate.rows) for candidate in self.candidates)


class Matcher:
    """Matching under one vocabulary and one policy's rules."""

    def __init__(self, vocabulary: Vocabulary, rules: MatchingRules) -> None:
        self._vocabulary = vocabulary
        self._material = {
            name
            for name, dimension in vocabulary.dimensions.items()
            if dimension.material and name not in rules.immaterial
        } | set(rules.material)

    def is_material(self, name: str) -> bool:
        """Return whether a record must know this dimension when the query states it."""
        return name in self._material

    def relevant(self, coordinates: Mapping[str, Scalar]) -> dict[str, Scalar]:
        """Drop what is never matched or already fixed by the series."""
        dimensions = self._vocabulary.dimensions
        return {
            name: value
            for name, value in coordinates.items()
            if name not in _SERIES_DIMENSIONS and dimensions[name].matched
        }

    def match(
        self, coordinates: Mapping[str, Scalar], record_sets: Sequence[RecordSetView]
    ) -> Match:
        """Find the rows that agree with the query.

        Parameters
        ----------
        coordinates : Mapping[str, Scalar]
            Known dimensions of the query by flat name.
        record_sets : Sequence[RecordSetView]
            The record sets of the series in question.
        """
        wanted = self.relevant(coordinates)
        found = ((item, self._matching_rows(wanted, item)) for item in record_sets)
        return self.match_of(
            coordinates,
            [(item, rows) for item, rows in found if rows is not None and len(rows)],
        )

    def match_of(
        self,
        coordinates: Mapping[str, Scalar],
        found: Sequence[tuple[RecordSetView, np.ndarray]],
    ) -> Match:
        """Describe rows that agree with a query.

        Parameters
        ----------
        coordinates : Mapping[str, Scalar]
            Known dimensions of the query by flat name.
        found : sequence of (RecordSetView, ndarray)
            Record sets with the numbers of their rows that agree, at least one each.
        """
        wanted = self.relevant(coordinates)
        candidates = []
        open_values: dict[str, set[Scalar]] = {}
        knowing: dict[str, int] = {}
        unstated: set[str] = set()
        for record_set, rows in found:
            candidates.append(Candidate(record_set=record_set, rows=tuple(rows.tolist())))
            unstated |= _not_known(wanted, record_set, rows)
            for name, values in _open_values(wanted, record_set, rows).items():
                open_values.setdefault(name, set()).update(values)
                knowing[name] = knowing.get(name, 0) + 1
        return Match(
            candidates=tuple(candidates),
            open_values={name: _sorted(open_values[name]) for name in sorted(open_values)},
            partly_open=tuple(
                sorted(name for name, sets in knowing.items() if sets < len(candidates))
            ),
            unstated=tuple(sorted(unstated)),
        )

    def _matching_rows(
        self, wanted: Mapping[str, Scalar], record_set: RecordSetView
    ) -> np.ndarray | None:
        """Return the matching row numbers, or ``None`` when the context rules all of them out."""
        context = record_set.header.context
        columns = record_set.header.dimension_columns
        in_columns: list[tuple[str, Scalar]] = []
        for name, value in wanted.items():
            known = context.get(name)
            if known is not None:
                if known != value:
                    return None
            elif name in columns:
                in_columns.append((name, value))
            elif self.is_material(name):
                return None
        mask = _live_mask(record_set)
        for name, value in in_columns:
            mask = self._compare(mask, record_set, name, value)
        return np.flatnonzero(mask)

    def _compare(
        self, mask: BoolArray, record_set: RecordSetView, name: str, value: Scalar
    ) -> BoolArray:
        column = record_set.dimension(name)
        if column is None or isinstance(value, str):
            return np.zeros_like(mask)
        equal: BoolArray = np.equal(column, value)
        if not self.is_material(name):
            equal |= np.isnan(column)
        return np.logical_and(mask, equal)


def _live_mask(record_set: RecordSetView) -> BoolArray:
    live = record_set.live()
    return np.ones(record_set.row_count, dtype=np.bool_) if live is None else live.copy()


def _not_known(
    wanted: Mapping[str, Scalar], record_set: RecordSetView, rows: np.ndarray
) -> set[str]:
    missing = set()
    for name in wanted:
        if record_set.header.context.get(name) is not None:
            continue
        column = record_set.dimension(name)
        if column is None or bool(np.isnan(column[rows]).any()):
            missing.add(name)
    return missing


def _open_values(
    wanted: Mapping[str, Scalar], record_set: RecordSetView, rows: np.ndarray
) -> dict[str, set[Scalar]]:
    """Collect what the matching rows know and the query leaves open."""
    result: dict[str, set[Scalar]] = {
        name: {value}
        for name, value in record_set.header.context.items()
        if value is not None and name not in wanted and name not in _SERIES_DIMENSIONS
    }
    for name in record_set.header.dimension_columns:
        column = record_set.dimension(name)
        if name in wanted or column is None:
            continue
        values = {plain_number(value) for value in np.unique(column[rows]) if value == value}
        if values:
            result[name] = values
    return result


def _sorted(values: Iterable[Scalar]) -> tuple[Scalar, ...]:
    """Sort numbers before terms, terms by UTF-8 bytes."""
    return tuple(sorted(values, key=_sort_key))


def _sort_key(value: Scalar) -> tuple[int, float, bytes]:
    if isinstance(value, str):
        return (1, 0.0, value.encode())
    return (0, value, b"")


def octaves(query: float, evidence: float, *, zero_legal: bool) -> float:
    """Return |log2(query / evidence)|, of 1 + value where zero is legal."""
    if zero_legal:
        return abs(math.log2((1 + query) / (1 + evidence)))
    return abs(math.log2(query / evidence))

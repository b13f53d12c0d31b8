"""A quick look over all rows of a series: which record sets can answer a query at all.

Matching itself judges every record set with every rule (`matching`). With a thousand record sets
and hundreds of queries that takes minutes; here one comparison of a column over the whole series
rules out nearly all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from perfdb_git.model.values import Scalar
from perfdb_git.providers.evidence import RecordSetView

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from perfdb_git.providers.evidence import FloatArray

_FEW = 4
"""Record sets that are judged one by one as quickly."""


class RowFinder:
    """Finds the record sets of one series that have a row with a query's numbers.

    Parameters
    ----------
    record_sets : sequence of RecordSetView
        Those of the series.
    """

    def __init__(self, record_sets: Sequence[RecordSetView]) -> None:
        self.record_sets = record_sets

    def record_sets_with(
        self, wanted: Mapping[str, Scalar], is_material: Callable[[str], bool]
    ) -> list[RecordSetView]:
        """Return the record sets that may have a matching row, in their order.

        None that has one is left out; whether one of them has, `Matcher` judges.

        Parameters
        ----------
        wanted : mapping of str to Scalar
            The query's dimensions that are matched.
        is_material : callable
            Tells whether a row must know a dimension.
        """
        if len(self.record_sets) <= _FEW:
            return list(self.record_sets)
        places = [
            place for group in self._groups for place in group.places_with(wanted, is_material)
        ]
        return [self.record_sets[place] for place in sorted(places)]

    @cached_property
    def _groups(self) -> list[_Group]:
        members: dict[tuple[str, ...], list[int]] = {}
        for place, record_set in enumerate(self.record_sets):
            members.setdefault(record_set.header.dimension_columns, []).append(place)
        return [_Group(names, self.record_sets, places) for names, places in members.items()]


class _Group:
    """Record sets with the same dimension columns, their rows one after the other."""

    def __init__(
        self, names: tuple[str, ...], record_sets: Sequence[RecordSetView], places: list[int]
    ) -> None:
        self._names = names
        self._members = [record_sets[place] for place in places]
        self._places = places
        counts = [record_set.row_count for record_set in self._members]
        self._ends: NDArray[np.int64] = np.cumsum(counts, dtype=np.int64)
        self._columns: dict[str, FloatArray] = {}

    def places_with(
        self, wanted: Mapping[str, Scalar], is_material: Callable[[str], bool]
    ) -> list[int]:
        found: NDArray[np.intp] | None = None
        for name in self._names:
            value = wanted.get(name)
            if value is None:
                continue
            if isinstance(value, str):
                return []
            column = self._column(name) if found is None else self._column(name)[found]
            equal = column == value
            if not is_material(name):
                equal |= np.isnan(column)
            found = np.flatnonzero(equal) if found is None else found[equal]
            if not len(found):
                return []
        if found is None:
            return self._places
        members = np.unique(np.searchsorted(self._ends, found, side="right"))
        return [self._places[member] for member in members.tolist()]

    def _column(self, name: str) -> FloatArray:
        if name not in self._columns:
            self._columns[name] = np.concatenate([_values(item, name) for item in self._members])
        return self._columns[name]


def _values(record_set: RecordSetView, name: str) -> FloatArray:
    column = record_set.dimension(name)
    # Such a column compares unequal to everything, here as in matching.
    return np.full(record_set.row_count, np.inf) if column is None else column

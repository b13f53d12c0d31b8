"""Rows by their coordinates: which rows have exactly the numbers that each question states."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]
    Integers: TypeAlias = NDArray[np.int64]

_LARGEST_TABLE = 2**22
"""Entries of a table that is looked up directly; beyond it a search costs less than the memory."""

_LARGEST_WHOLE = 2**20


class _Values:
    """The distinct values of one dimension, found by value."""

    def __init__(self, column: Floats) -> None:
        self.values, self.codes = np.unique(column, return_inverse=True)
        whole = len(self.values) and (self.values == np.floor(self.values)).all()
        self._table: Integers | None = None
        if whole and self.values[0] >= 0 and self.values[-1] < _LARGEST_WHOLE:
            self._table = np.zeros(int(self.values[-1]) + 1, np.int64)
            self._table[self.values.astype(np.int64)] = np.arange(len(self.values))

    def find(self, asked: Floats) -> tuple[Integers, NDArray[np.bool_]]:
        """Return the code of each value, and whether there is one."""
        if self._table is None:
            places = np.searchsorted(self.values, asked)
            codes = np.minimum(places, len(self.values) - 1)
        else:
            inside = (asked >= 0) & (asked < len(self._table))
            codes = self._table[np.where(inside, asked, 0.0).astype(np.int64)]
        return codes, self.values[codes] == asked


class CoordinateJoin:
    """Finds the rows that have given coordinates; rows with equal ones share a *cell*.

    Parameters
    ----------
    columns : sequence of ndarray of float64
        One a dimension, each ``(n_rows,)`` without NaN.
    n_rows : int
        Rows, where there may be no column.

    Attributes
    ----------
    order : ndarray of int64
        Row numbers, cell by cell, ascending within one, ``(n_rows,)``.
    starts : ndarray of int64
        Where each cell begins in ``order``, ``(n_cells + 1,)``.
    """

    def __init__(self, columns: Sequence[Floats], n_rows: int) -> None:
        self._dimensions = [_Values(column) for column in columns]
        self._radix: list[int] = []
        key = np.zeros(n_rows, np.int64)
        size = 1
        self._folds: list[Integers | None] = []
        for item in self._dimensions:
            fold = None
            if size * max(1, len(item.values)) > 2**62:
                # The key would not fit: give each one that occurs its place among them.
                fold, key = np.unique(key, return_inverse=True)
                size = len(fold)
            self._folds.append(fold)
            key = key * len(item.values) + item.codes
            size *= max(1, len(item.values))
        self.order: Integers = np.argsort(key, kind="stable")
        ordered = key[self.order]
        firsts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
        firsts = firsts if n_rows else firsts[:0]
        self.starts: Integers = np.append(firsts, n_rows)
        self._keys: Integers = ordered[firsts]
        self._table: NDArray[np.int32] | None = None
        if size <= max(_LARGEST_TABLE, 4 * n_rows):
            self._table = np.full(size, -1, np.int32)
            self._table[self._keys] = np.arange(len(self._keys))

    @property
    def n_cells(self) -> int:
        """Distinct coordinates."""
        return len(self._keys)

    def cells(self, asked: Sequence[Floats], count: int) -> Integers:
        """Return the cell that has each question's coordinates, -1 where none has.

        Parameters
        ----------
        asked : sequence of ndarray of float64
            The same dimensions in the same order, each ``(count,)``.
        count : int
            Questions.
        """
        if not self.n_cells:
            return np.full(count, -1, np.int64)
        key, found = np.zeros(count, np.int64), np.ones(count, np.bool_)
        for item, fold, values in zip(self._dimensions, self._folds, asked, strict=True):
            if fold is not None:
                places = np.minimum(np.searchsorted(fold, key), len(fold) - 1)
                found &= fold[places] == key
                key = places
            codes, known = item.find(values)
            found &= known
            key = key * len(item.values) + codes
        if self._table is not None:
            return np.where(found, self._table[key], -1)
        places = np.minimum(np.searchsorted(self._keys, key), self.n_cells - 1)
        found &= self._keys[places] == key
        return np.where(found, places, -1)

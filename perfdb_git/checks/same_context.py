"""Rows of two record sets that are of the same context, found by their coordinates.

They agree in every dimension that both know, and neither lacks a material one that the other
knows, as when a query is matched. A dimension that is never matched has no part in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, TypeAlias

from perfdb_git.checks.typical_values import RawHeader
from perfdb_git.model.values import Scalar
from perfdb_git.model.vocabulary import Vocabulary
from perfdb_git.providers.matching import Matcher

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    FloatArray: TypeAlias = NDArray[np.float64]

_SERIES = frozenset({"operation", "device"})


class KeyedRows:
    """The rows of one record set, to be met with those of others.

    Parameters
    ----------
    header : mapping
        As its JSON states it.
    columns : mapping of str to array
        Dimensions by row, shape ``(rows,)``, NaN where unknown.
    rows : int
        How many rows there are.
    vocabulary : Vocabulary
        Tells which dimensions are matched.
    matcher : Matcher
        Tells which are material.
    """

    def __init__(
        self,
        header: RawHeader,
        columns: Mapping[str, FloatArray],
        *,
        rows: int,
        vocabulary: Vocabulary,
        matcher: Matcher,
    ) -> None:
        self._context = _known(header)
        self._columns = columns
        self._matcher = matcher
        self._matched = {name for name, d in vocabulary.dimensions.items() if d.matched} - _SERIES
        self._found: dict[tuple[str, ...], dict[bytes, list[int]]] = {}
        self._repeats: dict[bytes, list[int]] = {}
        for row, key in enumerate(_keys(tuple(sorted(columns)), {}, columns, rows)):
            self._repeats.setdefault(key, []).append(row)
        self._rows = rows

    def medians(self, values: FloatArray) -> FloatArray:
        """Return each row's median over the rows of equal coordinates.

        Parameters
        ----------
        values : array
            Shape ``(rows,)``, NaN where a row has none.

        Returns
        -------
        array
            Shape ``(rows,)``.
        """
        import numpy as np

        pooled = values.copy()
        for rows in self._repeats.values():
            known = values[rows][~np.isnan(values[rows])]
            if len(rows) > 1 and len(known):
                pooled[rows] = np.median(known)
        return pooled

    def shared_dimensions(self, header: RawHeader) -> tuple[str, ...] | None:
        """Return the dimensions to compare by row, or None where no row can be of one context."""
        context = _known(header)
        theirs = context.keys() | _column_names(header)
        by_row = []
        for name in sorted(self._matched & (self._context.keys() | self._columns.keys() | theirs)):
            mine = name in self._context or name in self._columns
            if not (mine and name in theirs):
                if self._matcher.is_material(name):
                    return None
            elif name in self._context and name in context:
                if self._context[name] != context[name]:
                    return None
            elif isinstance(self._context.get(name) or context.get(name), str):
                # A text on one side, a column of numbers on the other.
                return None
            else:
                by_row.append(name)
        return tuple(by_row)

    def pairs(
        self,
        by_row: tuple[str, ...],
        header: RawHeader,
        columns: Mapping[str, FloatArray],
        rows: int,
    ) -> Iterator[tuple[int, int]]:
        """Yield the pairs (own row, other row) that agree in the dimensions to compare.

        Of own rows of equal coordinates the first stands for all.
        """
        own = self._by_key(by_row)
        for other, key in enumerate(_keys(by_row, _known(header), columns, rows)):
            for row in own.get(key, ()):
                yield row, other

    def _by_key(self, by_row: tuple[str, ...]) -> Mapping[bytes, list[int]]:
        if by_row not in self._found:
            keys = _keys(by_row, self._context, self._columns, self._rows)
            found: dict[bytes, list[int]] = {}
            for first, *_ in self._repeats.values():
                found.setdefault(keys[first], []).append(first)
            self._found[by_row] = found
        return self._found[by_row]


def _known(header: RawHeader) -> dict[str, Scalar]:
    return {name: value for name, value in header["context"].items() if value is not None}


def _column_names(header: RawHeader) -> set[str]:
    return {column["name"] for column in header["columns"] if column["role"] == "dimension"}


def _keys(
    names: tuple[str, ...],
    context: Mapping[str, Scalar],
    columns: Mapping[str, FloatArray],
    rows: int,
) -> list[bytes]:
    """Return each row's coordinates as bytes; equal numbers give equal bytes."""
    import numpy as np

    if not names:
        return [b""] * rows
    table = np.empty((rows, len(names)), dtype=np.float64)
    for place, name in enumerate(names):
        table[:, place] = columns[name] if name in columns else float(context[name])
    table += 0.0  # a negative zero is zero
    keys: list[bytes] = table.view(f"V{8 * len(names)}").ravel().tolist()
    return keys

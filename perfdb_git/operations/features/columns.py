"""Columns of queries as numbers: dimensions as they are, terms through a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeVar

from perfdb_git.errors import UsageError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from perfdb_git.operations.features.feature_set import Columns

    Number = TypeVar("Number", np.float32, np.float64)


def numbers(columns: Columns, names: tuple[str, ...], kind: type[Number]) -> list[NDArray[Number]]:
    """Return numeric dimensions as arrays of one kind, each ``(n,)``."""
    return [columns[name].astype(kind) for name in names]


def by_term(
    columns: Columns, name: str, values: Mapping[str, float], kind: type[Number]
) -> NDArray[Number]:
    """Return the number behind each term, ``(1,)`` where all rows share one term.

    Raises
    ------
    UsageError
        'unknown-term-of-features' where no number stands behind a term.
    """
    import numpy as np

    terms = columns[name]
    first = terms[0]
    if len(terms) == 1 or bool((terms == first).all()):
        return np.array([_value(str(first), name, values)], dtype=kind)
    found, place = np.unique(terms, return_inverse=True)
    return np.array([_value(str(term), name, values) for term in found], dtype=kind)[place]


def _value(term: str, name: str, values: Mapping[str, float]) -> float:
    if term not in values:
        raise UsageError(
            f"nothing is known of {name} {term!r}; known: {', '.join(sorted(values))}",
            code="unknown-term-of-features",
            remedy="ask for one of the known terms",
        )
    return values[term]

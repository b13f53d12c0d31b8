"""What a query would have to change to be answerable: the help that a miss owes its reader."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from perfdb_git.model.estimate import NearMiss
from perfdb_git.model.values import Scalar
from perfdb_git.model.vocabulary import Vocabulary
from perfdb_git.providers.evidence import RecordSetView
from perfdb_git.providers.matching import Matcher, plain_number

if TYPE_CHECKING:
    from perfdb_git.providers.evidence import FloatArray

MOST_REPORTED = 3


@dataclass(frozen=True, slots=True)
class _Near:
    term_changes: tuple[tuple[str, Scalar | None], ...]
    distance: float
    number_changes: tuple[tuple[str, Scalar], ...]
    rows: int

    def rank(self) -> tuple[int, float, int]:
        return (len(self.term_changes), self.distance, len(self.number_changes))


def near_misses(
    coordinates: Mapping[str, Scalar],
    record_sets: Sequence[RecordSetView],
    matcher: Matcher,
    vocabulary: Vocabulary,
) -> tuple[NearMiss, ...]:
    """Return the nearest recorded contexts, fewest changed terms first, then by distance.

    Parameters
    ----------
    coordinates : Mapping[str, Scalar]
        Known dimensions of the query.
    record_sets : Sequence[RecordSetView]
        Record sets of the series that the query names.
    """
    wanted = matcher.relevant(coordinates)
    found = [
        near
        for record_set in record_sets
        if (near := _nearest(wanted, record_set, matcher, vocabulary)) is not None
    ]
    best: dict[tuple[object, ...], _Near] = {}
    for near in sorted(found, key=_Near.rank):
        key = (near.term_changes, near.number_changes)
        known = best.get(key)
        rows = near.rows + (known.rows if known is not None else 0)
        best[key] = _Near(near.term_changes, near.distance, near.number_changes, rows)
    ranked = sorted(best.values(), key=_Near.rank)[:MOST_REPORTED]
    return tuple(_as_near_miss(near) for near in ranked)


def _as_near_miss(near: _Near) -> NearMiss:
    changes: dict[str, tuple[Scalar, ...]] = {
        name: () if value is None else (value,) for name, value in near.term_changes
    }
    changes |= {name: (value,) for name, value in near.number_changes}
    return NearMiss(
        changes=changes,
        distance_octaves=None if near.term_changes else near.distance,
        records=near.rows,
    )


def _nearest(
    wanted: Mapping[str, Scalar],
    record_set: RecordSetView,
    matcher: Matcher,
    vocabulary: Vocabulary,
) -> _Near | None:
    """Find the nearest row of one record set."""
    live = record_set.live()
    count = record_set.row_count
    alive = np.ones(count, dtype=np.bool_) if live is None else live
    if not alive.any():
        return None
    terms: list[tuple[str, Scalar | None]] = []
    numbers: dict[str, tuple[float, FloatArray]] = {}
    for name, value in wanted.items():
        known = record_set.header.context.get(name)
        column = record_set.dimension(name) if known is None else None
        if column is not None and not isinstance(value, str):
            numbers[name] = (float(value), column)
        elif known is None:
            if matcher.is_material(name):
                terms.append((name, None))
        elif isinstance(known, str) or isinstance(value, str):
            if known != value:
                terms.append((name, known))
        elif known != value:
            numbers[name] = (float(value), np.full(count, float(known)))
    distance, total = _distances(numbers, alive, matcher, vocabulary)
    row = int(np.lexsort((total, distance))[0])
    if not np.isfinite(distance[row]):
        return None
    changes = tuple(
        (name, plain_number(column[row]))
        for name, (value, column) in numbers.items()
        if column[row] != value and column[row] == column[row]
    )
    equal = (distance == distance[row]) & (total == total[row])
    return _Near(tuple(terms), float(distance[row]), changes, int(equal.sum()))


def _distances(
    numbers: Mapping[str, tuple[float, FloatArray]],
    alive: np.ndarray,
    matcher: Matcher,
    vocabulary: Vocabulary,
) -> tuple[FloatArray, FloatArray]:
    """Return the largest |log2 ratio| over the numeric dimensions, and their sum.

    Both have the shape ``(row_count,)``; the sum decides between rows that are equally far.
    """
    distance = np.zeros(alive.shape, dtype=np.float64)
    total = np.zeros(alive.shape, dtype=np.float64)
    for name, (value, column) in numbers.items():
        shift = 1.0 if vocabulary.dimensions[name].zero else 0.0
        with np.errstate(divide="ignore", invalid="ignore"):
            step = np.abs(np.log2((value + shift) / (column + shift)))
        step = np.where(np.isnan(column), np.inf if matcher.is_material(name) else 0.0, step)
        distance = np.maximum(distance, step)
        total += step
    return np.where(alive, distance, np.inf), total

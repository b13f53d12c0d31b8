"""What a query would have to change to be answerable: the help that a miss owes its reader."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from perfdb_git.model.estimate import NearMiss
from perfdb_git.model.values import Scalar, plain_number
from perfdb_git.model.vocabulary import Vocabulary
from perfdb_git.providers.evidence import RecordSetView
from perfdb_git.providers.matching import Matcher

if TYPE_CHECKING:
    from perfdb_git.providers.evidence import FloatArray

_Terms: TypeAlias = tuple[tuple[str, Scalar | None], ...]

MOST_REPORTED = 3


@dataclass(frozen=True, slots=True)
class _Near:
    term_changes: _Terms
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
    by_terms: dict[int, list[tuple[RecordSetView, _Terms]]] = {}
    for record_set in record_sets:
        terms = _term_changes(wanted, record_set, matcher)
        by_terms.setdefault(len(terms), []).append((record_set, terms))
    best: dict[tuple[object, ...], _Near] = {}
    # Fewer changed terms come first whatever the distances: most rows need not be looked at.
    for changed in sorted(by_terms):
        found = (
            _nearest(wanted, record_set, terms, matcher, vocabulary)
            for record_set, terms in by_terms[changed]
        )
        for near in sorted((item for item in found if item is not None), key=_Near.rank):
            key = (near.term_changes, near.number_changes)
            known = best.get(key)
            rows = near.rows + (known.rows if known is not None else 0)
            best[key] = _Near(near.term_changes, near.distance, near.number_changes, rows)
        if len(best) >= MOST_REPORTED:
            break
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


def _term_changes(
    wanted: Mapping[str, Scalar], record_set: RecordSetView, matcher: Matcher
) -> _Terms:
    """Return the terms that a query would have to change, None for one that is not known."""
    context = record_set.header.context
    columns = record_set.header.dimension_columns
    changes: list[tuple[str, Scalar | None]] = []
    for name, value in wanted.items():
        known = context.get(name)
        if known is None:
            if not (name in columns and not isinstance(value, str)) and matcher.is_material(name):
                changes.append((name, None))
        elif known != value and (isinstance(known, str) or isinstance(value, str)):
            changes.append((name, known))
    return tuple(changes)


def _nearest(
    wanted: Mapping[str, Scalar],
    record_set: RecordSetView,
    terms: _Terms,
    matcher: Matcher,
    vocabulary: Vocabulary,
) -> _Near | None:
    """Find the nearest row of one record set."""
    live = record_set.live()
    count = record_set.row_count
    alive = np.ones(count, dtype=np.bool_) if live is None else live
    if not alive.any():
        return None
    numbers: dict[str, tuple[float, FloatArray]] = {}
    for name, value in wanted.items():
        known = record_set.header.context.get(name)
        if isinstance(value, str) or isinstance(known, str):
            continue
        column = record_set.dimension(name) if known is None else None
        if column is not None:
            numbers[name] = (float(value), column)
        elif known is not None and known != value:
            numbers[name] = (float(value), np.full(count, float(known)))
    distance, total = _distances(numbers, alive, matcher, vocabulary)
    least = distance.min()
    if not np.isfinite(least):
        return None
    row = int(np.where(distance == least, total, np.inf).argmin())
    changes = tuple(
        (name, plain_number(column[row]))
        for name, (value, column) in numbers.items()
        if column[row] != value and column[row] == column[row]
    )
    equal = (distance == distance[row]) & (total == total[row])
    return _Near(terms, float(distance[row]), changes, int(equal.sum()))


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

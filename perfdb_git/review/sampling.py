"""A deterministic sample of queries around what a change touches.

For each operation and device whose answers can differ: points of the records that came, points
between them, points just outside them, and the nearest of the records that were there. No random
numbers: the same two commits give the same queries everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from perfdb_git.errors import UsageError
from perfdb_git.model.values import Scalar
from perfdb_git.model.vocabulary import Vocabulary
from perfdb_git.operations.queries import build_query
from perfdb_git.review.inputs import InputComparison, Subject
from perfdb_git.review.series_rows import SeriesRows, numeric_names, read_rows
from perfdb_git.review.touched import TouchedSeries
from perfdb_git.review.tracked import TrackedQuery
from perfdb_git.storage.record_sets import IndexedRecordSet
from perfdb_git.storage.snapshot import EvidenceSnapshot

_SHARES = (("point", 0.4), ("between", 0.25), ("edge", 0.15), ("neighbour", 0.2))
"""Of the queries about one operation and device whose records differ."""

_SHARES_OF_MODELS = (("point", 0.15), ("between", 0.6), ("edge", 0.25), ("neighbour", 0.0))
"""Where no record differs: what changed answers between records and beyond them."""

_MOST_COMPARED = 50_000
"""Known rows among which the nearest one is looked for."""


@dataclass(frozen=True, slots=True)
class _Candidate:
    role: str
    values: Mapping[str, Scalar]


def sample_queries(
    comparison: InputComparison,
    touched: Sequence[TouchedSeries],
    *,
    policy: str,
    limit: int,
) -> tuple[TrackedQuery, ...]:
    """Return queries that cover what a change touches.

    Parameters
    ----------
    comparison : InputComparison
        Both snapshots.
    touched : sequence of TouchedSeries
        Series whose records differ.
    policy : str
        Name of the policy that answers are compared under.
    limit : int
        Queries at most, over all operations and devices.
    """
    vocabulary = comparison.head.asked.vocabulary
    if vocabulary is None:
        return ()
    subjects = _subjects(comparison, touched, policy)
    found: list[TrackedQuery] = []
    for place, subject in enumerate(subjects):
        # Rounded up: where there are more subjects than queries, the first ones get one each.
        share = -(-(limit - len(found)) // (len(subjects) - place))
        rows = _focus(comparison, touched, subject, vocabulary)
        found += _sample(subject, rows, vocabulary, share)
    return tuple(found)


def _subjects(
    comparison: InputComparison, touched: Sequence[TouchedSeries], policy: str
) -> list[Subject]:
    """Return every operation and device with records whose answers can differ.

    Those whose records differ come first.
    """
    sides = (comparison.base.asked.snapshot, comparison.head.asked.snapshot)
    all_keys = [key for side in sides for key in side.evidence.series_keys()]
    records_differ = {(series.key.device, series.key.operation) for series in touched}
    found = sorted(
        {(key.device, key.operation) for key in all_keys},
        key=lambda pair: (pair not in records_differ, pair),
    )
    subjects = (Subject(operation=operation, device=device) for device, operation in found)
    return [subject for subject in subjects if comparison.differing(subject, policy)]


@dataclass(frozen=True, slots=True)
class _Focus:
    """Rows that a sample is about, and the rows that were there before."""

    rows: SeriesRows
    known: SeriesRows


def _focus(
    comparison: InputComparison,
    touched: Sequence[TouchedSeries],
    subject: Subject,
    vocabulary: Vocabulary,
) -> _Focus:
    """Choose what came; else what went or counts differently; else what is there."""
    mine = [series for series in touched if subject.holds(series.key)]
    known = _record_sets(comparison.base.asked.snapshot.evidence, subject)
    added = [item for series in mine for item in series.added]
    removed = [item for series in mine for item in series.removed]
    anew = [pair for series in mine for pair in series.judged_anew]
    names = numeric_names([*added, *known], vocabulary)
    there = read_rows(known, vocabulary, names=names)
    for record_sets in (added, removed):
        rows = read_rows(record_sets, vocabulary, names=names)
        if len(rows):
            return _Focus(rows, there)
    # Rows retracted after the change, else those that were before it.
    for side in (1, 0):
        judged = [pair[side] for pair in anew]
        rows = read_rows(judged, vocabulary, names=names, retracted=True)
        if len(rows):
            return _Focus(rows, there)
    if len(there):
        return _Focus(there, there)
    head = _record_sets(comparison.head.asked.snapshot.evidence, subject)
    return _Focus(read_rows(head, vocabulary, names=numeric_names(head, vocabulary)), there)


def _record_sets(evidence: EvidenceSnapshot, subject: Subject) -> list[IndexedRecordSet]:
    return [
        item
        for key in evidence.series_keys()
        if subject.holds(key)
        for item in evidence.record_sets(key)
    ]


def _sample(
    subject: Subject, focus: _Focus, vocabulary: Vocabulary, share: int
) -> Iterator[TrackedQuery]:
    """Yield at most `share` different queries about one operation and device."""
    if share <= 0 or not len(focus.rows):
        return
    seen: set[tuple[tuple[str, Scalar], ...]] = set()
    numbers: dict[str, int] = {}
    for candidate in _candidates(focus, vocabulary, share):
        key = tuple(sorted(candidate.values.items()))
        if key in seen:
            continue
        seen.add(key)
        try:
            query = build_query(candidate.values, vocabulary)
        except UsageError:
            # A record may state what no query of the operation can ask.
            continue
        number = numbers[candidate.role] = numbers.get(candidate.role, 0) + 1
        name = f"{subject.device}/{subject.operation}/{candidate.role}-{number:03}"
        yield TrackedQuery(name=name, origin="sample", query=query)
        if len(seen) >= share:
            return


def _candidates(focus: _Focus, vocabulary: Vocabulary, share: int) -> Iterator[_Candidate]:
    rows, known = focus.rows, focus.known
    shares = _SHARES_OF_MODELS if known is rows else _SHARES
    counts = {role: max(1, round(share * part)) for role, part in shares}
    chosen = _spread(len(rows), counts["point"])
    yield from (_Candidate("point", rows.coordinates(place)) for place in chosen)
    pairs = _spread(len(rows) - 1, counts["between"])
    for place in pairs:
        yield from _between(rows, place, vocabulary)
    yield from _edges(rows, counts["edge"], vocabulary)
    if known is not rows:
        yield from _neighbours(rows, known, counts["neighbour"], vocabulary)
    # What other roles could not fill, more points do.
    yield from (
        _Candidate("point", rows.coordinates(place)) for place in _spread(len(rows), 2 * share)
    )


def _spread(length: int, count: int) -> list[int]:
    """Return at most `count` places evenly spread over a sequence, both ends included."""
    if length <= 0 or count <= 0:
        return []
    if count == 1:
        return [length // 2]
    places = {round(step * (length - 1) / (count - 1)) for step in range(count)}
    return sorted(places)


def _between(rows: SeriesRows, place: int, vocabulary: Vocabulary) -> Iterator[_Candidate]:
    """Yield the point between a row and the next one, where the two share all terms."""
    if rows.terms[int(rows.set_of[place])] != rows.terms[int(rows.set_of[place + 1])]:
        return
    first, second = rows.coordinates(place), rows.coordinates(place + 1)
    values = dict(first)
    for name in rows.names:
        one, other = first.get(name), second.get(name)
        if isinstance(one, int | float) and isinstance(other, int | float) and one != other:
            values[name] = _middle(one, other, is_integer=_is_integer(name, vocabulary))
    if values not in (first, second):
        yield _Candidate("between", values)


def _middle(one: float, other: float, *, is_integer: bool) -> Scalar:
    """Return the geometric middle, or the arithmetic one next to zero."""
    middle = math.sqrt(one * other) if one > 0 and other > 0 else (one + other) / 2
    return round(middle) if is_integer else middle


def _edges(rows: SeriesRows, count: int, vocabulary: Vocabulary) -> Iterator[_Candidate]:
    """Yield points an octave outside the smallest and the largest value of each dimension."""
    sides: list[tuple[int, int, float]] = []
    for column in range(len(rows.names)):
        numbers = rows.values[:, column]
        if bool(np.isnan(numbers).all()) or np.nanmin(numbers) == np.nanmax(numbers):
            continue
        sides.append((column, int(np.nanargmin(numbers)), 0.5))
        sides.append((column, int(np.nanargmax(numbers)), 2.0))
    for column, place, factor in sides[:count]:
        name = rows.names[column]
        values = rows.coordinates(place)
        moved = float(rows.values[place, column]) * factor
        if _is_integer(name, vocabulary):
            moved = math.floor(moved)
        if moved > 0:
            yield _Candidate("edge", {**values, name: moved})


def _neighbours(
    rows: SeriesRows, known: SeriesRows, count: int, vocabulary: Vocabulary
) -> Iterator[_Candidate]:
    """Yield the known record nearest to each of some rows, other than at the row itself."""
    step = max(1, -(-len(known) // _MOST_COMPARED))
    places = np.arange(0, len(known), step)
    if not len(places):
        return
    shifts = np.array([1.0 if vocabulary.dimensions[name].zero else 0.0 for name in rows.names])
    with np.errstate(divide="ignore", invalid="ignore"):
        there = np.log2(known.values[places] + shifts)
    for place in _spread(len(rows), count):
        terms = rows.terms[int(rows.set_of[place])]
        alike = np.array([other == terms for other in known.terms], np.bool_)[known.set_of[places]]
        with np.errstate(divide="ignore", invalid="ignore"):
            distance = np.abs(there - np.log2(rows.values[place] + shifts)).max(axis=1, initial=0)
        distance = np.where(alike & (distance > 0), distance, np.inf)
        nearest = int(np.argmin(distance))
        if np.isfinite(distance[nearest]):
            yield _Candidate("neighbour", known.coordinates(int(places[nearest])))


def _is_integer(name: str, vocabulary: Vocabulary) -> bool:
    return vocabulary.dimensions[name].type == "integer"

"""What came into each series: how much, how noisy, where, and against what was there."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from perfdb_git.model.values import Scalar
from perfdb_git.model.vocabulary import Vocabulary
from perfdb_git.review.series_rows import (
    SeriesRows,
    Terms,
    main_metric,
    numeric_names,
    read_rows,
    si_unit,
    terms_of,
)
from perfdb_git.review.touched import TouchedSeries
from perfdb_git.storage.record_sets import IndexedRecordSet

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from perfdb_git.review.series_rows import FloatArray, IntArray

MOST_CONFLICTS = 200
"""Conflicts that one series lists; all of them are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextCount:
    """Records that came with the same terms."""

    terms: Mapping[str, str]
    record_sets: int
    records: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DimensionRange:
    """Smallest and largest value of a dimension among what came and what was there before."""

    name: str
    minimum: float
    maximum: float
    known_minimum: float | None
    known_maximum: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """Standard deviation over typical value of the records that state a spread."""

    records: int
    median: float
    p90: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """A new record and an old one of one context that disagree beyond the policy's threshold.

    Values are session medians in ``unit``; ``disagreement`` is the larger over the smaller,
    minus 1.
    """

    context: Mapping[str, Scalar]
    session: str
    value: float
    known_session: str
    known_value: float
    unit: str
    disagreement: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordCounts:
    """Record sets and rows of one series that came, went and count differently.

    ``known`` are the rows before the change that counted; ``retracted`` and ``restored`` are rows
    of record sets that stayed.
    """

    known: int
    record_sets_added: int
    added: int
    record_sets_removed: int
    removed: int
    retracted: int
    restored: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesChange:
    """What a change does to the records of one series.

    Attributes
    ----------
    kind, device, operation : str
        The series.
    records : RecordCounts
        How many came and went.
    contexts : tuple of ContextCount
        What came, by terms.
    noise : Noise or None
        Of what came; ``None`` where no spread is stated.
    coverage : tuple of DimensionRange
        Of what came.
    new_shapes, known_shapes : int
        Distinct contexts among what came that are new, and that were there before.
    conflict_count : int
        Conflicts of what came with what was there.
    conflicts : tuple of Conflict
        Largest first, at most 200.
    """

    kind: str
    device: str
    operation: str
    records: RecordCounts
    contexts: tuple[ContextCount, ...]
    noise: Noise | None
    coverage: tuple[DimensionRange, ...]
    new_shapes: int
    known_shapes: int
    conflict_count: int
    conflicts: tuple[Conflict, ...]


def series_change(
    series: TouchedSeries, vocabulary: Vocabulary, *, threshold: float
) -> SeriesChange:
    """Describe what a change does to one series.

    Parameters
    ----------
    series : TouchedSeries
        The series.
    vocabulary : Vocabulary
        Dimensions in force.
    threshold : float
        Disagreement of session medians above which they conflict.
    """
    names = numeric_names([*series.comparable, *series.added], vocabulary)
    added = read_rows(series.added, vocabulary, names=names)
    known = read_rows(series.known, vocabulary, names=names)
    comparable = read_rows(series.comparable, vocabulary, names=names)
    contexts = _context_numbers(added, comparable)
    conflicts = _conflicts(added, comparable, contexts, threshold)
    shapes = np.unique(contexts[0])
    known_shapes = int(np.isin(shapes, contexts[1]).sum())
    return SeriesChange(
        kind=series.key.kind,
        device=series.key.device,
        operation=series.key.operation,
        records=_counts(series, known=len(known)),
        contexts=_contexts(series, vocabulary),
        noise=_noise(added),
        coverage=_coverage(added, known),
        new_shapes=len(shapes) - known_shapes,
        known_shapes=known_shapes,
        conflict_count=len(conflicts),
        conflicts=tuple(conflicts[:MOST_CONFLICTS]),
    )


def _counts(series: TouchedSeries, *, known: int) -> RecordCounts:
    pairs = [(_live_rows(old), _live_rows(new)) for old, new in series.judged_anew]
    return RecordCounts(
        known=known,
        record_sets_added=len(series.added),
        added=sum(item.row_count for item in series.added),
        record_sets_removed=len(series.removed),
        removed=sum(item.row_count for item in series.removed),
        retracted=sum(len(before - after) for before, after in pairs),
        restored=sum(len(after - before) for before, after in pairs),
    )


def _live_rows(record_set: IndexedRecordSet) -> set[int]:
    live = record_set.live()
    rows = range(record_set.row_count)
    return set(rows) if live is None else set(np.flatnonzero(live).tolist())


def _contexts(series: TouchedSeries, vocabulary: Vocabulary) -> tuple[ContextCount, ...]:
    found: dict[Terms, list[int]] = {}
    for record_set in series.added:
        count = found.setdefault(terms_of(record_set, vocabulary), [0, 0])
        count[0] += 1
        count[1] += record_set.row_count
    return tuple(
        ContextCount(terms=dict(terms), record_sets=count[0], records=count[1])
        for terms, count in sorted(found.items())
    )


def _noise(added: SeriesRows) -> Noise | None:
    spreads = added.spreads[~np.isnan(added.spreads)]
    if not len(spreads):
        return None
    return Noise(
        records=len(spreads),
        median=float(np.median(spreads)),
        p90=float(np.quantile(spreads, 0.9)),
    )


def _coverage(added: SeriesRows, known: SeriesRows) -> tuple[DimensionRange, ...]:
    ranges = []
    for place, name in enumerate(added.names):
        came, there = (_limits(rows, place) for rows in (added, known))
        if came is not None:
            ranges.append(
                DimensionRange(
                    name=name,
                    minimum=came[0],
                    maximum=came[1],
                    known_minimum=None if there is None else there[0],
                    known_maximum=None if there is None else there[1],
                )
            )
    return tuple(ranges)


def _limits(rows: SeriesRows, place: int) -> tuple[float, float] | None:
    column = rows.values[:, place]
    column = column[~np.isnan(column)]
    return (float(column.min()), float(column.max())) if len(column) else None


def _context_numbers(added: SeriesRows, known: SeriesRows) -> tuple[IntArray, IntArray]:
    """Number the contexts of the added rows, and find those of the known rows among them.

    Returns
    -------
    tuple of array
        Shape ``(n_added,)`` and ``(n_known,)``: equal numbers are equal terms and equal values in
        every dimension, unknown ones included; -1 is a context that no added row has.
    """
    numbers = np.zeros(len(added), np.int64)
    found = np.zeros(len(known), np.int64)
    alive = np.ones(len(known), np.bool_)
    term_numbers = {terms: float(number) for number, terms in enumerate(sorted({*added.terms}))}
    pairs = [
        (_terms_column(added, term_numbers), _terms_column(known, term_numbers)),
        *zip(added.values.T, known.values.T, strict=True),
    ]
    for mine, theirs in pairs if len(added) else []:
        values = np.unique(mine)
        there = _places(values, theirs)
        alive &= (values[there] == theirs) | (np.isnan(values[there]) & np.isnan(theirs))
        # Numbered anew after each column, so that they stay below the number of rows.
        both = numbers * len(values) + np.searchsorted(values, mine)
        known_both = found * len(values) + there
        combined = np.unique(both)
        numbers = np.searchsorted(combined, both)
        found = _places(combined, known_both)
        alive &= combined[found] == known_both
    return numbers, np.where(alive & (len(added) > 0), found, -1)


def _places(values: NDArray[Any], wanted: NDArray[Any]) -> IntArray:
    """Return where each wanted number would stand among sorted ones, at most at the last."""
    places: IntArray = np.minimum(np.searchsorted(values, wanted), len(values) - 1)
    return places


def _terms_column(rows: SeriesRows, numbers: Mapping[Terms, float]) -> FloatArray:
    codes = np.array([numbers.get(terms, -1.0) for terms in rows.terms] or [-1.0])
    column: FloatArray = codes[rows.set_of]
    return column


def _conflicts(
    added: SeriesRows, known: SeriesRows, contexts: tuple[IntArray, IntArray], threshold: float
) -> list[Conflict]:
    """Return one conflict for each context, between the two sessions that differ most."""
    # Of what came, only contexts that were there before can be in conflict.
    new = _session_medians(added, np.where(np.isin(contexts[0], contexts[1]), contexts[0], -1))
    old = _session_medians(known, contexts[1])
    found = []
    for context, (place, sessions) in new.items():
        before = old[context][1] if context in old else {}
        pairs = [
            (max(value, other) / min(value, other) - 1, session, value, known_session, other)
            for session, value in sessions.items()
            if session not in before
            for known_session, other in before.items()
        ]
        worst = max(pairs, default=None)
        if worst is not None and worst[0] > threshold:
            disagreement, session, value, known_session, other = worst
            found.append(
                Conflict(
                    context=added.coordinates(place),
                    session=session,
                    value=value,
                    known_session=known_session,
                    known_value=other,
                    unit=_unit(added, place),
                    disagreement=disagreement,
                )
            )
    return sorted(found, key=lambda conflict: (-conflict.disagreement, str(conflict.context)))


def _session_medians(
    rows: SeriesRows, contexts: IntArray
) -> dict[int, tuple[int, dict[str, float]]]:
    """Return the first place and the positive session medians of every context."""
    found: dict[int, tuple[int, dict[str, list[float]]]] = {}
    for place in np.flatnonzero((contexts >= 0) & (rows.centers > 0)).tolist():
        _, sessions = found.setdefault(int(contexts[place]), (place, {}))
        sessions.setdefault(rows.session(place), []).append(float(rows.centers[place]))
    return {
        context: (place, {name: statistics.median(values) for name, values in sessions.items()})
        for context, (place, sessions) in found.items()
    }


def _unit(rows: SeriesRows, place: int) -> str:
    metric = main_metric(rows.record_sets[int(rows.set_of[place])])
    return "" if metric is None else si_unit(*metric)

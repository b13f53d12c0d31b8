"""Series whose records a change adds to, takes from or retracts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from perfdb_git.model.records import SeriesKey
from perfdb_git.review.answers import AskedSnapshot
from perfdb_git.storage.catalogue_entries import series_order
from perfdb_git.storage.record_sets import IndexedRecordSet


@dataclass(frozen=True, slots=True, kw_only=True)
class TouchedSeries:
    """One series before and after a change.

    Attributes
    ----------
    key : SeriesKey
        The series.
    known : tuple of IndexedRecordSet
        Record sets before the change, sorted by path.
    added, removed : tuple of IndexedRecordSet
        Those that came and went.
    judged_anew : tuple of (IndexedRecordSet, IndexedRecordSet)
        Those that stayed and of which other rows count, before and after.
    comparable : tuple of IndexedRecordSet
        Record sets before the change that answer the same queries by the same method: ``known``,
        and for what was measured also what was profiled.
    """

    key: SeriesKey
    known: tuple[IndexedRecordSet, ...]
    added: tuple[IndexedRecordSet, ...]
    removed: tuple[IndexedRecordSet, ...]
    judged_anew: tuple[tuple[IndexedRecordSet, IndexedRecordSet], ...]
    comparable: tuple[IndexedRecordSet, ...]


def method_of(key: SeriesKey) -> str:
    """Return what kind of answer the records of a series give."""
    return "measured" if key.kind in ("measured", "profiled") else key.kind


def touched_series(base: AskedSnapshot, head: AskedSnapshot) -> tuple[TouchedSeries, ...]:
    """Return the series whose records differ, sorted by device, operation and kind."""
    sides = (base.snapshot.evidence, head.snapshot.evidence)
    if sides[0].records_digest == sides[1].records_digest:
        return ()
    keys = {key for side in sides for key in side.series_keys()}
    found = []
    for key in sorted(keys, key=series_order):
        old, new = (_by_blob(side.record_sets(key)) for side in sides)
        series = TouchedSeries(
            key=key,
            known=tuple(old.values()),
            added=tuple(item for blob, item in new.items() if blob not in old),
            removed=tuple(item for blob, item in old.items() if blob not in new),
            judged_anew=tuple(
                (old[blob], item)
                for blob, item in new.items()
                if blob in old and old[blob].entry.retracted != item.entry.retracted
            ),
            comparable=tuple(
                item for other in _alike(key, keys) for item in sides[0].record_sets(other)
            ),
        )
        if series.added or series.removed or series.judged_anew:
            found.append(series)
    return tuple(found)


def _alike(key: SeriesKey, keys: set[SeriesKey]) -> list[SeriesKey]:
    """Return the series with the key's device, operation and method, itself included."""
    wanted = (key.device, key.operation, method_of(key))
    found = [item for item in keys if (item.device, item.operation, method_of(item)) == wanted]
    return sorted(found, key=series_order)


def _by_blob(record_sets: tuple[IndexedRecordSet, ...]) -> Mapping[str, IndexedRecordSet]:
    return {item.entry.blob: item for item in record_sets}

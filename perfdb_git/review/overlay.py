"""Records of two snapshots at once: one side's, with single kinds of change from the other."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from perfdb_git.model.records import SeriesKey, VerifiedRow
from perfdb_git.storage.catalogue_entries import series_order

if TYPE_CHECKING:
    from perfdb_git.providers.evidence import RecordSetView
    from perfdb_git.storage.record_sets import IndexedRecordSet
    from perfdb_git.storage.snapshot import EvidenceSnapshot

ADDED, REMOVED, RETRACTED = "new-records", "removed-records", "retraction"
RECORD_CHANGES = (ADDED, REMOVED, RETRACTED)


class OverlaidRecords:
    """The records of ``base`` with some kinds of change that ``head`` makes to them.

    Parameters
    ----------
    base, head : EvidenceSnapshot
        Before and after.
    taken : collection of str
        Which changes are in force: record sets that only ``head`` has (``new-records``), the
        absence of those that only ``base`` has (``removed-records``), and which rows of the
        others count (``retraction``).
    """

    def __init__(
        self, base: EvidenceSnapshot, head: EvidenceSnapshot, taken: Collection[str]
    ) -> None:
        self._base = base
        self._head = head
        self._taken = frozenset(taken)
        self._sets: dict[SeriesKey, tuple[IndexedRecordSet, ...]] = {}

    @property
    def commit(self) -> str | None:
        """None: no commit holds these records."""
        return None

    @property
    def committer_time(self) -> int | None:
        """Committer time of ``base``."""
        return self._base.committer_time

    @property
    def records_digest(self) -> str:
        """The digests of both sides and what is taken."""
        parts = (self._base.records_digest, self._head.records_digest, *sorted(self._taken))
        return " ".join(parts)

    def series_keys(self) -> tuple[SeriesKey, ...]:
        """Return every series with a record set."""
        keys = {*self._base.series_keys(), *self._head.series_keys()}
        return tuple(key for key in sorted(keys, key=series_order) if self.record_sets(key))

    def record_sets(self, key: SeriesKey) -> tuple[IndexedRecordSet, ...]:
        """Return the record sets of one series, sorted by path."""
        if key not in self._sets:
            old = {item.entry.blob: item for item in self._base.record_sets(key)}
            new = {item.entry.blob: item for item in self._head.record_sets(key)}
            shared = new if RETRACTED in self._taken else old
            kept = [shared[blob] for blob in old.keys() & new.keys()]
            if ADDED in self._taken:
                kept += [new[blob] for blob in new.keys() - old.keys()]
            if REMOVED not in self._taken:
                kept += [old[blob] for blob in old.keys() - new.keys()]
            self._sets[key] = tuple(sorted(kept, key=lambda item: item.path))
        return self._sets[key]

    def verified_rows(self, record_set: RecordSetView, rows: Sequence[int]) -> list[VerifiedRow]:
        """Re-read rows from the Git object, through the side that has the record set."""
        side = self._base if self._base.matching_record_sets(record_set.sha256) else self._head
        return side.verified_rows(record_set, rows)

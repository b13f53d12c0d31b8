"""Evidence with some record sets hidden: what is left is all that a resolver sees."""

from __future__ import annotations

from collections.abc import Sequence

from perfdb_git.errors import UsageError
from perfdb_git.formats.digests import canonical_digest
from perfdb_git.model.exclusion import Exclusion
from perfdb_git.model.records import SeriesKey, VerifiedRow
from perfdb_git.providers.evidence import EvidenceReader, RecordSetView


def exclusion_digest(exclusion: Exclusion) -> str:
    """Return the digest of what is left aside, for cache keys."""
    return canonical_digest(list(exclusion.lines()))


class RemainingRecords:
    """The records of a snapshot less the excluded record sets.

    Parameters
    ----------
    records : EvidenceReader
        All of them.
    exclusion : Exclusion
        Its record sets are as if they were not there.
    """

    def __init__(self, records: EvidenceReader, exclusion: Exclusion) -> None:
        self._records = records
        self._exclusion = exclusion
        self._kept: dict[SeriesKey, tuple[Sequence[RecordSetView], tuple[RecordSetView, ...]]] = {}

    @property
    def commit(self) -> str | None:
        """Full commit id of the snapshot."""
        return self._records.commit

    @property
    def committer_time(self) -> int | None:
        """Committer time of the snapshot."""
        return self._records.committer_time

    @property
    def records_digest(self) -> str:
        """The snapshot's digest and that of the exclusion."""
        return f"{self._records.records_digest} {exclusion_digest(self._exclusion)}"

    def series_keys(self) -> Sequence[SeriesKey]:
        """Return every series that has a record set left."""
        return tuple(key for key in self._records.series_keys() if self.record_sets(key))

    def record_sets(self, key: SeriesKey) -> Sequence[RecordSetView]:
        """Return the record sets of one series that are left, sorted by path."""
        all_sets = self._records.record_sets(key)
        known = self._kept.get(key)
        # A rebuilt index hands out new record sets; those made from the old ones are void.
        if known is None or known[0] is not all_sets:
            kept = tuple(s for s in all_sets if s.sha256 not in self._exclusion.record_sets)
            known = self._kept[key] = (all_sets, kept)
        return known[1]

    def verified_rows(self, record_set: RecordSetView, rows: Sequence[int]) -> list[VerifiedRow]:
        """Re-read rows of a record set that is left.

        Raises
        ------
        UsageError
            'excluded' for an excluded record set.
        """
        if record_set.sha256 in self._exclusion.record_sets:
            raise UsageError(f"{record_set.path} is excluded", code="excluded")
        return self._records.verified_rows(record_set, rows)

"""The evidence that a pull request meets: record sets of the base, found through the index."""

from __future__ import annotations

from functools import cached_property

from perfdb_git.checks.record_set_facts import RecordSetFacts
from perfdb_git.errors import InvalidInputError
from perfdb_git.model.records import SeriesKey
from perfdb_git.storage.catalogue_entries import CatalogueEntry
from perfdb_git.storage.snapshot import EvidenceSnapshot
from perfdb_git.storage.sources import SourceFile


class ExistingEvidence:
    """Record sets of the base revision, without reading their files again.

    Parameters
    ----------
    snapshot : EvidenceSnapshot
        The tip of the base branch.

    Notes
    -----
    Where a record set of the base itself is broken there is no index; `fault` says so, nothing is
    found, and whoever asks reads the files.
    """

    def __init__(self, snapshot: EvidenceSnapshot) -> None:
        self.snapshot = snapshot

    @property
    def fault(self) -> InvalidInputError | None:
        """Why the base's record sets cannot be looked up; None where they can."""
        return self._catalogue[1]

    @property
    def entries(self) -> tuple[CatalogueEntry, ...]:
        """Every record set of the base, each content once, sorted by series and path."""
        return self._catalogue[0]

    def series(self, key: SeriesKey) -> tuple[CatalogueEntry, ...]:
        """Return the record sets of one series, sorted by path."""
        return self._by_series.get(key, ())

    def facts(self, file: SourceFile) -> RecordSetFacts | None:
        """Return what is known of a record set of these bytes, or None where the base has none."""
        entry = self._by_blob.get(file.id)
        if entry is None:
            return None
        return RecordSetFacts(
            path=file.path,
            sha256=entry.sha256,
            row_count=entry.row_count,
            environment=entry.header["environment"],
            device=entry.series.device,
            operation=entry.series.operation,
            observations=None,
        )

    @cached_property
    def _by_series(self) -> dict[SeriesKey, tuple[CatalogueEntry, ...]]:
        found: dict[SeriesKey, list[CatalogueEntry]] = {}
        for entry in self.entries:
            found.setdefault(entry.series, []).append(entry)
        return {key: tuple(entries) for key, entries in found.items()}

    @cached_property
    def _by_blob(self) -> dict[str, CatalogueEntry]:
        return {entry.blob: entry for entry in self.entries}

    @cached_property
    def _catalogue(self) -> tuple[tuple[CatalogueEntry, ...], InvalidInputError | None]:
        index = self.snapshot.index
        try:
            found = [entry for item in index.series() for entry in index.entries(item.key)]
        except InvalidInputError as error:
            return (), error
        return tuple(found), None

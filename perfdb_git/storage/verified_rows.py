"""Rows behind an answer, re-read from their Git object: the index is never the last word."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from perfdb_git.errors import PerfdbError
from perfdb_git.model.records import VerifiedRow
from perfdb_git.storage.catalogue_entries import CatalogueEntry
from perfdb_git.storage.index import EvidenceIndex
from perfdb_git.storage.record_sets import StatedRecordSet
from perfdb_git.storage.shared_reads import SharedReads
from perfdb_git.storage.sources import ObjectSource, SourceFile


def verified_rows(
    index: EvidenceIndex,
    shared: SharedReads,
    source: ObjectSource,
    entry: CatalogueEntry,
    rows: Sequence[int],
) -> list[VerifiedRow]:
    """Return rows as their Git object states them, after comparing the index with it.

    Parameters
    ----------
    index : EvidenceIndex
        What is compared, and dropped where it disagrees.
    shared : SharedReads
        Files that were read before, by blob id.
    source : ObjectSource
        Reads the others.
    entry : CatalogueEntry
        The record set.
    rows : sequence of int
        From 0.

    Raises
    ------
    IndexRebuiltError
        If the index says anything else than Git.
    RepositoryUnavailableError
        If the object cannot be read.
    """
    stated = shared.stated(entry.blob, lambda: _read(source, entry))
    cells = stated.rows(rows)
    if stated.sha256 != entry.sha256 or not _agrees(index, entry, stated, cells, rows):
        raise index.reject(entry)
    return [VerifiedRow(record_set=entry.sha256, row=row, cells=cells[row]) for row in rows]


def _read(source: ObjectSource, entry: CatalogueEntry) -> StatedRecordSet:
    blob = source.read(SourceFile(entry.path, entry.blob))
    return StatedRecordSet(blob, document=entry.path)


def _agrees(
    index: EvidenceIndex,
    entry: CatalogueEntry,
    stated: StatedRecordSet,
    cells: Mapping[int, tuple[Any, ...]],
    rows: Sequence[int],
) -> bool:
    if stated.row_count != entry.row_count or stated.header != entry.header:
        return False
    if not all(0 <= row < entry.row_count for row in rows):
        raise PerfdbError(
            f"{entry.path} has {entry.row_count} rows, asked for {list(rows)}",
            code="row-out-of-range",
        )
    return index.with_segment(
        entry,
        lambda segment: (
            segment.header == stated.header and segment.states(rows, [cells[row] for row in rows])
        ),
    )

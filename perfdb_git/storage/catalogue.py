"""Which series a snapshot has and which segments hold them.

One file for each state of the records and retractions, named by their Git tree ids. Its header
lists the series; each series is a block of its own, so reading one never parses the others.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from perfdb_git.model.records import SeriesKey
from perfdb_git.storage.block_file import BlockFile, Buffer, json_bytes, pack_block_file

CATALOGUE_MAGIC = b"PERFCAT\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogueEntry:
    """One record set of a snapshot.

    Attributes
    ----------
    path : str
        Path of the file.
    blob : str
        Git blob id.
    sha256 : str
        Content address.
    row_count : int
        Rows of the file, retracted ones included.
    header : mapping
        The header as its JSON states it.
    retracted : tuple of int or None
        Rows that do not count; None means all of them.
    """

    path: str
    blob: str
    sha256: str
    row_count: int
    header: Mapping[str, Any]
    retracted: tuple[int, ...] | None = ()

    @property
    def series(self) -> SeriesKey:
        """The series that the header puts the rows in, whatever the path says."""
        context = self.header["context"]
        return SeriesKey(
            kind=self.header["kind"], device=context["device"], operation=context["operation"]
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesSummary:
    """How much one series holds, retracted rows included."""

    key: SeriesKey
    record_sets: int
    rows: int


def snapshot_digest(records_tree: str | None, retractions_tree: str | None) -> str:
    """Return 64 hexadecimal digits that change whenever any record or retraction does."""
    text = f"{records_tree or '-'}\n{retractions_tree or '-'}\n"
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def series_order(key: SeriesKey) -> tuple[str, str, str]:
    """Return what series sort by."""
    return key.device, key.operation, key.kind


def build_catalogue(entries: Iterable[CatalogueEntry]) -> bytes:
    """Return the catalogue of all record sets of a snapshot.

    Parameters
    ----------
    entries : iterable of CatalogueEntry
        In any order. Of equal files at several paths the first path stands for all: a record
        counts once.
    """
    series: dict[SeriesKey, list[CatalogueEntry]] = {}
    seen: set[str] = set()
    for entry in sorted(entries, key=lambda entry: entry.path):
        if entry.blob not in seen:
            seen.add(entry.blob)
            series.setdefault(entry.series, []).append(entry)
    table: list[list[Any]] = []
    ids: list[list[Any]] = []
    blocks: list[bytes] = []
    for key in sorted(series, key=series_order):
        members = series[key]
        rows = sum(entry.row_count for entry in members)
        ids += [[entry.sha256, len(table), place] for place, entry in enumerate(members)]
        table.append([key.kind, key.device, key.operation, len(members), rows])
        blocks.append(json_bytes([_entry_json(entry) for entry in members]))
    blocks.append(json_bytes(sorted(ids)))
    return pack_block_file(CATALOGUE_MAGIC, table, blocks)


def _entry_json(entry: CatalogueEntry) -> list[Any]:
    return [
        entry.path,
        entry.blob,
        entry.sha256,
        entry.row_count,
        entry.header,
        None if entry.retracted is None else list(entry.retracted),
    ]


def _entry(value: Sequence[Any]) -> CatalogueEntry:
    path, blob, sha256, row_count, header, retracted = value
    return CatalogueEntry(
        path=path,
        blob=blob,
        sha256=sha256,
        row_count=row_count,
        header=header,
        retracted=None if retracted is None else tuple(retracted),
    )


class Catalogue:
    """Reader of one catalogue.

    Parameters
    ----------
    buffer : bytes, memoryview or mmap
        The whole file.

    Raises
    ------
    DamagedFileError
        If the file is not what was written; from every method, the first time it reads a block.
    """

    def __init__(self, buffer: Buffer) -> None:
        self._file = BlockFile(buffer, magic=CATALOGUE_MAGIC)
        self._series = tuple(
            SeriesSummary(
                key=SeriesKey(kind=kind, device=device, operation=operation),
                record_sets=record_sets,
                rows=rows,
            )
            for kind, device, operation, record_sets, rows in self._file.content
        )
        self._blocks = {summary.key: number for number, summary in enumerate(self._series)}

    def series(self) -> tuple[SeriesSummary, ...]:
        """Return every series, sorted by device, operation and kind."""
        return self._series

    def entries(self, key: SeriesKey) -> tuple[CatalogueEntry, ...]:
        """Return the record sets of one series, sorted by path; none for an unknown series."""
        number = self._blocks.get(key)
        if number is None:
            return ()
        return tuple([_entry(value) for value in self._file.json_block(number)])

    def find(self, prefix: str) -> list[tuple[str, SeriesKey, int]]:
        """Return the record sets whose SHA-256 begins with `prefix`, sorted.

        Returns
        -------
        list of (str, SeriesKey, int)
            SHA-256, series, and place in `entries` of that series.
        """
        ids = self._file.json_block(len(self._series))
        return [
            (sha256, self._series[number].key, place)
            for sha256, number, place in ids
            if sha256.startswith(prefix)
        ]

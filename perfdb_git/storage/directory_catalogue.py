"""Which record sets one folder holds, series by series.

One file for each Git tree, so commits share it as they share the tree: a new record set costs the
catalogue of its folder and the short one of the snapshot. Each series is a block of its own, so
reading one never parses the others.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from perfdb_git.model.records import SeriesKey
from perfdb_git.storage.block_file import BlockFile, Buffer, json_bytes, pack_block_file
from perfdb_git.storage.catalogue_entries import (
    CatalogueEntry,
    RetractedRows,
    SeriesFacts,
    SeriesSummary,
    by_series,
    facts_from_json,
    facts_json,
    facts_of,
    first_of_each_content,
    summary_of,
)

DIRECTORY_MAGIC = b"PERFDIR\n"

_IDENTITY = struct.Struct("<32s20sIQ")


class Identity(NamedTuple):
    """One record set in short: content address, Git blob, place of its series, and its rows."""

    sha256: bytes
    blob: bytes
    series: int
    rows: int


def build_directory_catalogue(entries: Iterable[CatalogueEntry]) -> bytes:
    """Return the catalogue of one folder.

    Parameters
    ----------
    entries : iterable of CatalogueEntry
        Its record sets in any order, with paths from the folder and nothing retracted.
    """
    series = by_series(first_of_each_content(entries))
    identities = [
        _IDENTITY.pack(
            bytes.fromhex(entry.sha256), bytes.fromhex(entry.blob), number, entry.row_count
        )
        for number, members in enumerate(series.values())
        for entry in members
    ]
    blocks = [json_bytes([_entry_json(entry) for entry in members]) for members in series.values()]
    blocks.append(b"".join(identities))
    blocks.append(json_bytes([facts_json(facts_of(members)) for members in series.values()]))
    table = []
    for key, members in series.items():
        summary = summary_of(key, members)
        table.append([key.kind, key.device, key.operation, summary.record_sets, summary.rows])
    return pack_block_file(DIRECTORY_MAGIC, table, blocks)


def _entry_json(entry: CatalogueEntry) -> list[Any]:
    return [entry.path, entry.blob, entry.sha256, entry.row_count, entry.header]


class DirectoryCatalogue:
    """Reader of the catalogue of one folder.

    Parameters
    ----------
    buffer : bytes, memoryview or mmap
        The whole file.

    Attributes
    ----------
    series : tuple of SeriesSummary
        What the folder has of each series, sorted by device, operation and kind.

    Raises
    ------
    DamagedFileError
        If the file is not what was written; from every method, the first time it reads a block.
    """

    def __init__(self, buffer: Buffer) -> None:
        self._file = BlockFile(buffer, magic=DIRECTORY_MAGIC)
        self.series = tuple(
            [
                SeriesSummary(
                    key=SeriesKey(kind=kind, device=device, operation=operation),
                    record_sets=record_sets,
                    rows=rows,
                )
                for kind, device, operation, record_sets, rows in self._file.content
            ]
        )

    def entries(
        self, number: int, *, folder: str, retracted: RetractedRows
    ) -> list[CatalogueEntry]:
        """Return the record sets of one series, sorted by path.

        Parameters
        ----------
        number : int
            The place of the series in `series`.
        folder : str
            Where the folder stands in the repository.
        retracted : mapping
            What does not count, of any record set.
        """
        return [_entry(value, folder, retracted) for value in self._file.json_block(number)]

    def identities(self) -> list[Identity]:
        """Return every record set of the folder, by series and path."""
        block = self._file.block(len(self.series))
        return [Identity(*fields) for fields in _IDENTITY.iter_unpack(block)]

    def facts(self) -> list[SeriesFacts]:
        """Return what the headers of each series say, in the order of `series`."""
        return [facts_from_json(value) for value in self._file.json_block(len(self.series) + 1)]


def _entry(value: Sequence[Any], folder: str, retracted: RetractedRows) -> CatalogueEntry:
    path, blob, sha256, row_count, header = value
    return CatalogueEntry(
        path=f"{folder}/{path}",
        blob=blob,
        sha256=sha256,
        row_count=row_count,
        header=header,
        retracted=retracted.get(sha256, ()),
    )

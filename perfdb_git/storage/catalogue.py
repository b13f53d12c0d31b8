"""Which series a snapshot has, and which folders' catalogues list their record sets.

One short file for each state of the records and retractions, named by their Git tree ids. It grows
with the number of series and of retractions; only its table of content addresses grows with the
number of record sets, and that is searched, not read.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from perfdb_git.model.records import SeriesKey
from perfdb_git.storage.block_file import BlockFile, Buffer, json_bytes, pack_block_file
from perfdb_git.storage.catalogue_entries import (
    CatalogueEntry,
    RetractedRows,
    SeriesFacts,
    SeriesSummary,
    facts_from_json,
    facts_json,
    facts_of,
    first_of_each_content,
    merged_facts,
    series_order,
    summary_of,
)
from perfdb_git.storage.directory_catalogue import DirectoryCatalogue, Identity

CATALOGUE_MAGIC = b"PERFCAT\n"

_ADDRESSES, _RETRACTED, _LEFT_OUT, _FACTS = range(4)
_SHA256_BYTES = 32
_ADDRESS_BYTES = _SHA256_BYTES + 4


class Folder(NamedTuple):
    """A folder of record sets: its path, and what names its catalogue."""

    path: str
    identity: str


class SeriesPart(NamedTuple):
    """Where some record sets of a series are listed: a folder's place, and the series' in it."""

    folder: int
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Series:
    """One series while the catalogue is made; ``left_out`` are paths of repeated files."""

    summary: SeriesSummary
    facts: SeriesFacts
    parts: tuple[SeriesPart, ...]
    left_out: tuple[str, ...] = ()

    def row(self) -> list[Any]:
        """Return what the catalogue's header says of the series."""
        key = self.summary.key
        counts = [self.summary.record_sets, self.summary.rows]
        return [key.kind, key.device, key.operation, *counts, self.parts]


def snapshot_digest(records_tree: str | None, retractions_tree: str | None) -> str:
    """Return 64 hexadecimal digits that change whenever any record or retraction does."""
    text = f"{records_tree or '-'}\n{retractions_tree or '-'}\n"
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def build_catalogue(
    folders: Sequence[tuple[Folder, DirectoryCatalogue]],
    retracted: Mapping[str, set[int] | None],
) -> bytes:
    """Return the catalogue of a snapshot.

    Parameters
    ----------
    folders : sequence of (Folder, DirectoryCatalogue)
        Every folder that holds record sets.
    retracted : mapping
        Retracted rows by SHA-256 of the record set, None for all; those that no record set has
        are left aside.
    """
    builder = _Builder(folders, retracted)
    series = builder.series()
    blocks = [
        builder.addresses(),
        json_bytes(builder.retracted),
        json_bytes([path for item in series for path in item.left_out]),
        json_bytes([facts_json(item.facts) for item in series]),
    ]
    content = {
        "folders": [folder for folder, _ in folders],
        "series": [item.row() for item in series],
    }
    return pack_block_file(CATALOGUE_MAGIC, content, blocks)


class _Builder:
    """Joins the catalogues of folders, reading headers only where a file stands twice."""

    def __init__(
        self,
        folders: Sequence[tuple[Folder, DirectoryCatalogue]],
        retracted: Mapping[str, set[int] | None],
    ) -> None:
        self._folders = folders
        self._facts = [listed.facts() for _, listed in folders]
        parts: dict[SeriesKey, list[SeriesPart]] = {}
        members: dict[SeriesKey, list[Identity]] = {}
        for place, (_, listed) in enumerate(folders):
            for number, summary in enumerate(listed.series):
                parts.setdefault(summary.key, []).append(SeriesPart(place, number))
            for identity in listed.identities():
                members.setdefault(listed.series[identity.series].key, []).append(identity)
        self._parts = {key: parts[key] for key in sorted(parts, key=series_order)}
        self._members = members
        everything = [identity for group in members.values() for identity in group]
        self._times = Counter(identity.blob for identity in everything)
        self.retracted = _clipped(retracted, everything)

    def series(self) -> list[_Series]:
        """Return every series, sorted."""
        return [
            self._from_entries(key)
            if any(self._times[identity.blob] > 1 for identity in self._members[key])
            else self._from_summaries(key)
            for key in self._parts
        ]

    def addresses(self) -> bytes:
        """Return all content addresses with the place of their series, sorted, each once."""
        found = {
            identity.sha256 + number.to_bytes(4, "little")
            for number, key in enumerate(self._parts)
            for identity in self._members[key]
        }
        return b"".join(sorted(found))

    def _from_summaries(self, key: SeriesKey) -> _Series:
        """Add up what the folders say of a series."""
        parts = self._parts[key]
        summaries = [self._folders[place][1].series[number] for place, number in parts]
        facts = merged_facts([self._facts[place][number] for place, number in parts])
        gone = 0
        if self.retracted:
            for identity in self._members[key]:
                rows = self.retracted.get(identity.sha256.hex(), ())
                gone += identity.rows if rows is None else len(rows)
        return _Series(
            summary=SeriesSummary(
                key=key,
                record_sets=sum(summary.record_sets for summary in summaries),
                rows=sum(summary.rows for summary in summaries),
            ),
            facts=replace(facts, retracted=gone),
            parts=tuple(parts),
        )

    def _from_entries(self, key: SeriesKey) -> _Series:
        """Judge a series by its record sets: each content counts at its first path only."""
        found: list[CatalogueEntry] = []
        for place, number in self._parts[key]:
            folder, listed = self._folders[place]
            found += listed.entries(number, folder=folder.path, retracted=self.retracted)
        kept = first_of_each_content(found)
        paths = {entry.path for entry in kept}
        return _Series(
            summary=summary_of(key, kept),
            facts=facts_of(kept),
            parts=tuple(self._parts[key]),
            left_out=tuple(sorted(entry.path for entry in found if entry.path not in paths)),
        )


def _clipped(
    retracted: Mapping[str, set[int] | None], everything: Sequence[Identity]
) -> dict[str, tuple[int, ...] | None]:
    """Keep what stands in some record set, sorted."""
    if not retracted:
        return {}
    counts = {identity.sha256.hex(): identity.rows for identity in everything}
    return {
        sha256: None if rows is None else tuple(sorted(row for row in rows if row < counts[sha256]))
        for sha256, rows in retracted.items()
        if sha256 in counts
    }


class Catalogue:
    """Reader of one catalogue.

    Parameters
    ----------
    buffer : bytes, memoryview or mmap
        The whole file.

    Attributes
    ----------
    series : tuple of SeriesSummary
        Every series, sorted by device, operation and kind.
    folders : tuple of Folder
        The folders that hold record sets.

    Raises
    ------
    DamagedFileError
        If the file is not what was written; from every method, the first time it reads a block.
    """

    def __init__(self, buffer: Buffer) -> None:
        self._file = BlockFile(buffer, magic=CATALOGUE_MAGIC)
        content = self._file.content
        self.folders = tuple([Folder(path, identity) for path, identity in content["folders"]])
        self.series = tuple([_summary(value) for value in content["series"]])
        self._parts: dict[SeriesKey, list[list[int]]] = {
            summary.key: value[5]
            for summary, value in zip(self.series, content["series"], strict=True)
        }

    def parts(self, key: SeriesKey) -> list[SeriesPart]:
        """Return where the record sets of a series are listed; nowhere for an unknown series."""
        return [SeriesPart(folder, number) for folder, number in self._parts.get(key, ())]

    def retracted(self) -> RetractedRows:
        """Return the rows that do not count, by SHA-256 of their record set."""
        value = self._file.json_block(_RETRACTED)
        return {sha256: None if rows is None else tuple(rows) for sha256, rows in value.items()}

    def left_out(self) -> frozenset[str]:
        """Return paths of files that stand at another path too and count there."""
        return frozenset(self._file.json_block(_LEFT_OUT))

    def facts(self) -> list[SeriesFacts]:
        """Return what the headers of each series say, in the order of `series`."""
        return [facts_from_json(value) for value in self._file.json_block(_FACTS)]

    def find(self, prefix: str) -> list[tuple[str, SeriesKey]]:
        """Return content address and series of the record sets whose SHA-256 begins with `prefix`.

        Parameters
        ----------
        prefix : str
            Hexadecimal digits, 64 at most.

        Returns
        -------
        list of (str, SeriesKey)
            Sorted.
        """
        block = self._file.block(_ADDRESSES)
        count = len(block) // _ADDRESS_BYTES

        def address(place: int) -> bytes:
            start = place * _ADDRESS_BYTES
            return bytes(block[start : start + _SHA256_BYTES])

        lowest = bytes.fromhex(prefix.ljust(2 * _SHA256_BYTES, "0"))
        found = []
        for place in range(bisect_left(range(count), lowest, key=address), count):
            sha256 = address(place).hex()
            if not sha256.startswith(prefix):
                break
            end = (place + 1) * _ADDRESS_BYTES
            series = int.from_bytes(block[end - 4 : end], "little")
            found.append((sha256, self.series[series].key))
        return found


def _summary(value: Sequence[Any]) -> SeriesSummary:
    kind, device, operation, record_sets, rows, _ = value
    key = SeriesKey(kind=kind, device=device, operation=operation)
    return SeriesSummary(key=key, record_sets=record_sets, rows=rows)

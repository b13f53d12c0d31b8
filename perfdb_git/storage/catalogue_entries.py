"""What catalogues say of record sets and of series."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from perfdb_git.model.records import SeriesKey

RetractedRows: TypeAlias = Mapping[str, "tuple[int, ...] | None"]
"""By SHA-256 of the record set, the rows that do not count; None stands for all of them."""


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

    @property
    def retracted_count(self) -> int:
        """How many rows do not count."""
        return self.row_count if self.retracted is None else len(self.retracted)


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesSummary:
    """How much one series holds, retracted rows included."""

    key: SeriesKey
    record_sets: int
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesFacts:
    """What the headers of one series say, taken together.

    Attributes
    ----------
    sources : tuple of (str, str or None)
        Tool and revision of each source, once, sorted.
    sessions : tuple of str
        Each once, sorted.
    measured_from, measured_to : str or None
        First and last time of measurement; None where none is stated.
    undated_sets : int
        Record sets that state none.
    retracted : int
        Rows that do not count.
    """

    sources: tuple[tuple[str, str | None], ...]
    sessions: tuple[str, ...]
    measured_from: str | None
    measured_to: str | None
    undated_sets: int
    retracted: int = 0


def series_order(key: SeriesKey) -> tuple[str, str, str]:
    """Return what series sort by."""
    return key.device, key.operation, key.kind


def summary_of(key: SeriesKey, entries: Sequence[CatalogueEntry]) -> SeriesSummary:
    """Return how much the record sets of one series hold."""
    rows = sum(entry.row_count for entry in entries)
    return SeriesSummary(key=key, record_sets=len(entries), rows=rows)


def facts_of(entries: Sequence[CatalogueEntry]) -> SeriesFacts:
    """Return what the record sets of one series say together."""
    sources = [entry.header["source"] for entry in entries]
    dates = [source["measured_at"] for source in sources if source["measured_at"] is not None]
    return SeriesFacts(
        sources=_sorted_sources((source["tool"], source["revision"]) for source in sources),
        sessions=tuple(sorted({entry.header["session"] for entry in entries})),
        measured_from=min(dates, default=None),
        measured_to=max(dates, default=None),
        undated_sets=len(entries) - len(dates),
        retracted=sum(entry.retracted_count for entry in entries),
    )


def merged_facts(parts: Sequence[SeriesFacts]) -> SeriesFacts:
    """Return the facts of a series that stands in several folders."""
    if len(parts) == 1:
        return parts[0]
    return SeriesFacts(
        sources=_sorted_sources(source for part in parts for source in part.sources),
        sessions=tuple(sorted({session for part in parts for session in part.sessions})),
        measured_from=min((p.measured_from for p in parts if p.measured_from), default=None),
        measured_to=max((p.measured_to for p in parts if p.measured_to), default=None),
        undated_sets=sum(part.undated_sets for part in parts),
        retracted=sum(part.retracted for part in parts),
    )


def facts_json(facts: SeriesFacts) -> list[Any]:
    """Return facts as the JSON that `facts_from_json` reads."""
    return [
        facts.sources,
        facts.sessions,
        facts.measured_from,
        facts.measured_to,
        facts.undated_sets,
        facts.retracted,
    ]


def facts_from_json(value: Sequence[Any]) -> SeriesFacts:
    """Return facts from their JSON."""
    sources, sessions, measured_from, measured_to, undated_sets, retracted = value
    return SeriesFacts(
        sources=tuple([(tool, revision) for tool, revision in sources]),
        sessions=tuple(sessions),
        measured_from=measured_from,
        measured_to=measured_to,
        undated_sets=undated_sets,
        retracted=retracted,
    )


def first_of_each_content(entries: Iterable[CatalogueEntry]) -> list[CatalogueEntry]:
    """Sort by path; of equal files the first path stands for all: a record counts once."""
    found: dict[str, CatalogueEntry] = {}
    for entry in sorted(entries, key=lambda entry: entry.path):
        found.setdefault(entry.blob, entry)
    return list(found.values())


def by_series(entries: Iterable[CatalogueEntry]) -> dict[SeriesKey, list[CatalogueEntry]]:
    """Group record sets by series, sorted by device, operation and kind."""
    series: dict[SeriesKey, list[CatalogueEntry]] = {}
    for entry in entries:
        series.setdefault(entry.series, []).append(entry)
    return {key: series[key] for key in sorted(series, key=series_order)}


def _sorted_sources(
    sources: Iterable[tuple[str, str | None]],
) -> tuple[tuple[str, str | None], ...]:
    return tuple(sorted(set(sources), key=lambda source: (source[0], source[1] or "")))

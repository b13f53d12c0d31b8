"""All matching records of a query, re-read from Git and pooled, and what to say of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from perfdb_git.model.instants import earliest_instant
from perfdb_git.model.query import CostQuery
from perfdb_git.model.records import RecordSetHeader, VerifiedRow, record_id
from perfdb_git.model.values import JsonValue
from perfdb_git.providers.evidence import EvidenceReader
from perfdb_git.providers.held_clocks import ClockLog, ClockReader, held_clocks
from perfdb_git.providers.matching import Match
from perfdb_git.providers.observations import (
    Observation,
    Pooled,
    metric_names,
    observe,
    pool,
    si_unit,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ThrottledRecords:
    """The matching records that were taken under a held-down clock.

    ``reasons`` are texts, each once; ``refused`` says whether the records were left out.
    """

    count: int = 0
    reasons: tuple[str, ...] = ()
    refused: bool = False

    def text(self) -> str:
        """Say how many there are, and how that is known."""
        records = "1 record" if self.count == 1 else f"{self.count} records"
        return f"{records} whose clock was held down ({'; '.join(self.reasons)})"

    def notes(self) -> tuple[str, ...]:
        """Say what became of them, where there are any."""
        if not self.count:
            return ()
        return (f"{self.text()}: {'left aside' if self.refused else 'answers all the same'}",)


@dataclass(frozen=True, slots=True)
class PooledRecords:
    """The matching records with their headers, and each metric pooled over them."""

    match: Match
    rows: tuple[tuple[RecordSetHeader, VerifiedRow], ...]
    metrics: Mapping[str, Pooled]
    throttled: ThrottledRecords

    def only(self, names: Collection[str]) -> PooledRecords:
        """Return the same records with some of their metrics."""
        kept = {name: pooled for name, pooled in self.metrics.items() if name in names}
        return replace(self, metrics=kept)

    @property
    def headers(self) -> list[RecordSetHeader]:
        """The header of each record's set."""
        return [header for header, _ in self.rows]

    @property
    def session_count(self) -> int:
        """Sessions behind the records."""
        return len({header.session for header in self.headers})

    @property
    def record_ids(self) -> tuple[str, ...]:
        """Ids of the records, by record set and row."""
        return tuple(record_id(row.record_set, row.row) for _, row in self.rows)

    @property
    def source_revisions(self) -> tuple[str, ...]:
        """``tool@revision`` of every source, each once."""
        sources = (header.source for header in self.headers)
        return tuple(sorted({f"{item.tool}@{item.revision or 'unknown'}" for item in sources}))

    @property
    def grade(self) -> str:
        """The worst protocol grade among the records."""
        grades = {header.protocol.grade for header in self.headers}
        order = ("protocol-unknown", "partial", "stated")
        return next(grade for grade in order if grade in grades)

    @property
    def oldest_measurement(self) -> str | None:
        """The oldest time of measurement, ``None`` as soon as one of them is unknown."""
        times = [header.source.measured_at for header in self.headers]
        known = [time for time in times if time is not None]
        return min(known, key=earliest_instant) if len(known) == len(times) else None

    def conflicts(self, threshold: float) -> tuple[str, ...]:
        """Describe each metric whose sessions disagree by more than ``threshold``."""
        return tuple(
            f"{name}: {len(pooled.session_centers)} sessions disagree by "
            f"{pooled.disagreement:.0%}, more than {threshold:.0%} "
            f"({_spread(pooled)})"
            for name, pooled in self.metrics.items()
            if pooled.disagreement > threshold
        )

    def level_notes(self) -> tuple[str, ...]:
        """Say of each metric that pools samples of several records where its spread lies."""
        return tuple(
            f"{name}: {pooled.levels}"
            for name, pooled in self.metrics.items()
            if pooled.levels is not None
        )

    def assumptions(self, query: CostQuery) -> tuple[str, ...]:
        """Say what was assumed to answer the query from these records."""
        match = self.match
        texts = [
            f"{name} = {values[0]}, as every matching record "
            + ("that states it has it" if name in match.partly_open else "has it")
            for name, values in match.open_values.items()
        ]
        coordinates = query.coordinates()
        texts += [
            f"{name} = {coordinates[name]} is not stated by every matching record"
            for name in match.unstated
        ]
        for name, pooled in self.metrics.items():
            if not pooled.spread_known:
                texts.append(f"{name}: spread-unknown, the records state no spread")
            if pooled.statistics not in (("median",), ("sample",)):
                texts.append(f"{name} is the recorded {' and '.join(pooled.statistics)}")
            texts += [f"{name}: {note}" for note in pooled.notes]
        return tuple(texts)

    def extensions(self) -> tuple[Mapping[str, JsonValue], tuple[str, ...]]:
        """Carry each extension that all records share; say which ones differ."""
        headers = self.headers
        first = headers[0].extensions
        names = sorted({name for header in headers for name in header.extensions})
        shared = {
            name: first[name]
            for name in names
            if name in first and all(item.extensions.get(name) == first[name] for item in headers)
        }
        notes = tuple(
            f"extension {name} differs between records" for name in names if name not in shared
        )
        return shared, notes


def pool_records(
    evidence: EvidenceReader, match: Match, level: float, *, refuse_throttled: bool
) -> PooledRecords:
    """Re-read the matching rows from their Git objects and pool each metric.

    Parameters
    ----------
    evidence : EvidenceReader
        Records of the snapshot.
    match : Match
        At least one candidate.
    level : float
        Coverage asked of the intervals, in (0, 1).
    refuse_throttled : bool
        Whether records taken under a held-down clock are left out; nothing may be left then.
    """
    found_rows: list[tuple[RecordSetHeader, VerifiedRow]] = []
    logs: list[tuple[RecordSetHeader, ClockLog]] = []
    for candidate in match.candidates:
        header = candidate.record_set.header
        reader = ClockReader(candidate.record_set.sha256, header)
        for row in evidence.verified_rows(candidate.record_set, candidate.rows):
            found_rows.append((header, row))
            logs.append((header, reader.log(row.row, row.cells)))
    rows, throttled = _without_throttled(found_rows, held_clocks(logs), refuse=refuse_throttled)
    found: dict[str, list[Observation]] = {}
    units: dict[str, str] = {}
    for header, row in rows:
        for metric in metric_names(header):
            observation = observe(header, row.cells, metric)
            if observation is not None:
                found.setdefault(metric, []).append(observation)
                units[metric] = si_unit(metric, header)
    metrics = {
        name: pool(observations, units[name], level) for name, observations in sorted(found.items())
    }
    return PooledRecords(match, tuple(rows), metrics, throttled)


def _without_throttled(
    rows: list[tuple[RecordSetHeader, VerifiedRow]], held: Sequence[str | None], *, refuse: bool
) -> tuple[list[tuple[RecordSetHeader, VerifiedRow]], ThrottledRecords]:
    reasons = [reason for reason in held if reason is not None]
    throttled = ThrottledRecords(
        count=len(reasons), reasons=tuple(dict.fromkeys(reasons)), refused=refuse
    )
    if not refuse or not reasons:
        return rows, throttled
    return [row for row, reason in zip(rows, held, strict=True) if reason is None], throttled


def _spread(pooled: Pooled) -> str:
    centers: Mapping[str, float] = pooled.session_centers
    ends: Sequence[str] = (
        min(centers, key=centers.__getitem__),
        max(centers, key=centers.__getitem__),
    )
    return "; ".join(f"{name}: {centers[name]:.4g} {pooled.estimate.unit}" for name in ends)

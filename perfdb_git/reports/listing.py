"""What a snapshot holds, as typed entries and as tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from perfdb_git.database import DatabaseSnapshot
from perfdb_git.errors import UsageError
from perfdb_git.model.values import Scalar
from perfdb_git.reports.gate_listing import GateEntry, gate_entries, gates_table
from perfdb_git.reports.plan_listing import PlanEntry, plan_entries, plan_table
from perfdb_git.reports.quantities import counted
from perfdb_git.reports.screen import Line, table
from perfdb_git.reports.timing_listing import (
    PipelineEntry,
    TimingProfileEntry,
    pipeline_entries,
    pipeline_table,
    timing_profile_entries,
    timing_profile_table,
)
from perfdb_git.storage.record_sets import IndexedRecordSet

Listed: TypeAlias = Literal[
    "series",
    "sets",
    "policies",
    "gates",
    "profiles",
    "operations",
    "timing-profiles",
    "pipelines",
    "plans",
]

UNKNOWN = "unknown"
_SHORT_DIGEST = 12
_SINGULAR: Mapping[str, str] = {
    "series": "series",
    "sets": "set",
    "policies": "policy",
    "gates": "gate",
    "profiles": "profile",
    "operations": "operation",
    "timing-profiles": "timing profile",
    "pipelines": "pipeline",
    "plans": "plan",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesEntry:
    """One series: all records of one device, operation and kind.

    ``records`` count those that are not retracted. ``measured_from`` and ``measured_to`` are
    ``None`` where no date is known; ``undated_sets`` have none.
    """

    device: str
    operation: str
    kind: str
    record_sets: int
    records: int
    retracted: int
    sources: tuple[str, ...]
    sessions: tuple[str, ...]
    measured_from: str | None
    measured_to: str | None
    undated_sets: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordSetEntry:
    """One record set."""

    sha256: str
    path: str
    device: str
    operation: str
    kind: str
    session: str
    source: str
    records: int
    retracted: int
    measured_at: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedEntry:
    """A policy, system profile or operation, with what it says of itself.

    ``shape`` are the dimensions that an operation has, ``device`` that of a profile.
    """

    name: str
    description: str
    device: str | None = None
    shape: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()


Entry: TypeAlias = (
    SeriesEntry
    | RecordSetEntry
    | NamedEntry
    | GateEntry
    | TimingProfileEntry
    | PipelineEntry
    | PlanEntry
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """The answer of ``perfdb list``."""

    commit: str | None
    what: Listed
    entries: tuple[Entry, ...]


def make_listing(snapshot: DatabaseSnapshot, what: Listed, wanted: Mapping[str, Scalar]) -> Listing:
    """List a snapshot.

    Parameters
    ----------
    snapshot : DatabaseSnapshot
        What to list.
    what : str
        Which kind of entry.
    wanted : mapping of str to scalar
        Dimensions that a record set must have in its header; for series and sets only.

    Raises
    ------
    UsageError
        'conflicting-options' for dimensions with another kind of entry.
    """
    if wanted and what not in ("series", "sets"):
        raise UsageError(
            f"--device and --operation do not apply to {what}", code="conflicting-options"
        )
    entries: Sequence[Entry]
    if what == "series":
        entries = _series(snapshot, wanted)
    elif what == "sets":
        entries = [_record_set(view) for view in _record_sets(snapshot, wanted)]
    elif what == "gates":
        entries = gate_entries(snapshot)
    elif what == "timing-profiles":
        entries = timing_profile_entries(snapshot)
    elif what == "pipelines":
        entries = pipeline_entries(snapshot)
    elif what == "plans":
        entries = plan_entries(snapshot)
    else:
        entries = _named(snapshot, what)
    return Listing(commit=snapshot.commit, what=what, entries=tuple(entries))


def _record_sets(
    snapshot: DatabaseSnapshot, wanted: Mapping[str, Scalar]
) -> Iterator[IndexedRecordSet]:
    for key in snapshot.evidence.series_keys():
        series = {"device": key.device, "operation": key.operation}
        if any(wanted.get(name, value) != value for name, value in series.items()):
            continue
        for view in snapshot.evidence.record_sets(key):
            context = view.entry.header["context"]
            if all(context.get(name) == value for name, value in wanted.items()):
                yield view


def _record_set(view: IndexedRecordSet) -> RecordSetEntry:
    # The header as it stands in the index: decoding thousands of them would take seconds.
    header = view.entry.header
    retracted = view.entry.retracted
    gone = view.row_count if retracted is None else len(retracted)
    source = header["source"]
    return RecordSetEntry(
        sha256=view.sha256,
        path=view.path,
        device=header["context"]["device"],
        operation=header["context"]["operation"],
        kind=header["kind"],
        session=header["session"],
        source=_source(source["tool"], source["revision"]),
        records=view.row_count - gone,
        retracted=gone,
        measured_at=source["measured_at"],
    )


def _series(snapshot: DatabaseSnapshot, wanted: Mapping[str, Scalar]) -> list[SeriesEntry]:
    if wanted.keys() <= {"device", "operation"}:
        return _indexed_series(snapshot, wanted)
    groups: dict[tuple[str, str, str], list[RecordSetEntry]] = {}
    for view in _record_sets(snapshot, wanted):
        entry = _record_set(view)
        groups.setdefault((entry.device, entry.operation, entry.kind), []).append(entry)
    return [_summary(key, entries) for key, entries in groups.items()]


def _indexed_series(snapshot: DatabaseSnapshot, wanted: Mapping[str, Scalar]) -> list[SeriesEntry]:
    """Take whole series from the index, which has added up their headers."""
    facts = snapshot.evidence.index.facts()
    entries = []
    for item in snapshot.evidence.series():
        key, known = item.key, facts[item.key]
        series = {"device": key.device, "operation": key.operation}
        if any(series[name] != value for name, value in wanted.items()):
            continue
        entries.append(
            SeriesEntry(
                device=key.device,
                operation=key.operation,
                kind=key.kind,
                record_sets=item.record_sets,
                records=item.rows - known.retracted,
                retracted=known.retracted,
                sources=tuple(sorted({_source(*source) for source in known.sources})),
                sessions=known.sessions,
                measured_from=known.measured_from,
                measured_to=known.measured_to,
                undated_sets=known.undated_sets,
            )
        )
    return entries


def _source(tool: str, revision: str | None) -> str:
    return f"{tool}@{revision or UNKNOWN}"


def _summary(key: tuple[str, str, str], entries: Sequence[RecordSetEntry]) -> SeriesEntry:
    device, operation, kind = key
    dates = [entry.measured_at for entry in entries if entry.measured_at is not None]
    return SeriesEntry(
        device=device,
        operation=operation,
        kind=kind,
        record_sets=len(entries),
        records=sum(entry.records for entry in entries),
        retracted=sum(entry.retracted for entry in entries),
        sources=tuple(sorted({entry.source for entry in entries})),
        sessions=tuple(sorted({entry.session for entry in entries})),
        measured_from=min(dates, default=None),
        measured_to=max(dates, default=None),
        undated_sets=len(entries) - len(dates),
    )


def _named(snapshot: DatabaseSnapshot, what: Listed) -> list[NamedEntry]:
    evidence = snapshot.evidence
    if what == "policies":
        return [
            NamedEntry(name=name, description=evidence.policy(name)[0].description)
            for name in evidence.policies()
        ]
    if what == "profiles":
        profiles = [evidence.system_profile(name) for name in evidence.system_profiles()]
        return [
            NamedEntry(
                name=profile.name, description=profile.description.strip(), device=profile.device
            )
            for profile in profiles
        ]
    return [
        NamedEntry(
            name=name,
            description=operation.description,
            shape=tuple(operation.shape),
            optional=tuple(operation.optional),
        )
        for name, operation in sorted(snapshot.vocabulary.operations.items())
    ]


def listing_lines(listing: Listing) -> list[Line]:
    """Return a listing for people."""
    where = listing.commit or "uncommitted files of the work tree"
    if not listing.entries:
        return [Line(f"no {listing.what.replace('-', ' ')} at {where}", "faint")]
    return [*_TABLES[listing.what](listing.entries), Line(), Line(_total(listing, where), "faint")]


def _total(listing: Listing, where: str) -> str:
    counts = [e.records for e in listing.entries if isinstance(e, SeriesEntry | RecordSetEntry)]
    records = f", {counted(sum(counts), 'record')}" if counts else ""
    count = len(listing.entries)
    noun = _SINGULAR[listing.what] if count == 1 else listing.what.replace("-", " ")
    return f"{count} {noun}{records} at {where}"


def _series_table(entries: Sequence[Entry]) -> list[Line]:
    titles = ["device", "operation", "kind", "records", "sets", "sessions", "measured", "source"]
    rows = [
        [
            entry.device,
            entry.operation,
            entry.kind,
            _counts(entry.records, entry.retracted),
            str(entry.record_sets),
            str(len(entry.sessions)),
            _dates(entry),
            ", ".join(entry.sources),
        ]
        for entry in entries
        if isinstance(entry, SeriesEntry)
    ]
    return table(titles, rows, right=("records", "sets", "sessions"))


def _counts(records: int, retracted: int) -> str:
    return f"{records:,}" if not retracted else f"{records:,} (-{retracted:,})"


def _dates(entry: SeriesEntry) -> str:
    if entry.measured_from is None or entry.measured_to is None:
        return UNKNOWN
    first, last = entry.measured_from[:10], entry.measured_to[:10]
    text = first if first == last else f"{first}..{last}"
    return f"{text} or {UNKNOWN}" if entry.undated_sets else text


def _sets_table(entries: Sequence[Entry]) -> list[Line]:
    titles = ["id", "device", "operation", "records", "measured", "session"]
    rows = [
        [
            entry.sha256[:_SHORT_DIGEST],
            entry.device,
            entry.operation,
            _counts(entry.records, entry.retracted),
            (entry.measured_at or UNKNOWN)[:10],
            entry.session,
        ]
        for entry in entries
        if isinstance(entry, RecordSetEntry)
    ]
    return table(titles, rows, right=("records",))


def _policies_table(entries: Sequence[Entry]) -> list[Line]:
    rows = [[e.name, e.description] for e in entries if isinstance(e, NamedEntry)]
    return table(["name", "description"], rows, wrap=True)


def _profiles_table(entries: Sequence[Entry]) -> list[Line]:
    rows = [
        [e.name, e.device or UNKNOWN, e.description] for e in entries if isinstance(e, NamedEntry)
    ]
    return table(["name", "device", "description"], rows, wrap=True)


def _operations_table(entries: Sequence[Entry]) -> list[Line]:
    rows = [
        [e.name, " ".join([*e.shape, *(f"[{name}]" for name in e.optional)])]
        for e in entries
        if isinstance(e, NamedEntry)
    ]
    return table(["operation", "shape ([optional])"], rows, wrap=True)


_TABLES: Mapping[Listed, Callable[[Sequence[Entry]], list[Line]]] = {
    "series": _series_table,
    "sets": _sets_table,
    "policies": _policies_table,
    "gates": gates_table,
    "profiles": _profiles_table,
    "operations": _operations_table,
    "timing-profiles": timing_profile_table,
    "pipelines": pipeline_table,
    "plans": plan_table,
}

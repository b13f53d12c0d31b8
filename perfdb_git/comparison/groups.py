"""The records of one side of a comparison, sorted into groups of equal context."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field

from perfdb_git.comparison.contexts import (
    ContextKey,
    Environments,
    known_context,
    row_context,
)
from perfdb_git.comparison.selections import Choice, RecordChoice, Selection
from perfdb_git.database import DatabaseSnapshot
from perfdb_git.errors import UsageError
from perfdb_git.model.records import RecordSetHeader, record_id
from perfdb_git.model.values import Scalar
from perfdb_git.providers.held_clocks import ClockLog, ClockReader
from perfdb_git.providers.observations import Observation, metric_names, observe, si_unit
from perfdb_git.storage.record_sets import IndexedRecordSet

Progress = Callable[[int, int, str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One record's samples or summary of one metric.

    ``clock`` is what the record states of the clock, ``across`` are its values of what may differ
    between the sides.
    """

    record: str
    header: RecordSetHeader
    observation: Observation
    clock: ClockLog
    across: Mapping[str, Scalar]


@dataclass(slots=True)
class Group:
    """All records of one side with one context and metric, in order of path and row."""

    members: list[Member] = field(default_factory=list)

    @property
    def observations(self) -> list[Observation]:
        """What each record says."""
        return [member.observation for member in self.members]

    def across(self) -> dict[str, tuple[Scalar, ...]]:
        """Return every value of each dimension that may differ, sorted."""
        found: dict[str, set[Scalar]] = {}
        for member in self.members:
            for name, value in member.across.items():
                found.setdefault(name, set()).add(value)
        return {name: tuple(sorted(values, key=str)) for name, values in sorted(found.items())}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What to read of a snapshot, and how to sort it.

    Attributes
    ----------
    choice : Choice
        The side as asked for.
    where : Selection
        What both sides are narrowed to.
    across : frozenset of str
        Dimensions (or ``environment``) in which the sides may differ.
    metrics : frozenset of str
        The only metrics to read; all where empty.
    skipped : mapping of str to set of int or None
        Rows to leave out by record set, None for all of them.
    headers : mapping of str to set of scalar
        Values that a record set's header must have one of, by dimension; saves reading the rest.
    """

    choice: Choice
    where: Selection
    across: frozenset[str]
    metrics: frozenset[str]
    skipped: Mapping[str, Collection[int] | None] = field(default_factory=dict)
    headers: Mapping[str, Collection[Scalar]] = field(default_factory=dict)


def read_groups(
    snapshot: DatabaseSnapshot, reading: Reading, progress: Progress | None = None
) -> dict[ContextKey, Group]:
    """Read one side from Git, retracted records left out.

    Raises
    ------
    UsageError
        'unknown-id', 'ambiguous-id' or 'row-out-of-range' for a record that is not there.
    InvalidInputError
        For a record set that breaks its format, or a manifest that is missing.
    """
    wanted = list(chosen_record_sets(snapshot, reading))
    environments = Environments(snapshot.evidence, reading.across)
    unmatched = {
        name for name, item in snapshot.vocabulary.dimensions.items() if not item.matched
    } | reading.across
    groups: dict[ContextKey, Group] = {}
    for done, (view, rows) in enumerate(wanted):
        if progress is not None:
            progress(done, len(wanted), view.path)
        _read_record_set(snapshot, view, rows, reading, environments, unmatched, groups)
    return groups


def record_set_ids(snapshot: DatabaseSnapshot) -> frozenset[str]:
    """Return the SHA-256 of every record set of a snapshot."""
    return frozenset(
        view.sha256
        for key in snapshot.evidence.series_keys()
        for view in snapshot.evidence.record_sets(key)
    )


def retracted_rows(snapshot: DatabaseSnapshot) -> dict[str, Collection[int] | None]:
    """Return the retracted rows of a snapshot by record set, None for a whole one."""
    return {
        view.sha256: view.entry.retracted
        for key in snapshot.evidence.series_keys()
        for view in snapshot.evidence.record_sets(key)
        if view.entry.retracted is None or view.entry.retracted
    }


def chosen_record_sets(
    snapshot: DatabaseSnapshot, reading: Reading
) -> Iterator[tuple[IndexedRecordSet, frozenset[int] | None]]:
    """Yield the record sets to read, each with the only rows that were asked for, None for all.

    Raises
    ------
    UsageError
        'unknown-id', 'ambiguous-id' or 'row-out-of-range' for a record that is not there.
    """
    choice = reading.choice
    if isinstance(choice, RecordChoice):
        chosen: dict[str, tuple[IndexedRecordSet, set[int] | None]] = {}
        for prefix, row in choice.ids:
            view = snapshot.evidence.find_record_set(prefix)
            if row is not None and row >= view.row_count:
                raise UsageError(
                    f"{view.path} has {view.row_count} rows, there is no #{row}",
                    code="row-out-of-range",
                    remedy="rows count from 0",
                )
            _, rows = chosen.get(view.sha256, (view, set()))
            if row is None:
                rows = None
            elif rows is not None:
                rows.add(row)
            chosen[view.sha256] = (view, rows)
        found = [
            (view, None if rows is None else frozenset(rows)) for view, rows in chosen.values()
        ]
    else:
        found = [
            (view, None)
            for key in snapshot.evidence.series_keys()
            for view in snapshot.evidence.record_sets(key)
        ]
    for view, only in found:
        whole_set_gone = reading.skipped.get(view.sha256, ()) is None
        if not whole_set_gone and _header_fits(view, reading):
            yield view, only


def _header_fits(view: IndexedRecordSet, reading: Reading) -> bool:
    # The header as the index has it: decoding thousands of them would take seconds.
    header = view.entry.header
    if any(header["context"][name] not in values for name, values in reading.headers.items()):
        return False
    columns = {item["name"] for item in header["columns"] if item["role"] == "dimension"}
    for selection in _selections(reading):
        if selection.session not in (None, header["session"]):
            return False
        if selection.kind not in (None, header["kind"]):
            return False
        for name, value in selection.dimensions.items():
            if name not in columns and header["context"].get(name) != value:
                return False
    return True


def _selections(reading: Reading) -> list[Selection]:
    own = [reading.choice] if isinstance(reading.choice, Selection) else []
    return [*own, reading.where]


def _read_record_set(
    snapshot: DatabaseSnapshot,
    view: IndexedRecordSet,
    only: frozenset[int] | None,
    reading: Reading,
    environments: Environments,
    unmatched: Collection[str],
    groups: dict[ContextKey, Group],
) -> None:
    header, rows = snapshot.evidence.read_record_set(view)
    retracted = view.entry.retracted
    if retracted is None:
        return
    gone = {*retracted, *(reading.skipped.get(view.sha256) or ())}
    shared = known_context(header)
    environment = environments.facts(header.environment)
    metrics = [
        (name, si_unit(name, header))
        for name in metric_names(header)
        if not reading.metrics or name in reading.metrics
    ]
    reader = ClockReader(view.sha256, header)
    for number, stated in enumerate(rows):
        if number in gone or (only is not None and number not in only):
            continue
        cells = tuple(stated)
        context = {**shared, **row_context(header, cells)}
        if not row_fits(context, reading):
            continue
        values = tuple(sorted((n, v) for n, v in context.items() if n not in unmatched))
        across = {name: context[name] for name in reading.across if name in context}
        clock = reader.log(number, cells)
        for metric, unit in metrics:
            observation = observe(header, cells, metric)
            if observation is None:
                continue
            key = ContextKey(metric, unit, values, environment)
            member = Member(
                record=record_id(view.sha256, number),
                header=header,
                observation=observation,
                clock=clock,
                across=across,
            )
            groups.setdefault(key, Group()).members.append(member)


def row_fits(context: Mapping[str, Scalar], reading: Reading) -> bool:
    """Tell whether a row with these known dimensions is asked for."""
    return all(
        context.get(name) == value
        for selection in _selections(reading)
        for name, value in selection.dimensions.items()
    )

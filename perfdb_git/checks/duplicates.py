"""Observations that stand in the evidence twice, by a second import or a copied file."""

from __future__ import annotations

from collections.abc import Iterator

from perfdb_git.checks.change import Change
from perfdb_git.checks.checked_snapshot import (
    RECORD_SET,
    CheckedDocument,
    CheckedSnapshot,
)
from perfdb_git.checks.record_set_facts import RecordSetFacts, observations_digest
from perfdb_git.checks.rules import Check, Rule
from perfdb_git.checks.terms import pointer
from perfdb_git.checks.typical_values import indexed_columns
from perfdb_git.importers.known_rows import KnownRows
from perfdb_git.model.findings import Finding
from perfdb_git.model.records import RecordSetHeader, SeriesKey
from perfdb_git.storage.catalogue_entries import CatalogueEntry
from perfdb_git.storage.record_sets import IndexedRecordSet

SAME_ROWS = Rule(
    code="same-rows",
    severity="warning",
    documentation="No two record sets hold the same observations.",
    remedy="retract one of them unless the runs really gave equal numbers",
)
IMPORTED_TWICE = Rule(
    code="imported-twice",
    documentation="Rows of a source's file are imported once.",
    remedy="leave the set out: 'perfdb import' adds only rows that are new",
)


def judge_copies(snapshot: CheckedSnapshot) -> Iterator[Finding]:
    """Yield record sets whose dimensions and metrics another one has too."""
    first: dict[str, str] = {}
    for facts in snapshot.record_sets:
        if facts.observations is None:
            continue
        if facts.observations in first:
            yield SAME_ROWS.broken(
                facts.path,
                f"{facts.row_count} rows say the same as those of {first[facts.observations]}",
                pointer="/rows",
            )
        first.setdefault(facts.observations, facts.path)


def judge_new_copies(change: Change) -> Iterator[Finding]:
    """Yield new record sets whose dimensions and metrics another one has too."""
    new = {file.path for file in change.additions}
    first: dict[str, str] = {}
    for facts in change.head.record_sets:
        if facts.path not in new or facts.observations is None:
            continue
        other = first.get(facts.observations) or _existing_copy(change, facts)
        if other is not None:
            yield SAME_ROWS.broken(
                facts.path,
                f"{facts.row_count} rows say the same as those of {other}",
                pointer="/rows",
            )
        first.setdefault(facts.observations, facts.path)


def _existing_copy(change: Change, facts: RecordSetFacts) -> str | None:
    """Return the path of an existing set of the same operation with the same observations."""
    for entry in change.existing.entries:
        if entry.row_count != facts.row_count or entry.series.operation != facts.operation:
            continue
        if entry.sha256 == facts.sha256:
            continue
        columns = indexed_columns(change.existing.snapshot.index, entry)
        if observations_digest(entry.header["columns"], columns) == facts.observations:
            return entry.path
    return None


def judge_import(change: Change, document: CheckedDocument) -> Iterator[Finding]:
    """Yield that rows of a new record set were imported before."""
    header = document.header
    if document.kind != RECORD_SET or header is None or document.columns is None:
        return
    if change.retracted.get(document.sha256, frozenset()) is None:
        return
    rows = document.value["rows"]
    paths = []
    known = KnownRows()
    for entry in _same_source(change, header):
        if entry.path == document.path:
            # The same file as it was: that it changed is a matter of its own.
            continue
        earlier, cells = _live_rows(change, entry)
        known.add(earlier, cells)
        paths.append(entry.path)
    new = known.new_indices(header, rows)
    if new is None or len(new) == len(rows):
        return
    row = min(set(range(len(rows))) - set(new))
    yield IMPORTED_TWICE.broken(
        document.path,
        f"{len(rows) - len(new)} of {len(rows)} rows, the first of them row {row}, were imported "
        f"from {header.source.file} before, into {paths[0]}"
        + (f" and {len(paths) - 1} more" if len(paths) > 1 else ""),
        pointer=pointer("rows", row),
        row=row,
    )


def _same_source(change: Change, header: RecordSetHeader) -> Iterator[CatalogueEntry]:
    """Yield existing record sets of the same source file in which equal rows may stand."""
    key = SeriesKey(kind=header.kind, device=header.device, operation=header.operation)
    source = header.source
    for entry in change.existing.series(key):
        other, context = entry.header["source"], entry.header["context"]
        if (other["tool"], other["file"]) != (source.tool, source.file):
            continue
        shared = header.context.keys() & context.keys()
        if all(header.context[name] == context[name] for name in shared):
            yield entry


def _live_rows(change: Change, entry: CatalogueEntry) -> tuple[RecordSetHeader, list[list[object]]]:
    """Return an existing set without rows that the head retracts: those may come again."""
    snapshot = change.existing.snapshot
    header, rows = snapshot.read_record_set(IndexedRecordSet(snapshot.index, entry))
    retracted = change.retracted.get(entry.sha256, frozenset())
    if retracted is None:
        return header, []
    return header, [row for number, row in enumerate(rows) if number not in retracted]


DUPLICATES = Check(
    id="duplicates",
    documentation="No observations are imported twice.",
    rules=(SAME_ROWS, IMPORTED_TWICE),
    judge_snapshot=judge_copies,
    judge_addition=judge_import,
    judge_change=judge_new_copies,
)

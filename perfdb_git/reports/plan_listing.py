"""Plans of a snapshot as entries and a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from perfdb_git.database import DatabaseSnapshot
from perfdb_git.reports.screen import Line, table
from perfdb_git.storage.plan_documents import PlanDocuments


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanEntry:
    """A plan; ``locked`` tells whether a lock of it is committed beside it."""

    name: str
    path: str
    sha256: str
    description: str
    queries: int
    composition: str
    policy: str | None
    locked: bool


def plan_entries(snapshot: DatabaseSnapshot) -> list[PlanEntry]:
    """Return the plans of a snapshot, sorted by name."""
    documents = PlanDocuments(snapshot.evidence)
    locked = documents.locks()
    entries = []
    for name in documents.plans():
        document = documents.plan(name)
        entries.append(
            PlanEntry(
                name=name,
                path=document.path,
                sha256=document.sha256,
                description=document.value.description.strip(),
                queries=len(document.value.queries),
                composition=document.value.composition.kind,
                policy=document.value.policy,
                locked=name in locked,
            )
        )
    return entries


def plan_table(entries: Sequence[object]) -> list[Line]:
    """Return plans for people."""
    titles = ["name", "queries", "composition", "lock", "description"]
    rows = [
        [
            entry.name,
            str(entry.queries),
            entry.composition,
            "yes" if entry.locked else "no",
            entry.description,
        ]
        for entry in entries
        if isinstance(entry, PlanEntry)
    ]
    return table(titles, rows, right=("queries",), wrap=True)

"""Timing profiles and pipelines of a snapshot as entries and tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from perfdb_git.database import DatabaseSnapshot
from perfdb_git.reports.screen import Line, table


@dataclass(frozen=True, slots=True, kw_only=True)
class TimingProfileEntry:
    """A timing profile; ``name`` is that of its file, ``title`` what it calls itself."""

    name: str
    title: str
    version: str | int
    path: str
    sha256: str
    description: str | None
    components: tuple[str, ...]
    evidence: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineEntry:
    """A pipeline; ``name`` is that of its file, ``title`` what it calls itself.

    ``components`` are those that a profile must have, ``queries`` the stages that are resolved.
    """

    name: str
    title: str | None
    version: str | int | None
    path: str
    sha256: str
    description: str | None
    stages: tuple[str, ...]
    components: tuple[str, ...]
    queries: tuple[str, ...]
    jobs: int
    arrivals: str


def timing_profile_entries(snapshot: DatabaseSnapshot) -> list[TimingProfileEntry]:
    """Return the timing profiles of a snapshot, sorted by name."""
    entries = []
    for name in snapshot.timing_documents.timing_profiles():
        document = snapshot.timing_profile(name)
        profile = document.value
        entries.append(
            TimingProfileEntry(
                name=name,
                title=profile.name,
                version=profile.version,
                path=document.document,
                sha256=document.sha256,
                description=profile.description,
                components=tuple(profile.components),
                evidence=tuple(sorted({one.evidence for one in profile.components.values()})),
            )
        )
    return entries


def pipeline_entries(snapshot: DatabaseSnapshot) -> list[PipelineEntry]:
    """Return the pipelines of a snapshot, sorted by name."""
    entries = []
    for name in snapshot.timing_documents.pipelines():
        document = snapshot.pipeline(name)
        pipeline = document.value
        entries.append(
            PipelineEntry(
                name=name,
                title=pipeline.name,
                version=pipeline.version,
                path=document.document,
                sha256=document.sha256,
                description=pipeline.description,
                stages=tuple(stage.name for stage in pipeline.stages),
                components=tuple(dict.fromkeys(stage.component for stage in pipeline.stages)),
                queries=tuple(stage.name for stage in pipeline.stages if stage.query is not None),
                jobs=pipeline.jobs.number,
                arrivals=pipeline.jobs.arrivals.kind,
            )
        )
    return entries


def timing_profile_table(entries: Sequence[object]) -> list[Line]:
    """Return timing profiles for people."""
    titles = ["name", "version", "components", "evidence", "description"]
    rows = [
        [
            entry.name,
            str(entry.version),
            str(len(entry.components)),
            ", ".join(entry.evidence),
            entry.description or "",
        ]
        for entry in entries
        if isinstance(entry, TimingProfileEntry)
    ]
    return table(titles, rows, right=("components",), wrap=True)


def pipeline_table(entries: Sequence[object]) -> list[Line]:
    """Return pipelines for people."""
    titles = ["name", "version", "stages", "jobs", "arrivals", "description"]
    rows = [
        [
            entry.name,
            "" if entry.version is None else str(entry.version),
            str(len(entry.stages)),
            f"{entry.jobs:,}",
            entry.arrivals,
            entry.description or "",
        ]
        for entry in entries
        if isinstance(entry, PipelineEntry)
    ]
    return table(titles, rows, right=("stages", "jobs"), wrap=True)

"""The visits of a run as files: a timeline, a chart, a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from perfdb_git.errors import UsageError
from perfdb_git.reports.gantt_svg import gantt_jobs, gantt_svg
from perfdb_git.reports.simulation_report import SimulationOutcome
from perfdb_git.reports.timeline_trace import timeline_trace
from perfdb_git.reports.visit_events import write_csv, write_parquet
from perfdb_git.reports.written_files import replacing, require_writable
from perfdb_git.simulation.lanes import VisitTable
from perfdb_git.simulation.simulate import Simulation

FileKind: TypeAlias = Literal["trace", "svg", "events"]

MAX_VISITS = 1_000_000
"""Visits of the first jobs that a trace or table holds: 200 MB of trace, 60 MB of CSV."""

MAX_KEPT_VISITS = 20_000_000
"""Visits of a whole run that may be held to find out those of the first jobs: about 1.5 GB."""

PARQUET_SUFFIX = ".parquet"


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenFile:
    """A file with the visits of the first ``jobs`` jobs."""

    kind: FileKind
    path: str
    jobs: int
    visits: int


def require_files(paths: Mapping[FileKind, Path]) -> None:
    """Refuse files that cannot be written, before anything runs.

    Raises
    ------
    UsageError
        'not-writable', or 'conflicting-options' for one file twice.
    """
    seen: dict[Path, FileKind] = {}
    for kind, path in paths.items():
        require_writable(path)
        other = seen.setdefault(path.resolve(), kind)
        if other != kind:
            raise UsageError(
                f"--{other} and --{kind} name the same file", code="conflicting-options"
            )


def write_files(
    outcome: SimulationOutcome, paths: Mapping[FileKind, Path]
) -> tuple[WrittenFile, ...]:
    """Write the asked-for files, each whole or not at all.

    Parameters
    ----------
    outcome : SimulationOutcome
        The run.
    paths : mapping of str to Path
        ``trace`` is Chrome trace JSON, ``svg`` a Gantt chart, ``events`` CSV, or Parquet by its
        suffix.

    Raises
    ------
    UsageError
        'not-writable', 'too-many-visits', 'chart-too-large', or 'missing-extra' for Parquet.
    """
    if not paths:
        return ()
    run = outcome.simulation
    summary = run.summary
    if not run.engine.keeps_job_order and summary.visits > MAX_KEPT_VISITS:
        raise UsageError(
            f"the single visits of this run cannot be written: it has {summary.visits}, and all "
            f"are needed to know which were first; at most {MAX_KEPT_VISITS} are kept",
            code="too-many-visits",
            remedy="run fewer jobs",
        )
    return tuple(_written(outcome, kind, path) for kind, path in paths.items())


def _written(outcome: SimulationOutcome, kind: FileKind, path: Path) -> WrittenFile:
    run = outcome.simulation
    most = max(1, MAX_VISITS // len(run.plan.stages))
    jobs = gantt_jobs(run) if kind == "svg" else min(run.summary.jobs, most)
    table = run.visits(0, jobs)
    with replacing(path) as file:
        if kind == "events":
            _write_events(run, table, file, parquet=path.suffix == PARQUET_SUFFIX)
        else:
            with file.open("w", encoding="utf-8", newline="\n") as stream:
                stream.writelines(_pieces(outcome, kind, table))
    return WrittenFile(kind=kind, path=str(path), jobs=jobs, visits=len(table))


def _pieces(outcome: SimulationOutcome, kind: FileKind, table: VisitTable) -> Iterator[str]:
    if kind == "trace":
        yield from timeline_trace(outcome.simulation, table)
    else:
        report = outcome.report
        title = f"{report.pipeline.name} on {report.profile.name}"
        yield gantt_svg(outcome.simulation, table, title=title)


def _write_events(run: Simulation, table: VisitTable, file: Path, *, parquet: bool) -> None:
    if parquet:
        write_parquet(run, table, file)
    else:
        with file.open("w", encoding="utf-8", newline="") as stream:
            write_csv(run, table, stream)

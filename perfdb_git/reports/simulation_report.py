"""One simulation at one snapshot: the request, the run, and what is said of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from perfdb_git.database import DEFAULT_POLICY, DatabaseSnapshot
from perfdb_git.model.pipeline import Arrivals, Pipeline
from perfdb_git.model.result import PolicyReference, SnapshotReference
from perfdb_git.model.simulation import (
    LatencySummary,
    Picoseconds,
    ResolvedService,
    Sensitivity,
    SimulationSummary,
    SweepPoint,
    TickName,
)
from perfdb_git.model.spreading import Spread
from perfdb_git.model.timing_profile import TimingProfile
from perfdb_git.model.values import JsonValue
from perfdb_git.simulation.documents import ReadDocument
from perfdb_git.simulation.simulate import Simulation, simulate, with_jobs
from perfdb_git.simulation.summary_values import summary_value
from perfdb_git.simulation.sweep import SweepAxis, sensitivities, sweep
from perfdb_git.storage.layout import document_name

Progress = Callable[[int, int, str], None]
"""Called with the runs done, their number, and the value of the last one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationRequest:
    """What to run: ``pipeline`` and ``profile`` are names or paths of the snapshot.

    ``jobs`` and ``arrivals`` take the place of the pipeline's own where they are given.
    """

    pipeline: str
    profile: str
    jobs: int | None = None
    arrivals: Arrivals | None = None
    policy: str = DEFAULT_POLICY
    axis: SweepAxis | None = None
    sensitivity: bool = False
    tick: TickName = "ps"


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentReference:
    """A profile or pipeline: its own name (else its file's), version, path and SHA-256."""

    name: str
    version: str | int | None
    path: str
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrivalReference:
    """When the jobs arrive; ``interval_ns`` and ``window`` are those of their kinds."""

    kind: str
    interval_ns: float | None
    window: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepRow:
    """One value of a swept field and what the run gave."""

    value: str
    makespan_ps: Picoseconds
    throughput_jobs_per_s: float | None
    latency_ps: LatencySummary
    bottleneck: str | None
    capacity_jobs_per_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepTable:
    """Runs over the values of one field of one component, each simulated."""

    component: str
    field: str
    rows: tuple[SweepRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationReport:
    """What is said of a run. ``policy`` is ``None`` where no stage has a query."""

    summary: SimulationSummary
    snapshot: SnapshotReference
    marks: tuple[str, ...]
    policy: PolicyReference | None
    profile: DocumentReference
    pipeline: DocumentReference
    arrivals: ArrivalReference
    sweep: SweepTable | None
    sensitivity: tuple[Sensitivity, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationOutcome:
    """A run with its report; files of visits are made from the run."""

    simulation: Simulation
    report: SimulationReport


def run_simulation(
    snapshot: DatabaseSnapshot,
    request: SimulationRequest,
    *,
    progress: Progress | None = None,
    spread: Spread = map,
) -> SimulationOutcome:
    """Read the documents, answer the queries, and run.

    Parameters
    ----------
    snapshot : DatabaseSnapshot
        Where documents and evidence come from.
    request : SimulationRequest
        What to run.
    progress : callable or None
        Called after each run of a sweep.
    spread : Spread
        Where the runs of a sweep are done.

    Raises
    ------
    UsageError, InvalidInputError, NoEvidenceError, RepositoryUnavailableError
        What reading, resolving and simulating raise.
    """
    profile = snapshot.timing_profile(request.profile)
    stated = snapshot.pipeline(request.pipeline)
    pipeline = with_jobs(stated, count=request.jobs, arrivals=request.arrivals)
    policy = snapshot.policy(request.policy) if _has_query(pipeline.value) else None
    answers = {} if policy is None else snapshot.stage_answers(pipeline, policy=policy)
    run = simulate(profile, pipeline, answers=answers, tick=request.tick)
    swept = None
    if request.axis is not None:
        swept = _swept(profile, pipeline, answers, request, request.axis, progress, spread)
    report = SimulationReport(
        summary=run.summary,
        snapshot=SnapshotReference(commit=snapshot.commit),
        marks=("uncommitted",) if snapshot.commit is None else (),
        policy=None if policy is None else policy.reference,
        profile=_reference(profile, profile.value.name, profile.value.version),
        pipeline=_reference(pipeline, pipeline.value.name, pipeline.value.version),
        arrivals=_arrivals(pipeline.value.jobs.arrivals),
        sweep=swept,
        sensitivity=(
            sensitivities(profile, pipeline, answers=answers, tick=request.tick)
            if request.sensitivity
            else None
        ),
    )
    return SimulationOutcome(simulation=run, report=report)


def report_value(report: SimulationReport) -> dict[str, JsonValue]:
    """Return the report as the ``data`` of an envelope, the summary's fields at its top.

    A number that float64 would change is a string, see `summary_value`.
    """
    value = summary_value(report)
    assert isinstance(value, dict)
    summary = value.pop("summary")
    assert isinstance(summary, dict)
    return {**summary, **value}


def _has_query(pipeline: Pipeline) -> bool:
    return any(stage.query is not None for stage in pipeline.stages)


def _swept(
    profile: ReadDocument[TimingProfile],
    pipeline: ReadDocument[Pipeline],
    answers: Mapping[str, ResolvedService],
    request: SimulationRequest,
    axis: SweepAxis,
    progress: Progress | None,
    spread: Spread,
) -> SweepTable:
    rows = []
    points = sweep(profile, pipeline, axis, answers=answers, tick=request.tick, spread=spread)
    for point in points:
        rows.append(_row(point))
        if progress is not None:
            progress(len(rows), len(axis.values), point.value)
    return SweepTable(component=axis.component, field=axis.field, rows=tuple(rows))


def _row(point: SweepPoint) -> SweepRow:
    summary = point.summary
    return SweepRow(
        value=point.value,
        makespan_ps=summary.makespan_ps,
        throughput_jobs_per_s=summary.throughput_jobs_per_s,
        latency_ps=summary.latency_ps,
        bottleneck=summary.bottleneck,
        capacity_jobs_per_s=None if summary.capacity is None else summary.capacity.jobs_per_s,
    )


def _reference(
    document: ReadDocument[TimingProfile] | ReadDocument[Pipeline],
    name: str | None,
    version: str | int | None,
) -> DocumentReference:
    return DocumentReference(
        name=name or document_name(document.document) or document.document,
        version=version,
        path=document.document,
        sha256=document.sha256,
    )


def _arrivals(arrivals: Arrivals) -> ArrivalReference:
    interval = arrivals.interval_ns
    return ArrivalReference(
        kind=arrivals.kind,
        interval_ns=None if interval is None else float(interval),
        window=arrivals.window,
    )

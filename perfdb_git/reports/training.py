"""A training estimate with everything it rests on, for programs and for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from perfdb_git.model.result import SnapshotReference
from perfdb_git.model.training_estimate import BatchTimes, TrainingEstimate
from perfdb_git.providers.analytical import REVISION as ANALYTICAL_REVISION
from perfdb_git.providers.roofline import MAIN_MEMORY
from perfdb_git.reports.quantities import number, percent, quantity
from perfdb_git.reports.screen import Line, fact, table
from perfdb_git.workloads.task_costs import OFFLOAD_MEMORY
from perfdb_git.workloads.training import REVISION, TrainingPlan, estimate_training
from perfdb_git.workloads.training_tasks import NormalisedQuery, TrainingTask, training_tasks

_GIB = 2**30
_DIGEST = 12

_PARTS = (
    ("forward", "forward_s"),
    ("backward", "backward_s"),
    ("optimizer step", "optimizer_s"),
    ("recomputation", "recompute_s"),
    ("repeated messages", "recommunication_exposed_s"),
    ("pipeline bubble", "bubble_s"),
    ("tensor messages", "tensor_exposed_s"),
    ("pipeline messages", "pipeline_exposed_s"),
    ("data messages", "data_exposed_s"),
    ("forward offload", "forward_offload_exposed_s"),
    ("backward offload", "backward_offload_exposed_s"),
)
"""Parts of the total, by their words and their fields; only what is exposed of messages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedDocument:
    """A document that the estimate rests on."""

    name: str
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemReference:
    """The system profile, at the snapshot."""

    name: str
    version: str
    device: str
    processing_mode: str
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingReport:
    """One training estimate.

    ``provider`` answered all queries and ``composition`` put the answers together; either
    changes its revision when its answers change. ``capacity_gib`` is by memory of the profile,
    None where it is unknown.
    """

    snapshot: SnapshotReference
    system: SystemReference
    model: NamedDocument
    execution: NamedDocument
    method: str
    provider: str
    composition: str
    distinct_queries: int
    processors: int
    capacity_gib: Mapping[str, float | None]
    estimate: TrainingEstimate
    tasks: tuple[TrainingTask, ...]


def training_report(
    plan: TrainingPlan,
    *,
    commit: str | None,
    model_digest: str,
    execution_digest: str,
    system_digest: str,
) -> TrainingReport:
    """Estimate a plan and gather what the estimate rests on.

    Parameters
    ----------
    plan : TrainingPlan
        What to estimate.
    commit : str or None
        Commit that the system profile was read from, None for the work tree.
    model_digest, execution_digest, system_digest : str
        ``sha256:<digest>`` of the three documents.

    Raises
    ------
    NoEvidenceError
        As `perfdb_git.workloads.training.estimate_training` does.
    """
    estimate = estimate_training(plan)
    profile = plan.costs.profile
    short = system_digest.removeprefix("sha256:")[:_DIGEST]
    return TrainingReport(
        snapshot=SnapshotReference(commit=commit),
        system=SystemReference(
            name=profile.name,
            version=profile.version,
            device=profile.device,
            processing_mode=profile.processing_mode,
            digest=system_digest,
        ),
        model=NamedDocument(name=plan.model.name, digest=model_digest),
        execution=NamedDocument(name=plan.execution.name, digest=execution_digest),
        method="analytical",
        provider=f"analytical/{ANALYTICAL_REVISION}+{short}",
        composition=f"training/{REVISION}",
        distinct_queries=len(plan.costs.asked),
        processors=plan.execution.processors,
        capacity_gib={name: memory.capacity_gib for name, memory in profile.memories.items()},
        estimate=estimate,
        tasks=training_tasks(plan, estimate),
    )


def training_lines(report: TrainingReport, *, explain: bool) -> list[Line]:
    """Return the report for people, with every task where asked for."""
    times = report.estimate.times
    kind = "a lower bound" if report.estimate.bound else "modelled"
    title = f"{report.model.name} on {report.processors:,} x {report.system.device}"
    lines = [Line(f"{title}: {quantity(times.total_s, 's')} a batch ({kind})", "good"), Line()]
    lines += _part_table(times)
    lines.append(Line())
    lines += _facts(report)
    if explain:
        lines.append(Line())
        lines += _task_table(report.tasks)
    return lines


def _part_table(times: BatchTimes) -> list[Line]:
    rows = [
        (words, quantity(getattr(times, name), "s"), percent(getattr(times, name) / times.total_s))
        for words, name in _PARTS
        if getattr(times, name) != 0
    ]
    rows.append(("total", quantity(times.total_s, "s"), percent(1)))
    return table(("part", "time", "share"), rows, right=("time", "share"))


def _facts(report: TrainingReport) -> Iterator[Line]:
    efficiency = report.estimate.efficiency
    yield from fact("rate", f"{number(efficiency.samples_per_s)} sequences a second")
    yield from fact(
        "efficiency",
        f"{percent(efficiency.total)} of the matrix peak: {percent(efficiency.compute)} while "
        f"computing, computing {percent(efficiency.system)} of the time",
    )
    memory = report.estimate.memory
    needs = ((MAIN_MEMORY, memory.tier1_bytes), (OFFLOAD_MEMORY, memory.tier2_bytes))
    yield from fact(
        "memory",
        "; ".join(_memory(name, size, report.capacity_gib[name]) for name, size in needs if size),
    )
    system = report.system
    mode = "the larger of" if system.processing_mode == "roofline" else "the sum of"
    yield from fact(
        "system",
        f"{system.name} {system.version}: a task takes {mode} compute and memory time",
    )
    yield from fact("model", f"{report.model.name}, {report.model.digest}")
    yield from fact("execution", f"{report.execution.name}, {report.execution.digest}")
    yield from fact(
        "answers",
        f"{report.distinct_queries} distinct queries to {report.provider}, composed by "
        f"{report.composition}",
    )
    yield from fact("commit", report.snapshot.commit or "none: uncommitted files")


def _memory(name: str, needed: float, capacity_gib: float | None) -> str:
    held = "unknown" if capacity_gib is None else f"{number(capacity_gib)} GiB"
    return f"{name} {number(needed / _GIB)} GiB of {held}"


def _task_table(tasks: Iterable[TrainingTask]) -> list[Line]:
    rows = [
        (
            task.name,
            task.phase,
            f"{task.runs:,}",
            quantity(task.latency_s, "s"),
            query_text(task.query),
        )
        for task in tasks
    ]
    return table(
        ("task", "pass", "runs", "one run", "query"), rows, right=("runs", "one run"), wrap=True
    )


def query_text(query: NormalisedQuery) -> str:
    """Return a query as pairs, without the dtype and device that all of them share."""
    pairs: dict[str, object] = {"operation": query.operation, **query.shape}
    for name in (
        "engine",
        "operations",
        "bytes_moved",
        "network_tier",
        "network",
        "participants",
        "message_bytes",
        "transfer_bytes",
    ):
        value = getattr(query, name)
        if value is not None:
            pairs[name] = f"{value:.17g}" if isinstance(value, float) else value
    return " ".join(f"{name}={value}" for name, value in pairs.items())

"""``perfdb simulate``: one pipeline on one timing profile, both pinned to a commit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from perfdb_git.cli.cluster_options import Workers, cluster_options
from perfdb_git.cli.console import Console
from perfdb_git.cli.options import (
    SnapshotChoice,
    json_option,
    reading_options,
    snapshot_messages,
)
from perfdb_git.database import DEFAULT_POLICY
from perfdb_git.errors import UsageError
from perfdb_git.model.result import Message
from perfdb_git.model.simulation import TickName
from perfdb_git.reports.envelope import encoded
from perfdb_git.reports.quantities import counted
from perfdb_git.reports.simulation_files import (
    FileKind,
    WrittenFile,
    require_files,
    write_files,
)
from perfdb_git.reports.simulation_lines import simulation_lines
from perfdb_git.reports.simulation_report import (
    SimulationRequest,
    report_value,
    run_simulation,
)
from perfdb_git.simulation.arrivals import parse_arrivals
from perfdb_git.simulation.sweep import parse_sweep
from perfdb_git.simulation.ticks import PICOSECOND, TICKS

_HELP = """Run a pipeline on a timing profile until its jobs are done, in integer picoseconds.

PIPELINE and the profile are names (`perfdb list --what pipelines`, `--what timing-profiles`) or
paths in the repository, read from the commit. The same commit gives the same integers everywhere.
A stage that carries a query is resolved at that commit; without an answer the exit status is 4.

TIME is a number of ns, or one with ps, ns, us, ms or s. Times of arrival are batch,
interval:TIME, list:TIME,TIME,... or closed-loop:WINDOW.

--tick fs runs in integer femtoseconds: a grid 1,000 times finer that ends after 2.56 hours.

A sweep changes one field of one component, such as lanes or bandwidth_gbps, and simulates each
value, in several processes with --workers or --dask; --sensitivity makes each component 1 % slower
and 1 % faster.

\b
Examples:
  perfdb simulate submit-nic-gpu --profile cnuas-analytic-v0
  perfdb simulate submit-nic-gpu --profile cnuas-analytic-v0 --jobs 1000 --arrivals interval:3us
  perfdb simulate submit-nic-gpu --profile cnuas-analytic-v0 --at v1.0 --trace t.json --svg t.svg
  perfdb simulate submit-nic-gpu --profile cnuas-analytic-v0 --sensitivity \\
      --sweep guest-cpu-icount-shift0.instruction_rate_mips=1000,2000,4000
"""

_file = click.Path(dir_okay=False, path_type=Path)


@click.command("simulate", help=_HELP, short_help="Run a pipeline on a timing profile.")
@click.argument("pipeline", metavar="PIPELINE")
@click.option("--profile", required=True, metavar="PROFILE", help="The timing profile.")
@click.option("--jobs", type=click.IntRange(min=1), help="Run this many jobs.")
@click.option("--arrivals", metavar="WHEN", help="When jobs arrive, instead of the pipeline's.")
@click.option(
    "--tick",
    type=click.Choice(tuple(TICKS)),
    default=PICOSECOND.name,
    show_default=True,
    help="The grid of time.",
)
@reading_options
@click.option(
    "--policy",
    metavar="NAME",
    default=DEFAULT_POLICY,
    show_default=True,
    help="Resolver policy of the snapshot, for stages that carry a query.",
)
@click.option(
    "--sweep",
    "sweeps",
    multiple=True,
    metavar="COMPONENT.FIELD=V1,V2,...",
    help="Run once for each value of a field of the profile.",
)
@click.option(
    "--sensitivity", is_flag=True, help="Change of the makespan for 1 % of each component."
)
@click.option("--trace", type=_file, metavar="FILE", help="Write a timeline for Perfetto.")
@click.option("--svg", type=_file, metavar="FILE", help="Write a Gantt chart of the first jobs.")
@click.option(
    "--events", type=_file, metavar="FILE", help="Write all visits as CSV, or as .parquet."
)
@cluster_options
@json_option
@click.pass_obj
def simulate(
    console: Console,
    /,
    choice: SnapshotChoice,
    pipeline: str,
    profile: str,
    jobs: int | None,
    arrivals: str | None,
    tick: TickName,
    policy: str,
    sweeps: tuple[str, ...],
    sensitivity: bool,
    workers: Workers,
    **named: Path | None,
) -> int:
    """Build the request, run it, write the files, and render the report."""
    if len(sweeps) > 1:
        raise UsageError("a run has one --sweep", code="conflicting-options")
    if workers.are_asked_for and not sweeps:
        raise UsageError(
            "--workers and --dask are about the runs of a sweep",
            code="conflicting-options",
            remedy="add --sweep, or leave them out: one run is one piece of work",
        )
    request = SimulationRequest(
        pipeline=pipeline,
        profile=profile,
        jobs=jobs,
        arrivals=None if arrivals is None else parse_arrivals(arrivals),
        policy=policy,
        axis=parse_sweep(sweeps[0]) if sweeps else None,
        sensitivity=sensitivity,
        tick=tick,
    )
    paths = _paths(**named)
    require_files(paths)
    with (
        workers.open() as place,
        console.progress("indexing") as indexing,
        console.progress("sweeping") as sweeping,
    ):
        snapshot = choice.open(indexing)
        outcome = run_simulation(snapshot, request, progress=sweeping, spread=place.spread)
    files = write_files(outcome, paths)
    report = outcome.report
    return console.answer(
        data={**report_value(report), "files": [encoded(file) for file in files]},
        lines=() if console.json else simulation_lines(report, files),
        messages=(
            *snapshot_messages(snapshot),
            *place.messages,
            *_cut(files, report.summary.jobs),
        ),
    )


def _paths(*, trace: Path | None, svg: Path | None, events: Path | None) -> dict[FileKind, Path]:
    named: dict[FileKind, Path | None] = {"trace": trace, "svg": svg, "events": events}
    return {kind: path for kind, path in named.items() if path is not None}


def _cut(files: Sequence[WrittenFile], jobs: int) -> Iterator[Message]:
    """Yield a remark for each file that holds only the first jobs."""
    for file in files:
        if file.jobs < jobs:
            text = f"{file.path} holds the first {file.jobs:,} of {counted(jobs, 'job')}"
            yield Message(level="note", code="first-jobs-only", text=text)

"""``perfdb record``: run a benchmark and store what it showed."""

from __future__ import annotations

import re
from pathlib import Path

import click

from perfdb_git.cli.console import Console
from perfdb_git.cli.env import capture_options, stated_versions
from perfdb_git.cli.options import json_option, repository_option, work_tree
from perfdb_git.cli.thread_limits import caller_environment
from perfdb_git.database import PerformanceDatabase
from perfdb_git.environment.capture import CaptureRequest
from perfdb_git.recording.record import record_benchmark
from perfdb_git.recording.requests import RecordRequest
from perfdb_git.recording.runs import RunRequest
from perfdb_git.reports.recording import report_data, report_lines

_PYTHON = re.compile(r"python[0-9.]*|pypy[0-9.]*")
_HOUR = 3600.0
_LONGEST = 1e6

_HELP = """Run a benchmark and store a complete record set with its environment.

The command after the two dashes runs --warmup times, then --repetitions times, without a shell.
Without --tool the metric is its wall time, from before the process starts until after it ends, and
KEY=VALUE states what it runs. With --tool its output is read by the importer of that name.

The record set and the manifest go to the work tree; Git is not touched. If a run fails, nothing is
written. Secrets in the command line are not stored.

\b
Examples:
  perfdb record --operation gemm m=512 n=512 k=512 dtype=fp32 -- ./gemm 512
  perfdb record --tool table --mapping my-mapping.yaml --repetitions 5 -- ./bench --csv
"""


class _CommandAfterDashes(click.Command):
    """Keeps what stands after the first ``--`` apart; click itself forgets where it stood."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        place = args.index("--") if "--" in args else len(args)
        ctx.meta[__name__] = tuple(args[place + 1 :])
        return super().parse_args(ctx, args[:place])


@click.command(
    "record",
    cls=_CommandAfterDashes,
    help=_HELP,
    short_help="Run a benchmark and store what it showed.",
    options_metavar="[OPTIONS]",
)
@click.argument("pairs", nargs=-1, metavar="[KEY=VALUE...] -- COMMAND...")
@click.option("--operation", metavar="NAME", help="The operation that the command runs.")
@click.option("--tool", metavar="NAME", help="Importer that reads the command's output.")
@click.option("--mapping", metavar="MAPPING", help="Mapping of that importer, if it takes one.")
@click.option(
    "--warmup",
    type=click.IntRange(min=0),
    default=1,
    show_default=True,
    help="Runs that do not count.",
)
@click.option(
    "--repetitions",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    help="Runs that count.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True, max=_LONGEST),
    default=_HOUR,
    show_default=True,
    metavar="SECONDS",
    help="Longest that one run may take.",
)
@click.option("--session", metavar="NAME", help="Name of the session; by default program and time.")
@capture_options
@click.option("--dry-run", is_flag=True, help="Run and report; write nothing.")
@repository_option
@json_option
@click.pass_context
def record(
    ctx: click.Context,
    repository: Path,
    pairs: tuple[str, ...],
    operation: str | None,
    tool: str | None,
    mapping: str | None,
    warmup: int,
    repetitions: int,
    timeout: float,
    session: str | None,
    dry_run: bool,
    gpu_xml: tuple[Path, ...],
    rocm_json: tuple[Path, ...],
    device: str | None,
    form_factor: str | None,
    topology: str | None,
    runtimes: tuple[str, ...],
    notes: tuple[str, ...],
) -> int:
    """Build the request, run, and say what was stored."""
    console = ctx.find_object(Console)
    assert console is not None
    command: tuple[str, ...] = ctx.meta[__name__]
    variables = caller_environment()
    database = PerformanceDatabase.open(repository)
    request = RecordRequest(
        repository=work_tree(database),
        run=RunRequest(
            command=command,
            warmup=warmup,
            repetitions=repetitions,
            timeout=timeout,
            variables=variables,
        ),
        capture=CaptureRequest(
            gpu_xml=gpu_xml,
            rocm_json=rocm_json,
            device=device,
            form_factor=form_factor,
            topology=topology,
            runtimes=stated_versions(runtimes),
            notes=notes,
            interpreter=_interpreter(command),
            variables=variables,
        ),
        pairs=pairs if operation is None else (f"operation={operation}", *pairs),
        tool=tool,
        mapping=mapping,
        session=session,
        dry_run=dry_run,
    )
    with console.progress("running") as progress:
        report = record_benchmark(request, database.worktree().vocabulary, progress=progress)
    return console.answer(data=report_data(report), lines=report_lines(report))


def _interpreter(command: tuple[str, ...]) -> str | None:
    """Return the Python that the command runs, whose libraries are facts of the environment."""
    return command[0] if command and _PYTHON.fullmatch(Path(command[0]).name) else None

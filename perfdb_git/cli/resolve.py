"""``perfdb resolve``: one question, one answer with its proof."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from perfdb_git.cli.cluster_options import Workers, cluster_options, worker_evidence_options
from perfdb_git.cli.console import Console
from perfdb_git.cli.options import (
    SnapshotChoice,
    json_option,
    reading_options,
    snapshot_messages,
)
from perfdb_git.cli.questions import Question, question_options
from perfdb_git.database import DatabaseSnapshot
from perfdb_git.errors import UsageError
from perfdb_git.model.result import Resolution
from perfdb_git.reports.envelope import encoded
from perfdb_git.reports.resolution import record_sets_of, resolution_lines
from perfdb_git.reports.screen import Line

if TYPE_CHECKING:
    from perfdb_git.cli.resolve_batch import BatchOptions

R = TypeVar("R")

_HELP = """Answer one question from the evidence at a commit.

A question is an operation with its shape, on a device: KEY=VALUE pairs of the vocabulary, where
aliases such as fp16 or a100 will do, and KEY=null states that a value is unknown. `perfdb list
--what operations` shows the operations and their shapes.

The answer names the value and its interval, how it was obtained, the records and the commit
behind it, and why each other source lost. Without admissible evidence the exit status is 4, and
the nearest contexts that do have an answer are named.

With --queries the questions stand in a file: JSON Lines, CSV or Parquet, an entry or a column for
each dimension. The answers are a table with a row for each question, in the same order; limits hold
for all of them. A question that cannot be asked, or has no answer, has a row that says so, and
changes neither the others nor the exit status. With --workers or --dask several processes answer
them; the table is the same.

\b
Examples:
  perfdb resolve operation=gemm device=a100 dtype=fp16 m=128 n=10240 k=8192
  perfdb resolve operation=all_reduce device=h100 participants=8 message_bytes=16777216
  perfdb resolve --query question.yaml --at 4f1c2ab --json
  perfdb resolve operation=gemm device=a100 dtype=fp16 m=1 n=8 k=8 --method measured --explain
  perfdb resolve --queries layers.csv --output answers.parquet
"""

_path = click.Path(path_type=Path, allow_dash=True)


_BATCH_DEFAULTS = {
    "queries_format": None,
    "output": Path("-"),
    "output_format": None,
    "kept": (),
    "metric": "latency",
    "alternative_values": False,
}


def _batch(queries: Path | None, stated: dict[str, Any]) -> BatchOptions | None:
    if queries is not None:
        from perfdb_git.cli.resolve_batch import BatchOptions

        return BatchOptions(queries=queries, **stated)
    given = [name for name, value in stated.items() if value != _BATCH_DEFAULTS[name]]
    if given:
        option = {"kept": "keep"}.get(given[0], given[0].replace("_", "-"))
        raise UsageError(
            f"--{option} is about --queries",
            code="conflicting-options",
            remedy="name the file of the questions with --queries",
        )
    return None


def batch_options(command: Callable[..., R]) -> Callable[..., R]:
    """Add the options of many questions, passed on as ``batch``; None without ``--queries``."""

    @click.option(
        "--queries",
        type=click.Path(exists=True, dir_okay=False, path_type=Path, allow_dash=True),
        metavar="FILE",
        help="Read many questions; - is standard input.",
    )
    @click.option(
        "--queries-format",
        type=click.Choice(["jsonl", "csv", "parquet"]),
        help="Of that file; by default by its name.",
    )
    @click.option(
        "--output",
        type=_path,
        default="-",
        metavar="FILE",
        help="Where the answers to --queries go; by default, and with -, standard output.",
    )
    @click.option(
        "--output-format",
        type=click.Choice(["jsonl", "csv", "parquet", "arrow"]),
        help="Of the answers; by default by the file's name, else jsonl.",
    )
    @click.option(
        "--keep",
        "kept",
        multiple=True,
        metavar="COLUMN",
        help="Pass a column of --queries on to the answers, such as an id; may be repeated.",
    )
    @click.option(
        "--metric",
        default="latency",
        show_default=True,
        help="The metric whose values --queries asks for.",
    )
    @click.option(
        "--alternative-values",
        is_flag=True,
        help="With --queries, add what the sources that lost would have answered.",
    )
    @functools.wraps(command)
    def with_batch(*arguments: object, **given: Any) -> R:
        names = ("queries_format", "output", "output_format", "kept", "metric")
        stated = {name: given.pop(name) for name in (*names, "alternative_values")}
        batch = _batch(given.pop("queries"), stated)
        return command(*arguments, batch=batch, **given)

    return with_batch


@click.command("resolve", help=_HELP, short_help="Answer one question, with its proof.")
@question_options
@reading_options
@click.option("--explain", is_flag=True, help="Add each source's own account, step by step.")
@batch_options
@cluster_options
@worker_evidence_options
@json_option
@click.pass_obj
def resolve(
    console: Console,
    /,
    choice: SnapshotChoice,
    question: Question,
    explain: bool,
    batch: BatchOptions | None,
    workers: Workers,
) -> int:
    """Build the query, resolve it, and render the outcome."""
    if batch is not None:
        return _resolve_batch(console, choice, question, batch, workers, explain=explain)
    if workers.are_asked_for:
        raise UsageError(
            "--workers and --dask are about --queries",
            code="conflicting-options",
            remedy="leave them out: one question is one piece of work",
        )
    with console.progress("indexing") as progress:
        snapshot = choice.open(progress)
        query, policy = question.query(snapshot), question.policy(snapshot)
        resolution = snapshot.resolve(query, policy=policy, explain=explain)
    return console.answer(
        data=encoded(resolution),
        lines=() if console.json else _lines(resolution, snapshot),
        status="ok" if resolution.estimate is not None else "no-evidence",
        messages=snapshot_messages(snapshot),
    )


def _resolve_batch(
    console: Console,
    choice: SnapshotChoice,
    question: Question,
    batch: BatchOptions,
    workers: Workers,
    *,
    explain: bool,
) -> int:
    from perfdb_git.cli.resolve_batch import resolve_batch

    if explain:
        raise UsageError(
            "--explain is for one question",
            code="conflicting-options",
            remedy="ask it by itself, with KEY=VALUE or --query",
        )
    return resolve_batch(console, choice, question, batch, workers)


def _lines(resolution: Resolution, snapshot: DatabaseSnapshot) -> list[Line]:
    evidence = snapshot.evidence
    sessions = {
        sha256: evidence.find_record_set(sha256).header.session
        for sha256 in record_sets_of(resolution)
    }
    return resolution_lines(resolution, sessions=sessions)

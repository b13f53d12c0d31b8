"""``perfdb resolve``: one question, one answer with its proof."""

from __future__ import annotations

import click

from perfdb_git.cli.console import Console
from perfdb_git.cli.options import (
    SnapshotChoice,
    json_option,
    reading_options,
    snapshot_messages,
)
from perfdb_git.cli.questions import Question, question_options
from perfdb_git.database import DatabaseSnapshot
from perfdb_git.model.result import Resolution
from perfdb_git.reports.envelope import encoded
from perfdb_git.reports.resolution import record_sets_of, resolution_lines
from perfdb_git.reports.screen import Line

_HELP = """Answer one question from the evidence at a commit.

A question is an operation with its shape, on a device: KEY=VALUE pairs of the vocabulary, where
aliases such as fp16 or a100 will do, and KEY=null states that a value is unknown. `perfdb list
--what operations` shows the operations and their shapes.

The answer names the value and its interval, how it was obtained, the records and the commit
behind it, and why each other source lost. Without admissible evidence the exit status is 4, and
the nearest contexts that do have an answer are named.

\b
Examples:
  perfdb resolve operation=gemm device=a100 dtype=fp16 m=128 n=10240 k=8192
  perfdb resolve operation=all_reduce device=h100 participants=8 message_bytes=16777216
  perfdb resolve --query question.yaml --at 4f1c2ab --json
  perfdb resolve operation=gemm device=a100 dtype=fp16 m=1 n=8 k=8 --method measured --explain
"""


@click.command("resolve", help=_HELP, short_help="Answer one question, with its proof.")
@question_options
@reading_options
@click.option("--explain", is_flag=True, help="Add each source's own account, step by step.")
@json_option
@click.pass_obj
def resolve(console: Console, /, choice: SnapshotChoice, question: Question, explain: bool) -> int:
    """Build the query, resolve it, and render the outcome."""
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


def _lines(resolution: Resolution, snapshot: DatabaseSnapshot) -> list[Line]:
    evidence = snapshot.evidence
    sessions = {
        sha256: evidence.find_record_set(sha256).header.session
        for sha256 in record_sets_of(resolution)
    }
    return resolution_lines(resolution, sessions=sessions)

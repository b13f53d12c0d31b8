"""``perfdb plan training``: what one batch takes, with every cost a query."""

from __future__ import annotations

from pathlib import Path

import click

from perfdb_git.cli.console import Console
from perfdb_git.cli.options import (
    SnapshotChoice,
    json_option,
    reading_options,
    snapshot_messages,
)
from perfdb_git.model.result import Message
from perfdb_git.reports.envelope import encoded
from perfdb_git.reports.training import training_lines, training_report
from perfdb_git.workloads.training import plan_training
from perfdb_git.workloads.training_documents import (
    read_training_execution,
    read_training_model,
)

_HELP = """Estimate one training batch on a system, as Calculon does, with every cost a query.

MODEL and EXECUTION are files (schemas perfdb/training-model/v1 and perfdb/training-execution/v1,
JSON or YAML); the answer names them by their digests. SYSTEM is the name of a system profile, read
from the commit.

The model and its parallelism become tasks, each task one query: --explain lists them with their
answers. The composition holds no factor of its own. A contradiction between the documents ends with
status 3; a system without a rate, a network or the memory for them with status 4.

\b
Example:
  perfdb plan training --model docs/examples/gpt3-175b.json \\
      --execution docs/examples/selene-64-seqsel.json --system a100-80g-calculon
"""

_file = click.Path(path_type=Path)


@click.command("training", help=_HELP, short_help="Estimate one training batch on a system.")
@click.option("--model", required=True, type=_file, metavar="FILE", help="The model.")
@click.option("--execution", required=True, type=_file, metavar="FILE", help="How it runs.")
@click.option("--system", required=True, metavar="NAME", help="The system profile.")
@reading_options
@click.option("--explain", is_flag=True, help="List every task with its query and its answer.")
@json_option
@click.pass_obj
def training(
    console: Console,
    /,
    choice: SnapshotChoice,
    model: Path,
    execution: Path,
    system: str,
    explain: bool,
) -> int:
    """Read the three documents, estimate, and render the report."""
    stated_model = read_training_model(model)
    stated_execution = read_training_execution(execution)
    snapshot = choice.open()
    plan = plan_training(
        stated_model.value, stated_execution.value, snapshot.evidence.system_profile(system)
    )
    report = training_report(
        plan,
        commit=snapshot.commit,
        model_digest=stated_model.sha256,
        execution_digest=stated_execution.sha256,
        system_digest=snapshot.evidence.system_profile_digest(system),
    )
    messages = list(snapshot_messages(snapshot))
    if report.estimate.bound:
        text = f"profile {system} leaves efficiencies or latencies open: times are lower bounds"
        messages.append(Message(level="warning", code="lower-bound", text=text))
    return console.answer(
        data=encoded(report),
        lines=() if console.json else training_lines(report, explain=explain),
        messages=messages,
    )

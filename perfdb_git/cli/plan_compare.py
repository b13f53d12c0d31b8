"""``perfdb plan compare``: a plan against measurements that none of its answers may know."""

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
from perfdb_git.database import policy_from_file
from perfdb_git.model.result import Message
from perfdb_git.plans.oracle_comparison import OracleGates, compare_with_oracle
from perfdb_git.reports.envelope import encoded
from perfdb_git.reports.oracle_comparing import oracle_lines

_HELP = """Resolve a plan without an oracle's rows, then compare it with them.

FILE is one of Vidur's CSV profiles, or some rows of one; name several by repeating --oracle. First
every record set that holds its rows is left aside, by the digest of its source or by the identity
columns of its rows, and so is every calibration trained on one; both are listed. The measured
columns are read when the last query has its outcome. They judge the answers and become no evidence:
'perfdb import vidur' is the only way to that.

A gate is a limit in percent. Every failed one is listed, and the exit status is then 1; it is 4
where nothing could be compared.

\b
Example:
  perfdb plan compare phi-2-decode-33-a100 --oracle mlp.csv --oracle attention.csv \\
      --policy-file docs/examples/transfer-policy.yaml \\
      --max-subtotal-error 12 --max-component-mape 20
"""

_limit = click.FloatRange(min=0)


@click.command("compare", help=_HELP, short_help="Compare a plan with an oracle's measurements.")
@click.argument("plan", metavar="PLAN")
@click.option(
    "--oracle",
    "oracles",
    required=True,
    multiple=True,
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="One of Vidur's CSV profiles.",
)
@click.option(
    "--max-subtotal-error", type=_limit, metavar="PCT", help="Gate: error of the subtotal."
)
@click.option(
    "--max-component-mape", type=_limit, metavar="PCT", help="Gate: mean error of the components."
)
@click.option(
    "--min-coverage",
    type=click.FloatRange(min=0, max=100),
    metavar="PCT",
    help="Gate: share of the plan's queries that could be compared.",
)
@click.option(
    "--policy-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Answer under this policy instead of the plan's; answers are marked.",
)
@reading_options
@json_option
@click.pass_obj
def compare(
    console: Console,
    /,
    choice: SnapshotChoice,
    plan: str,
    oracles: tuple[Path, ...],
    max_subtotal_error: float | None,
    max_component_mape: float | None,
    min_coverage: float | None,
    policy_file: Path | None,
) -> int:
    """Isolate, resolve, look up, judge."""
    gates = OracleGates(
        max_subtotal_error_pct=max_subtotal_error,
        max_component_mape_pct=max_component_mape,
        min_coverage_pct=min_coverage,
    )
    with console.progress("indexing") as indexing, console.progress("resolving") as progress:
        snapshot = choice.open(indexing)
        policy = None if policy_file is None else policy_from_file(policy_file)
        found = compare_with_oracle(
            snapshot, plan, oracles, gates=gates, policy=policy, progress=progress
        )
    messages = list(snapshot_messages(snapshot))
    messages += [
        Message(
            level="error",
            code="gate-failed",
            text=f"{gate.gate} {gate.limit_pct:g} %: found {gate.value_pct:.1f} %",
        )
        for gate in found.failed_gates
    ]
    return console.answer(
        data=encoded(found),
        lines=() if console.json else oracle_lines(found),
        status="findings" if found.failed_gates else "ok",
        messages=messages,
    )

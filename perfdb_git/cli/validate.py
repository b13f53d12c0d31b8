"""``perfdb validate``: judge a simulator by measurements of the points that it simulated."""

from __future__ import annotations

from typing import Any, cast, get_args, get_type_hints

import click

from perfdb_git.calibration.documents import document_file
from perfdb_git.calibration.validating import (
    DEFAULT_LIMIT,
    MIN_POINTS,
    ValidationRequest,
    validate_simulator,
)
from perfdb_git.cli.console import Console
from perfdb_git.cli.options import (
    SnapshotChoice,
    json_option,
    reading_options,
    snapshot_messages,
    work_tree,
)
from perfdb_git.database import PerformanceDatabase
from perfdb_git.errors import PerfdbError, UsageError
from perfdb_git.model.validation import ErrorLimit, Validation
from perfdb_git.operations.queries import parse_pairs
from perfdb_git.reports.envelope import encoded
from perfdb_git.reports.screen import Line, fact
from perfdb_git.storage.append import write_new_files

_STATISTICS: tuple[str, ...] = get_args(get_type_hints(ErrorLimit)["statistic"])

_HELP = """Judge a simulator by measurements of the points that it simulated, for one target.

SIMULATED and MEASURED are the beginning of a record set's SHA-256, or TOOL@REVISION for all records
of a source. Records are compared where their dimensions are equal. Simulated records answer only
with such a validation, for the same revision and target, within its limit.

A validation over its limit is written too: it admits nothing, and the exit status is 1.

\b
Examples:
  perfdb validate roofsim@1.4 --against 3f2a91c0 --target a100 --limit 15
  perfdb validate 77d0c1e2 --against 3f2a91c0 --target a100 --statistic p95_pct --commit
"""


@click.command("validate", help=_HELP, short_help="Judge a simulator by measurements.")
@click.argument("simulated", metavar="SIMULATED")
@click.option("--against", "measured", required=True, metavar="MEASURED", help="Measured records.")
@click.option("--target", required=True, metavar="DEVICE", help="Device that is simulated.")
@click.option("--operation", metavar="NAME", help="The operation, where there are several.")
@click.option(
    "--limit",
    type=click.FloatRange(min=0, min_open=True),
    default=DEFAULT_LIMIT.value,
    show_default=True,
    metavar="PCT",
    help="Largest error, in percent, with which the records may answer.",
)
@click.option(
    "--statistic",
    type=click.Choice(_STATISTICS),
    default=DEFAULT_LIMIT.statistic,
    show_default=True,
    help="The error that is limited.",
)
@click.option(
    "--min-points",
    type=click.IntRange(min=1),
    default=MIN_POINTS,
    show_default=True,
    metavar="N",
    help="Fewest points to compare.",
)
@click.option("--dry-run", is_flag=True, help="Compare and report; write nothing.")
@click.option("--commit", is_flag=True, help="Commit the new file on the current branch.")
@reading_options
@json_option
@click.pass_obj
def validate(
    console: Console,
    choice: SnapshotChoice,
    simulated: str,
    measured: str,
    target: str,
    operation: str | None,
    limit: float,
    statistic: str,
    min_points: int,
    dry_run: bool,
    commit: bool,
) -> int:
    """Compare, write the validation, and say whether it admits."""
    _refuse_both(dry_run, commit)
    with console.progress("indexing") as progress:
        snapshot = choice.open(progress)
        request = ValidationRequest(
            simulated=simulated,
            measured=measured,
            device=str(parse_pairs([f"device={target}"], snapshot.vocabulary)["device"]),
            operation=operation,
            limit=ErrorLimit(statistic=cast(Any, statistic), value=limit),
            min_points=min_points,
        )
        validation = validate_simulator(snapshot.evidence, request)
    path, sha256, content = document_file(validation)
    committed = None
    if not dry_run:
        database = PerformanceDatabase.open(choice.repository)
        committed = _write(database, path, content, validation, commit=commit)
    return console.answer(
        data={
            "commit": snapshot.commit,
            "validation": sha256,
            "path": path,
            "written": not dry_run,
            "committed": committed,
            "admits": validation.is_within_limit,
            "simulator": encoded(validation.simulator),
            "target": encoded(validation.target),
            "limit": encoded(validation.limit),
            "held_out_report": encoded(validation.held_out_report),
        },
        lines=_lines(validation, "nothing" if dry_run else path, committed),
        status="ok" if validation.is_within_limit else "findings",
        messages=snapshot_messages(snapshot),
    )


def _refuse_both(dry_run: bool, commit: bool) -> None:
    if dry_run and commit:
        raise UsageError(
            "--dry-run and --commit exclude each other",
            code="conflicting-options",
            remedy="leave one of them out",
        )


def _write(
    database: PerformanceDatabase,
    path: str,
    content: bytes,
    validation: Validation,
    *,
    commit: bool,
) -> str | None:
    """Write the file and, where asked for, commit it; a command that fails changes nothing."""
    root = work_tree(database)
    written = write_new_files(root, {path: content})
    if not commit:
        return None
    simulator, target = validation.simulator, validation.target
    message = f"Validate {simulator.name}@{simulator.revision} for {target.device}\n"
    try:
        return database.store.commit_files({path: content}, message=message)
    except PerfdbError:
        for name in written:
            (root / name).unlink(missing_ok=True)
        raise


def _lines(validation: Validation, path: str, committed: str | None) -> list[Line]:
    errors, limit = validation.held_out_report.overall, validation.limit
    assert errors is not None
    simulator, admits = validation.simulator, validation.is_within_limit
    head = f"{simulator.name}@{simulator.revision}: {limit.statistic} "
    head += f"{getattr(errors, limit.statistic):.4g} %, "
    head += "within the limit of " if admits else "over the limit of "
    lines = [Line(f"{head}{limit.value:g} %", "good" if admits else "bad")]
    lines += fact("target", f"{validation.operation} on {validation.target.device}")
    lines += fact("pairs", str(len(validation.pairs)))
    lines += fact(
        "errors",
        f"MAPE {errors.mape_pct:.4g} %, median {errors.median_pct:.4g} %, "
        f"p95 {errors.p95_pct:.4g} %, max {errors.max_pct:.4g} %, bias {errors.bias_pct:+.4g} %",
    )
    if not admits:
        lines += fact("admits", "none of the simulator's records")
    return [*lines, *fact("written", path), *fact("commit", committed or "none")]

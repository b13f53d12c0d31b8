"""``perfdb calibrate scale-offset``: a timing profile with a component fitted to measurements."""

from __future__ import annotations

from typing import Any

import click

from perfdb_git.calibration.calibrated_profiles import calibrated_profile
from perfdb_git.calibration.documents import document_file
from perfdb_git.calibration.scale_offset_fits import ScaleOffsetResult, fit_component
from perfdb_git.calibration.scale_offset_samples import ScaleOffsetRequest
from perfdb_git.cli.console import Console
from perfdb_git.cli.options import (
    SnapshotChoice,
    json_option,
    reading_options,
    snapshot_messages,
    work_tree,
)
from perfdb_git.database import DatabaseSnapshot, PerformanceDatabase
from perfdb_git.errors import PerfdbError, UsageError
from perfdb_git.operations.queries import parse_pairs
from perfdb_git.reports.envelope import encoded
from perfdb_git.reports.screen import Line, fact
from perfdb_git.storage.append import write_new_files

_NS_PER_S = 10**9

_HELP = """Fit scale and offset of a timing component to measured latencies of a device.

measured = scale * (modelled service time) + offset, where one visit asks for as much work as a
dimension of the record says. The records must be visits without load. There must be at least ten
sizes over a factor of ten, measured five times each: eight fit, the others judge.

Written are the new profile, the calibration revision with its held-out report, and its split.

\b
Example:
  perfdb calibrate scale-offset --profile node-v0 --component nvlink --target a100 \\
      --operation send_recv --work bytes=message_bytes --name node-v1 --version v1
"""


@click.command("scale-offset", help=_HELP, short_help="Fit a component of a timing profile.")
@click.option("--profile", required=True, metavar="P", help="Timing profile, by name or path.")
@click.option("--component", required=True, metavar="C", help="Component of the profile.")
@click.option("--target", required=True, metavar="DEVICE", help="Device that was measured.")
@click.option(
    "--operation", required=True, metavar="NAME", help="Its latencies are visits to the component."
)
@click.option(
    "--work",
    required=True,
    metavar="KIND=DIMENSION",
    help="Work of a visit, such as bytes=message_bytes.",
)
@click.option(
    "--term",
    "terms",
    multiple=True,
    metavar="KEY=VALUE",
    help="Only records with this value; may be repeated.",
)
@click.option("--name", required=True, metavar="N", help="Name of the new profile.")
@click.option("--version", required=True, metavar="V", help="Version of the new profile.")
@click.option("--dry-run", is_flag=True, help="Fit and report; write nothing.")
@click.option("--commit", is_flag=True, help="Commit the new files on the current branch.")
@reading_options
@json_option
@click.pass_obj
def scale_offset(
    console: Console,
    /,
    choice: SnapshotChoice,
    profile: str,
    name: str,
    version: str,
    dry_run: bool,
    commit: bool,
    **asked: Any,
) -> int:
    """Fit, write, and say what was found."""
    if dry_run and commit:
        raise UsageError(
            "--dry-run and --commit exclude each other",
            code="conflicting-options",
            remedy="leave one of them out",
        )
    with console.progress("indexing") as progress:
        snapshot = choice.open(progress)
        request = _request(snapshot, **asked)
        old = snapshot.timing_profile(profile)
        result = fit_component(snapshot.evidence, old, request)
    path, sha256, content = document_file(result.calibration)
    split_path, _, split_content = document_file(result.split)
    profile_path, profile_content = calibrated_profile(
        snapshot.timing_documents,
        old,
        request,
        result,
        calibration=sha256,
        name=name,
        version=version,
    )
    files = {path: content, split_path: split_content, profile_path: profile_content}
    committed = None
    if not dry_run:
        message = f"Calibrate {request.component} for {request.device}\n"
        committed = _write(choice, files, message=message if commit else None)
    return console.answer(
        data={
            "commit": snapshot.commit,
            "revision": sha256,
            "profile": profile_path,
            "files": sorted(files),
            "written": not dry_run,
            "committed": committed,
            "calibration_scale": result.line.alpha,
            "calibration_offset_ns": result.line.beta * _NS_PER_S,
            "held_out_report": encoded(result.calibration.held_out_report),
        },
        lines=_lines(request, result, [] if dry_run else sorted(files), committed),
        messages=snapshot_messages(snapshot),
    )


def _request(
    snapshot: DatabaseSnapshot,
    *,
    component: str,
    target: str,
    operation: str,
    work: str,
    terms: tuple[str, ...],
) -> ScaleOffsetRequest:
    vocabulary = snapshot.vocabulary
    series = parse_pairs([f"device={target}", f"operation={operation}"], vocabulary)
    kind, separator, dimension = work.partition("=")
    if not separator:
        raise UsageError(
            f"{work!r} is not KIND=DIMENSION",
            code="bad-pair",
            remedy="write, for example, --work bytes=message_bytes",
        )
    values = parse_pairs(terms, vocabulary)
    return ScaleOffsetRequest(
        component=component,
        device=str(series["device"]),
        operation=operation,
        work=kind.strip(),
        dimension=dimension.strip(),
        terms={key: value for key, value in values.items() if value is not None},
    )


def _write(choice: SnapshotChoice, files: dict[str, bytes], *, message: str | None) -> str | None:
    """Write the files and, with a message, commit them; a command that fails changes nothing."""
    database = PerformanceDatabase.open(choice.repository)
    root = work_tree(database)
    written = write_new_files(root, files)
    if message is None:
        return None
    try:
        return database.store.commit_files(files, message=message)
    except PerfdbError:
        for name in written:
            (root / name).unlink(missing_ok=True)
        raise


def _lines(
    request: ScaleOffsetRequest,
    result: ScaleOffsetResult,
    written: list[str],
    committed: str | None,
) -> list[Line]:
    report = result.calibration.held_out_report
    line = result.line
    lines = [
        Line(
            f"{request.component} on {request.device}: {line.alpha:.6g} * modelled "
            f"{line.beta * _NS_PER_S:+.6g} ns",
            "good",
        )
    ]
    lines += fact("fitted to", f"{result.sizes} sizes of {request.dimension}")
    if report.overall is not None:
        errors = report.overall
        lines += fact(
            "held out",
            f"{errors.n} records: MAPE {errors.mape_pct:.3g} %, max {errors.max_pct:.3g} %, "
            f"bias {errors.bias_pct:+.3g} %",
        )
    for path in written or ["nothing"]:
        lines += fact("written", path)
    return [*lines, *fact("commit", committed or "none")]

"""``perfdb calibrate``: learn response behaviour, report it, and work its figures out again."""

from __future__ import annotations

from pathlib import Path

import click

from perfdb_git.calibration.documents import document_file
from perfdb_git.calibration.fit import FitResult, fit_calibration
from perfdb_git.calibration.revision_reports import report_revision
from perfdb_git.calibration.specs import read_spec
from perfdb_git.checks.registry import check_calibrations
from perfdb_git.cli.cluster_options import Workers, cluster_options
from perfdb_git.cli.console import Console, write_out
from perfdb_git.cli.groups import CommandPlace, LazyGroup
from perfdb_git.cli.options import (
    SnapshotChoice,
    json_option,
    reading_options,
    snapshot_messages,
    work_tree,
)
from perfdb_git.database import PerformanceDatabase
from perfdb_git.errors import PerfdbError, UsageError
from perfdb_git.formats.schemas import SchemaStore
from perfdb_git.reports.calibrating import (
    comparison_lines,
    fit_lines,
    markdown,
    promotion_line,
    revision_lines,
)
from perfdb_git.reports.envelope import encoded
from perfdb_git.reports.findings import finding_lines, has_errors
from perfdb_git.storage.append import write_new_files

calibrate_group = LazyGroup(
    {
        "fit": CommandPlace(__name__, "fit", "Fit a spec, and write the revision."),
        "scale-offset": CommandPlace(
            "perfdb_git.cli.calibrate_scale_offset",
            "scale_offset",
            "Fit a component of a timing profile.",
        ),
        "report": CommandPlace(__name__, "report", "Show a revision's held-out errors."),
        "check": CommandPlace(__name__, "check", "Work every revision's figures out again."),
    },
    name="calibrate",
    help="Learn response behaviour from measurements, with honest held-out errors.",
)

_FIT_HELP = """Fit a calibration spec to a snapshot, and write the revision to the work tree.

SPEC is the name of one in evidence/calibrations/specs, or the path of a file. Forms are chosen by
error inside the training records alone; the held-out records are asked once, at the end. Nothing
answers from the new revision before a policy names it: the line to add is printed.

With --workers or --dask the folds of cross-validation are fitted by several processes; the revision
is the same.

\b
Examples:
  perfdb calibrate fit h200-all-reduce --dry-run
  perfdb calibrate fit a100-gemm --commit
"""

_REPORT_HELP = """Show the held-out errors of a revision, or of two side by side.

REV is the beginning of a revision's SHA-256. Errors are in percent of the measured value, by term,
size decade (of the product of a record's inputs), and apart for interpolated and extrapolated.

\b
Examples:
  perfdb calibrate report 3f2a91c0
  perfdb calibrate report 3f2a91c0 77b1d2e4 --markdown
"""

_CHECK_HELP = """Work the held-out errors of every revision out again, from its stored parameters.

The exit status is 1 where a figure is not reproduced within 1e-9, a record trains and judges, a
split holds out other records, the training records are others, a validation's error is another, a
calibrated component of a timing profile lacks its target, revision or report, or a gate of
evidence/policies/gates.yaml is exceeded by a revision that a policy names. Nothing is taken from
the cache: 'perfdb check' skips what passed before.

\b
Example:
  perfdb calibrate check --at main
"""


@click.command("fit", help=_FIT_HELP, short_help="Fit a spec, and write the revision.")
@click.argument("spec", metavar="SPEC")
@click.option("--dry-run", is_flag=True, help="Fit and report; write nothing.")
@click.option("--commit", is_flag=True, help="Commit the new files on the current branch.")
@reading_options
@cluster_options
@json_option
@click.pass_obj
def fit(
    console: Console,
    choice: SnapshotChoice,
    spec: str,
    dry_run: bool,
    commit: bool,
    workers: Workers,
) -> int:
    """Fit, write, and say what was tried."""
    if dry_run and commit:
        raise UsageError(
            "--dry-run and --commit exclude each other",
            code="conflicting-options",
            remedy="leave one of them out",
        )
    database = PerformanceDatabase.open(choice.repository)
    root = None if dry_run else work_tree(database)
    with workers.open() as place, console.progress("fitting") as progress:
        snapshot = choice.open(progress)
        found = read_spec(snapshot.evidence, spec)
        result = fit_calibration(
            snapshot.evidence,
            found.spec,
            reference=found.reference,
            document=found.path,
            progress=progress,
            spread=place.spread,
        )
    schemas = SchemaStore()
    files = [document_file(document, schemas=schemas) for document in result.documents]
    contents = {path: content for path, _, content in files}
    path, sha256, _ = files[-1]
    written, committed = _write(database, root, contents, result, commit=commit)
    return console.answer(
        data={
            "commit": snapshot.commit,
            "revision": sha256,
            "path": path,
            "files": sorted(contents),
            "written": list(written),
            "committed": committed,
            "policy_line": promotion_line(result.calibration, sha256).strip(),
            "tried": [encoded(item) for item in result.tried],
            "held_out_report": encoded(result.calibration.held_out_report),
        },
        lines=fit_lines(result, sha256=sha256, written=written, commit=committed),
        messages=(*snapshot_messages(snapshot), *place.messages),
    )


def _write(
    database: PerformanceDatabase,
    root: Path | None,
    contents: dict[str, bytes],
    result: FitResult,
    *,
    commit: bool,
) -> tuple[tuple[str, ...], str | None]:
    """Write the files and, where asked for, commit them; a command that fails changes nothing."""
    if root is None:
        return (), None
    written = write_new_files(root, contents)
    if not commit:
        return written, None
    calibration = result.calibration
    message = f"Calibrate {calibration.operation} on {calibration.device}\n"
    try:
        return written, database.store.commit_files(contents, message=message)
    except PerfdbError:
        for name in written:
            (root / name).unlink(missing_ok=True)
        raise


@click.command("report", help=_REPORT_HELP, short_help="Show a revision's held-out errors.")
@click.argument("revision_id", metavar="REV")
@click.argument("other", metavar="[OTHER]", required=False)
@click.option("--markdown", "as_markdown", is_flag=True, help="Print Markdown.")
@reading_options
@json_option
@click.pass_obj
def report(
    console: Console,
    choice: SnapshotChoice,
    revision_id: str,
    other: str | None,
    as_markdown: bool,
) -> int:
    """Show one revision, or two."""
    with console.progress("indexing") as progress:
        snapshot = choice.open(progress)
        first = report_revision(snapshot.evidence, revision_id)
        second = None if other is None else report_revision(snapshot.evidence, other)
    if as_markdown and not console.json:
        write_out(markdown(first, second))
    shown = revision_lines(first) if second is None else comparison_lines(first, second)
    return console.answer(
        data={
            "commit": snapshot.commit,
            "revisions": [encoded(item) for item in (first, second) if item is not None],
        },
        lines=() if as_markdown else shown,
        messages=snapshot_messages(snapshot),
    )


@click.command("check", help=_CHECK_HELP, short_help="Work every revision's figures out again.")
@reading_options
@json_option
@click.pass_obj
def check(console: Console, choice: SnapshotChoice) -> int:
    """Check every revision of the snapshot."""
    with console.progress("checking") as progress:
        snapshot = choice.open()
        findings = check_calibrations(snapshot.evidence, progress=progress)
    return console.answer(
        data={"commit": snapshot.commit, "findings": [encoded(item) for item in findings]},
        lines=finding_lines(findings, snapshot.commit),
        status="findings" if has_errors(findings) else "ok",
        messages=snapshot_messages(snapshot),
    )

"""``perfdb check``: the faults of a snapshot."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import click

from perfdb_git.checks.change import ReviewBase, SignedHistory
from perfdb_git.checks.merge_base import merge_base
from perfdb_git.checks.registry import RULES, run_checks
from perfdb_git.checks.signatures import AllowedSigners, read_allowed_signers
from perfdb_git.cli.console import Console, write_out
from perfdb_git.cli.options import (
    SnapshotChoice,
    json_option,
    reading_options,
    snapshot_messages,
)
from perfdb_git.database import DEFAULT_REVISION, DatabaseSnapshot, PerformanceDatabase
from perfdb_git.errors import RepositoryUnavailableError, UsageError
from perfdb_git.reports.envelope import encoded
from perfdb_git.reports.findings import finding_lines, has_errors, workflow_commands
from perfdb_git.reports.sarif import sarif_text
from perfdb_git.storage.git import GitStore
from perfdb_git.storage.index import Progress
from perfdb_git.storage.profile_history import ProfileHistory
from perfdb_git.storage.sources import GitSource

_HELP = """Find faults in the evidence of a snapshot: form, digests, references, names, meaning.

The exit status is 1 where there is an error; warnings and notes do not change it. ID is a check,
such as references, or the code of a finding, such as wrong-digest; --select and --ignore may be
repeated. docs/checks.md has every check and code.

calibration-figures works the held-out errors of every calibration and validation out again; what
passed before is not worked out twice.

With --base, what the snapshot changes is judged: merged evidence stays as it is, nothing comes in
twice, and new records agree with those that are there and with what the device can do. The head is
compared with the merge base, whose schemas and policy judge; documents that the merge base has
byte for byte are not judged again.

A profile that differs from an earlier commit under the same name and version is an error; the
first parents of the commit are looked at, or for --worktree those of HEAD.

\b
Examples:
  perfdb check
  perfdb check --base origin/main
  perfdb check --worktree --ignore schema-copies
  perfdb check --at "$GITHUB_SHA" --format github
"""


@click.command("check", help=_HELP, short_help="Find faults in the evidence of a snapshot.")
@click.option("--base", metavar="REV", help="Judge the change since the merge base with REV.")
@click.option(
    "--require-signed", is_flag=True, help="Every commit of the change has an SSH signature."
)
@click.option(
    "--allowed-signers",
    "signers",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Who may sign, as ssh-keygen(1) has it; no file of the change itself.",
)
@click.option("--select", multiple=True, metavar="ID", help="Report only what this finds.")
@click.option("--ignore", multiple=True, metavar="ID", help="Leave out what this finds.")
@click.option(
    "--format",
    "output",
    type=click.Choice(["text", "json", "github", "sarif"]),
    default="text",
    show_default=True,
    help="Text, the same as --json, annotations of a GitHub workflow, or SARIF 2.1.0.",
)
@reading_options
@json_option
@click.pass_obj
def check(
    console: Console,
    choice: SnapshotChoice,
    base: str | None,
    require_signed: bool,
    signers: Path | None,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    output: Literal["text", "json", "github", "sarif"],
) -> int:
    """Run the checks and render the findings."""
    console.json = console.json or output == "json"
    if require_signed or signers is not None:
        _require_options(choice, base, require_signed, signers)
    with console.progress("checking") as progress:
        snapshot = choice.open()
        review = None if base is None else _review_base(choice, snapshot, base, signers, progress)
        findings = run_checks(
            snapshot.evidence.source,
            select=select,
            ignore=ignore,
            progress=progress,
            history=_history(choice.repository, snapshot.commit),
            evidence=snapshot.evidence,
            base=review,
        )
    if output == "github" and not console.json:
        write_out(workflow_commands(findings))
    if output == "sarif" and not console.json:
        write_out(sarif_text(findings, RULES))
    common = None if review is None else review.merge_base.commit
    text = finding_lines(findings, snapshot.commit, merge_base=common)
    return console.answer(
        data={
            "commit": snapshot.commit,
            "merge_base": common,
            "findings": [encoded(item) for item in findings],
        },
        lines=text if output == "text" else (),
        status="findings" if has_errors(findings) else "ok",
        messages=snapshot_messages(snapshot),
    )


def _require_options(
    choice: SnapshotChoice, base: str | None, require_signed: bool, signers: Path | None
) -> None:
    """Refuse options that would look as if signatures were judged."""
    if base is None or not require_signed or signers is None or choice.worktree:
        raise UsageError(
            "--require-signed judges the commits since the merge base by an allowed-signers file",
            code="conflicting-options",
            remedy="give --base, --require-signed and --allowed-signers, without --worktree",
        )


def _review_base(
    choice: SnapshotChoice,
    snapshot: DatabaseSnapshot,
    base: str,
    signers: Path | None,
    progress: Progress,
) -> ReviewBase:
    """Find the merge base; uncommitted files are judged as a change of HEAD's history."""
    database = PerformanceDatabase.open(choice.repository, progress=progress)
    store, tip = database.store, database.at(base)
    head = snapshot.commit or database.at(DEFAULT_REVISION).commit
    assert tip.commit is not None and head is not None
    common = merge_base(store, tip.commit, head)
    signed = None
    if signers is not None:
        allowed = AllowedSigners(read_allowed_signers(signers, store, common))
        signed = SignedHistory(commits=store.signed_commits(common, head), signers=allowed)
    return ReviewBase(merge_base=GitSource(store, common), tip=tip.evidence, signed=signed)


def _history(repository: Path, commit: str | None) -> ProfileHistory | None:
    """History behind a commit, or behind HEAD for uncommitted files."""
    store = GitStore.open(repository)
    if commit is None:
        try:
            commit = store.resolve_revision(DEFAULT_REVISION).commit
        except RepositoryUnavailableError:
            # Nothing was committed yet.
            return None
    return ProfileHistory(store, commit)

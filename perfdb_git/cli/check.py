"""``perfdb check``: the faults of a snapshot."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import click

from perfdb_git.checks.registry import run_checks
from perfdb_git.cli.console import Console, write_out
from perfdb_git.cli.options import (
    SnapshotChoice,
    json_option,
    reading_options,
    snapshot_messages,
)
from perfdb_git.database import DEFAULT_REVISION
from perfdb_git.errors import RepositoryUnavailableError
from perfdb_git.reports.envelope import encoded
from perfdb_git.reports.findings import finding_lines, has_errors, workflow_commands
from perfdb_git.storage.git import GitStore
from perfdb_git.storage.profile_history import ProfileHistory

_HELP = """Find faults in the evidence of a snapshot: form, digests, references, names, meaning.

The exit status is 1 where there is an error; warnings and notes do not change it. ID is a check,
such as references, or the code of a finding, such as wrong-digest; --select and --ignore may be
repeated.

Checks: layout, schemas, schema-copies, canonical-bytes, digests, folders, references,
record-contents, manifests, vocabulary, policies, system-profiles, splits, calibrations,
calibration-figures, gates, calibrated-profiles, timing-profiles, pipelines, profile-history,
duplicates.

calibration-figures works the held-out errors of every calibration and validation out again; what
passed before is not worked out twice.

A profile that differs from an earlier commit under the same name and version is an error; the
first parents of the commit are looked at, or for --worktree those of HEAD.

\b
Examples:
  perfdb check
  perfdb check --worktree --ignore schema-copies
  perfdb check --at "$GITHUB_SHA" --format github
"""


@click.command("check", help=_HELP, short_help="Find faults in the evidence of a snapshot.")
@click.option("--select", multiple=True, metavar="ID", help="Report only what this finds.")
@click.option("--ignore", multiple=True, metavar="ID", help="Leave out what this finds.")
@click.option(
    "--format",
    "output",
    type=click.Choice(["text", "json", "github"]),
    default="text",
    show_default=True,
    help="Text, the same as --json, or annotations of a GitHub workflow.",
)
@reading_options
@json_option
@click.pass_obj
def check(
    console: Console,
    choice: SnapshotChoice,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    output: Literal["text", "json", "github"],
) -> int:
    """Run the checks and render the findings."""
    console.json = console.json or output == "json"
    with console.progress("checking") as progress:
        snapshot = choice.open()
        findings = run_checks(
            snapshot.evidence.source,
            select=select,
            ignore=ignore,
            progress=progress,
            history=_history(choice.repository, snapshot.commit),
            evidence=snapshot.evidence,
        )
    if output == "github" and not console.json:
        write_out(workflow_commands(findings))
    lines = finding_lines(findings, snapshot.commit) if output == "text" else ()
    return console.answer(
        data={"commit": snapshot.commit, "findings": [encoded(item) for item in findings]},
        lines=lines,
        status="findings" if has_errors(findings) else "ok",
        messages=snapshot_messages(snapshot),
    )


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

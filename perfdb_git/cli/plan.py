"""``perfdb plan``: what a plan costs, frozen to a commit, verified, and compared with newer."""

from __future__ import annotations

from pathlib import Path

import click

from perfdb_git.cli.console import Console, write_out
from perfdb_git.cli.groups import CommandPlace, LazyGroup
from perfdb_git.cli.options import (
    SnapshotChoice,
    json_option,
    reading_options,
    repository_option,
    snapshot_messages,
    work_tree,
)
from perfdb_git.database import PerformanceDatabase
from perfdb_git.errors import EXIT_UNAVAILABLE, UsageError
from perfdb_git.model.result import Message
from perfdb_git.plans.compare import compare_lock
from perfdb_git.plans.locating import find_lock, has_changed
from perfdb_git.plans.lock import lock_bytes, lock_plan, locked_query
from perfdb_git.plans.resolving import ResolvedPlan, resolve_plan
from perfdb_git.plans.verify import Verification, verify_lock
from perfdb_git.reports.envelope import encoded
from perfdb_git.reports.planning import (
    difference_lines,
    lock_lines,
    plan_lines,
    verification_lines,
)
from perfdb_git.reports.written_files import replacing, require_writable
from perfdb_git.storage.layout import plan_lock_path

plan_group = LazyGroup(
    {
        "show": CommandPlace(__name__, "show", "Resolve a plan, and show what it costs."),
        "lock": CommandPlace(__name__, "lock", "Freeze a plan's answers at a commit."),
        "verify": CommandPlace(__name__, "verify", "Ask a lock again at its own commit."),
        "diff": CommandPlace(__name__, "diff", "Show what newer evidence would change."),
        "compare": CommandPlace(
            "perfdb_git.cli.plan_compare",
            "compare",
            "Compare a plan with an oracle's measurements.",
        ),
        "training": CommandPlace(
            "perfdb_git.cli.plan_training", "training", "Estimate one training batch on a system."
        ),
        "inference": CommandPlace(
            "perfdb_git.cli.plan_inference", "inference", "Estimate a prefill or a decoding step."
        ),
        "sensitivity": CommandPlace(
            "perfdb_git.cli.plan_sensitivity", "sensitivity", "Show what a plan depends on most."
        ),
    },
    name="plan",
    help="Many questions as one: named queries, how often each is asked, and what that costs.",
)

_SHOW_HELP = """Resolve every query of a plan, and compose the answers.

PLAN is the name of one in pipelines/plans. Where a required query has no answer the exit status is
4; the others are shown.

\b
Examples:
  perfdb plan show llama-2-70b-decode-a100
  perfdb plan show llama-2-70b-decode-a100 --at v1.0 --json
"""

_LOCK_HELP = """Write a plan's answers, and all that they depend on, to a lock.

The lock holds the full commit, every answer with its records or calibration, the revisions of all
providers, the policy, and the versions of perfdb, Python and numpy. It stands beside the plan:
pipelines/plans/<name>.lock.json. A plan with a required query that has no answer is not locked
(status 4).

\b
Examples:
  perfdb plan lock llama-2-70b-decode-a100
  perfdb plan lock llama-2-70b-decode-a100 --at v1.0 --output paper.lock.json
"""

_VERIFY_HELP = """Resolve a lock's queries at the lock's own commit, and compare.

LOCK is a file, or the name of a plan whose lock is committed. Records, methods, codes and measured
values must be equal, calculated values within 1e-12; newer evidence is never looked at. The exit
status is 1 where something differs, 5 where an answer is no longer available (shallow clone, pruned
commit, missing file, a provider's revision that this perfdb does not have), and 3 for a lock that
was edited.

\b
Example:
  perfdb plan verify pipelines/plans/llama-2-70b-decode-a100.lock.json
"""

_DIFF_HELP = """Resolve a lock's queries at another commit, and show what would change.

Nothing is changed: 'perfdb plan lock' makes the lock anew. The exit status is 1 where an answer
would change.

\b
Examples:
  perfdb plan diff llama-2-70b-decode-a100
  perfdb plan diff paper.lock.json --at v2.0
"""


@click.command("show", help=_SHOW_HELP, short_help="Resolve a plan, and show what it costs.")
@click.argument("plan", metavar="PLAN")
@reading_options
@json_option
@click.pass_obj
def show(console: Console, choice: SnapshotChoice, plan: str) -> int:
    """Resolve and render."""
    with console.progress("indexing") as indexing, console.progress("resolving") as progress:
        snapshot = choice.open(indexing)
        resolved = resolve_plan(snapshot, plan, progress=progress)
    return console.answer(
        data={
            "commit": snapshot.commit,
            "plan": encoded(resolved.document.value),
            "path": resolved.document.path,
            "sha256": resolved.document.sha256,
            "policy": encoded(resolved.policy.reference),
            "queries": [encoded(locked_query(item)) for item in resolved.answered],
            "missing": [item.tracked.name for item in resolved.missing],
            "result": encoded(resolved.result),
        },
        lines=() if console.json else plan_lines(resolved),
        status="no-evidence" if resolved.missing else "ok",
        messages=snapshot_messages(snapshot),
    )


def _refuse(ctx: click.Context, parameter: click.Parameter, value: object) -> None:
    if value:
        option = f"--{(parameter.name or '').replace('_', '-')}"
        raise UsageError(
            f"{option} has no place in a lock: its answers could not be asked again",
            code="not-reproducible",
            remedy="commit what you use, and lock that commit",
        )


@click.command("lock", help=_LOCK_HELP, short_help="Freeze a plan's answers at a commit.")
@click.argument("plan", metavar="PLAN")
@repository_option
@click.option(
    "--at", "revision", metavar="REV", help="Lock this commit, tag or branch; by default HEAD."
)
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the lock here; '-' is standard output.",
)
@click.option("--worktree", is_flag=True, hidden=True, expose_value=False, callback=_refuse)
@click.option("--policy-file", metavar="FILE", hidden=True, expose_value=False, callback=_refuse)
@json_option
@click.pass_obj
def lock(
    console: Console, plan: str, repository: Path, revision: str | None, output: Path | None
) -> int:
    """Resolve, freeze, write."""
    choice = SnapshotChoice(repository=repository, revision=revision, worktree=False)
    root = None if output is not None else work_tree(PerformanceDatabase.open(repository))
    if output is not None and str(output) != "-":
        require_writable(output)
    with console.progress("indexing") as indexing, console.progress("resolving") as progress:
        snapshot = choice.open(indexing)
        resolved = resolve_plan(snapshot, plan, progress=progress)
        locked = lock_plan(resolved)
    content = lock_bytes(locked)
    if str(output) == "-" and not console.json:
        console.remark(snapshot_messages(snapshot))
        write_out(content.decode("utf-8"))
        return 0
    path = _target(resolved, root, output)
    written = path is not None and _write(path, content)
    shown = "-" if path is None else _shown(path, root)
    return console.answer(
        data={"path": shown, "written": written, "lock": encoded(locked)},
        lines=() if console.json else lock_lines(locked, path=shown, written=written),
        messages=snapshot_messages(snapshot),
    )


def _target(resolved: ResolvedPlan, root: Path | None, output: Path | None) -> Path | None:
    if output is not None:
        return None if str(output) == "-" else output
    assert root is not None
    return root / plan_lock_path(resolved.document.value.name)


def _shown(path: Path, root: Path | None) -> str:
    return str(path if root is None else path.relative_to(root))


def _write(path: Path, content: bytes) -> bool:
    """Write a lock, and tell whether that changed the file."""
    if path.is_file() and path.read_bytes() == content:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as temporary:
        temporary.write_bytes(content)
    return True


@click.command("verify", help=_VERIFY_HELP, short_help="Ask a lock again at its own commit.")
@click.argument("lock_name", metavar="LOCK")
@repository_option
@json_option
@click.pass_obj
def verify(console: Console, lock_name: str, repository: Path) -> int:
    """Read, resolve, compare."""
    with console.progress("indexing") as indexing, console.progress("verifying") as progress:
        database = PerformanceDatabase.open(repository, progress=indexing)
        document = find_lock(database, lock_name)
        found = verify_lock(database, document.value, progress=progress)
    status = console.answer(
        data={"path": document.path, "verdict": found.verdict, **encoded(found)},
        lines=() if console.json else verification_lines(found),
        status="ok" if found.verdict == "equal" else "findings",
        messages=tuple(_unavailable(found)),
    )
    return EXIT_UNAVAILABLE if found.verdict == "unavailable" else status


def _unavailable(found: Verification) -> list[Message]:
    texts = {
        query.code: f"{query.name}: {query.reason}"
        for query in reversed(found.queries)
        if query.code is not None
    }
    messages = [
        Message(level="error", code=code, text=text) for code, text in reversed(texts.items())
    ]
    if messages:
        made_by = found.locked_versions
        text = (
            f"the lock was made by perfdb {made_by.perfdb}; install that version, or fetch what "
            "is missing"
        )
        messages.append(Message(level="note", code="remedy", text=text))
    return messages


@click.command("diff", help=_DIFF_HELP, short_help="Show what newer evidence would change.")
@click.argument("lock_name", metavar="LOCK")
@reading_options
@json_option
@click.pass_obj
def diff(console: Console, choice: SnapshotChoice, lock_name: str) -> int:
    """Read, resolve elsewhere, compare."""
    with console.progress("indexing") as indexing, console.progress("resolving") as progress:
        database = PerformanceDatabase.open(choice.repository, progress=indexing)
        document = find_lock(database, lock_name)
        snapshot = choice.open(indexing)
        found = compare_lock(
            snapshot,
            document.value,
            plan_changed=has_changed(snapshot, document.value),
            progress=progress,
        )
    messages = list(snapshot_messages(snapshot))
    if found.plan_changed:
        text = f"plan {found.plan} is another one there; the locked one was asked"
        messages.append(Message(level="note", code="plan-changed", text=text))
    return console.answer(
        data={"path": document.path, "equal": found.is_equal, **encoded(found)},
        lines=() if console.json else difference_lines(found),
        status="ok" if found.is_equal else "findings",
        messages=messages,
    )

"""``perfdb env``: what machines are, stored once by content."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import click

from perfdb_git.cli.console import Console
from perfdb_git.cli.groups import CommandPlace, LazyGroup
from perfdb_git.cli.options import json_option, repository_option, work_tree
from perfdb_git.cli.thread_limits import caller_environment
from perfdb_git.database import PerformanceDatabase
from perfdb_git.environment.capture import CaptureRequest, capture_environment, host_name
from perfdb_git.environment.differences import compare_manifests
from perfdb_git.environment.sources import read_input
from perfdb_git.errors import InvalidInputError, UsageError
from perfdb_git.formats.codec import decode
from perfdb_git.formats.digests import sha256_hex
from perfdb_git.formats.schemas import SchemaStore
from perfdb_git.formats.strict_json import read_json
from perfdb_git.model.records import Manifest
from perfdb_git.model.result import Message
from perfdb_git.reports.envelope import encoded
from perfdb_git.reports.environments import (
    captured_lines,
    difference_data,
    difference_lines,
    manifest_lines,
)
from perfdb_git.storage.append import write_new_files
from perfdb_git.storage.layout import manifest_path
from perfdb_git.storage.snapshot import EvidenceSnapshot

R = TypeVar("R")
_PREFIX = re.compile(r"[0-9a-f]{4,64}")
_file = click.Path(exists=True, dir_okay=False, path_type=Path)

env_group = LazyGroup(
    {
        "capture": CommandPlace(__name__, "capture", "Write a manifest of this machine."),
        "diff": CommandPlace(__name__, "diff", "Compare two manifests; status 1 if they differ."),
        "show": CommandPlace(__name__, "show", "Show one manifest."),
    },
    name="env",
    help="Environments of runs: what must be equal for two of them to be comparable.",
)

_CAPTURE_HELP = """Write a manifest of this machine to the work tree.

It holds what must be equal for two runs to be comparable: device, driver, firmware, versions,
kernel, clock and power policy, topology. It is named by its content, so the same machine gives the
same file. What changes from run to run (boot, times, temperatures, load, host name) is printed, not
stored. What no tool states is null, and the reason is printed. Serial numbers, device UUIDs, user
and host names and secrets are not stored.

\b
Examples:
  perfdb env capture --dry-run
  perfdb env capture --device h200 --runtime nccl=2.27.3
  nvidia-smi -q -x > gpu.xml; perfdb env capture --gpu-xml gpu.xml
"""

_DIFF_HELP = """Compare two manifests fact by fact; exit status 1 if any fact differs.

A and B are ids, prefixes of ids, or files. A fact that only one of them knows differs.

\b
Example:
  perfdb env diff 5691b378 8608d341
"""


def capture_options(command: Callable[..., R]) -> Callable[..., R]:
    """Add the options that state or name facts of the environment."""
    options = (
        click.option(
            "--gpu-xml",
            multiple=True,
            type=_file,
            metavar="FILE",
            help="Output of 'nvidia-smi -q -x'; may be repeated. Left out, the tool is run.",
        ),
        click.option(
            "--rocm-json",
            multiple=True,
            type=_file,
            metavar="FILE",
            help="Output of 'rocm-smi -a --json'; may be repeated. Left out, the tool is run.",
        ),
        click.option("--device", metavar="TERM", help="The device, by its vocabulary term."),
        click.option("--form-factor", metavar="TERM", help="Its form factor."),
        click.option("--topology", metavar="TEXT", help="How devices and hosts are connected."),
        click.option(
            "--runtime",
            "runtimes",
            multiple=True,
            metavar="NAME=VERSION",
            help="A version to state, such as nccl=2.27.3; may be repeated.",
        ),
        click.option(
            "--note", "notes", multiple=True, metavar="TEXT", help="A fact to state, 'name: value'."
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


@click.command("capture", help=_CAPTURE_HELP, short_help="Write a manifest of this machine.")
@capture_options
@click.option(
    "--python",
    "interpreter",
    metavar="PROGRAM",
    help="Python whose libraries are listed; by default the one that runs perfdb.",
)
@click.option("--dry-run", is_flag=True, help="Print it; write nothing.")
@repository_option
@json_option
@click.pass_obj
def capture(
    console: Console,
    repository: Path,
    interpreter: str | None,
    dry_run: bool,
    gpu_xml: tuple[Path, ...],
    rocm_json: tuple[Path, ...],
    device: str | None,
    form_factor: str | None,
    topology: str | None,
    runtimes: tuple[str, ...],
    notes: tuple[str, ...],
) -> int:
    """Capture, write, and say what is known."""
    database = PerformanceDatabase.open(repository)
    root = work_tree(database)
    request = CaptureRequest(
        gpu_xml=gpu_xml,
        rocm_json=rocm_json,
        device=device,
        form_factor=form_factor,
        topology=topology,
        runtimes=stated_versions(runtimes),
        notes=notes,
        interpreter=interpreter or sys.executable,
        variables=caller_environment(),
    )
    with console.progress("asking the machine"):
        captured = capture_environment(request, database.worktree().vocabulary)
    path = manifest_path(captured.sha256)
    written = () if dry_run else write_new_files(root, {path: captured.content})
    return console.answer(
        data={
            "manifest": captured.sha256,
            "path": path,
            "written": list(written),
            "document": encoded(captured.manifest),
            "observed": dict(captured.observed),
            "unknown": dict(captured.unknown),
        },
        lines=captured_lines(captured, path, dry_run=dry_run),
        messages=_capture_messages(request),
    )


def _capture_messages(request: CaptureRequest) -> tuple[Message, ...]:
    messages = [
        Message(level="note", code="host", text=f"host {host_name()}: the name is stored nowhere")
    ]
    if request.gpu_xml or request.rocm_json:
        text = "the files give the accelerators; kernel, processor and libraries are this machine's"
        messages.append(Message(level="note", code="host-facts", text=text))
    return tuple(messages)


def stated_versions(pairs: tuple[str, ...]) -> dict[str, str | None]:
    """Read ``NAME=VERSION`` texts; an empty version or ``null`` is an explicit unknown.

    Raises
    ------
    UsageError
        'bad-pair'.
    """
    versions: dict[str, str | None] = {}
    for pair in pairs:
        name, separator, version = pair.partition("=")
        if not separator or not name:
            raise UsageError(
                f"{pair!r} is not NAME=VERSION",
                code="bad-pair",
                remedy="write, for example, --runtime nccl=2.27.3",
            )
        versions[name] = None if version in ("", "null") else version
    return versions


@click.command(
    "diff", help=_DIFF_HELP, short_help="Compare two manifests; status 1 if they differ."
)
@click.argument("first", metavar="A")
@click.argument("second", metavar="B")
@click.option("--at", "revision", metavar="REV", help="Read ids there; by default the work tree.")
@repository_option
@json_option
@click.pass_obj
def diff(console: Console, repository: Path, revision: str | None, first: str, second: str) -> int:
    """Read both, compare, and show what differs."""
    manifests = _Manifests(repository, revision)
    (one_id, one), (two_id, two) = manifests.find(first), manifests.find(second)
    comparisons = compare_manifests(one, two)
    different = any(item.agreement == "different" for item in comparisons)
    return console.answer(
        data=difference_data((one_id, two_id), comparisons),
        lines=difference_lines((one_id, two_id), comparisons),
        status="findings" if different else "ok",
    )


@click.command("show", short_help="Show one manifest.")
@click.argument("identifier", metavar="ID")
@click.option("--at", "revision", metavar="REV", help="Read it there; by default the work tree.")
@repository_option
@json_option
@click.pass_obj
def show(console: Console, repository: Path, revision: str | None, identifier: str) -> int:
    """Show the manifest with this id, prefix of an id, or file name."""
    sha256, manifest = _Manifests(repository, revision).find(identifier)
    return console.answer(
        data={"manifest": sha256, "document": encoded(manifest)},
        lines=manifest_lines(sha256, manifest),
    )


class _Manifests:
    """Manifests of a repository by id or prefix, and those in files."""

    def __init__(self, repository: Path, revision: str | None) -> None:
        self._repository = repository
        self._revision = revision
        self._evidence: EvidenceSnapshot | None = None

    def find(self, text: str) -> tuple[str, Manifest]:
        """Return the id and the manifest that `text` names."""
        path = Path(text)
        if path.is_file():
            content = read_input(path)
            value = read_json(content, document=text)
            SchemaStore().validate(value, document=text, expected_kind="manifest")
            return sha256_hex(content), decode(Manifest, value, document=text)
        evidence = self._snapshot()
        known = evidence.manifests() if _PREFIX.fullmatch(text.lower()) else ()
        names = [name for name in known if name.startswith(text.lower())]
        if len(names) != 1:
            raise InvalidInputError(
                "no such manifest" if not names else f"{len(names)} manifests begin so",
                code="unknown-manifest" if not names else "ambiguous-id",
                document=text,
                remedy="name a file, an id, or at least four digits of one; 'perfdb env capture' "
                "writes a manifest",
            )
        return names[0], evidence.manifest(names[0])

    def _snapshot(self) -> EvidenceSnapshot:
        if self._evidence is None:
            database = PerformanceDatabase.open(self._repository)
            revision = self._revision
            snapshot = database.worktree() if revision is None else database.at(revision)
            self._evidence = snapshot.evidence
        return self._evidence

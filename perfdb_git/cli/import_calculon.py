"""``perfdb import calculon-system``: a Calculon system file becomes a system profile."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from perfdb_git.cli.console import Console
from perfdb_git.cli.options import json_option, repository_option, work_tree
from perfdb_git.database import PerformanceDatabase
from perfdb_git.errors import PerfdbError, UsageError
from perfdb_git.importers.calculon_system import (
    ProfileLabels,
    profile_file,
    profile_of_calculon_system,
)
from perfdb_git.operations.queries import canonical_term
from perfdb_git.reports.screen import Line, fact
from perfdb_git.storage.append import write_new_files
from perfdb_git.storage.layout import slug, system_profile_paths

_HELP = """Import a Calculon system file as a system profile, losing nothing.

The file is read strictly: a key or table that a profile cannot hold is an error. What Calculon
does not state, such as the vocabulary's name of the device, comes from the options. `perfdb export
calculon-system` gives the same JSON back.

The profile is written to profiles/systems in the work tree; a policy must name it before it answers
queries, and `perfdb plan training --system` takes it by name.

\b
Example:
  perfdb import calculon-system a100_80g.json --device a100 --name a100-80g-calculon \\
      --link-class nvlink --link-class infiniband --license Apache-2.0 --source-revision caa4b11
"""


@click.command(
    "calculon-system", help=_HELP, short_help="Import a Calculon system file as a system profile."
)
@click.argument("file", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--device", required=True, metavar="DEVICE", help="The vocabulary's term or alias.")
@click.option("--name", metavar="NAME", help="Name of the profile; by default that of the file.")
@click.option(
    "--profile-version", default="1", show_default=True, metavar="VERSION", help="Its version."
)
@click.option("--description", metavar="TEXT", help="What it describes.")
@click.option(
    "--link-class",
    "link_classes",
    multiple=True,
    metavar="CLASS",
    help="Class of a network's links, once for each network from the nearest on.",
)
@click.option("--source-revision", metavar="REV", help="Upstream revision of the file.")
@click.option("--license", "license_", metavar="SPDX", help="Licence of the file.")
@click.option("--commit", is_flag=True, help="Commit the profile on the current branch.")
@repository_option
@json_option
@click.pass_obj
def calculon_system(
    console: Console, /, repository: Path, file: Path, commit: bool, **stated: Any
) -> int:
    """Convert the file, write the profile, and say where it is."""
    database = PerformanceDatabase.open(repository)
    root = work_tree(database)
    labels = _labels(database, file, **stated)
    profile = profile_of_calculon_system(_content(file), labels, document=file.name)
    path = system_profile_paths(labels.name)[0]
    files = {path: profile_file(profile)}
    written = write_new_files(root, files)
    committed = None
    if commit:
        try:
            message = f"Import system profile {labels.name} from Calculon\n"
            committed = database.store.commit_files(files, message=message)
        except PerfdbError:
            # A command that fails changes nothing.
            for name in written:
                (root / name).unlink(missing_ok=True)
            raise
    lines = [Line(f"imported {labels.name}", "good"), *fact("written", path)]
    lines += fact("commit", committed or "none")
    return console.answer(
        data={"name": labels.name, "path": path, "new": bool(written), "commit": committed},
        lines=lines,
    )


def _labels(
    database: PerformanceDatabase,
    file: Path,
    *,
    device: str,
    name: str | None,
    profile_version: str,
    description: str | None,
    link_classes: tuple[str, ...],
    source_revision: str | None,
    license_: str | None,
) -> ProfileLabels:
    """Return what the options state, in the vocabulary's terms."""
    dimensions = database.worktree().vocabulary.dimensions
    revision = "unknown revision" if source_revision is None else f"revision {source_revision}"
    return ProfileLabels(
        name=slug(file.stem) if name is None else name,
        version=profile_version,
        device=canonical_term("device", dimensions["device"], device),
        description=description or f"{file.stem} as Calculon describes it",
        link_classes=tuple(
            canonical_term("link_class", dimensions["link_class"], text) for text in link_classes
        ),
        source=f"Calculon system file {file.name}, {revision}",
        license=license_,
    )


def _content(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise UsageError(
            f"{file} cannot be read: {error.strerror}", code="unreadable-file"
        ) from error

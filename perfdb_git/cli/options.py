"""Options that many commands share, each with one meaning everywhere."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import click

from perfdb_git.cli.console import Console
from perfdb_git.database import DEFAULT_REVISION, DatabaseSnapshot, PerformanceDatabase
from perfdb_git.errors import UsageError
from perfdb_git.model.result import Message
from perfdb_git.storage.index import Progress

R = TypeVar("R")


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotChoice:
    """Which evidence a reading command is asked to read."""

    repository: Path
    revision: str | None
    worktree: bool

    def open(
        self, progress: Progress | None = None, *, jobs: int | None = None
    ) -> DatabaseSnapshot:
        """Open the snapshot.

        Parameters
        ----------
        progress : callable or None
            Called while an index is built.
        jobs : int or None
            How many processes may build it.

        Raises
        ------
        UsageError
            'conflicting-options' for a revision together with the work tree.
        RepositoryUnavailableError
            Where it cannot be read.
        """
        if self.worktree and self.revision is not None:
            raise UsageError(
                "--at and --worktree exclude each other",
                code="conflicting-options",
                remedy="--at reads a commit, --worktree uncommitted files",
            )
        database = PerformanceDatabase.open(self.repository, progress=progress, jobs=jobs)
        if self.worktree:
            return database.worktree()
        return database.at(self.revision or DEFAULT_REVISION)


def snapshot_messages(snapshot: DatabaseSnapshot) -> tuple[Message, ...]:
    """Return what the user should know of how a snapshot was found and read."""
    revision = snapshot.revision
    warnings = () if revision is None else revision.warnings
    remarks = (Message(level="warning", code="revision", text=text) for text in warnings)
    return (*remarks, *snapshot.evidence.warnings)


def _set_json(ctx: click.Context, _parameter: click.Parameter, value: bool) -> None:
    console = ctx.find_object(Console)
    assert console is not None
    console.json = value
    console.command = ctx.command_path.partition(" ")[2]


json_option = click.option(
    "--json",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_set_json,
    help="Print the answer as a JSON envelope (schema perfdb/result/v1).",
)

repository_option = click.option(
    "--repo",
    "repository",
    type=click.Path(path_type=Path),
    default=Path(),
    metavar="PATH",
    help="Any folder of the evidence repository; by default the current one.",
)


def reading_options(command: Callable[..., R]) -> Callable[..., R]:
    """Add ``--repo``, ``--at`` and ``--worktree``, passed on as one ``choice``."""

    @repository_option
    @click.option(
        "--at",
        "revision",
        metavar="REV",
        help="Read this commit, tag or branch; by default HEAD.",
    )
    @click.option(
        "--worktree", is_flag=True, help="Read the uncommitted files; the answer is marked."
    )
    @functools.wraps(command)
    def with_choice(
        *arguments: object, repository: Path, revision: str | None, worktree: bool, **more: object
    ) -> R:
        choice = SnapshotChoice(repository=repository, revision=revision, worktree=worktree)
        more["choice"] = choice
        return command(*arguments, **more)

    return with_choice


def work_tree(database: PerformanceDatabase) -> Path:
    """Return the top folder of a repository's work tree, which writing commands add files to.

    Raises
    ------
    UsageError
        'no-work-tree' for a bare repository.
    """
    top = database.store.work_tree
    if top is None:
        raise UsageError(
            f"{database.store.git_directory} is a bare repository, without files to add to",
            code="no-work-tree",
            remedy="use a checkout of it",
        )
    return top

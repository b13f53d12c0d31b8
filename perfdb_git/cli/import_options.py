"""Options that every import has."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import click

from perfdb_git.cli.options import json_option, repository_option

R = TypeVar("R")


def import_options(command: Callable[..., R]) -> Callable[..., R]:
    """Add the options that every import has."""
    options = (
        click.option(
            "--source-root",
            type=click.Path(exists=True, file_okay=False, path_type=Path),
            metavar="DIR",
            help="Folder that recorded file names start from, usually the upstream checkout.",
        ),
        click.option(
            "--source-revision",
            metavar="REV",
            help="Upstream revision of the files; left out, it is recorded as unknown.",
        ),
        click.option(
            "--skip-bad-rows",
            is_flag=True,
            help="Import the good rows and list the others in the record sets.",
        ),
        click.option(
            "--dry-run", is_flag=True, help="Report what would be written; write nothing."
        ),
        click.option("--commit", is_flag=True, help="Commit the new files on the current branch."),
        repository_option,
        json_option,
        click.pass_obj,
    )
    for option in reversed(options):
        command = option(command)
    return command

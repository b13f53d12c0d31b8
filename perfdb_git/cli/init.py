"""``perfdb init``: a new evidence repository."""

from __future__ import annotations

from pathlib import Path

import click

from perfdb_git.cli.console import Console
from perfdb_git.cli.options import json_option
from perfdb_git.model.result import Message
from perfdb_git.reports.quantities import counted
from perfdb_git.reports.screen import Line, fact
from perfdb_git.storage.initialise import ATTRIBUTES, NewRepository, initialise

_HELP = """Make a new evidence repository in PATH, by default the current folder.

It holds the schemas, the default vocabulary, policy and gates, GitHub workflows that review pull
requests, a pre-commit hook and an example of CODEOWNERS. A Git repository is made where there is
none; nothing is committed, files that are there stay, and a folder that has evidence already is
refused.

\b
Example:
  perfdb init my-evidence && cd my-evidence && git add -A && git commit -m "Start"
"""


@click.command("init", help=_HELP, short_help="Make a new evidence repository.")
@click.argument("path", type=click.Path(path_type=Path), default=Path(), metavar="[PATH]")
@json_option
@click.pass_obj
def init(console: Console, path: Path) -> int:
    """Make it and say what was made."""
    made = initialise(path)
    messages = []
    if ATTRIBUTES in made.kept:
        text = (
            f"{ATTRIBUTES} was there and stays: it should have '* -text', so that Git keeps bytes"
        )
        messages.append(Message(level="note", code="attributes-kept", text=text))
    return console.answer(
        data={
            "root": str(made.root),
            "written": list(made.written),
            "kept": list(made.kept),
            "created_git": made.created_git,
        },
        lines=_lines(made),
        messages=messages,
    )


def _lines(made: NewRepository) -> list[Line]:
    git = "a new Git repository" if made.created_git else "the Git repository that was there"
    lines = [Line(f"evidence repository in {made.root}", "good")]
    lines += fact("git", git)
    lines += fact("written", f"{counted(len(made.written), 'file')}, not committed")
    for name in made.kept:
        lines += fact("kept", name)
    lines += fact("next", "git add -A && git commit -m 'Start', then perfdb import --help")
    return lines

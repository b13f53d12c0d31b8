"""``perfdb export``: parts of a snapshot in other tools' formats."""

from __future__ import annotations

import json

import click

from perfdb_git.cli.console import Console
from perfdb_git.cli.groups import CommandPlace, LazyGroup
from perfdb_git.cli.options import (
    SnapshotChoice,
    json_option,
    reading_options,
    snapshot_messages,
)
from perfdb_git.importers.calculon_system import calculon_system_of_profile
from perfdb_git.reports.screen import Line

export_group = LazyGroup(
    {
        "calculon-system": CommandPlace(
            __name__, "calculon_system", "Print a system profile as a Calculon system file."
        ),
    },
    name="export",
    help="Give parts of a snapshot to other tools, in their formats.",
)

_HELP = """Print a system profile as the Calculon system file that says the same.

A profile that leaves an efficiency, a latency or a capacity unknown, or that has networks with
other operations, has no such file; the first reason is named. Names, link classes and sources have
no place in the file.

\b
Example:
  perfdb export calculon-system a100-80g-calculon > a100_80g.json
"""


@click.command(
    "calculon-system", help=_HELP, short_help="Print a system profile as a Calculon system file."
)
@click.argument("name", metavar="NAME")
@reading_options
@json_option
@click.pass_obj
def calculon_system(console: Console, /, choice: SnapshotChoice, name: str) -> int:
    """Read the profile at a commit and print it."""
    snapshot = choice.open()
    system = calculon_system_of_profile(snapshot.evidence.system_profile(name))
    text = json.dumps(system, indent=2)
    return console.answer(
        data={"commit": snapshot.commit, "profile": name, "system": system},
        lines=[Line(line) for line in text.splitlines()],
        messages=snapshot_messages(snapshot),
    )

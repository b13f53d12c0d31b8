"""``perfdb export``: parts of a snapshot in other tools' formats."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from perfdb_git.cli.console import Console
from perfdb_git.cli.groups import CommandPlace, LazyGroup
from perfdb_git.cli.options import (
    SnapshotChoice,
    json_option,
    reading_options,
    snapshot_messages,
)
from perfdb_git.errors import UsageError
from perfdb_git.importers.calculon_system import calculon_system_of_profile
from perfdb_git.reports.screen import Line

_GROUP_HELP = """Write the records of a snapshot as one table for other tools.

One row a record, one column a dimension, metric and fact, in CSV, Parquet or Arrow (Feather)
files for DuckDB, pandas, Polars, Spark and spreadsheets. The commit, versions, units and
environments stand in the metadata of Parquet and Arrow files; --metadata writes them to a JSON file
of their own, which is what a CSV file needs.

--series takes a selection as `perfdb compare` does: KEY=VALUE pairs with commas, session=NAME and
kind=KIND among them, or records by id. Given several times, records that fit any of them are
written. Retracted records are left out.

In CSV a null is an empty field, a list is a JSON array, and text that a spreadsheet would take for
a formula has an apostrophe in front.

The exit status is 4 where no record fits; the table is then empty.

\b
Examples:
  perfdb export --format parquet --output records.parquet
  perfdb export --format csv --series operation=gemm,device=a100 --metadata records.json > gemm.csv
  perfdb export --format arrow --series device=h100 --at v1.0 --output h100.arrow
  perfdb export calculon-system a100-80g-calculon > a100_80g.json
"""

_PLACES = {
    "calculon-system": CommandPlace(
        __name__, "calculon_system", "Print a system profile as a Calculon system file."
    ),
}


class _ExportGroup(LazyGroup):
    """The group as a command of its own, which `click.command` makes without places."""

    def __init__(self, **attributes: object) -> None:
        super().__init__(_PLACES, **attributes)


@click.command(
    "export",
    cls=_ExportGroup,
    invoke_without_command=True,
    help=_GROUP_HELP,
    short_help="Give parts of a snapshot to other tools, in their formats.",
)
@click.option(
    "--format", "form", type=click.Choice(["csv", "parquet", "arrow"]), help="Kind of file."
)
@click.option(
    "--series", "selections", multiple=True, metavar="SELECTION", help="Only these records."
)
@click.option(
    "--output",
    type=click.Path(path_type=Path, allow_dash=True),
    default="-",
    metavar="FILE",
    help="Where to write; by default, and with -, standard output.",
)
@click.option(
    "--metadata",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write what the table is of, and its columns, to a JSON file.",
)
@click.option(
    "--units",
    type=click.Choice(["si", "stated"]),
    default="si",
    show_default=True,
    help="Units of metrics: SI, or those of the records, digit by digit.",
)
@click.option("--retracted", is_flag=True, help="Write retracted records too, marked as such.")
@reading_options
@json_option
@click.pass_context
def export_group(ctx: click.Context, /, choice: SnapshotChoice, **options: Any) -> int | None:
    """Write the table where no command of the group is called."""
    if ctx.invoked_subcommand is not None:
        _refuse_options(ctx)
        return None
    if options["form"] is None:
        raise click.UsageError("Missing option '--format'.", ctx)
    from perfdb_git.cli.export_records import ExportOptions, export_records

    console = ctx.find_object(Console)
    assert console is not None
    return export_records(console, choice, ExportOptions(**options))


def _refuse_options(ctx: click.Context) -> None:
    given = [
        parameter.opts[0]
        for parameter in ctx.command.params
        if parameter.name is not None
        and ctx.get_parameter_source(parameter.name) is click.core.ParameterSource.COMMANDLINE
    ]
    if given:
        raise UsageError(
            f"{given[0]} stands before {ctx.invoked_subcommand}, and is not about it",
            code="conflicting-options",
            remedy=f"write options after it: perfdb export {ctx.invoked_subcommand} ...",
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

"""Groups that import a command's module only when that command runs."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import NamedTuple

import click
from click.shell_completion import CompletionItem


class CommandPlace(NamedTuple):
    """Where a command is, and its line in the list of commands."""

    module: str
    name: str
    summary: str


class LazyGroup(click.Group):
    """A group whose commands are found by name; ``--help`` imports none of them.

    Parameters
    ----------
    places : mapping of str to CommandPlace
        The commands, in the order of the help text.
    **attributes
        Those of `click.Group`.
    """

    def __init__(self, places: Mapping[str, CommandPlace], **attributes: object) -> None:
        super().__init__(**attributes)  # type: ignore[arg-type]
        self.places = places

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands."""
        return list(self.places)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return a command."""
        place = self.places.get(cmd_name)
        if place is None:
            return None
        command: click.Command = getattr(import_module(place.module), place.name)
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete names and options without importing a command."""
        names = [
            CompletionItem(name, help=place.summary)
            for name, place in self.places.items()
            if name.startswith(incomplete)
        ]
        return [*names, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands from their summaries."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, place.summary) for name, place in self.places.items()])

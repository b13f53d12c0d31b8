"""Where a command writes a table: a file as a whole, or standard output."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from perfdb_git.cli.console import Console, readers_may_leave
from perfdb_git.errors import UsageError
from perfdb_git.exports.arrow_files import require_pyarrow
from perfdb_git.reports.escaping import for_spreadsheet, for_terminal
from perfdb_git.reports.written_files import replacing, require_writable

STANDARD_OUTPUT = Path("-")

_BINARY = ("parquet", "arrow")


def require_output(console: Console, path: Path, form: str, *, remedy: str) -> None:
    """Refuse a table that could not be written, before anything is read.

    Parameters
    ----------
    console : Console
        Tells whether standard output is taken by ``--json``.
    path : Path
        The file, or `STANDARD_OUTPUT`.
    form : str
        Format of the table.
    remedy : str
        What to do where ``--json`` takes standard output.

    Raises
    ------
    UsageError
        'conflicting-options', 'binary-to-terminal', 'not-writable' or 'missing-extra'.
    """
    if form in _BINARY:
        require_pyarrow(parquet=form == "parquet")
    if path != STANDARD_OUTPUT:
        require_writable(path)
        return
    if console.json:
        raise UsageError(
            "with --json the answer goes to standard output, and so would the table",
            code="conflicting-options",
            remedy=remedy,
        )
    if form in _BINARY and sys.stdout.isatty():
        raise UsageError(
            f"{form} files are not for a terminal",
            code="binary-to-terminal",
            remedy="write to a file with --output",
        )


@contextmanager
def output_stream(path: Path) -> Iterator[BinaryIO]:
    """Give the stream of a file that takes the place of `path` once all is well, or of ``-``."""
    if path == STANDARD_OUTPUT:
        with readers_may_leave():
            yield sys.stdout.buffer
            sys.stdout.buffer.flush()
        return
    with replacing(path) as temporary, temporary.open("wb") as stream:
        yield stream


def csv_escape(path: Path) -> Callable[[str], str]:
    """Return what makes text of a CSV table harmless for where it goes."""
    on_screen = path == STANDARD_OUTPUT and sys.stdout.isatty()
    return _for_screen if on_screen else for_spreadsheet


def _for_screen(text: str) -> str:
    return for_terminal(for_spreadsheet(text))

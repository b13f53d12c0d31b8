"""Where a command's answer and its remarks go."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from perfdb_git.errors import (
    EXIT_FINDINGS,
    EXIT_FINE,
    EXIT_INTERNAL,
    EXIT_NO_EVIDENCE,
    PerfdbError,
)
from perfdb_git.model.result import Message
from perfdb_git.model.values import JsonValue
from perfdb_git.reports.envelope import Status, envelope_text
from perfdb_git.reports.escaping import for_terminal
from perfdb_git.reports.progress import ProgressBar
from perfdb_git.reports.screen import Line, print_lines

_EXIT_STATUSES: Mapping[str, int] = {
    "ok": EXIT_FINE,
    "findings": EXIT_FINDINGS,
    "no-evidence": EXIT_NO_EVIDENCE,
}


class Console:
    """Standard output for data, standard error for remarks, and one envelope with ``--json``.

    Parameters
    ----------
    json : bool
        Whether the answer is an envelope.
    """

    def __init__(self, *, json: bool) -> None:
        self.json = json
        self.command = "perfdb"

    def answer(
        self,
        *,
        data: Mapping[str, JsonValue],
        lines: Iterable[Line],
        status: Status = "ok",
        messages: Sequence[Message] = (),
    ) -> int:
        """Print a command's answer and return the exit status.

        Parameters
        ----------
        data : mapping
            The answer for programs.
        lines : iterable of Line
            The answer for people; not touched with ``--json``.
        status : str
            ``ok``, ``findings`` or ``no-evidence``.
        messages : sequence of Message
            Remarks about the run.
        """
        if self.json:
            write_out(envelope_text(self.command, status, data, messages))
        else:
            self.remark(messages)
            write_out(print_lines(lines, colour=_has_colour()))
        return _EXIT_STATUSES[status]

    def remark(self, messages: Iterable[Message]) -> None:
        """Print remarks to standard error."""
        for message in messages:
            sys.stderr.write(f"perfdb: {message.level}: {for_terminal(message.text)}\n")

    def fail(self, messages: Sequence[Message]) -> None:
        """Print what went wrong; the caller ends the process."""
        if self.json:
            write_out(envelope_text(self.command, "error", None, messages))
        else:
            self.remark(messages)

    def progress(self, title: str) -> ProgressBar:
        """Return a progress bar on standard error, silent where that is no terminal."""
        return ProgressBar(sys.stderr, title)


def error_messages(error: PerfdbError) -> tuple[Message, ...]:
    """Return an error as messages: itself, its single rows, and the remedy."""
    rows: Sequence[str] = getattr(error, "rows", ())
    messages = [Message(level="error", code=error.code, text=error.message)]
    messages += [Message(level="error", code=error.code, text=row) for row in rows]
    if error.remedy is not None:
        messages.append(Message(level="note", code="remedy", text=error.remedy))
    return tuple(messages)


def write_out(text: str) -> None:
    """Write to standard output; a reader that has gone away is no error."""
    with readers_may_leave():
        sys.stdout.write(text)
        sys.stdout.flush()


@contextmanager
def readers_may_leave() -> Iterator[None]:
    """Write to standard output within; a reader that has gone away is no error.

    The program ends where anything else keeps the answer from being written.
    """
    try:
        yield
    except OSError as error:
        # The interpreter flushes once more when it ends, and would complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):
            sys.stderr.write(f"perfdb: error: the answer was not written: {error.strerror}\n")
            sys.exit(EXIT_INTERNAL)


def _has_colour() -> bool:
    """Follow https://no-color.org: colour on a terminal only, and never with ``NO_COLOR``."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return sys.stdout.isatty()

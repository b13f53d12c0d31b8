"""A progress bar for long work, on a terminal only."""

from __future__ import annotations

import time
from types import TracebackType
from typing import TextIO

from perfdb_git.reports.escaping import for_terminal

_BAR = 24
_WIDTH = 78
_SECONDS_BETWEEN = 0.1


class ProgressBar:
    """Draws ``[####    ] 12/34 name`` over itself, and wipes it away at the end.

    Parameters
    ----------
    stream : TextIO
        Where it is drawn; nothing is written where that is no terminal.
    title : str
        What is going on.
    """

    def __init__(self, stream: TextIO, title: str) -> None:
        self._stream = stream
        self._title = title
        self._enabled = stream.isatty()
        self._last = 0.0
        self._drawn = False

    def __call__(self, done: int, total: int, name: str) -> None:
        """Show that `done` of `total` are done; `name` is the last one."""
        if not self._enabled or total <= 0:
            return
        now = time.monotonic()
        if done < total and now - self._last < _SECONDS_BETWEEN:
            return
        self._last = now
        filled = _BAR * min(done, total) // total
        bar = "#" * filled + " " * (_BAR - filled)
        text = f"{self._title} [{bar}] {done}/{total} {for_terminal(name)}"
        self._stream.write(f"\r{text[:_WIDTH]:<{_WIDTH}}")
        self._stream.flush()
        self._drawn = True

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._drawn:
            self._stream.write(f"\r{'':<{_WIDTH}}\r")
            self._stream.flush()

"""The progress bar draws on terminals only and cleans up."""

from __future__ import annotations

import io

from perfdb_git.reports.progress import ProgressBar


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_nothing_is_drawn_into_a_file() -> None:
    stream = io.StringIO()
    with ProgressBar(stream, "indexing") as bar:
        bar(1, 2, "a")
        bar(2, 2, "b")
    assert stream.getvalue() == ""


def test_a_terminal_gets_a_bar_that_goes_away() -> None:
    stream = Terminal()
    with ProgressBar(stream, "indexing") as bar:
        bar(1, 2, "a\x1b[2J")
        bar(2, 2, "b")
    text = stream.getvalue()
    assert "indexing [############            ] 1/2 a\\x1b[2J" in text
    assert "indexing [########################] 2/2 b" in text
    assert text.endswith(f"\r{'':<78}\r")

"""Lines for a terminal: escaped, wrapped, aligned."""

from __future__ import annotations

from perfdb_git.reports.screen import WIDTH, Line, fact, facts, print_lines, table


def test_every_line_is_escaped_before_it_is_coloured() -> None:
    lines = [Line("a\x1b[2Jb\nc", "bad"), Line("", "bad"), Line("d")]
    assert print_lines(lines, colour=True) == "\x1b[1;31ma\\x1b[2Jb\\x0ac\x1b[0m\n\nd\n"
    assert print_lines(lines, colour=False) == "a\\x1b[2Jb\\x0ac\n\nd\n"


def test_facts_wrap_under_themselves() -> None:
    lines = fact("label", "word " * 40)
    assert len(lines) == 3
    assert all(len(line.text) <= WIDTH for line in lines)
    assert lines[1].text.startswith(" " * 15 + "word")


def test_many_facts_are_cut_off() -> None:
    texts = [line.text.split() for line in facts("x", ["a", "b", "c"], most=1)]
    assert texts == [["x", "a"], ["and", "2", "more"]]


def test_tables_fit() -> None:
    rows = [["a", "1", "x" * 200], ["bb", "22", "y\x1b"]]
    cut = table(["name", "n", "text"], rows, right=["n"])
    assert cut[2].text == "bb    22  y\\x1b"
    assert len(cut[1].text) == WIDTH
    wrapped = table(["name", "n", "text"], [["a", "1", "word " * 40]], right=["n"], wrap=True)
    assert len(wrapped) == 4
    assert wrapped[2].text.startswith(" " * 9 + "word")
    assert table(["name"], []) == [Line("name", "strong")]

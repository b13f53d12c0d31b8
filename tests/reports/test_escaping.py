"""Evidence text cannot act on the place where it is shown."""

from __future__ import annotations

import pytest

from perfdb_git.reports.escaping import (
    for_markdown,
    for_terminal,
    for_workflow_message,
    for_workflow_property,
    without_commands,
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain text, µs and 测", "plain text, µs and 测"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("a\nb\rc\td", "a\\x0ab\\x0dc\\x09d"),
        ("\x9b31m", "\\x9b31m"),
        ("\x7f", "\\x7f"),
        ("a\u202eb\u2066c", "a\\u202eb\\u2066c"),
        ("a\u200bb\u2028c", "a\\u200bb\\u2028c"),
        ("\ud800", "\\ud800"),
        ("\U000e0041", "\\U000e0041"),
    ],
)
def test_terminal(text: str, shown: str) -> None:
    assert for_terminal(text) == shown


def test_terminal_leaves_nothing_that_is_not_printable() -> None:
    everything = "".join(map(chr, range(0x3000)))
    assert for_terminal(everything).isprintable()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "`plain`"),
        (
            "@user #1 <img src=x> **bold** [a](http://b)",
            "`@user #1 <img src=x> **bold** [a](http://b)`",
        ),
        ("a`b", "``a`b``"),
        ("`a``b`", "``` `a``b` ```"),
        ("", "` `"),
        (" a", "`  a `"),
        ("a\n\n# b", "`a\\x0a\\x0a# b`"),
    ],
)
def test_markdown(text: str, shown: str) -> None:
    assert for_markdown(text) == shown


def test_markdown_in_a_table() -> None:
    assert for_markdown("a|b", in_table=True) == "`a\\|b`"


def test_workflow_commands() -> None:
    text = "100%\r\n::set-output name=a::b,c:d\x1b"
    escaped = "100%25\\x0d%0A::set-output name=a::b,c:d\\x1b"
    assert for_workflow_message(text) == escaped
    assert for_workflow_property("a,b:c%") == "a%2Cb%3Ac%25"


@pytest.mark.parametrize(
    "text", ["::error::x", ":::warning::", "a ::set-env x", "##[stop]", "###[x]"]
)
def test_no_workflow_command_can_begin(text: str) -> None:
    safe = without_commands(text)
    assert "::" not in safe
    assert "##[" not in safe
    assert without_commands("a: b # c [d]") == "a: b # c [d]"

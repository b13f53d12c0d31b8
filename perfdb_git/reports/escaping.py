"""Evidence text made harmless for the place it goes to.

Whoever can merge evidence chooses session names, labels and reasons; none of them may move a
cursor, hide text, forge a line or run a workflow command.
"""

from __future__ import annotations

import re

_BACKTICKS = re.compile(r"`+")
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "'")


def for_terminal(text: str) -> str:
    """Return `text` as one line in which every character is visible.

    Control characters (C0, C1), line separators, bidirectional and zero-width controls and lone
    surrogates become Python escapes such as ``\\x1b``.
    """
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else _escape(character) for character in text
    )


def _escape(character: str) -> str:
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def without_commands(text: str) -> str:
    """Return `text` as one visible line in which no workflow command can begin.

    A runner takes ``::name::`` for a command wherever a line begins with it, and ``##[name]``
    anywhere; where a text is wrapped, any of its words may begin a line.
    """
    return for_terminal(text).replace("::", ":\\x3a").replace("##[", "#\\x23[")


def for_markdown(text: str, *, in_table: bool = False) -> str:
    """Return `text` as a Markdown code span.

    Escaping single characters would not do: GitHub turns ``@name``, ``#1`` and addresses into
    notifications and links after the Markdown is rendered, everywhere but in code.

    Parameters
    ----------
    text : str
        Any text.
    in_table : bool
        Whether it stands in a table, where ``|`` ends a cell even within code.
    """
    visible = for_terminal(text)
    if in_table:
        visible = visible.replace("|", "\\|")
    longest = max((len(run) for run in _BACKTICKS.findall(visible)), default=0)
    fence = "`" * (longest + 1)
    # One space at both ends is taken off again; without it a backtick would join the fence.
    if not visible.strip():
        return f"`{visible or ' '}`"
    padding = " " if visible[0] in "` " or visible[-1] in "` " else ""
    return f"{fence}{padding}{visible}{padding}{fence}"


def for_sarif(text: str) -> str:
    """Return `text` as the text of a SARIF message; lines are kept.

    Braces begin placeholders there and are doubled; a bracket may begin a link and is escaped.
    """
    visible = "\n".join(for_terminal(line) for line in text.split("\n"))
    for special, escaped in (("{", "{{"), ("}", "}}"), ("[", "\\["), ("]", "\\]")):
        visible = visible.replace(special, escaped)
    return visible


def for_workflow_message(text: str) -> str:
    """Return `text` as the message of a workflow command such as ``::error::``; lines are kept."""
    visible = "\n".join(for_terminal(line) for line in text.split("\n"))
    return visible.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def for_workflow_property(text: str) -> str:
    """Return `text` as the value of a workflow command's property."""
    return for_workflow_message(text).replace(":", "%3A").replace(",", "%2C")


def for_spreadsheet(text: str) -> str:
    """Return `text` such that a spreadsheet does not take it for a formula.

    What begins with ``=``, ``+``, ``-``, ``@``, a tab or a carriage return gets an apostrophe in
    front. So does what begins with an apostrophe: without the first one, every text is what it was.
    """
    return f"'{text}" if text.startswith(_FORMULA_STARTS) else text

"""Texts that a change brings: one line each, with nothing in them that cannot be seen.

Whatever shows evidence escapes it; a text that would move a cursor, forge a line of a log or order
letters otherwise has no honest use in a record, so it is refused before it is merged.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from perfdb_git.checks.change import Change
from perfdb_git.checks.checked_snapshot import CheckedDocument
from perfdb_git.checks.rules import Check, Rule
from perfdb_git.checks.terms import pointer
from perfdb_git.model.findings import Finding

UNSEEN_CHARACTERS = Rule(
    code="unseen-characters",
    documentation="Texts of documents that the tool writes have no control characters.",
    remedy="write it as one line of visible characters",
)

_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]")
"""Controls, line separators, and characters that order letters otherwise."""

_PERHAPS_UNSEEN = re.compile(rf"\\[bfnrtu]|{_UNSEEN.pattern}")
"""Matched against JSON text, in which most of them are escapes."""

_ROW_DEPTH = 2


def judge_texts(_: Change, document: CheckedDocument) -> Iterator[Finding]:
    """Yield texts of a new document that hold control characters, one finding a document."""
    place = document.place
    if place is None or not place.canonical or document.fault is not None:
        return
    assert document.content is not None
    body = document.content.decode("utf-8").replace("\n", "")
    if _PERHAPS_UNSEEN.search(body) is None:
        # Most documents: their cells need not be looked at one by one.
        return
    found = list(_unseen(document.value, ()))
    if not found:
        return
    path, text, character = found[0]
    row = int(path[1]) if len(path) > _ROW_DEPTH and path[0] == "rows" else None
    more = f", and {len(found) - 1} more texts do" if len(found) > 1 else ""
    yield UNSEEN_CHARACTERS.broken(
        document.path,
        f"the text {text[:60]!r} holds U+{ord(character):04X}{more}",
        pointer=pointer(*path),
        row=row,
    )


def _unseen(
    value: object, path: tuple[str | int, ...]
) -> Iterator[tuple[tuple[str | int, ...], str, str]]:
    """Yield path, text and first unseen character; a key stands for what it names."""
    if isinstance(value, str):
        match = _UNSEEN.search(value)
        if match is not None:
            yield path, value, match.group()
    elif isinstance(value, dict):
        for key, item in value.items():
            match = _UNSEEN.search(key)
            if match is not None:
                yield (*path, key), key, match.group()
            yield from _unseen(item, (*path, key))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            if isinstance(item, (str, dict, list)):
                yield from _unseen(item, (*path, number))


TEXTS = Check(
    id="texts",
    documentation="New texts show all that they hold.",
    rules=(UNSEEN_CHARACTERS,),
    judge_addition=judge_texts,
)

"""Rules that several documents share: names and terms are those of the vocabulary."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from perfdb_git.checks.rules import Rule
from perfdb_git.formats.json_value import pointer_of
from perfdb_git.model.vocabulary import Dimension

UNKNOWN_DIMENSION = Rule(
    code="unknown-dimension",
    documentation="Dimensions are those of the vocabulary.",
    remedy="use a name of evidence/vocabulary.yaml, or add the dimension there",
)
UNKNOWN_OPERATION = Rule(
    code="unknown-operation",
    documentation="Operations are those of the vocabulary.",
    remedy="use a name of evidence/vocabulary.yaml, or add the operation there",
)
UNKNOWN_TERM = Rule(
    code="unknown-term",
    documentation="Terms are canonical terms of the vocabulary.",
    remedy="write the canonical term; aliases are for typed input",
)

_MAX_NAME = 100
"""Looking for similar names takes time that grows with the square of their length."""


def pointer(*path: str | int) -> str:
    """Return the JSON pointer of a path of keys and indices."""
    return pointer_of(path)


def hint(name: str, known: Iterable[str]) -> str:
    """Return what a wrong name probably meant, as the end of a message."""
    if len(name) > _MAX_NAME:
        return ""
    close = difflib.get_close_matches(name, sorted(known), n=2)
    return f"; did you mean {' or '.join(close)}?" if close else ""


def term_fault(dimension: Dimension, value: object) -> str | None:
    """Say why a value is no canonical term, or None if it is one or the dimension has none."""
    if dimension.type != "term" or value in dimension.terms:
        return None
    for term, aliases in dimension.terms.items():
        if value in aliases:
            return f"{value!r} is an alias of {term!r}"
    if isinstance(value, str) and value in dimension.shorthands:
        meant = ", ".join(f"{key}={part}" for key, part in dimension.shorthands[value].items())
        return f"{value!r} is a shorthand of {meant}"
    return f"{value!r} is no term{hint(str(value), dimension.terms)}"

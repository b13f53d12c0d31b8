"""Strict YAML for documents written by hand: JSON's values in YAML's layout.

One document, no anchors, aliases, tags, directives or merge keys, no duplicate keys. A plain
scalar is a value if it is one by JSON's grammar, else a string; a plain scalar which some YAML
reader would take for anything else (``on``, ``012``, ``12:30``, a date) is refused: quote it.
"""

from __future__ import annotations

import re

from perfdb_git.errors import InvalidInputError
from perfdb_git.formats.json_value import JsonValue
from perfdb_git.formats.strict_json import decode_utf8

MAX_YAML_BYTES = 5_000_000

# YAML 1.1 takes some of these for line breaks, 1.2 does not; the others, the tab among them,
# libyaml and the Python scanner treat differently.
_FORBIDDEN_CHARACTER = re.compile(
    "[\x00-\x09\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]"
)
_DIRECTIVE = re.compile(r"(?:\A|[\r\n])%")


def read_yaml(data: bytes, *, document: str, decimal: bool = False) -> JsonValue:
    """Value of a hand-written YAML document, read strictly.

    Parameters
    ----------
    data : bytes
        The whole document, at most `MAX_YAML_BYTES`.
    document : str
        Its name, for messages.
    decimal : bool
        Give numbers with a fraction or exponent as exact `decimal.Decimal` instead of float.

    Raises
    ------
    InvalidInputError
        If the document is not strict YAML; with the line, and the pointer of a wrong value.
    """
    if len(data) > MAX_YAML_BYTES:
        raise InvalidInputError(
            f"has {len(data)} bytes; YAML documents may have {MAX_YAML_BYTES}",
            code="document-too-large",
            document=document,
            remedy="write large data as JSON",
        )
    text = decode_utf8(data, document=document)
    _refuse_characters(text, document)
    # Late: PyYAML costs every start-up 20 ms, and most commands read no YAML.
    from perfdb_git.formats._yaml_events import build_document

    return build_document(text, document=document, decimal=decimal)


def _refuse_characters(text: str, document: str) -> None:
    forbidden = _FORBIDDEN_CHARACTER.search(text)
    if forbidden is not None:
        raise InvalidInputError(
            f"holds the control character U+{ord(forbidden.group()):04X}",
            code="control-character",
            document=document,
            line=text.count("\n", 0, forbidden.start()) + 1,
            remedy="indent with spaces; in a text write it as an escape in double quotes",
        )
    # Here and not from the parser: the two parsers disagree about unknown directives.
    directive = _DIRECTIVE.search(text)
    if directive is not None:
        raise InvalidInputError(
            "directives (%YAML, %TAG) are not used, nor may another line begin with '%'",
            code="yaml-directive",
            document=document,
            line=text.count("\n", 0, directive.end()) + 1,
        )

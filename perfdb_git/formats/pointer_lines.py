"""The line on which a JSON pointer's value stands in the text of a document."""

from __future__ import annotations

import json
import re
from typing import Any

_SPACE = re.compile(r"[ \t\n\r,:]*")
_ROWS = b'\n  "rows": [\n    ['
_ROW_POINTER = re.compile(r"/rows/([0-9]{1,18})(?:/.*)?", re.DOTALL)


def pointer_parts(pointer: str) -> list[str]:
    """Return the keys and indices of a JSON pointer (RFC 6901) as texts."""
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]


def json_line(content: bytes, pointer: str) -> int:
    """Return the line, from 1, of a value in a JSON document.

    Parameters
    ----------
    content : bytes
        A document that a strict reader accepted.
    pointer : str
        JSON pointer; where it leads nowhere, the innermost value that exists is meant.
    """
    match = _ROW_POINTER.fullmatch(pointer)
    if match is not None:
        line = row_line(content, int(match[1]))
        if line is not None:
            return line
    text = content.decode("utf-8")
    position = _after_space(text, 0)
    for part in pointer_parts(pointer):
        found = _member(text, position, part)
        if found is None:
            break
        position = found
    return text.count("\n", 0, position) + 1


def row_line(content: bytes, row: int) -> int | None:
    """Return the line of a row of a record set in canonical layout, None for another layout.

    Parameters
    ----------
    content : bytes
        The whole file.
    row : int
        From 0.
    """
    start = content.find(_ROWS)
    if start < 0:
        return None
    line = content.count(b"\n", 0, start) + 3 + row
    return line if line <= content.count(b"\n") else None


def yaml_line(content: bytes, pointer: str) -> int:
    """Return the line, from 1, of a value in a YAML document; see `json_line`."""
    import yaml

    from perfdb_git.formats._yaml_events import default_loader

    node: Any = yaml.compose(content.decode("utf-8"), Loader=default_loader())
    line = node.start_mark.line
    for part in pointer_parts(pointer):
        found = _child(node, part)
        if found is None:
            break
        line, node = found
    return int(line) + 1


def _child(node: Any, part: str) -> tuple[int, Any] | None:
    """Return the line of a member's key, or of an element, and the member itself."""
    import yaml

    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value == part:
                return key.start_mark.line, value
    if isinstance(node, yaml.SequenceNode) and part.isdecimal() and int(part) < len(node.value):
        value = node.value[int(part)]
        return value.start_mark.line, value
    return None


def _after_space(text: str, position: int) -> int:
    """Skip white space and the separators between members."""
    match = _SPACE.match(text, position)
    assert match is not None
    return match.end()


def _member(text: str, position: int, part: str) -> int | None:
    """Return where a member's value begins within the container at `position`."""
    opening = text[position]
    if opening not in "{[":
        return None
    decoder = json.JSONDecoder()
    number = 0
    position = _after_space(text, position + 1)
    while text[position] not in "}]":
        key = str(number)
        if opening == "{":
            key, position = decoder.raw_decode(text, position)
            position = _after_space(text, position)
        if key == part:
            return position
        _, position = decoder.raw_decode(text, position)
        position = _after_space(text, position)
        number += 1
    return None

"""The canonical layout of record sets, used to read a few rows without parsing the others.

What is found here `read_json_rows` would find too; a file in any other layout is left to that.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from perfdb_git.formats.strict_json import read_json, read_json_rows

_ROWS_BEGIN = b'\n  "rows": [\n'
_ROWS_END = b"\n  ]\n}\n"
_NO_ROWS = b'\n  "rows": []\n}\n'
_ROW_BEGIN = b"\n    ["
_ROW_SEPARATOR = b"],\n"


@dataclass(frozen=True, kw_only=True)
class RowLines:
    """A record-set file whose every line of ``rows`` is one row.

    Attributes
    ----------
    head : bytes
        The document without its rows.
    body : bytes
        The rows' lines, each after a newline; no cell is an array.
    count : int
        How many rows there are.
    """

    head: bytes
    body: bytes
    count: int

    def header(self, *, document: str) -> dict[str, Any]:
        """Return every entry of the document but ``rows``, read strictly."""
        value: Any = read_json(self.head, document=document)
        return {key: item for key, item in value.items() if key != "rows"}

    def rows(self, numbers: list[int], *, document: str) -> list[list[Any]]:
        """Return some rows, reading no other line."""
        # The newlines stay: a string that one line opens and another closes is refused.
        text = b",".join([self._line(number) for number in numbers])
        values: Any = read_json_rows(b"[%b]" % text, document=document)
        return list(values)

    def _line(self, number: int) -> bytes:
        start, end = self._ends[number], self._ends[number + 1]
        return self.body[start:end].rstrip(b",")

    @cached_property
    def _ends(self) -> list[int]:
        """Where each line begins, with its newline, and where the last one ends."""
        starts = [match.start() for match in re.finditer(rb"\n", self.body)]
        return [*starts, len(self.body)]


def split_row_lines(blob: bytes) -> RowLines | None:
    """Split a record-set file into its header and its rows; None for another layout.

    A line that begins as a row does, ends as a row does, and has no other bracket is exactly one
    row: none can hide within a line or across two.
    """
    start = blob.find(_ROWS_BEGIN)
    if start < 0 or not blob.endswith(_ROWS_END):
        return None
    body = blob[start + len(_ROWS_BEGIN) - 1 : -len(_ROWS_END)]
    count = body.count(b"\n")
    one_row_each = (
        body.count(_ROW_BEGIN) == count
        and body.count(b"[") == count
        and body.count(b"]") == count
        and body.count(_ROW_SEPARATOR) == count - 1
        and body.endswith(b"]")
    )
    return RowLines(head=blob[:start] + _NO_ROWS, body=body, count=count) if one_row_each else None

"""Exported rows as CSV: one header line, a line a record, and numbers that read back exactly."""

from __future__ import annotations

import csv
import io
import itertools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, BinaryIO

from perfdb_git.exports.columns import ExportColumn
from perfdb_git.exports.record_rows import Cells, Constant, RowBlock
from perfdb_git.reports.escaping import for_spreadsheet

Escape = Callable[[str], str]


class CsvWriter:
    """Writes blocks of rows to a binary stream, in UTF-8 with lines that end in a line feed.

    Null is an empty field; a list is a JSON array; a number is the shortest text that reads back
    to the same bits.

    Parameters
    ----------
    stream : BinaryIO
        Where the text goes; it stays open.
    columns : sequence of ExportColumn
        The columns of the table.
    escape : callable
        Makes evidence text harmless for where the stream ends.
    """

    def __init__(
        self, stream: BinaryIO, columns: Sequence[ExportColumn], escape: Escape = for_spreadsheet
    ) -> None:
        self._stream = stream
        self._columns = columns
        self._escape = escape
        self._write([tuple(column.name for column in columns)])

    def write(self, block: RowBlock) -> None:
        """Append some rows."""
        texts = [
            self._texts(column, cells, block.row_count)
            for column, cells in zip(self._columns, block.cells, strict=True)
        ]
        self._write(zip(*texts, strict=True))

    def close(self) -> None:
        """Finish the table: a CSV file has no end to write."""

    def _write(self, rows: Any) -> None:
        text = io.StringIO(newline="")
        csv.writer(text, lineterminator="\n").writerows(rows)
        self._stream.write(text.getvalue().encode("utf-8", "surrogatepass"))

    def _texts(self, column: ExportColumn, cells: Cells, count: int) -> Iterator[Any]:
        write = self._written(column)
        if isinstance(cells, Constant):
            value = None if cells.value is None else write(cells.value)
            return itertools.repeat(value, count)
        return (None if cell is None else write(cell) for cell in cells)

    def _written(self, column: ExportColumn) -> Callable[[Any], Any]:
        if column.type == "text":
            return self._escape
        return _WRITTEN.get(column.type, _as_it_is)


def _as_it_is(cell: Any) -> Any:
    return cell


_WRITTEN: Mapping[str, Callable[[Any], Any]] = {
    "boolean": {True: "true", False: "false"}.__getitem__,
    "numbers": json.dumps,
    "texts": json.dumps,
}
"""How the cells of a type are written; the csv module writes numbers as their shortest text."""

"""Exported rows as CSV: one header line, a line a record, and numbers that read back exactly."""

from __future__ import annotations

import csv
import io
import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from perfdb_git.exports.columns import ExportColumn
from perfdb_git.exports.record_rows import Cells, Constant, RowBlock
from perfdb_git.reports.escaping import for_spreadsheet

Escape = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class CsvEncoder:
    """Turns blocks of rows into UTF-8 text with lines that end in a line feed.

    Null is an empty field; a list is a JSON array; a number is the shortest text that reads back
    to the same bits.

    Parameters
    ----------
    columns : sequence of ExportColumn
        The columns of the table.
    escape : callable
        Makes evidence text harmless for where it goes.
    """

    columns: Sequence[ExportColumn]
    escape: Escape = for_spreadsheet

    def header(self) -> bytes:
        """Return the first line, which names the columns."""
        return _csv_lines([tuple(column.name for column in self.columns)])

    def encode(self, block: RowBlock) -> bytes:
        """Return the lines of some rows."""
        texts = [
            self._texts(column, cells, block.row_count)
            for column, cells in zip(self.columns, block.cells, strict=True)
        ]
        return _csv_lines(zip(*texts, strict=True))

    def _texts(self, column: ExportColumn, cells: Cells, count: int) -> Iterator[Any]:
        write = self._written(column)
        if isinstance(cells, Constant):
            value = None if cells.value is None else write(cells.value)
            return itertools.repeat(value, count)
        return (None if cell is None else write(cell) for cell in cells)

    def _written(self, column: ExportColumn) -> Callable[[Any], Any]:
        if column.type == "text":
            return self.escape
        return _WRITTEN.get(column.type, _as_it_is)


def _csv_lines(rows: Iterable[Iterable[Any]]) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode("utf-8", "surrogatepass")


def _as_it_is(cell: Any) -> Any:
    return cell


_WRITTEN: Mapping[str, Callable[[Any], Any]] = {
    "boolean": {True: "true", False: "false"}.__getitem__,
    "numbers": json.dumps,
    "texts": json.dumps,
}
"""How the cells of a type are written; the csv module writes numbers as their shortest text."""

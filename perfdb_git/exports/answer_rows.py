"""Answers to tables of questions as rows of an exported table."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from perfdb_git.exports.columns import ColumnType, ExportColumn
from perfdb_git.exports.record_rows import Cells, Constant, RowBlock
from perfdb_git.model.policy import Tier
from perfdb_git.operations.query_columns import Cells as QuestionCells
from perfdb_git.resolution.answer_table import AnswerTable, alternative_name, value_name

_LEADING: Mapping[str, tuple[ColumnType, str]] = {
    "status": ("text", "ok, no-evidence, or error for a question that cannot be asked"),
    "code": ("text", "resolved, or why not"),
    "reason": ("text", "what is wrong with a question that cannot be asked"),
    "commit": ("text", "the evidence snapshot; null for uncommitted files"),
    "marks": ("texts", "what sets the answer apart: uncommitted, external-policy"),
    "metric": ("text", "what the value is of"),
    "unit": ("text", "SI unit of value, lower and upper"),
    "value": ("number", "the answer"),
    "lower": ("number", "lower end of its interval"),
    "upper": ("number", "upper end of its interval"),
    "level": ("number", "coverage of the interval"),
    "interval_rule": ("text", "the rule that made it"),
    "sample_count": ("integer", "samples or residuals behind it"),
    "method": ("text", "measured, simulated, calibrated, analytical or fallback"),
    "validity": ("text", "how the answer relates to what was measured"),
    "distance_octaves": ("number", "distance to the nearest evidence"),
    "provider": ("text", "the source that answers"),
    "provider_revision": ("text", "its revision"),
    "calibration": ("text", "SHA-256 of the calibration revision"),
    "records": ("texts", "ids of the records behind the answer"),
}


def answer_columns(
    tiers: Sequence[Tier], *, alternative_values: bool, kept: Sequence[str] = ()
) -> list[ExportColumn]:
    """Return the columns of a table of answers.

    Parameters
    ----------
    tiers : sequence of Tier
        Of the policy.
    alternative_values : bool
        Whether the values of sources that lost have columns.
    kept : sequence of str
        Columns of the questions that are passed on, as text.
    """
    columns = [ExportColumn(name="query", type="integer", description="number of the question")]
    columns += [
        ExportColumn(name=name, type="text", description="passed on from the question")
        for name in kept
    ]
    columns += [
        ExportColumn(name=name, type=kind, description=text)
        for name, (kind, text) in _LEADING.items()
    ]
    for tier in tiers:
        columns.append(
            ExportColumn(
                name=alternative_name(tier),
                type="text",
                description=f"why {tier} lost; null where it answers",
            )
        )
        if alternative_values:
            columns.append(
                ExportColumn(
                    name=value_name(tier), type="number", description="what it would have answered"
                )
            )
    return columns


def answer_block(
    table: AnswerTable,
    columns: Sequence[ExportColumn],
    *,
    commit: str | None,
    marks: tuple[str, ...] = (),
    kept: Mapping[str, QuestionCells] | None = None,
) -> RowBlock:
    """Return answers as rows.

    Parameters
    ----------
    table : AnswerTable
        The answers.
    columns : sequence of ExportColumn
        As `answer_columns` gives them.
    commit : str or None
        The evidence snapshot.
    marks : tuple of str
        As in `Resolution`.
    kept : Mapping[str, cells] or None
        Columns of the questions that are passed on; one that a chunk does not have is null.
    """
    plain: dict[str, Cells] = {
        "query": range(table.first, table.first + table.count),
        "reason": [table.reasons.get(row) for row in range(table.count)],
        "commit": Constant(commit),
        "marks": Constant(marks),
        "metric": Constant(table.metric),
        "unit": Constant(table.unit),
        "records": _records(table),
    }
    for name, cells in (kept or {}).items():
        plain[name] = [None if cell is None else str(cell) for cell in cells]
    return RowBlock(
        row_count=table.count,
        cells=tuple(_cells(table, column, plain) for column in columns),
    )


def _cells(table: AnswerTable, column: ExportColumn, plain: Mapping[str, Cells]) -> Cells:
    name = column.name
    if name in plain:
        return plain[name]
    if name in table.texts:
        return table.text(name)
    if name not in table.numbers:
        return Constant(None)
    values = table.numbers[name]
    numbers: list[Any] = values.tolist()
    if column.type == "integer":
        return [None if number != number else int(number) for number in numbers]
    if not np.isnan(values).any():
        return numbers
    return [None if number != number else number for number in numbers]


def _records(table: AnswerTable) -> Cells:
    if not len(table.records.sets):
        return [()] * table.count
    return [table.record_ids(row) for row in range(table.count)]


@dataclass(frozen=True, slots=True)
class JsonLinesEncoder:
    """Turns rows into one JSON object a line, nulls left out.

    Parameters
    ----------
    columns : sequence of ExportColumn
        The columns of the table.
    """

    columns: Sequence[ExportColumn]

    def header(self) -> bytes:
        """Return what the file begins with: nothing."""
        return b""

    def encode(self, block: RowBlock) -> bytes:
        """Return the lines of some rows."""
        names = [column.name for column in self.columns]
        columns = [
            [cells.value] * block.row_count if isinstance(cells, Constant) else cells
            for cells in block.cells
        ]
        lines = [
            json.dumps(
                {name: cell for name, cell in zip(names, row, strict=True) if cell is not None}
            )
            for row in zip(*columns, strict=True)
        ]
        return "".join(f"{line}\n" for line in lines).encode("ascii")

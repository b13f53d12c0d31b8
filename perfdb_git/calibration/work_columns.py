"""Records whose shape is replaced by the work that a calibration reads."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from perfdb_git.calibration.selection import RecordBlock, SelectedRecords
from perfdb_git.model.records import Column
from perfdb_git.model.vocabulary import Vocabulary
from perfdb_git.operations.queries import shape_dimensions
from perfdb_git.operations.work_inputs import WORK_INPUTS, in_work_terms, reads_work


def with_work_inputs(
    records: SelectedRecords, inputs: Collection[str], vocabulary: Vocabulary
) -> SelectedRecords:
    """Return the records with columns of work in place of their shape, as queries are read.

    Without work among the inputs they are returned as they are.

    Raises
    ------
    InvalidInputError
        As `in_work_terms`.
    """
    if not reads_work(inputs):
        return records
    blocks = [_with_work(block, inputs, vocabulary) for block in records.blocks]
    return SelectedRecords(blocks, records.retracted)


def _with_work(block: RecordBlock, inputs: Collection[str], vocabulary: Vocabulary) -> RecordBlock:
    header = block.header
    shape = shape_dimensions(header.operation, vocabulary)
    names = [name for name in WORK_INPUTS if name in inputs]
    dimensions = [
        (place, column.name)
        for place, column in enumerate(header.columns)
        if column.role == "dimension"
    ]
    kept = [
        place
        for place, column in enumerate(header.columns)
        if column.role != "dimension" or column.name not in shape
    ]
    constant = {name: value for name, value in header.context.items() if value is not None}
    rows = []
    for row in block.rows:
        known = {name: row[place] for place, name in dimensions if row[place] is not None}
        work = in_work_terms({**constant, **known}, inputs, vocabulary)
        rows.append([*(row[place] for place in kept), *(work[name] for name in names)])
    added = (
        Column(name=name, role="dimension", unit=vocabulary.dimensions[name].unit) for name in names
    )
    return replace(
        block,
        rows=rows,
        header=replace(
            header,
            context={name: value for name, value in header.context.items() if name not in shape},
            columns=(*(header.columns[place] for place in kept), *added),
        ),
    )

"""What importers read from the output of each repetition, put together."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from perfdb_git.errors import InvalidInputError
from perfdb_git.formats.codec import decode
from perfdb_git.formats.schemas import SchemaStore
from perfdb_git.model.records import ROW_NUMBER, Column, RecordSetHeader
from perfdb_git.recording.runs import Run
from perfdb_git.recording.tools import OutputReader, OutputRequest
from perfdb_git.storage.layout import RECORDS, VOCABULARY
from perfdb_git.storage.segments import split_record_set

_REPETITION = "repetition"
OUTPUT_NAME = "stdout"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadSet:
    """One record set as an importer wrote it."""

    header: RecordSetHeader
    rows: Sequence[Sequence[object]]

    @property
    def shape(self) -> tuple[object, ...]:
        """What every repetition must print alike: everything but the metrics' values."""
        header = self.header
        fixed = [
            place
            for place, column in enumerate(header.columns)
            if column.role != "metric" and column.name != ROW_NUMBER
        ]
        return (
            tuple(sorted((name, repr(value)) for name, value in header.context.items())),
            header.columns,
            tuple(tuple(row[place] for place in fixed) for row in self.rows),
        )


def read_outputs(
    runs: Sequence[Run],
    reader: OutputReader,
    *,
    mapping: str | None,
    stated: tuple[str, ...],
    repository: Path,
) -> list[list[ReadSet]]:
    """Return, for each run, the record sets that the reader makes of its output.

    It works on a folder of its own for each run, so that equal results of two runs stay two.

    Raises
    ------
    InvalidInputError
        Output that the importer refuses, or that holds no record: 'no-records'.
    """
    schemas = SchemaStore()
    sets: list[list[ReadSet]] = []
    for run in runs:
        with tempfile.TemporaryDirectory(prefix="perfdb-record-") as name:
            request = _request(Path(name), run, mapping, stated, repository)
            reader(request)
            sets.append(list(_written(request.repository, schemas)))
    return sets


def _request(
    folder: Path, run: Run, mapping: str | None, stated: tuple[str, ...], repository: Path
) -> OutputRequest:
    scratch = folder / "repository"
    (scratch / VOCABULARY).parent.mkdir(parents=True)
    shutil.copyfile(repository / VOCABULARY, scratch / VOCABULARY)
    output = folder / OUTPUT_NAME
    output.write_bytes(run.output)
    return OutputRequest(repository=scratch, file=output, mapping=mapping, stated=stated)


def _written(scratch: Path, schemas: SchemaStore) -> Iterator[ReadSet]:
    paths = sorted((scratch / RECORDS).rglob("*.json"))
    if not paths:
        raise InvalidInputError(
            "no record was found in the command's output; nothing is recorded",
            code="no-records",
            document=OUTPUT_NAME,
            remedy="look at what the command prints",
        )
    for path in paths:
        content = path.read_bytes()
        value, rows = split_record_set(content, document=path.name, schemas=schemas)
        yield ReadSet(header=decode(RecordSetHeader, value, document=path.name), rows=rows)


def merge_repetitions(repetitions: Sequence[Sequence[ReadSet]]) -> list[ReadSet]:
    """Put the repetitions' record sets together.

    Single samples of one point become an array. Where a repetition has several (of one process, or
    of several processes) its rows stay, so that what belongs to one process stays together; so do
    those of summaries.

    Raises
    ------
    InvalidInputError
        'output-shape' where the repetitions printed different points.
    """
    ordered = [sorted(sets, key=lambda item: repr(item.shape)) for sets in repetitions]
    for number, sets in enumerate(ordered[1:], start=2):
        if [item.shape for item in sets] != [item.shape for item in ordered[0]]:
            raise InvalidInputError(
                f"repetition {number} printed other points or columns than the first; nothing is "
                "recorded",
                code="output-shape",
                document=OUTPUT_NAME,
                remedy="have the command print the same points in every run",
            )
    return [_merged(sets) for sets in zip(*ordered, strict=True)]


def _merged(sets: Sequence[ReadSet]) -> ReadSet:
    header = sets[0].header
    metrics = [place for place, column in enumerate(header.columns) if column.role == "metric"]
    if all(_has_single_samples(item, metrics) for item in sets):
        rows = [
            _with_samples(cells, metrics) for cells in zip(*(s.rows for s in sets), strict=True)
        ]
        return ReadSet(header=header, rows=rows)
    if len(sets) == 1:
        return sets[0]
    columns = (*header.columns, Column(name=_REPETITION, role="source"))
    numbered = [
        [*row, number]
        for rows in zip(*(s.rows for s in sets), strict=True)
        for number, row in enumerate(rows, start=1)
    ]
    return ReadSet(header=replace(header, columns=columns), rows=numbered)


def _has_single_samples(item: ReadSet, metrics: Sequence[int]) -> bool:
    """Return whether every row is another point, with one raw sample of each metric."""
    columns = item.header.columns
    places = [place for place, column in enumerate(columns) if column.role == "dimension"]
    points = {tuple(row[place] for place in places) for row in item.rows}
    cells = [row[place] for row in item.rows for place in metrics]
    return (
        len(points) == len(item.rows)
        and all(columns[place].statistic == "sample" for place in metrics)
        and all(not isinstance(cell, list | tuple) or len(cell) == 1 for cell in cells)
    )


def samples_of_every_row(item: ReadSet) -> int | None:
    """Return how many raw samples each metric cell holds, or None where the numbers differ."""
    counts = {
        len(cell) if isinstance(cell, list | tuple) else 0
        for row in item.rows
        for cell, column in zip(row, item.header.columns, strict=True)
        if column.role == "metric"
    }
    return counts.pop() or None if len(counts) == 1 else None


def _with_samples(rows: Sequence[Sequence[object]], metrics: Sequence[int]) -> list[object]:
    merged = list(rows[0])
    for place in metrics:
        samples: list[object] = []
        for row in rows:
            cell = row[place]
            samples += cell if isinstance(cell, list | tuple) else [cell]
        if None in samples:
            raise InvalidInputError(
                "a metric is unknown in some repetitions; nothing is recorded",
                code="output-shape",
                document=OUTPUT_NAME,
                remedy="have the command print every value in every run",
            )
        merged[place] = samples
    return merged

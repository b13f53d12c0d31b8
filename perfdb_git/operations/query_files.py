"""Files of questions, read in chunks: JSON Lines, CSV and Parquet.

A column, or an entry of an object, is named after a dimension. A line of JSON may also be a whole
query document.
"""

from __future__ import annotations

import csv
import functools
import io
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Literal, TypeAlias, get_args

import numpy as np

from perfdb_git.errors import InvalidInputError, MissingExtraError, UsageError
from perfdb_git.formats.strict_json import read_json
from perfdb_git.model.query import QUERY_GROUPS, QUERY_SCHEMA
from perfdb_git.model.vocabulary import Vocabulary
from perfdb_git.operations.query_columns import (
    Cells,
    QuestionColumns,
    QuestionFault,
    canonical_columns,
)

QueryFormat: TypeAlias = Literal["jsonl", "csv", "parquet"]

FORMATS: Mapping[str, QueryFormat] = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "csv",
    ".parquet": "parquet",
}
"""Format by the ending of a file's name."""

CHUNK_ROWS = 65536
"""Questions that are read, answered and written at a time."""

_LIMITS = "evidence_policy"


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionChunk:
    """Consecutive questions of a file.

    Attributes
    ----------
    count : int
        How many.
    columns : Mapping[str, cells]
        Cells by dimension.
    kept : Mapping[str, cells]
        Columns that are no dimensions and are passed on.
    faults : Mapping[int, QuestionFault]
        Questions that could not be read, by row.
    """

    count: int
    columns: Mapping[str, Cells]
    kept: Mapping[str, Cells]
    faults: Mapping[int, QuestionFault] = field(default_factory=dict)

    def canonical(self, vocabulary: Vocabulary) -> QuestionColumns:
        """Return the questions in canonical terms, with all their faults."""
        return canonical_columns(self.columns, vocabulary, count=self.count, faults=self.faults)


def query_format(path: Path) -> QueryFormat:
    """Return the format of a file of questions by its name.

    Raises
    ------
    UsageError
        'unknown-format'.
    """
    form = FORMATS.get(path.suffix.lower())
    if form is None:
        raise UsageError(
            f"{path}: questions are read from {', '.join(FORMATS)} files",
            code="unknown-format",
            remedy=f"give its format: {', '.join(get_args(QueryFormat))}",
        )
    return form


def question_chunks(
    stream: BinaryIO,
    form: QueryFormat,
    *,
    document: str,
    kept: Sequence[str] = (),
    chunk_rows: int = CHUNK_ROWS,
) -> Iterator[QuestionChunk]:
    """Yield the questions of a file; no more than a chunk of them is held.

    Parameters
    ----------
    stream : binary file
        The file; Parquet needs one that can be sought in.
    form : str
        ``jsonl``, ``csv`` or ``parquet``.
    document : str
        Its name, for messages.
    kept : sequence of str
        Columns to pass on instead of reading them as dimensions.
    chunk_rows : int
        Questions a chunk.

    Raises
    ------
    InvalidInputError
        For a file that is not of the format. A wrong line is a fault of its own question.
    MissingExtraError
        For Parquet without pyarrow.
    """
    readers: Mapping[QueryFormat, Callable[[BinaryIO, str, int], Iterator[_Chunk]]] = {
        "jsonl": _json_chunks,
        "csv": _csv_chunks,
        "parquet": functools.partial(_parquet_chunks, kept=frozenset(kept)),
    }
    for count, columns, faults in readers[form](stream, document, chunk_rows):
        yield QuestionChunk(
            count=count,
            columns={name: cells for name, cells in columns.items() if name not in kept},
            kept={name: cells for name, cells in columns.items() if name in kept},
            faults=faults,
        )


_Chunk: TypeAlias = tuple[int, dict[str, Any], dict[int, QuestionFault]]


def _json_chunks(stream: BinaryIO, document: str, rows: int) -> Iterator[_Chunk]:
    lines = ((number, line) for number, line in enumerate(stream, 1) if line.strip())
    while chunk := list(itertools.islice(lines, rows)):
        objects: list[dict[str, Any]] = []
        faults: dict[int, QuestionFault] = {}
        for row, (number, line) in enumerate(chunk):
            try:
                objects.append(_flat(read_json(line, document=document)))
            except InvalidInputError as error:
                faults[row] = QuestionFault(
                    code=error.code, message=f"line {number}: {error.reason}"
                )
                objects.append({})
        names = dict.fromkeys(name for item in objects for name in item)
        yield len(chunk), {name: [item.get(name) for item in objects] for name in names}, faults


def _flat(value: Any) -> dict[str, Any]:
    """Return an object, or a query document, as one cell a dimension."""
    if not isinstance(value, dict):
        raise _bad_line("not-an-object", "is no object", "write an object of dimensions")
    cells: dict[str, Any] = _flat_document(value) if "schema" in value else value
    nested = [name for name, cell in cells.items() if isinstance(cell, dict | list)]
    if nested:
        raise _bad_line(
            "nested-cell",
            f"{nested[0]!r} is neither text nor a number",
            "write one value a dimension, or a whole query document",
        )
    return cells


def _flat_document(value: dict[str, Any]) -> dict[str, Any]:
    if value["schema"] != QUERY_SCHEMA:
        raise _bad_line(
            "unknown-schema", f"is a document of schema {value['schema']!r}", QUERY_SCHEMA
        )
    if any(limit is not None for limit in (value.get(_LIMITS) or {}).values()):
        raise _bad_line(
            "limits-in-table",
            "states limits of its own",
            "limits hold for all questions of a file: give them as options",
        )
    flat: dict[str, Any] = {}
    for name, part in value.items():
        if name in QUERY_GROUPS and isinstance(part, dict):
            flat |= {key: cell for key, cell in part.items() if key != "shape"}
            flat |= part.get("shape") or {}
        elif name not in ("schema", _LIMITS):
            flat[name] = part
    return flat


def _bad_line(code: str, message: str, remedy: str) -> InvalidInputError:
    return InvalidInputError(message, code=code, document="", remedy=remedy)


def _csv_chunks(stream: BinaryIO, document: str, rows: int) -> Iterator[_Chunk]:
    text = io.TextIOWrapper(stream, encoding="utf-8-sig", newline="")
    reader = csv.reader(text, strict=True)
    try:
        names = next(reader, [])
        _require_names(names, document)
        while True:
            lines = list(itertools.islice(reader, rows))
            if not lines:
                return
            yield _csv_chunk(names, lines)
    except (csv.Error, UnicodeDecodeError) as error:
        raise InvalidInputError(
            f"is no CSV file: {error}", code="bad-csv", document=document, line=reader.line_num
        ) from error
    finally:
        text.detach()


def _csv_chunk(names: list[str], lines: list[list[str]]) -> _Chunk:
    faults: dict[int, QuestionFault] = {}
    if set(map(len, lines)) != {len(names)}:
        for row, line in enumerate(lines):
            if len(line) != len(names):
                message = f"the row has {len(line)} cells, the header {len(names)}"
                faults[row] = QuestionFault(code="row-length", message=message)
                lines[row] = [""] * len(names)
    cells = zip(*lines, strict=True)
    columns = {
        name: [cell if cell else None for cell in column]
        for name, column in zip(names, cells, strict=True)
    }
    return len(lines), columns, faults


def _require_names(names: Sequence[str], document: str) -> None:
    twice = sorted({name for name in names if names.count(name) > 1})
    if not names or twice:
        what = f"has two columns {twice[0]!r}" if twice else "has no header"
        raise InvalidInputError(
            what,
            code="bad-header",
            document=document,
            line=1,
            remedy="name each column after one dimension",
        )


def _parquet_chunks(
    stream: BinaryIO, document: str, rows: int, *, kept: frozenset[str]
) -> Iterator[_Chunk]:
    try:
        # Late: pyarrow is an optional extra, and slow to import.
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise MissingExtraError("tables", "reading Parquet files") from error
    try:
        file = pyarrow.parquet.ParquetFile(stream)
        _require_names(file.schema_arrow.names, document)
        for batch in file.iter_batches(batch_size=rows):
            columns = {
                name: column.to_pylist() if name in kept else _arrow_cells(column, name, document)
                for name, column in zip(batch.schema.names, batch.columns, strict=True)
            }
            yield batch.num_rows, columns, {}
    except (pyarrow.ArrowException, OSError) as error:
        raise InvalidInputError(
            f"is no readable Parquet file: {error}", code="bad-parquet", document=document
        ) from error


def _arrow_cells(column: Any, name: str, document: str) -> Any:
    import pyarrow.types as types

    kind = column.type
    if types.is_integer(kind) or types.is_floating(kind):
        # Nulls become NaN: both state nothing.
        return np.asarray(column.to_numpy(zero_copy_only=False), np.float64)
    if types.is_nested(kind):
        raise InvalidInputError(
            f"column {name!r} has the type {kind}",
            code="unsupported-column",
            document=document,
            remedy="write text and numbers only",
        )
    if not (types.is_string(kind) or types.is_large_string(kind) or types.is_dictionary(kind)):
        return column.to_pylist()
    # Each word is made once, not once a cell.
    encoded = column if types.is_dictionary(kind) else column.dictionary_encode()
    words = np.array([*encoded.dictionary.to_pylist(), None], dtype=np.object_)
    places = encoded.indices.fill_null(len(words) - 1)
    return words[places.to_numpy(zero_copy_only=False)].tolist()

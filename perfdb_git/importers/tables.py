"""Foreign tables as columns of raw cells: CSV, TSV, JSON Lines and Parquet, read strictly."""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NoReturn

from perfdb_git.errors import InvalidInputError, MissingExtraError
from perfdb_git.formats.strict_json import decode_utf8, read_json
from perfdb_git.importers.cells import RawCell
from perfdb_git.importers.source_text import MAX_EXPANDED_BYTES, SourceText
from perfdb_git.model.mapping import TableFormat

MAX_FILE_BYTES = 256 * 1024 * 1024
MAX_ROWS = 5_000_000

_LFS_POINTER = b"version https://git-lfs.github.com/spec/"
_DELIMITERS = {"csv": ",", "tsv": "\t"}


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokenRow:
    """A row that has no cells to speak of: another number of columns, or no JSON object."""

    position: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RawTable:
    """The columns of one file.

    ``positions`` gives each row's place in the file, in ``position_word`` (text files: the
    1-based line on which the row ends; Parquet: the row from 1). ``row_numbers`` counts data
    rows from 0, broken ones included. ``is_text`` says that the format has no number type.
    """

    document: str
    columns: Mapping[str, Sequence[RawCell]]
    positions: Sequence[int]
    row_numbers: Sequence[int]
    position_word: Literal["line", "row"]
    is_text: bool
    broken: tuple[BrokenRow, ...] = ()


def read_table(
    data: bytes, form: TableFormat, *, document: str, ignored: Collection[str] = ()
) -> RawTable:
    """Read a whole table.

    Parameters
    ----------
    data : bytes
        Content of the file.
    form : {'csv', 'tsv', 'jsonl', 'parquet'}
        Its format, as the mapping states it.
    document : str
        Its name, for messages.
    ignored : Collection[str]
        Columns that are not wanted; they are left out, and may be of any type.

    Raises
    ------
    InvalidInputError
        The file as a whole cannot be read: too large, a Git LFS pointer, not UTF-8, broken
        quoting, a repeated column name, no rows. Single broken rows are returned, not raised.
    MissingExtraError
        Parquet without pyarrow.
    """
    if len(data) > MAX_FILE_BYTES:
        _refuse(document, f"has {len(data)} bytes, more than {MAX_FILE_BYTES}", "file-too-large")
    if data.startswith(_LFS_POINTER):
        raise InvalidInputError(
            "is a Git LFS pointer, not the table itself",
            code="git-lfs-pointer",
            document=document,
            remedy="fetch the content first: git lfs pull",
        )
    if form == "parquet":
        table = _read_parquet(data, document, ignored)
    else:
        # Spreadsheets begin text with a byte order mark, and long tables come compressed.
        plain = SourceText(document=document, data=data).expanded.removeprefix(codecs.BOM_UTF8)
        if form == "jsonl":
            table = _read_json_lines(plain, document, ignored)
        else:
            table = _read_delimited(plain, form, document, ignored)
    if not table.row_numbers and not table.broken:
        _refuse(document, "has no rows", "empty-table")
    if len(table.row_numbers) > MAX_ROWS:
        _refuse(document, f"has more than {MAX_ROWS} rows", "too-many-rows")
    return table


def _refuse(document: str, message: str, code: str, *, line: int | None = None) -> NoReturn:
    raise InvalidInputError(message, code=code, document=document, line=line)


def _require_distinct(names: Sequence[str], document: str, line: int | None) -> None:
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        shown = ", ".join(repr(name) for name in repeated)
        _refuse(document, f"has two columns called {shown}", "repeated-column", line=line)


def _read_delimited(
    data: bytes, form: TableFormat, document: str, ignored: Collection[str]
) -> RawTable:
    text = decode_utf8(data, document=document)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=_DELIMITERS[form], strict=True)
    rows: list[list[str]] = []
    positions: list[int] = []
    numbers: list[int] = []
    broken: list[BrokenRow] = []
    try:
        header = next(reader, [])
        if not header:
            _refuse(document, "has no header line", "empty-table", line=1)
        _require_distinct(header, document, 1)
        for number, row in enumerate(reader):
            if len(row) == len(header):
                rows.append(row)
                positions.append(reader.line_num)
                numbers.append(number)
            else:
                reason = f"has {len(row)} cells, the header has {len(header)}"
                broken.append(BrokenRow(position=reader.line_num, reason=reason))
    except csv.Error as error:
        _refuse(document, f"broken quoting: {error}", "broken-table", line=reader.line_num)
    # zip would give no columns at all for a table without rows.
    columns = zip(*rows, strict=True) if rows else [()] * len(header)
    return RawTable(
        document=document,
        columns={
            name: [cell or None for cell in column]
            for name, column in zip(header, columns, strict=True)
            if name not in ignored
        },
        positions=positions,
        row_numbers=numbers,
        position_word="line",
        is_text=True,
        broken=tuple(broken),
    )


def _read_json_lines(data: bytes, document: str, ignored: Collection[str]) -> RawTable:
    lines = data.split(b"\n")
    if lines and not lines[-1]:
        lines.pop()
    columns: dict[str, list[RawCell]] | None = None
    positions: list[int] = []
    numbers: list[int] = []
    broken: list[BrokenRow] = []
    for number, line in enumerate(lines):
        try:
            row = _json_row(line, document, columns)
        except InvalidInputError as error:
            broken.append(BrokenRow(position=number + 1, reason=error.reason))
            continue
        if columns is None:
            columns = {name: [] for name in row}
        for name, cells in columns.items():
            cells.append(row[name])
        positions.append(number + 1)
        numbers.append(number)
    return RawTable(
        document=document,
        columns={n: cells for n, cells in (columns or {}).items() if n not in ignored},
        positions=positions,
        row_numbers=numbers,
        position_word="line",
        is_text=False,
        broken=tuple(broken),
    )


def _json_row(
    line: bytes, document: str, columns: Mapping[str, object] | None
) -> dict[str, RawCell]:
    value = read_json(line, document=document)
    if not isinstance(value, dict):
        _refuse(document, "is not a JSON object", "not-an-object")
    if columns is not None and value.keys() != columns.keys():
        missing = sorted(columns.keys() - value.keys())
        extra = sorted(value.keys() - columns.keys())
        reason = f"has other keys than the first row: without {missing}, with {extra}"
        _refuse(document, reason, "uneven-rows")
    row: dict[str, RawCell] = {}
    for name, cell in value.items():
        if isinstance(cell, bool):
            row[name] = _BOOLEANS[cell]
        elif cell is None or isinstance(cell, int | float | str):
            row[name] = cell
        else:
            _refuse(document, f"{name!r} is neither a number nor text", "nested-cell")
    return row


_BOOLEANS = {True: "true", False: "false", None: None}


def _read_parquet(data: bytes, document: str, ignored: Collection[str]) -> RawTable:
    try:
        # Late: pyarrow is an optional extra, and slow to import.
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise MissingExtraError("tables", "reading Parquet files") from error
    try:
        file = pyarrow.parquet.ParquetFile(pyarrow.BufferReader(data))
        metadata = file.metadata
        check_parquet_size(metadata, document)
        names = list(file.schema_arrow.names)
        _require_distinct(names, document, None)
        wanted = [name for name in names if name not in ignored]
        table = file.read(columns=wanted)
        columns = {name: _parquet_cells(table.column(name), name, document) for name in wanted}
    except (pyarrow.ArrowException, OSError) as error:
        _refuse(document, f"is not a readable Parquet file: {error}", "broken-table")
    return RawTable(
        document=document,
        columns=columns,
        positions=range(1, metadata.num_rows + 1),
        row_numbers=range(metadata.num_rows),
        position_word="row",
        is_text=False,
    )


def check_parquet_size(metadata: Any, document: str) -> None:
    """Refuse a Parquet file by its declared sizes, before it can ask for a huge allocation.

    Raises
    ------
    InvalidInputError
        'file-too-large' or 'too-many-rows'.
    """
    size = sum(metadata.row_group(i).total_byte_size for i in range(metadata.num_row_groups))
    if size > MAX_EXPANDED_BYTES:
        _refuse(document, f"expands to {size} bytes", "file-too-large")
    if metadata.num_rows > MAX_ROWS:
        _refuse(document, f"has more than {MAX_ROWS} rows", "too-many-rows")


def _parquet_cells(column: Any, name: str, document: str) -> list[RawCell]:
    import pyarrow.types as types

    kind = column.type
    if types.is_dictionary(kind):
        kind = kind.value_type
    cells: list[Any] = column.to_pylist()
    if types.is_boolean(kind):
        return [_BOOLEANS[cell] for cell in cells]
    if (
        types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_string(kind)
        or types.is_large_string(kind)
        or types.is_null(kind)
    ):
        return cells
    _refuse(document, f"column {name!r} has the type {kind}", "unsupported-column")

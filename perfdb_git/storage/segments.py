"""One record set as columns: the index file made from one Git blob, and its reader.

A segment depends on the blob's bytes and on nothing else, so commits, branches and clones share
it. Its blocks are the columns' raw little-endian numbers, mapped into memory when read.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

from perfdb_git.errors import InvalidInputError
from perfdb_git.formats.digests import sha256_hex
from perfdb_git.formats.strict_json import read_json_rows
from perfdb_git.model.findings import Finding
from perfdb_git.storage.block_file import BlockFile, Buffer, pack_block_file
from perfdb_git.storage.record_columns import (
    BadRowsError,
    ColumnData,
    column_findings,
    read_columns,
    row_findings,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from perfdb_git.formats.schemas import SchemaStore

    FloatArray: TypeAlias = NDArray[np.float64]
    IntArray: TypeAlias = NDArray[np.int64]

SEGMENT_MAGIC = b"PERFSEG\n"
RECORD_SET_KIND = "record-set"

_FLOAT = "<f8"
_OFFSET = "<i8"
_CHECK_REMEDY = "run 'perfdb check' to see all faults of all rows"


def split_record_set(
    blob: bytes, *, document: str, schemas: SchemaStore
) -> tuple[dict[str, Any], list[Any]]:
    """Read a record set strictly; the header is judged, the rows are not yet.

    Parameters
    ----------
    blob : bytes
        The whole file.
    document : str
        Its path, for messages.
    schemas : SchemaStore
        Judges the header.

    Returns
    -------
    header : dict
        Every entry but ``rows``.
    rows : list
        The cells as they stand.

    Raises
    ------
    InvalidInputError
        If the file is not strict JSON or its header breaks the schema.
    """
    value: Any = read_json_rows(blob, document=document)
    rows = value.get("rows") if isinstance(value, dict) else None
    # The schema says nothing of cells, and is slow: it need not see them.
    judged = {**value, "rows": []} if isinstance(rows, list) else value
    schemas.validate(judged, document=document, expected_kind=RECORD_SET_KIND)
    header = {key: item for key, item in value.items() if key != "rows"}
    return header, value["rows"]


def record_set_findings(
    header: Mapping[str, Any], rows: list[Any], *, document: str
) -> list[Finding]:
    """Return every fault of a record set's columns and rows that the schema cannot see."""
    findings = column_findings(header, document=document)
    return findings + row_findings(rows, header["columns"], document=document)


def build_segment(blob: bytes, *, document: str, schemas: SchemaStore) -> bytes:
    """Return the segment of a record set.

    Parameters
    ----------
    blob : bytes
        The whole file.
    document : str
        Its path, for messages.
    schemas : SchemaStore
        Judges the header.

    Raises
    ------
    InvalidInputError
        If the record set is invalid; of several bad rows the first is named.
    """
    header, rows = split_record_set(blob, document=document, schemas=schemas)
    faults = column_findings(header, document=document)
    if faults:
        raise _as_error(faults)
    try:
        columns = read_columns(rows, header["columns"])
    except BadRowsError:
        faults = row_findings(rows, header["columns"], document=document)
        raise _as_error(faults) from None
    blocks: list[bytes] = []
    content = {
        "sha256": sha256_hex(blob),
        "rows": len(rows),
        "header": header,
        "columns": [_place(column, blocks) for column in columns],
    }
    return pack_block_file(SEGMENT_MAGIC, content, blocks)


@contextmanager
def without_garbage_collection() -> Iterator[None]:
    """Spare the collector the rows of many record sets: it would walk them and find no cycle."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _place(column: ColumnData | None, blocks: list[bytes]) -> dict[str, Any] | None:
    """Append a column's blocks and return their numbers."""
    if column is None:
        return None
    place: dict[str, Any] = {"values": len(blocks), "offsets": None}
    blocks.append(column.values.astype(_FLOAT, copy=False).tobytes())
    if column.offsets is not None:
        place["offsets"] = len(blocks)
        blocks.append(column.offsets.astype(_OFFSET, copy=False).tobytes())
    return place


def _as_error(faults: list[Finding]) -> InvalidInputError:
    first = faults[0]
    more = f" (and {len(faults) - 1} more faults)" if len(faults) > 1 else ""
    return InvalidInputError(
        first.message + more,
        code=first.code,
        document=first.document,
        pointer=first.pointer,
        remedy=_CHECK_REMEDY if more else first.remedy,
    )


class Segment:
    """Reader of one segment.

    Parameters
    ----------
    buffer : bytes, memoryview or mmap
        The whole file.

    Attributes
    ----------
    sha256 : str
        Content address of the record-set file.
    row_count : int
        How many rows it has.
    header : mapping
        The record set's header as its JSON states it.

    Raises
    ------
    DamagedFileError
        If the file is not what was written; from every method, the first time it reads a column.
    """

    def __init__(self, buffer: Buffer) -> None:
        self._file = BlockFile(buffer, magic=SEGMENT_MAGIC)
        content = self._file.content
        self.sha256: str = content["sha256"]
        self.row_count: int = content["rows"]
        self.header: Mapping[str, Any] = content["header"]
        self._places: list[dict[str, Any] | None] = content["columns"]

    def values(self, column: int) -> FloatArray | None:
        """Return a column's numbers, read-only.

        Parameters
        ----------
        column : int
            Its place in the header.

        Returns
        -------
        array or None
            Shape ``(row_count,)``, NaN for null; for a column of sample arrays shape
            ``(n_samples,)``, see `offsets`. None for a source column.
        """
        import numpy as np

        place = self._places[column]
        if place is None:
            return None
        return np.frombuffer(self._file.block(place["values"]), dtype=_FLOAT)

    def offsets(self, column: int) -> IntArray | None:
        """Return where each row's samples begin and end in `values`.

        Returns
        -------
        array or None
            Shape ``(row_count + 1,)``; None where the column has one number a row.
        """
        import numpy as np

        place = self._places[column]
        if place is None or place["offsets"] is None:
            return None
        return np.frombuffer(self._file.block(place["offsets"]), dtype=_OFFSET)

    def states(self, rows: Sequence[int], cells: Sequence[tuple[Any, ...]]) -> bool:
        """Tell whether the segment holds exactly these numbers.

        Parameters
        ----------
        rows : sequence of int
            Row numbers, from 0.
        cells : sequence of tuple
            Each row as its Git object has it; source cells are not compared.
        """
        if not all(len(row) == len(self._places) for row in cells):
            return False
        columns = zip(*cells, strict=True)
        return all(self._holds(place, rows, column) for place, column in enumerate(columns))

    def _holds(self, column: int, rows: Sequence[int], cells: tuple[Any, ...]) -> bool:
        import numpy as np

        values, offsets = self.values(column), self.offsets(column)
        if values is None:
            return True
        if offsets is not None:
            return all(
                values[offsets[row] : offsets[row + 1]].tolist() == _samples(cell)
                for row, cell in zip(rows, cells, strict=True)
            )
        try:
            stated = np.array(cells, dtype=np.float64)  # None becomes NaN
        except (TypeError, ValueError):
            return False
        return bool(np.array_equal(values[list(rows)], stated, equal_nan=True))


def _samples(cell: Any) -> list[Any]:
    return [] if cell is None else cell if isinstance(cell, list) else [cell]

"""Exported rows as Parquet and Arrow files, written in groups of rows.

pyarrow is an optional extra and slow to import; only the two formats that need it do.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, BinaryIO, Protocol

from perfdb_git.errors import MissingExtraError
from perfdb_git.exports.columns import ExportColumn
from perfdb_git.exports.record_rows import Constant, RowBlock
from perfdb_git.model.values import JsonValue

ROW_GROUP_ROWS = 65_536
"""Rows of a Parquet row group or Arrow batch: small record sets share one, large ones are split."""

METADATA_KEY = "perfdb"


class _Sink(Protocol):
    def write_table(self, table: Any) -> None: ...

    def close(self) -> None: ...


class ArrowEncoder:
    """Turns blocks of rows into record batches.

    Parameters
    ----------
    columns : sequence of ExportColumn
        The columns of the table.
    metadata : mapping
        What the file says of itself, under the key ``perfdb`` as JSON; its plain texts stand as
        keys of their own too, such as ``perfdb.commit``.

    Attributes
    ----------
    schema : pyarrow.Schema
        Of the table.
    """

    def __init__(self, columns: Sequence[ExportColumn], metadata: Mapping[str, JsonValue]) -> None:
        self.schema = _schema(columns, metadata)

    def encode(self, block: RowBlock) -> Any:
        """Return some rows as a record batch."""
        import pyarrow as pa

        arrays = [
            _array(cells, block.row_count, field.type)
            for cells, field in zip(block.cells, self.schema, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


class ArrowWriter:
    """Collects record batches and writes them a row group at a time.

    Parameters
    ----------
    stream : BinaryIO
        Where the bytes go; it need not be seekable, and stays open.
    encoder : ArrowEncoder
        What encodes the rows.
    parquet : bool
        Whether to write Parquet, or else the Arrow file format.
    """

    def __init__(self, stream: BinaryIO, encoder: ArrowEncoder, *, parquet: bool) -> None:
        self._schema = encoder.schema
        self._waiting: list[Any] = []
        self._waiting_rows = 0
        self._parquet = parquet
        self._sink = self._opened(stream)

    def _opened(self, stream: BinaryIO) -> _Sink:
        import pyarrow as pa

        file = pa.PythonFile(stream, mode="w")
        if self._parquet:
            import pyarrow.parquet

            # Snappy and data pages of version 1, the defaults, are what every reader has.
            return pyarrow.parquet.ParquetWriter(file, self._schema)  # type: ignore[no-any-return]
        # LZ4 is the default of Feather files.
        options = pa.ipc.IpcWriteOptions(compression="lz4")
        return pa.ipc.new_file(file, self._schema, options=options)  # type: ignore[no-any-return]

    def append(self, encoded: Any) -> None:
        """Append a record batch."""
        self._waiting.append(encoded)
        self._waiting_rows += encoded.num_rows
        if self._waiting_rows >= ROW_GROUP_ROWS:
            self._flush()

    def close(self) -> None:
        """Write what is left, and the end of the file."""
        if self._waiting_rows:
            self._flush()
        self._sink.close()

    def _flush(self) -> None:
        import pyarrow as pa

        table = pa.Table.from_batches(self._waiting, self._schema)
        self._waiting, self._waiting_rows = [], 0
        # Each chunk would become a batch of its own in an Arrow file.
        self._sink.write_table(table if self._parquet else table.combine_chunks())


def require_pyarrow(*, parquet: bool) -> None:
    """Refuse work that could not be written.

    Raises
    ------
    MissingExtraError
        Without pyarrow.
    """
    try:
        import pyarrow  # noqa: F401
    except ImportError as error:
        form = "Parquet" if parquet else "Arrow"
        raise MissingExtraError("tables", f"writing {form} files") from error


def _schema(columns: Sequence[ExportColumn], metadata: Mapping[str, JsonValue]) -> Any:
    import pyarrow as pa

    types = {
        "text": pa.string(),
        "integer": pa.int64(),
        "number": pa.float64(),
        "boolean": pa.bool_(),
        "numbers": pa.list_(pa.float64()),
        "texts": pa.list_(pa.string()),
    }
    fields = [
        pa.field(column.name, types[column.type], metadata=_field_metadata(column))
        for column in columns
    ]
    plain = {
        f"{METADATA_KEY}.{key}": value for key, value in metadata.items() if isinstance(value, str)
    }
    return pa.schema(fields, metadata={METADATA_KEY: json.dumps(metadata), **plain})


def _field_metadata(column: ExportColumn) -> dict[str, str]:
    facts = {
        "description": column.description,
        "role": column.role,
        "of": column.of,
        "unit": column.unit,
        "statistic": column.statistic,
    }
    return {key: value for key, value in facts.items() if value is not None}


def _array(cells: Sequence[Any] | Constant, count: int, kind: Any) -> Any:
    import pyarrow as pa

    if isinstance(cells, Constant):
        return pa.repeat(pa.scalar(cells.value, kind), count)
    return pa.array(cells, kind)

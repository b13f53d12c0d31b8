"""The columns of one Parquet table as numpy arrays: numbers, and labels as codes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from perfdb_git.errors import InvalidInputError, MissingExtraError
from perfdb_git.importers.tables import check_parquet_size

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Codes: TypeAlias = NDArray[np.int64]
    Numbers: TypeAlias = NDArray[np.int64] | NDArray[np.float64]

Label: TypeAlias = "str | bool | None"


class ArrowColumns:
    """A whole table, each column read once.

    Parameters
    ----------
    content : bytes
        The Parquet file.
    document : str
        Its name, for messages.

    Raises
    ------
    MissingExtraError
        Without pyarrow.
    InvalidInputError
        'broken-table', 'file-too-large', 'too-many-rows', 'repeated-column' or
        'unsupported-column'.
    """

    def __init__(self, content: bytes, *, document: str) -> None:
        self._document = document
        self._table = _read(content, document)
        self._codes: dict[str, tuple[Codes, tuple[Label, ...]]] = {}
        self.text_names: tuple[str, ...] = ()
        self.number_names: tuple[str, ...] = ()
        for name, kind in zip(self._table.column_names, self._table.schema.types, strict=True):
            if _is_number(kind):
                self.number_names += (name,)
            elif _is_label(kind):
                self.text_names += (name,)
            else:
                raise InvalidInputError(
                    f"column {name!r} has the type {kind}",
                    code="unsupported-column",
                    document=document,
                )

    def __len__(self) -> int:
        return int(self._table.num_rows)

    @property
    def names(self) -> Sequence[str]:
        """Names of all columns, in their order."""
        return list(self._table.column_names)

    def is_integer(self, name: str) -> bool:
        """Tell whether a column of numbers holds integers."""
        import pyarrow.types as types

        return bool(types.is_integer(self._table.schema.field(name).type))

    def numbers(self, name: str) -> Numbers:
        """Return a column of numbers.

        Returns
        -------
        array
            Shape ``(n_rows,)``; int64 where the column holds integers and all are known, else
            float64 with NaN for unknown cells.
        """
        import numpy as np

        column = self._table.column(name)
        values = column.to_numpy()
        # Unsigned numbers beyond int64 become floats, which are judged as integers all the same.
        fits = values.dtype.kind == "i" or (values.dtype.kind == "u" and not (values >> 63).any())
        kind: type[np.int64] | type[np.float64] = np.int64 if fits else np.float64
        numbers: Numbers = values.astype(kind, copy=False)
        return numbers

    def codes(self, name: str) -> tuple[Codes, tuple[Label, ...]]:
        """Return a column of labels.

        Returns
        -------
        codes : array
            Shape ``(n_rows,)``: the place of each row's label.
        labels : tuple
            Distinct labels; None for empty cells.
        """
        import numpy as np
        import pyarrow

        if name not in self._codes:
            column = self._table.column(name).combine_chunks()
            if not pyarrow.types.is_dictionary(column.type):
                column = column.dictionary_encode(null_encoding="encode")
            labels = tuple(column.dictionary.to_pylist())
            codes = column.indices.to_numpy(zero_copy_only=False)
            if column.indices.null_count:
                codes = np.where(np.isnan(codes), len(labels), codes)
                labels = (*labels, None)
            self._codes[name] = codes.astype(np.int64), labels
        return self._codes[name]


def _read(content: bytes, document: str) -> Any:
    try:
        # Late: pyarrow is an optional extra, and slow to import.
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise MissingExtraError("tables", "importing aiconfigurator's tables") from error
    try:
        file = pyarrow.parquet.ParquetFile(pyarrow.BufferReader(content))
        check_parquet_size(file.metadata, document)
        # One thread: more would cost CPU time, and the work here is elsewhere.
        table = file.read(use_threads=False)
    except (pyarrow.ArrowException, OSError) as error:
        raise InvalidInputError(
            f"is not a readable Parquet file: {error}", code="broken-table", document=document
        ) from error
    if len(set(table.column_names)) < len(table.column_names):
        raise InvalidInputError(
            "has two columns of one name", code="repeated-column", document=document
        )
    return table


def _is_number(kind: Any) -> bool:
    import pyarrow.types as types

    return bool(types.is_integer(kind) or types.is_floating(kind))


def _is_label(kind: Any) -> bool:
    import pyarrow.types as types

    if types.is_dictionary(kind):
        kind = kind.value_type
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_boolean(kind))

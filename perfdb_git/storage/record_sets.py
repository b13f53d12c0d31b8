"""Record sets of a snapshot: columns from the index, rows from the Git object itself."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from perfdb_git.formats.digests import sha256_hex
from perfdb_git.formats.strict_json import read_json_rows
from perfdb_git.model.records import RecordSetHeader, Statistic
from perfdb_git.storage.catalogue_entries import CatalogueEntry
from perfdb_git.storage.index import EvidenceIndex
from perfdb_git.storage.row_lines import split_row_lines

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    FloatArray: TypeAlias = NDArray[np.float64]
    BoolArray: TypeAlias = NDArray[np.bool_]


class IndexedRecordSet:
    """One record set as the index has it: fast, and never the last word on a value."""

    def __init__(self, index: EvidenceIndex, entry: CatalogueEntry) -> None:
        self._index = index
        self.entry = entry

    @property
    def sha256(self) -> str:
        """Content address of the record-set file."""
        return self.entry.sha256

    @property
    def path(self) -> str:
        """Path of the file in the repository."""
        return self.entry.path

    @property
    def row_count(self) -> int:
        """How many rows the set has, retracted ones included."""
        return self.entry.row_count

    @functools.cached_property
    def header(self) -> RecordSetHeader:
        """The shared facts of the rows."""
        return self._index.header(self.entry)

    def dimension(self, name: str) -> FloatArray | None:
        """Return a dimension's column.

        Returns
        -------
        array or None
            Shape ``(row_count,)``, NaN where unknown, read-only; None if it is no column.
        """
        return self._column(name, "dimension", None)

    def metric(self, name: str, statistic: Statistic) -> FloatArray | None:
        """Return a metric's column; a column of raw sample arrays is None, see `samples`.

        Returns
        -------
        array or None
            Shape ``(row_count,)``, NaN where null, read-only; None if it is no such column.
        """
        return self._column(name, "metric", statistic)

    def samples(self, name: str, row: int) -> FloatArray | None:
        """Return the raw samples of one row.

        Returns
        -------
        array or None
            Shape ``(n_samples,)``, read-only; empty where null, None if it is no such column.
        """
        place = self._place(name, "metric", "sample")
        if place is None:
            return None
        values, offsets = self._index.with_segment(
            self.entry, lambda segment: (segment.values(place), segment.offsets(place))
        )
        if values is None:
            return None
        if offsets is None:
            import numpy as np

            one = values[row : row + 1]
            return one[~np.isnan(one)]
        return values[offsets[row] : offsets[row + 1]]

    def live(self) -> BoolArray | None:
        """Return which rows count.

        Returns
        -------
        array or None
            Shape ``(row_count,)``, False for retracted rows; None when none is retracted.
        """
        import numpy as np

        retracted = self.entry.retracted
        if retracted is None:
            return np.zeros(self.row_count, dtype=np.bool_)
        if not retracted:
            return None
        mask = np.ones(self.row_count, dtype=np.bool_)
        mask[list(retracted)] = False
        return mask

    def _column(self, name: str, role: str, statistic: str | None) -> FloatArray | None:
        place = self._place(name, role, statistic)
        if place is None:
            return None
        return self._index.with_segment(
            self.entry,
            lambda segment: None if segment.offsets(place) is not None else segment.values(place),
        )

    def _place(self, name: str, role: str, statistic: str | None) -> int | None:
        for place, column in enumerate(self.entry.header["columns"]):
            if (column["name"], column["role"], column.get("statistic")) == (name, role, statistic):
                return place
        return None


class StatedRecordSet:
    """What a record-set file itself says: its address, its header and any of its rows.

    Only the rows asked for are parsed where the file's layout allows it.

    Parameters
    ----------
    blob : bytes
        The whole file.
    document : str
        Its path, for messages.

    Attributes
    ----------
    sha256 : str
        Content address.
    header : mapping
        Every entry of the document but ``rows``.
    row_count : int
        How many rows there are.

    Raises
    ------
    InvalidInputError
        If the file is not strict JSON; from `rows` too.
    """

    def __init__(self, blob: bytes, *, document: str) -> None:
        self.sha256 = sha256_hex(blob)
        self.size = len(blob)
        self._document = document
        self._lines = split_row_lines(blob)
        self._rows: Sequence[Any] = ()
        self.header: Mapping[str, Any]
        if self._lines is None:
            value: Any = read_json_rows(blob, document=document)
            self._rows = value["rows"]
            self.header = {key: item for key, item in value.items() if key != "rows"}
            self.row_count = len(self._rows)
        else:
            self.header = self._lines.header(document=document)
            self.row_count = self._lines.count

    def rows(self, numbers: Sequence[int]) -> dict[int, tuple[Any, ...]]:
        """Return the cells of some rows by number; rows that the file does not have are left out.

        Parameters
        ----------
        numbers : sequence of int
            From 0.
        """
        there = [row for row in numbers if 0 <= row < self.row_count]
        if self._lines is None:
            return {row: tuple(self._rows[row]) for row in there}
        values = self._lines.rows(there, document=self._document)
        return {row: tuple(value) for row, value in zip(there, values, strict=True)}

"""Columns of a record set as typical values and coordinates by row, for comparisons in bulk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from perfdb_git.operations.units import UNITS
from perfdb_git.providers.observations import CENTERS
from perfdb_git.storage.catalogue_entries import CatalogueEntry
from perfdb_git.storage.index import EvidenceIndex
from perfdb_git.storage.record_columns import ColumnData
from perfdb_git.storage.segments import Segment

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    FloatArray: TypeAlias = NDArray[np.float64]

RawHeader: TypeAlias = Mapping[str, Any]
"""A header as its JSON states it, accepted by the schema."""


def indexed_columns(index: EvidenceIndex, entry: CatalogueEntry) -> list[ColumnData | None]:
    """Return a record set's columns from the index, None for source columns."""
    return index.with_segment(entry, lambda segment: _columns(segment, entry.header))


def _columns(segment: Segment, header: RawHeader) -> list[ColumnData | None]:
    found: list[ColumnData | None] = []
    for place in range(len(header["columns"])):
        values = segment.values(place)
        data = None
        if values is not None:
            data = ColumnData(values=values, offsets=segment.offsets(place))
        found.append(data)
    return found


def typical_values(
    header: RawHeader, columns: Sequence[ColumnData | None], rows: int
) -> dict[str, FloatArray]:
    """Return what each row says of each metric.

    Parameters
    ----------
    header : mapping
        As its JSON states it.
    columns : sequence of ColumnData or None
        One entry a column.
    rows : int
        How many rows there are.

    Returns
    -------
    dict of str to array
        By metric, shape ``(rows,)``, in SI units, NaN where a row has none: the median of raw
        samples, else the first of median, mean, p50 and min that is known.
    """
    import numpy as np

    found: dict[str, FloatArray] = {}
    for statistic in ("sample", *CENTERS):
        for column, data in zip(header["columns"], columns, strict=True):
            if column["role"] != "metric" or column["statistic"] != statistic or data is None:
                continue
            unit = UNITS[column["unit"]]
            values = _medians(data, rows) * unit.numerator / unit.denominator
            known = found.setdefault(column["name"], np.full(rows, np.nan))
            found[column["name"]] = np.where(np.isnan(known), values, known)
    return found


def _medians(data: ColumnData, rows: int) -> FloatArray:
    import numpy as np

    if data.offsets is None:
        return data.values
    medians = np.full(rows, np.nan)
    for row in range(rows):
        samples = data.values[data.offsets[row] : data.offsets[row + 1]]
        if len(samples):
            medians[row] = np.median(samples)
    return medians


def dimension_columns(
    header: RawHeader, columns: Sequence[ColumnData | None]
) -> dict[str, FloatArray]:
    """Return the dimensions that change from row to row, shape ``(rows,)``, NaN where unknown."""
    return {
        column["name"]: data.values
        for column, data in zip(header["columns"], columns, strict=True)
        if column["role"] == "dimension" and data is not None
    }

"""Rows of a record set as text, written by column.

Formatting a million rows cell by cell takes seconds; Arrow joins whole columns. The text is that of
`perfdb_git.formats.canonical.canonical_record_set`, which a test holds it to.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from perfdb_git.formats.canonical import ROW_SEPARATOR, float_text

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Numbers: TypeAlias = NDArray[np.int64] | NDArray[np.float64]

CellTexts: TypeAlias = Any
"""A pyarrow string array, one cell a row."""


def cell_texts(values: Numbers) -> CellTexts:
    """Return each number as canonical JSON has it; NaN is ``null``.

    Parameters
    ----------
    values : array
        Shape ``(n_rows,)``, integers within ±(2⁵³ - 1) or finite floats.
    """
    import numpy as np
    import pyarrow

    if values.dtype.kind == "i":
        return pyarrow.array(values).cast(pyarrow.string())
    # repr is the shortest text that reads back equal; whole numbers and unknown ones have another.
    texts = list(map(repr, values.tolist()))
    odd = np.flatnonzero(np.isnan(values) | (values == np.floor(values)))
    for place in odd.tolist():
        value = float(values[place])
        texts[place] = "null" if value != value else float_text(value)
    return pyarrow.array(texts, type=pyarrow.string())


def row_texts(columns: Sequence[CellTexts]) -> str:
    """Return the cells of all rows, ready to stand between the brackets of ``rows``.

    Parameters
    ----------
    columns : sequence of pyarrow string arrays
        At least one, all of one length, which is not 0.
    """
    import pyarrow
    import pyarrow.compute

    rows = pyarrow.compute.binary_join_element_wise(*columns, ", ")
    whole = pyarrow.ListArray.from_arrays(pyarrow.array([0, len(rows)], pyarrow.int32()), rows)
    text: str = pyarrow.compute.binary_join(whole, ROW_SEPARATOR)[0].as_py()
    return text

"""The rows of one operation in one table: judged, grouped by their labels, sorted by key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

from perfdb_git.importers.aiconfigurator.arrow_columns import ArrowColumns, Label
from perfdb_git.importers.aiconfigurator.meaning import Metric, Operation
from perfdb_git.model.vocabulary import Vocabulary
from perfdb_git.operations.element_sizes import ELEMENT_BYTES

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Integers: TypeAlias = NDArray[np.int64]
    Numbers: TypeAlias = NDArray[np.int64] | NDArray[np.float64]
    Mask: TypeAlias = NDArray[np.bool_]

MESSAGE = "message_bytes"


@dataclass(frozen=True, slots=True, kw_only=True)
class RowGroup:
    """Rows that agree in every label: ``[start, stop)`` of the sorted rows."""

    labels: Mapping[str, Label]
    start: int
    stop: int

    def __len__(self) -> int:
        return self.stop - self.start


@dataclass(frozen=True, slots=True, kw_only=True)
class SortedRows:
    """Parallel columns of one operation's rows, sorted by group, then dimensions, then file order.

    Attributes
    ----------
    operation : Operation
        What the rows are observations of.
    groups : tuple of RowGroup
        Together all rows.
    dimensions : mapping
        Numeric dimensions in the vocabulary's order, shape ``(n_rows,)`` each.
    metrics : tuple of (Metric, array)
        Shape ``(n_rows,)`` each; NaN where the source has 0 for a time that it cannot tell.
    sources : mapping
        Numeric columns that are neither, under their upstream names.
    row_numbers : array
        Shape ``(n_rows,)``: places of the rows in the file, from 0.
    repeated : array
        Shape ``(n_rows,)``: whether another row of the group has the same dimensions.
    """

    operation: Operation
    groups: tuple[RowGroup, ...]
    dimensions: Mapping[str, Numbers]
    metrics: tuple[tuple[Metric, Numbers], ...]
    sources: Mapping[str, Numbers]
    row_numbers: Integers
    repeated: Mask

    def __len__(self) -> int:
        return len(self.repeated)


def select_rows(columns: ArrowColumns, operation: Operation) -> Mask:
    """Return which rows of a table are observations of an operation; shape ``(n_rows,)``."""
    import numpy as np

    mask = np.ones(len(columns), dtype=np.bool_)
    wanted = [("op_name", operation.op_names)] if operation.op_names else []
    if operation.where is not None:
        wanted.append((operation.where[0], (operation.where[1],)))
    for name, accepted in wanted:
        codes, labels = columns.codes(name)
        mask &= np.array([label in accepted for label in labels], dtype=np.bool_)[codes]
    return mask


def sort_rows(
    columns: ArrowColumns,
    operation: Operation,
    rows: Integers,
    *,
    sources: Sequence[str],
    vocabulary: Vocabulary,
) -> SortedRows:
    """Group and sort some rows of a table.

    Parameters
    ----------
    columns : ArrowColumns
        The table.
    operation : Operation
        What its columns mean; it names no others.
    rows : array
        Places of rows that were judged good, ascending.
    sources : sequence of str
        Numeric columns to keep with the source.
    vocabulary : Vocabulary
        Gives the order of the dimensions.
    """
    import numpy as np

    dimensions = _dimensions(columns, operation, rows, vocabulary)
    codes = _group_codes(columns, rows)
    # lexsort is stable, so repeats stay in the order of the file; its last key counts first.
    order = np.lexsort([*reversed(list(dimensions.values())), codes])
    codes, rows = codes[order], rows[order]
    dimensions = {name: values[order] for name, values in dimensions.items()}
    starts = np.flatnonzero(np.diff(codes, prepend=codes[:1] - 1)).tolist()
    groups = tuple(_groups(columns, rows, [*starts, len(rows)]))
    return SortedRows(
        operation=operation,
        groups=groups,
        dimensions=dimensions,
        metrics=tuple(
            (metric, _resolved(metric, columns.numbers(name)[rows]))
            for name, metric in operation.metrics.items()
        ),
        sources={name: columns.numbers(name)[rows] for name in sources},
        row_numbers=rows,
        repeated=_repeated(codes, dimensions),
    )


def _dimensions(
    columns: ArrowColumns, operation: Operation, rows: Integers, vocabulary: Vocabulary
) -> dict[str, Numbers]:
    found = {
        dimension: columns.numbers(name)[rows] for name, dimension in operation.numbers.items()
    }
    if operation.message is not None:
        found[MESSAGE] = columns.numbers(operation.message)[rows] * _element_bytes(
            columns, operation, rows
        )
    entry = vocabulary.operations[operation.name]
    shape = [name for name in (*entry.shape, *entry.optional) if name in found]
    return {name: found[name] for name in (*shape, *(n for n in found if n not in shape))}


def _element_bytes(columns: ArrowColumns, operation: Operation, rows: Integers) -> Integers:
    import numpy as np

    name, text = next(
        (name, text) for name, text in operation.texts.items() if text.dimension == "dtype"
    )
    codes, labels = columns.codes(name)
    table = text.table or {}
    sizes = [int(ELEMENT_BYTES.get(table.get(str(label)) or "", 0)) for label in labels]
    result: Integers = np.array(sizes, dtype=np.int64)[codes[rows]]
    return result


def _group_codes(columns: ArrowColumns, rows: Integers) -> Integers:
    """Number the combinations of labels, in the order of the labels' first rows."""
    import numpy as np

    combined: Integers = np.zeros(len(rows), dtype=np.int64)
    for name in columns.text_names:
        codes, labels = columns.codes(name)
        if len(labels) > 1:
            combined = combined * len(labels) + codes[rows]
            # Renumbered each time, so that many labels cannot overflow.
            combined = np.unique(combined, return_inverse=True)[1].astype(np.int64)
    return combined


def _groups(columns: ArrowColumns, rows: Integers, bounds: Sequence[int]) -> Iterator[RowGroup]:
    coded = {name: columns.codes(name) for name in columns.text_names}
    for start, stop in pairwise(bounds):
        first = rows[start]
        labels = {name: known[codes[first]] for name, (codes, known) in coded.items()}
        yield RowGroup(labels=labels, start=start, stop=stop)


def _resolved(metric: Metric, values: Numbers) -> Numbers:
    """Replace 0 by NaN where no such time can be."""
    import numpy as np

    if metric.zero or not bool((values == 0).any()):
        return values
    return np.where(values == 0, np.nan, values)


def _repeated(codes: Integers, dimensions: Mapping[str, Numbers]) -> Mask:
    import numpy as np

    same = np.ones(max(len(codes) - 1, 0), dtype=np.bool_)
    for values in (codes, *dimensions.values()):
        same &= values[1:] == values[:-1]
    repeated: Mask = np.zeros(len(codes), dtype=np.bool_)
    repeated[1:] |= same
    repeated[:-1] |= same
    return repeated

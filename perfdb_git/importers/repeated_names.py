"""Rows of a table that share a benchmark's name, and cannot be told from repeats of each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from perfdb_git.importers.cells import Fault
from perfdb_git.importers.layouts import folded_name
from perfdb_git.model.mapping import DimensionSource, OperationMapping

_NAME = "benchmark"
"""Operation, and its dimension, whose workload is known by a name alone."""


def repeated_name_faults(
    operation: OperationMapping,
    sources: Mapping[str, DimensionSource],
    columns: Sequence[Mapping[str, Sequence[object]]],
    positions: Sequence[str],
) -> list[tuple[int, Fault]]:
    """Return a fault for each row whose name another row has with the same dimensions.

    Names that differ in case or white space alone are one. Rows of raw samples are repetitions. A
    summary is of a whole run: two of one name are as
    likely two benchmarks, and pooled they would be neither.

    Parameters
    ----------
    operation : OperationMapping
        Operation of the rows, with the metrics that are read.
    sources : mapping of str to DimensionSource
        Where each dimension comes from, the mapping's shared ones included.
    columns : sequence of mapping of str to sequence
        Cells by column, one a row, of everything that tells rows apart.
    positions : sequence of str
        Place of each row, as messages name it.

    Returns
    -------
    list of (int, Fault)
        Index of the row, and what is wrong with it; empty for other operations.
    """
    statistics = {metric.statistic for metric in operation.metrics}
    source = sources.get(_NAME)
    column = None if source is None else source.column
    if operation.operation != _NAME or column is None or "sample" in statistics:
        return []
    names = next(group[_NAME] for group in columns if _NAME in group)
    by_key: dict[tuple[object, ...], list[int]] = {}
    folded = [folded_name(name) if isinstance(name, str) else name for name in names]
    cells = [
        folded if title == _NAME else values for group in columns for title, values in group.items()
    ]
    for index in range(len(positions)):
        by_key.setdefault(tuple(values[index] for values in cells), []).append(index)
    return [
        (
            index,
            Fault(column, _reason(names[index], [i for i in same if i != index], names, positions)),
        )
        for same in by_key.values()
        if len(same) > 1 and isinstance(names[same[0]], str)
        for index in same
    ]


def _reason(
    name: object, others: Sequence[int], names: Sequence[object], positions: Sequence[str]
) -> str:
    places = ", ".join(
        positions[i] if names[i] == name else f"{positions[i]} (as {names[i]!r})" for i in others
    )
    return (
        f"{name!r} stands at {places} too: two benchmarks of one name; list a column that tells "
        "them apart in source_columns, or rename one"
    )

"""What came into a series beside what was there, as points of size and measured value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from perfdb_git.model.vocabulary import Vocabulary
from perfdb_git.review.series_rows import (
    SeriesRows,
    main_metric,
    numeric_names,
    read_rows,
    si_unit,
)
from perfdb_git.review.touched import TouchedSeries

MOST_POINTS = 1500
"""Of each kind; evenly spread over the rows where there are more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesPoints:
    """Points of one series.

    Attributes
    ----------
    kind, device, operation : str
        The series.
    size : str
        What the sizes are: the product of the dimensions that vary.
    metric, unit : str
        What was measured, and the SI unit of the values.
    known, added : tuple of (float, float)
        Size and value, both positive.
    known_rows, added_rows : int
        Rows that the points stand for.
    """

    kind: str
    device: str
    operation: str
    size: str
    metric: str
    unit: str
    known: tuple[tuple[float, float], ...]
    added: tuple[tuple[float, float], ...]
    known_rows: int
    added_rows: int


def series_points(
    touched: Sequence[TouchedSeries], vocabulary: Vocabulary
) -> tuple[SeriesPoints, ...]:
    """Return the points of every series with added records and a dimension that varies."""
    found = (_points(series, vocabulary) for series in touched if series.added)
    return tuple(points for points in found if points is not None)


def _points(series: TouchedSeries, vocabulary: Vocabulary) -> SeriesPoints | None:
    metric = main_metric(series.added[0])
    names = numeric_names([*series.known, *series.added], vocabulary)
    added = read_rows(series.added, vocabulary, names=names)
    known = read_rows(series.known, vocabulary, names=names)
    varying = _varying(np.concatenate([known.values, added.values]))
    if metric is None or not varying:
        return None
    name, unit = metric
    return SeriesPoints(
        kind=series.key.kind,
        device=series.key.device,
        operation=series.key.operation,
        size=" × ".join(names[place] for place in varying),
        metric=name,
        unit=si_unit(name, unit),
        known=_pairs(known, varying),
        added=_pairs(added, varying),
        known_rows=len(known),
        added_rows=len(added),
    )


def _varying(values: np.ndarray) -> list[int]:
    found = []
    for place in range(values.shape[1]):
        column = values[:, place]
        column = column[~np.isnan(column)]
        if len(column) and column.min() < column.max():
            found.append(place)
    return found


def _pairs(rows: SeriesRows, varying: Sequence[int]) -> tuple[tuple[float, float], ...]:
    # Where zero is legal it says that a part is absent, which leaves the size as it is.
    sizes = np.maximum(rows.values[:, varying], 1.0).prod(axis=1)
    good = np.flatnonzero(np.isfinite(sizes) & (rows.centers > 0))
    step = max(1, -(-len(good) // MOST_POINTS))
    chosen = good[::step]
    return tuple(zip(sizes[chosen].tolist(), rows.centers[chosen].tolist(), strict=True))

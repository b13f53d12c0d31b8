"""Distance from queries to the nearest record of the sets that a calibration was trained on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from perfdb_git.analysis.coordinate_join import CoordinateJoin
from perfdb_git.model.calibration import Calibration, CalibrationSlice
from perfdb_git.providers.evidence import EvidenceReader, RecordSetView

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.spatial import cKDTree

    from perfdb_git.providers.evidence import BoolArray, FloatArray

    Columns: TypeAlias = Mapping[str, NDArray[Any]]

_FEW_COMPARISONS = 2**27
"""Queries times records up to which looking at each record beats importing and making a tree."""


class TrainingPoints:
    """The records with the terms of a slice, by the logarithms of its inputs.

    The record sets are those that the slice names. Its held-out rows stand in them too and count:
    a query at one of them is answered by the record itself, and near one the distance can be
    smaller than that to the nearest record of the fit.

    Parameters
    ----------
    evidence : EvidenceReader
        Records of the snapshot.
    calibration : Calibration
        The revision.
    item : CalibrationSlice
        One slice of it.
    is_zero_legal : callable
        Tells for a dimension whether distances are those of 1 + value.
    """

    def __init__(
        self,
        evidence: EvidenceReader,
        calibration: Calibration,
        item: CalibrationSlice,
        is_zero_legal: Callable[[str], bool],
    ) -> None:
        self._shifts = {name: 1.0 if is_zero_legal(name) else 0.0 for name in calibration.inputs}
        terms = {**calibration.terms, **item.terms}
        found = [
            np.column_stack(list(_inputs_of(record_set, calibration.inputs, mask).values()))
            for record_set in _record_sets(evidence, calibration, item)
            if (mask := _with_terms(record_set, terms)) is not None
        ]
        sizes = np.concatenate([np.empty((0, len(calibration.inputs))), *found])
        logs = self._logs(sizes)
        is_finite = np.isfinite(logs).all(axis=1)
        self._sizes = sizes[is_finite]
        # A column at a time is compared far faster than rows of a few numbers each.
        self._columns: FloatArray = np.ascontiguousarray(logs[is_finite].T)

    def octaves(self, inputs: Columns) -> FloatArray:
        """Return the largest difference of log2 to the nearest record, least over all records.

        Parameters
        ----------
        inputs : Mapping[str, ndarray]
            Every input, ``(n,)``.

        Returns
        -------
        ndarray of float64
            Shape ``(n,)``; NaN where the snapshot no longer has the records, and at a zero that
            has no logarithm.
        """
        sizes = np.column_stack([inputs[name] for name in self._shifts])
        asked = self._logs(sizes)
        distances = np.full(len(asked), np.nan)
        known = np.isfinite(asked).all(axis=1)
        if len(self._sizes) and known.any():
            distances[known] = self._nearest(sizes[known], asked[known])
        return distances

    def _nearest(self, sizes: FloatArray, asked: FloatArray) -> FloatArray:
        if len(asked) == 1:
            return self._by_comparison(asked)
        # A query at a record is found at once; the others are compared.
        distances = np.zeros(len(asked))
        between = self._join.cells(list(sizes.T), len(sizes)) < 0
        count = int(between.sum())
        # Both take differences and their maximum alike, so that their figures agree in every bit.
        if count * len(self._sizes) <= _FEW_COMPARISONS:
            distances[between] = self._by_comparison(asked[between])
        else:
            distances[between] = self._tree.query(asked[between], p=np.inf)[0]
        return distances

    def _by_comparison(self, asked: FloatArray) -> FloatArray:
        least = np.empty(len(asked))
        for place, row in enumerate(asked):
            farthest = np.zeros(len(self._sizes))
            for column, value in zip(self._columns, row, strict=True):
                np.maximum(farthest, np.abs(column - value), out=farthest)
            least[place] = farthest.min()
        return least

    @cached_property
    def _join(self) -> CoordinateJoin:
        return CoordinateJoin(list(self._sizes.T), len(self._sizes))

    @cached_property
    def _tree(self) -> cKDTree:
        from scipy.spatial import cKDTree

        return cKDTree(np.unique(self._columns.T, axis=0))

    def _logs(self, sizes: FloatArray) -> FloatArray:
        with np.errstate(divide="ignore", invalid="ignore"):
            shifts = np.array(list(self._shifts.values()))
            return np.asarray(np.log2(sizes + shifts), np.float64)


def _inputs_of(
    record_set: RecordSetView, names: tuple[str, ...], mask: BoolArray
) -> dict[str, FloatArray]:
    found = {}
    for name in names:
        column = record_set.dimension(name)
        # What the set does not know either becomes NaN.
        stated = record_set.header.context.get(name) if column is None else column
        found[name] = np.broadcast_to(np.asarray(stated, np.float64), mask.shape)[mask]
    return found


def _record_sets(
    evidence: EvidenceReader, calibration: Calibration, item: CalibrationSlice
) -> Iterator[RecordSetView]:
    wanted = set(item.training.record_sets)
    for key in evidence.series_keys():
        if (key.operation, key.device) == (calibration.operation, calibration.device):
            yield from (found for found in evidence.record_sets(key) if found.sha256 in wanted)


def _with_terms(
    record_set: RecordSetView, terms: Mapping[str, float | str | None]
) -> BoolArray | None:
    """Return the live rows that have the terms; ``None`` where the context rules all out."""
    live = record_set.live()
    mask = np.ones(record_set.row_count, np.bool_) if live is None else live.copy()
    for name, value in terms.items():
        if value is None:
            continue
        stated = record_set.header.context.get(name)
        if stated is not None and stated != value:
            return None
        column = record_set.dimension(name) if stated is None else None
        if column is not None and not isinstance(value, str):
            mask &= column == value
    return mask

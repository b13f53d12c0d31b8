"""Distance from a query to the nearest record of the sets that a calibration was trained on."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from perfdb_git.model.calibration import Calibration, CalibrationSlice
from perfdb_git.providers.evidence import EvidenceReader, RecordSetView

if TYPE_CHECKING:
    from perfdb_git.providers.evidence import BoolArray


def nearest_training_octaves(
    evidence: EvidenceReader,
    calibration: Calibration,
    item: CalibrationSlice,
    inputs: Mapping[str, float],
    is_zero_legal: Callable[[str], bool],
) -> float | None:
    """Return the largest |log2 ratio| to the nearest record with the slice's terms.

    The record sets are those that the slice names. Its held-out rows stand in them too and count:
    a query at one of them is answered by the record itself, and near one the distance can be
    smaller than that to the nearest record of the fit.

    Returns
    -------
    float or None
        ``None`` where the snapshot no longer has the records.
    """
    least = math.inf
    for record_set in _record_sets(evidence, calibration, item):
        mask = _with_terms(record_set, {**calibration.terms, **item.terms})
        if mask is None:
            continue
        worst = np.ones(record_set.row_count)
        for name, value in inputs.items():
            stated = record_set.header.context.get(name)
            column = record_set.dimension(name)
            recorded = np.asarray(stated if column is None else column, np.float64)
            shift = 1.0 if is_zero_legal(name) else 0.0
            with np.errstate(divide="ignore", invalid="ignore"):
                ratio = (recorded + shift) / (value + shift)
                worst = np.maximum(worst, np.maximum(ratio, 1 / ratio))
        found = worst[mask & np.isfinite(worst)]
        least = min(least, float(found.min(initial=math.inf)))
    return math.log2(least) if math.isfinite(least) else None


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

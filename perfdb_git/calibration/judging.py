"""Held-out rows beside what a calibration revision says of them, from its stored parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from perfdb_git.analysis.conformal import log_interval
from perfdb_git.calibration.reports import Predictions, held_out_report, size_decades
from perfdb_git.calibration.selection import SelectedRecords
from perfdb_git.calibration.slices import (
    columns_of,
    octaves_outside,
    of_operation,
    sizes_of,
    with_terms,
)
from perfdb_git.calibration.splits import Assignment
from perfdb_git.calibration.work_columns import with_work_inputs
from perfdb_git.model.calibration import Calibration, CalibrationSlice
from perfdb_git.model.held_out import HeldOutReport
from perfdb_git.model.vocabulary import Vocabulary
from perfdb_git.providers.fitted_models import decode_model

if TYPE_CHECKING:
    from numpy.typing import NDArray

    FloatArray: TypeAlias = NDArray[np.float64]
    BoolArray: TypeAlias = NDArray[np.bool_]

SIZE_DECADE = "size_decade"
_DTYPE = "dtype"
_MOST_GROUPS = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedRows:
    """Held-out rows with their answers, all of one length; see `Predictions`.

    ``size`` is the product of a row's inputs, ``groupings`` its label by grouping.
    """

    predictions: Predictions
    size: FloatArray
    groupings: Mapping[str, Sequence[object]]

    def report(self, response: str) -> HeldOutReport:
        """Return the held-out report."""
        return held_out_report(self.predictions, response=response, groupings=self.groupings)


def judge(
    calibration: Calibration,
    assignments: Mapping[str, Assignment],
    vocabulary: Vocabulary,
    *,
    document: str,
) -> JudgedRows:
    """Answer every held-out row of a revision's splits.

    Parameters
    ----------
    calibration : Calibration
        The revision; nothing but its stored parameters answers.
    assignments : mapping of str to Assignment
        Every split that a slice names, by its SHA-256.
    vocabulary : Vocabulary
        Tells where zero is a legal size.
    document : str
        Path of the revision, for messages.
    """
    splits = dict.fromkeys(item.split for item in calibration.slices)
    rows = [
        _judge_split(calibration, sha256, assignments[sha256], vocabulary, document)
        for sha256 in splits
    ]
    records = [item.records for item in rows]
    ids = [name for item in rows for name in item.records.ids()]
    first = np.zeros(len(ids), dtype=np.bool_)
    first[np.unique(np.array(ids), return_index=True)[1]] = True
    size = np.concatenate([item.size for item in rows])[first]
    predicted, width, octaves = (
        np.concatenate([getattr(item, name) for item in rows])[first]
        for name in ("predicted", "width", "octaves")
    )
    lower, upper = log_interval(predicted, width)
    measured = np.concatenate([some.metric(calibration.response) for some in records])[first]
    predictions = Predictions(
        ids=[name for name, kept in zip(ids, first.tolist(), strict=True) if kept],
        measured=measured,
        predicted=predicted,
        lower=lower,
        upper=upper,
        level=_level(calibration),
        extrapolated=octaves > 0,
    )
    groupings: dict[str, Sequence[object]] = {
        **_term_groupings(calibration, records, first),
        SIZE_DECADE: size_decades(size),
    }
    return JudgedRows(predictions=predictions, size=size, groupings=groupings)


@dataclass(frozen=True, slots=True, kw_only=True)
class _SplitRows:
    """Held-out records of one split; a prediction of NaN is a refusal."""

    records: SelectedRecords
    size: FloatArray
    predicted: FloatArray
    width: FloatArray
    octaves: FloatArray


def held_out_of(assignment: Assignment, operation: str) -> SelectedRecords:
    """Return the held-out records of one operation."""
    records = assignment.records
    return records.subset(assignment.held_out & of_operation(records, operation))


def _judge_split(
    calibration: Calibration,
    split: str,
    assignment: Assignment,
    vocabulary: Vocabulary,
    document: str,
) -> _SplitRows:
    records = held_out_of(assignment, calibration.operation)
    records = with_work_inputs(records, calibration.inputs, vocabulary)
    count = len(records)
    predicted, width = np.full((2, count), np.nan)
    octaves, asked = np.zeros(count), np.zeros(count, dtype=np.bool_)
    for number, item in enumerate(calibration.slices):
        if item.split != split:
            continue
        terms = {**calibration.terms, **item.terms}
        mask = with_terms(records, terms) & ~asked
        if not mask.any():
            continue
        asked |= mask
        columns = columns_of(
            records.subset(mask),
            calibration.inputs,
            terms,
            calibration.operation,
        )
        octaves[mask] = octaves_outside(columns, item.domain, vocabulary)
        where = f"/slices/{number}"
        predicted[mask], width[mask] = _answers(
            calibration, item, columns, octaves[mask], document, where
        )
    # Without an interval there is no answer.
    predicted[np.isnan(width)] = np.nan
    columns = columns_of(records, calibration.inputs, {}, calibration.operation)
    size = np.broadcast_to(sizes_of(columns, calibration.inputs), count)
    return _SplitRows(records=records, size=size, predicted=predicted, width=width, octaves=octaves)


def _answers(
    calibration: Calibration,
    item: CalibrationSlice,
    columns: Mapping[str, NDArray[np.generic]],
    octaves: FloatArray,
    document: str,
    where: str,
) -> tuple[FloatArray, FloatArray]:
    """Return predictions and half-widths of the rows of one slice."""
    found = np.full((2, len(octaves)), np.nan)
    for name, model, mask in (
        ("inside", item.inside, octaves == 0 if item.beyond else octaves >= 0),
        ("beyond", item.beyond, octaves > 0),
    ):
        if model is None or not mask.any():
            continue
        predictor = decode_model(
            model, calibration, document=document, pointer=f"{where}/{name}", terms=item.terms
        )
        some = {
            key: values[mask] if len(values) == len(mask) else values
            for key, values in columns.items()
        }
        found[:, mask] = predictor.predict_with_half_width(some, octaves=octaves[mask])
    return found[0], found[1]


def _level(calibration: Calibration) -> float | None:
    levels = {
        item.inside.interval.level
        for item in calibration.slices
        if item.inside.interval is not None
    }
    return min(levels) if levels else None


def _term_groupings(
    calibration: Calibration, records: Sequence[SelectedRecords], kept: BoolArray
) -> dict[str, Sequence[object]]:
    """Return the labels of every term that tells slices apart, and of data types."""
    names = {name for item in calibration.slices for name in item.terms} | {_DTYPE}
    found: dict[str, Sequence[object]] = {}
    partitions: set[tuple[int, ...]] = set()
    for name in sorted(names - set(calibration.inputs)):
        labels = [value for some in records for value in some.values(name)]
        chosen = [label for label, wanted in zip(labels, kept.tolist(), strict=True) if wanted]
        places: dict[object, int] = {}
        partition = tuple(places.setdefault(label, len(places)) for label in chosen)
        # Terms that always go together are one grouping.
        if 1 < len(places) <= _MOST_GROUPS and partition not in partitions:
            partitions.add(partition)
            found[name] = chosen
    return found

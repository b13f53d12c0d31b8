"""Slices of a fit: records that one model answers for, told apart by the terms they share."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from perfdb_git.calibration.selection import Cell, SelectedRecords
from perfdb_git.calibration.splits import Assignment, lines_digest
from perfdb_git.calibration.work_columns import with_work_inputs
from perfdb_git.errors import InvalidInputError
from perfdb_git.model.calibration import DomainRange, SpecPart, TrainingRecords
from perfdb_git.model.values import Scalar
from perfdb_git.model.vocabulary import Vocabulary
from perfdb_git.operations.features.feature_set import FeatureSet

if TYPE_CHECKING:
    from numpy.typing import NDArray

    BoolArray: TypeAlias = NDArray[np.bool_]
    FloatArray: TypeAlias = NDArray[np.float64]
    Columns: TypeAlias = dict[str, NDArray[Any]]

Terms: TypeAlias = Mapping[str, Scalar | None]

_SERIES = ("operation", "device")


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingSlice:
    """The training records of one slice, and what they have in common.

    ``terms`` are all dimensions with one value, ``None`` where no record knows it; ``pooled``
    are the combinations of dimensions that differ and that the spec pools on purpose. A revision
    has one slice for each combination, all with the same model and training records.
    """

    terms: Terms
    pooled: tuple[Terms, ...]
    records: SelectedRecords

    def all_terms(self) -> list[Terms]:
        """Return the terms of each slice of the revision."""
        return [{**self.terms, **more} for more in self.pooled or ({},)]

    def training(self) -> TrainingRecords:
        """Return what a calibration keeps of the records."""
        return training_records(self.records)

    def name(self, slice_by: Sequence[str]) -> str:
        """Return the slice's own terms as text."""
        return " ".join(f"{name}={self.terms[name]}" for name in slice_by) or "all records"


def training_records(records: SelectedRecords) -> TrainingRecords:
    """Return count, record sets and digest of records."""
    return TrainingRecords(
        records=len(records),
        record_sets=records.record_sets,
        digest=lines_digest(records.ids()),
    )


def of_operation(records: SelectedRecords, operation: str) -> BoolArray:
    """Return the mask of the records of one operation; a split may span several."""
    return with_terms(records, {"operation": operation})


def with_terms(records: SelectedRecords, terms: Terms) -> BoolArray:
    """Return the mask of records that have all these values; ``None`` asks for an unknown one."""
    masks = []
    for block in records.blocks:
        mask = np.ones(len(block.rows), dtype=np.bool_)
        for name, wanted in terms.items():
            cells = block.dimension(name)
            if cells is None:
                mask &= wanted is None
            else:
                mask &= np.fromiter((cell == wanted for cell in cells), np.bool_, len(cells))
        masks.append(mask)
    return np.concatenate([np.empty(0, np.bool_), *masks])


def trained_by(assignment: Assignment, operation: str, terms: Sequence[Terms]) -> SelectedRecords:
    """Return the training records that one of the terms holds for."""
    records = assignment.records
    mask = np.zeros(len(records), dtype=np.bool_)
    for some in terms:
        mask |= with_terms(records, some)
    return records.subset(mask & assignment.train & of_operation(records, operation))


def training_slices(
    part: SpecPart,
    assignment: Assignment,
    *,
    operation: str,
    inputs: Sequence[str],
    vocabulary: Vocabulary,
    document: str,
) -> Iterator[TrainingSlice]:
    """Yield the training records of each slice of a part, sorted by the values of ``slice_by``.

    Raises
    ------
    InvalidInputError
        'varying-dimension' where records of a slice differ in a dimension that is no input, does
        not slice, and is not pooled by the part's terms.
    """
    train = assignment.records.subset(
        assignment.train & of_operation(assignment.records, operation)
    )
    train = with_work_inputs(train, inputs, vocabulary)
    columns = [train.values(name) for name in part.slice_by]
    places: dict[tuple[Cell, ...], list[int]] = {}
    for place, values in enumerate(zip(*columns, strict=True) if columns else [()] * len(train)):
        places.setdefault(values, []).append(place)
    for values in sorted(places, key=repr):
        mask = np.zeros(len(train), dtype=np.bool_)
        mask[places[values]] = True
        records = train.subset(mask)
        known = _values_by_dimension(records, {*inputs, *_SERIES}, vocabulary)
        varying = {name: found for name, found in known.items() if len(found) > 1}
        _require_pooled(varying, part, document)
        terms = {name: next(iter(found)) for name, found in known.items() if len(found) == 1}
        yield TrainingSlice(
            terms=dict(sorted(terms.items())),
            pooled=_combinations(records, sorted(varying)),
            records=records,
        )


def _combinations(records: SelectedRecords, names: Sequence[str]) -> tuple[Terms, ...]:
    """Return every combination of values that some record has."""
    found = set(zip(*(records.values(name) for name in names), strict=True))
    return tuple(dict(zip(names, values, strict=True)) for values in sorted(found, key=repr))


def _values_by_dimension(
    records: SelectedRecords, ignored: Collection[str], vocabulary: Vocabulary
) -> dict[str, set[Cell]]:
    """Return the different values of every matched dimension that any record set speaks of."""
    names = {
        name
        for block in records.blocks
        for name in (
            *block.header.context,
            *(column.name for column in block.header.columns if column.role == "dimension"),
        )
    }
    matched = {name for name, item in vocabulary.dimensions.items() if item.matched}
    return {name: set(records.values(name)) for name in sorted((names & matched) - set(ignored))}


def _require_pooled(varying: Mapping[str, Collection[Cell]], part: SpecPart, document: str) -> None:
    for name, values in varying.items():
        if len(part.terms.get(name, ())) < 2:
            listed = ", ".join(sorted(map(str, values))[:4])
            raise InvalidInputError(
                f"records of one slice differ in {name} ({listed})",
                code="varying-dimension",
                document=document,
                pointer="/parts",
                remedy=f"make {name} an input, slice by it, or list its values in the part's terms",
            )


def columns_of(
    records: SelectedRecords,
    inputs: Sequence[str],
    terms: Terms,
    operation: str,
    features: FeatureSet | None = None,
) -> Columns:
    """Return records as a table of queries: inputs as they are, terms in one row for all.

    A term that the features read and that the slice pools stands beside each row.

    Raises
    ------
    InvalidInputError
        'unknown-input' where a record does not know an input, or a term that features read.
    """
    known = {name: value for name, value in terms.items() if value is not None}
    columns: Columns = {name: np.array([value]) for name, value in known.items()}
    columns["operation"] = np.array([operation])
    for name in inputs:
        _require_known(records, name)
        columns[name] = records.numbers(name)
    for name in () if features is None else features.inputs:
        if name not in columns:
            _require_known(records, name)
            columns[name] = np.array(records.values(name))
    return columns


def _require_known(records: SelectedRecords, name: str) -> None:
    for block in records.blocks:
        cells = block.dimension(name)
        if cells is None or None in cells:
            raise InvalidInputError(
                f"a record does not know {name}, which the model reads",
                code="unknown-input",
                document=block.path,
                remedy="narrow the split's records to those that know it",
            )


def domain_of(columns: Mapping[str, NDArray[Any]], inputs: Sequence[str]) -> dict[str, DomainRange]:
    """Return the range of each input."""
    return {
        name: DomainRange(minimum=float(columns[name].min()), maximum=float(columns[name].max()))
        for name in inputs
    }


def octaves_outside(
    columns: Mapping[str, NDArray[Any]],
    domain: Mapping[str, DomainRange],
    vocabulary: Vocabulary,
) -> FloatArray:
    """Return how many octaves each row lies outside its domain at most, ``(n,)``; 0 inside.

    Where zero is a legal value, octaves are those of 1 + value.
    """
    farthest: FloatArray = np.zeros(1)
    for name, limits in domain.items():
        shift = 1.0 if vocabulary.dimensions[name].zero else 0.0
        values = columns[name]
        # Raw quantities are compared; logarithms only say how far outside.
        outside = (values < limits.minimum) | (values > limits.maximum)
        logs = np.log2(values + shift)
        below = np.log2(limits.minimum + shift) - logs
        above = logs - np.log2(limits.maximum + shift)
        farthest = np.maximum(farthest, np.where(outside, np.maximum(below, above), 0.0))
    return farthest


def sizes_of(columns: Mapping[str, NDArray[Any]], inputs: Sequence[str]) -> FloatArray:
    """Return the product of the inputs of each row, each counted as at least 1."""
    product: FloatArray = np.ones(1)
    for name in inputs:
        product = product * np.maximum(columns[name], 1.0)
    return product

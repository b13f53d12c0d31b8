"""What a fitted form reads of a query, and the physical base whose multiple it predicts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from perfdb_git.errors import UsageError
from perfdb_git.model.calibration import FeatureSet as FeatureReference
from perfdb_git.model.values import Scalar
from perfdb_git.operations.features.feature_set import SUM_OF_PARTS, FeatureSet
from perfdb_git.operations.features.hardware import Hardware
from perfdb_git.operations.features.registry import FEATURE_SETS
from perfdb_git.providers.stored_parameters import ParameterReader, named_order

Columns: TypeAlias = Mapping[str, NDArray[Any]]
Seconds: TypeAlias = NDArray[np.float64]

_PART = "part"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelReads:
    """Declared inputs, features of a set, and bases by name.

    Attributes
    ----------
    inputs : tuple of str
        Dimensions, read as they are.
    features : tuple of str
        Names of single features of the set; none where a form reads all of them.
    bases : tuple of str
        Bases of the set: the form predicts the latency over them. None: it predicts seconds.
    part_weights : Mapping[str, float]
        Learned weights of the base `SUM_OF_PARTS`, by name of the part.
    """

    inputs: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    bases: tuple[str, ...] = ()
    part_weights: Mapping[str, float] = field(default_factory=dict)

    def numbers(self) -> dict[str, float]:
        """Return the names as numbers of a document; see `read_reads`."""
        return (
            named_order("input", self.inputs)
            | named_order("feature", self.features)
            | named_order("base", self.bases)
            | {f"{_PART}.{name}": weight for name, weight in self.part_weights.items()}
        )


def read_reads(reader: ParameterReader, features: FeatureSet | None) -> ModelReads:
    """Return what `ModelReads.numbers` wrote, checked against the feature set."""
    inputs, wanted, bases = (reader.names(prefix) for prefix in ("input", "feature", "base"))
    if features is None and (wanted or bases):
        raise reader.fault("features and bases need a feature set")
    by_text = {name.replace("-", "_"): name for name in _bases_of(features)}
    unknown = [name for name in bases if name not in by_text]
    if unknown:
        raise reader.fault(f"the feature set has no base {unknown[0]}")
    named = tuple(by_text[name] for name in bases)
    weights = _part_weights(reader, features) if SUM_OF_PARTS in named else {}
    return ModelReads(inputs=inputs, features=wanted, bases=named, part_weights=weights)


def _bases_of(features: FeatureSet | None) -> tuple[str, ...]:
    if features is None:
        return ()
    return (*features.bases, *(() if features.parts is None else (SUM_OF_PARTS,)))


def _part_weights(reader: ParameterReader, features: FeatureSet | None) -> dict[str, float]:
    weights = reader.numbers_below(_PART, least=0)
    if features is None or not weights:
        raise reader.fault("a sum of parts needs weights of the feature set's parts")
    return weights


def feature_reference(name: str | None) -> FeatureReference | None:
    """Return ``gemm/1`` as a document states it.

    Raises
    ------
    ValueError
        For a name that is not in the registry.
    """
    if name is None:
        return None
    if name not in FEATURE_SETS:
        raise ValueError(f"no feature set {name!r}")
    plain, _, version = name.rpartition("/")
    return FeatureReference(name=plain, version=int(version))


@dataclass(frozen=True, slots=True, kw_only=True)
class InputReader:
    """Turns columns of queries into what a form reads.

    ``constants`` are terms that the calibration fixes; columns need not repeat them.
    """

    features: FeatureSet | None
    hardware: Hardware | None
    constants: Mapping[str, Scalar]

    def complete(self, columns: Columns) -> dict[str, NDArray[Any]]:
        """Return the columns with the fixed terms; all numbers of length ``n`` or 1."""
        fixed = {name: np.array([value]) for name, value in self.constants.items()}
        return fixed | {name: np.atleast_1d(values) for name, values in columns.items()}

    def described(self, columns: Columns) -> NDArray[np.float32]:
        """Return all features, ``(n, n_features)``."""
        features, hardware = self._both()
        self._refuse_missing(columns, features.inputs)
        return features.compute(columns, hardware)

    def base(self, name: str, columns: Columns, reads: ModelReads) -> Seconds:
        """Return one base, in seconds."""
        features, hardware = self._both()
        self._refuse_missing(columns, features.inputs)
        return features.named_base(name, columns, hardware, reads.part_weights)

    def part_names(self) -> frozenset[str]:
        """Return the names of the set's parts; none where it has no parts."""
        if self.features is None or self.hardware is None or self.features.parts is None:
            return frozenset()
        row = {name: np.array([value]) for name, value in self.features.example.items()}
        return frozenset(self.features.parts(row, self.hardware))

    def read(self, reads: ModelReads, columns: Columns) -> list[Seconds]:
        """Return the declared inputs, then the named features, each float64 ``(n,)``."""
        self._refuse_missing(columns, reads.inputs)
        found = [np.asarray(columns[name], np.float64) for name in reads.inputs]
        if reads.features:
            features, hardware = self._both()
            places = [features.names(hardware).index(name) for name in reads.features]
            table = self.described(columns)
            found += [table[:, place].astype(np.float64) for place in places]
        shape = np.broadcast_shapes(*(column.shape for column in found))
        return [np.ascontiguousarray(np.broadcast_to(column, shape)) for column in found]

    def times_base(self, reads: ModelReads, columns: Columns, values: Seconds) -> Seconds:
        """Return values times the base where the form predicts a multiple of one."""
        return values * self.base(reads.bases[0], columns, reads) if reads.bases else values

    def _both(self) -> tuple[FeatureSet, Hardware]:
        assert self.features is not None
        assert self.hardware is not None
        return self.features, self.hardware

    @staticmethod
    def _refuse_missing(columns: Columns, names: tuple[str, ...]) -> None:
        missing = [name for name in names if name not in columns]
        if missing:
            raise UsageError(
                f"the model reads {', '.join(missing)}",
                code="missing-input",
                remedy="state every input of the calibration, and the terms of its slice",
            )

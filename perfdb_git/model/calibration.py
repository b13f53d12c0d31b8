"""Calibrations: learned response behaviour, with all that is needed to evaluate and to judge it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from perfdb_git.model.held_out import HeldOutReport
from perfdb_git.model.splits import SplitRecipe
from perfdb_git.model.values import Scalar

Family: TypeAlias = Literal[
    "operation-size-efficiency",
    "transfer-size-efficiency",
    "network-efficiency",
    "launch-overhead",
    "contention",
    "scale-offset",
]
Form: TypeAlias = Literal[
    "affine", "step-table", "log-log-curve", "scale-offset", "boosted-trees", "gaussian-process"
]
ArrayType: TypeAlias = Literal[
    "float64", "float32", "int64", "int32", "int16", "int8", "uint32", "uint16", "uint8"
]
BaseKind: TypeAlias = Literal["system-profile", "timing-profile", "stated"]

_OMITTED = {"omit_default": True}


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodedArray:
    """An array of finite numbers as text: little-endian, last index fastest, base64.

    ``data`` holds the bytes themselves, or their zlib stream where ``compression`` says so.
    """

    dtype: ArrayType
    shape: tuple[int, ...]
    compression: Literal["none", "zlib"] = "none"
    data: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """What a fit found, by the names that its form gives."""

    numbers: Mapping[str, float] = field(default_factory=dict, metadata=_OMITTED)
    arrays: Mapping[str, EncodedArray] = field(default_factory=dict, metadata=_OMITTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureSet:
    """A named, versioned function from declared inputs to features."""

    name: str
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalCalibration:
    """How intervals are made from what the fit left unexplained.

    ``folds`` says what the folds behind the residuals left out: rows, shapes or the tail.
    """

    method: str
    version: int
    level: float
    folds: str
    residuals: int
    parameters: Parameters


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedModel:
    """One form with its parameters; ``features`` is ``None`` where it reads the inputs bare."""

    form: Form
    form_version: int
    features: FeatureSet | None
    parameters: Parameters
    interval: IntervalCalibration | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainRange:
    """Smallest and largest value of one input among the training records."""

    minimum: float
    maximum: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingRecords:
    """The records behind a fit: how many, in which sets, and the SHA-256 of their sorted ids."""

    records: int
    record_sets: tuple[str, ...]
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationSlice:
    """One model for the queries that have these terms.

    ``terms`` are the dimensions whose value must be equal, beside those of the calibration;
    ``None`` is one that no training record knows. ``domain`` holds the range of every input.
    ``beyond`` answers outside it; ``None`` refuses there, or ``inside`` extends by its form's own
    rule.
    """

    terms: Mapping[str, Scalar | None]
    domain: Mapping[str, DomainRange]
    training: TrainingRecords
    split: str
    inside: FittedModel
    beyond: FittedModel | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseModel:
    """The physical model whose efficiency is learned, with the numbers that it was used with.

    ``sha256`` is the digest of the profile's file at the time; ``None`` for stated numbers.
    """

    kind: BaseKind
    name: str
    sha256: str | None = None
    component: str | None = None
    numbers: Mapping[str, float] = field(default_factory=dict, metadata=_OMITTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecReference:
    """The calibration spec that was followed."""

    name: str
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """One calibration revision; immutable, a refit is a new file.

    ``inputs`` are the dimensions whose value the models read; ``terms`` the dimensions that are
    equal in all slices. ``libraries`` are the versions that took part in the fit.
    """

    schema: str
    family: Family
    response: str
    operation: str
    device: str
    inputs: tuple[str, ...]
    terms: Mapping[str, Scalar | None]
    base: BaseModel | None
    slices: tuple[CalibrationSlice, ...]
    held_out_report: HeldOutReport
    seed: int
    libraries: Mapping[str, str]
    spec: SpecReference | None = None
    notes: tuple[str, ...] = field(default=(), metadata=_OMITTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecPart:
    """Some of the slices to fit: which records, by which split, into which forms.

    ``terms`` narrows the split's records; there is one slice for each combination of values of
    ``slice_by``. ``forms`` are tried in this order, by error inside the training records alone.
    """

    split: SplitRecipe
    terms: Mapping[str, tuple[Scalar, ...]] = field(default_factory=dict)
    slice_by: tuple[str, ...] = ()
    forms: tuple[Form, ...]
    features: FeatureSet | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecBase:
    """The base model to use: a profile by name, or numbers."""

    kind: BaseKind
    name: str
    component: str | None = None
    numbers: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationSpec:
    """What to fit, written by hand."""

    schema: str
    name: str
    description: str
    family: Family
    response: str
    operation: str
    device: str
    inputs: tuple[str, ...]
    parts: tuple[SpecPart, ...]
    base: SpecBase | None = None
    level: float = 0.9
    seed: int = 0

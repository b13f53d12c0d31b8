"""Record sets, manifests and retractions: the evidence itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from perfdb_git.model.values import JsonValue, Scalar

RecordKind: TypeAlias = Literal["measured", "profiled", "simulated"]
ColumnRole: TypeAlias = Literal["dimension", "metric", "source"]
Statistic: TypeAlias = Literal[
    "sample",
    "mean",
    "median",
    "min",
    "max",
    "std",
    "population_std",
    "count",
    "p05",
    "p10",
    "p25",
    "p75",
    "p90",
    "p95",
    "p99",
    "p999",
]
"""``std`` has the n - 1 divisor, ``population_std`` has n: tools differ, and with three
repetitions the difference is a factor 1.22."""

_OMITTED = {"omit_default": True}
"""Not written where it says nothing: record sets are permanent, and so is every byte of them."""

ROW_NUMBER = "row"
"""Name of the source column that holds the row's number in the imported file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantity:
    """A number with its unit."""

    value: float
    unit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MappingReference:
    """The mapping document that an import used."""

    name: str
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where the rows came from, so that anyone can fetch the same bytes again.

    ``keys`` holds the upstream key columns that are constant in the set, verbatim;
    ``labels`` what the upstream path or archive claimed where that differs from the rows;
    ``skipped`` the rows that an import with ``--skip-bad-rows`` left out, with reasons.
    """

    tool: str
    revision: str | None
    file: str
    sha256: str
    git_blob: str | None
    license: str | None
    keys: Mapping[str, Scalar | bool | None]
    labels: Mapping[str, str]
    importer: str
    mapping: MappingReference | None
    measured_at: str | None
    skipped: tuple[str, ...] = field(default=(), metadata=_OMITTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasurementProtocol:
    """How the numbers were taken; ``None`` is an explicit unknown."""

    warmup: int | None
    repetitions: int | None
    synchronization: str | None
    timer_resolution: Quantity | None
    clock_state: str | None
    power_state: str | None
    measurement_error: Quantity | None
    notes: tuple[str, ...] = field(default=(), metadata=_OMITTED)

    @property
    def grade(self) -> Literal["stated", "partial", "protocol-unknown"]:
        """Say how much of the protocol the source stated."""
        facts = (
            self.warmup,
            self.repetitions,
            self.synchronization,
            self.clock_state,
            self.power_state,
        )
        known = sum(fact is not None for fact in facts)
        if known == 0:
            return "protocol-unknown"
        return "stated" if known == len(facts) else "partial"


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column of a record set.

    A metric has a statistic; every dimension and metric has a unit ("1" for counts).
    """

    name: str
    role: ColumnRole
    unit: str | None = field(default=None, metadata=_OMITTED)
    statistic: Statistic | None = field(default=None, metadata=_OMITTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordSetHeader:
    """The shared facts of the rows of one operation of one session.

    ``context`` holds the dimensions that are constant in the set (all string-valued ones do),
    by flat vocabulary name; ``None`` there is an explicit unknown.
    """

    schema: str
    kind: RecordKind
    session: str
    source: Source
    environment: str
    protocol: MeasurementProtocol
    context: Mapping[str, Scalar | None]
    columns: tuple[Column, ...]
    observed: Mapping[str, JsonValue] = field(default_factory=dict, metadata=_OMITTED)
    null_reasons: Mapping[str, str] = field(default_factory=dict, metadata=_OMITTED)
    extensions: Mapping[str, JsonValue] = field(default_factory=dict, metadata=_OMITTED)

    @property
    def operation(self) -> str:
        """The operation that every row of the set ran."""
        return str(self.context["operation"])

    @property
    def device(self) -> str:
        """The device that every row of the set ran on."""
        return str(self.context["device"])

    @property
    def dimension_columns(self) -> tuple[str, ...]:
        """Names of the dimensions that vary in the set, in column order."""
        return tuple(column.name for column in self.columns if column.role == "dimension")


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What must be equal for two runs to be comparable; content-addressed.

    Boot ids, times, host names and temperatures are not identity and do not belong here.
    """

    schema: str
    device: str | None
    device_count: int | None
    form_factor: str | None
    driver: str | None
    firmware: str | None
    runtimes: Mapping[str, str | None]
    kernel: str | None
    operating_system: str | None
    processor: str | None
    clock_policy: str | None
    power_policy: str | None
    topology: str | None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Retraction:
    """A statement that records are wrong; evidence itself is never deleted.

    ``target`` is a record-set SHA-256, or ``<sha256>#<row>`` for one record.
    """

    schema: str
    target: str
    reason: str
    replacement: str | None
    retracted_on: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesKey:
    """All records of one kind, device and operation."""

    kind: str
    device: str
    operation: str


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedRow:
    """A row as its Git object states it, re-read by object id."""

    record_set: str
    row: int
    cells: tuple[JsonValue, ...]


def record_id(record_set: str, row: int) -> str:
    """Return the id of row ``row`` (from 0) of the record set with that SHA-256."""
    return f"{record_set}#{row}"

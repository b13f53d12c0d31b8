"""Mapping documents: how a foreign table becomes record sets. Nothing is guessed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from perfdb_git.model.records import MeasurementProtocol, RecordKind, Statistic
from perfdb_git.model.values import JsonValue, Scalar

TableFormat: TypeAlias = Literal["csv", "tsv", "jsonl", "parquet"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lookup:
    """A variable or column translated by an explicit table; an unlisted value is an error."""

    of: str
    table: Mapping[str, Scalar | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Derivation:
    """A value computed from columns, variables, earlier derivations and numbers.

    ``formula`` names it; ``lookup`` translates its one argument by ``table`` (the bytes of an
    upstream dtype label, for one), where an unlisted value makes a bad row.
    """

    name: str
    formula: str
    arguments: tuple[str | int | float, ...]
    table: Mapping[str, Scalar | None] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DimensionSource:
    """Where one dimension comes from: a column or derivation, a path variable, or a constant.

    Exactly one of ``column``, ``variable`` and ``value`` is given; ``unknown: true`` states an
    explicit unknown. ``table`` translates a column's upstream terms to canonical ones.
    """

    column: str | None = None
    variable: str | None = None
    value: Scalar | None = None
    unknown: bool = False
    unit: str | None = None
    table: Mapping[str, Scalar | None] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricSource:
    """One metric column: the upstream column, its statistic and unit."""

    column: str
    metric: str
    statistic: Statistic
    unit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelCheck:
    """A row column that should agree with a path variable (a version, usually)."""

    column: str
    variable: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationMapping:
    """One record set per operation (and per combination of string-valued dimensions).

    ``when`` keeps the rows whose columns equal the given texts; ``required`` columns that are
    empty in a row make that row not an observation of this operation.
    """

    operation: str
    keys: Mapping[str, Scalar] = field(default_factory=dict)
    when: Mapping[str, str] = field(default_factory=dict)
    when_present: tuple[str, ...] = ()
    optional: bool = False
    derived: tuple[Derivation, ...] = ()
    dimensions: Mapping[str, DimensionSource]
    metrics: tuple[MetricSource, ...]
    protocol: MeasurementProtocol | None = None
    extensions: Mapping[str, JsonValue] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceStatement:
    """What the mapping states of the source; the revision is given at import."""

    tool: str
    license: str | None
    path: str | None = None
    measured_at: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TableMapping:
    """One mapping document."""

    schema: str
    name: str
    version: int
    description: str
    kind: RecordKind
    format: TableFormat
    source: SourceStatement
    session: str
    environment: Mapping[str, JsonValue]
    protocol: MeasurementProtocol
    variables: Mapping[str, Lookup] = field(default_factory=dict)
    derived: tuple[Derivation, ...] = ()
    dimensions: Mapping[str, DimensionSource] = field(default_factory=dict)
    source_columns: tuple[str, ...] = ()
    ignored_columns: tuple[str, ...] = ()
    label_checks: tuple[LabelCheck, ...] = ()
    operations: tuple[OperationMapping, ...]

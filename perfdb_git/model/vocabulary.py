"""The names that evidence and queries share: every dimension and operation, once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from perfdb_git.model.values import Scalar

DimensionGroup: TypeAlias = Literal[
    "subject", "workload", "shape", "architecture", "deployment", "execution"
]
DimensionType: TypeAlias = Literal["integer", "number", "term", "label"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dimension:
    """One dimension: its type, unit, legal values, and whether a mismatch in knowledge matters.

    A ``term`` has a closed list of canonical values, each with the aliases that typed input may
    use; a ``label`` is free text such as a version. ``shorthands`` are typed values that stand
    for several dimensions at once (a device with its form factor).
    """

    group: DimensionGroup
    type: DimensionType
    description: str
    unit: str | None = None
    zero: bool = False
    material: bool = False
    matched: bool = True
    terms: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    shorthands: Mapping[str, Mapping[str, Scalar]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One operation: its shape and the named formulas of its work.

    ``shape`` lists the dimensions that a roofline needs, ``optional`` further ones that a query
    may state. ``work`` names a registered formula that turns a shape into operations and bytes
    (arithmetic work) or into bytes on the wire (collectives).
    """

    description: str
    shape: tuple[str, ...]
    optional: tuple[str, ...] = ()
    work: str
    engine: Literal["matrix", "vector", "memory", "network"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Vocabulary:
    """All dimensions and operations of one evidence repository at one commit."""

    schema: str
    name: str
    dimensions: Mapping[str, Dimension]
    operations: Mapping[str, Operation]

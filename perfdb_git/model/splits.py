"""Splits: which records a model is fitted on, and which ones only judge it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from perfdb_git.model.records import RecordKind
from perfdb_git.model.values import Scalar

FactName: TypeAlias = Literal["@git_blob", "@sha256", "@file", "@tool", "@session"]
"""Facts of a record set's header that a split may name like a column."""

_OMITTED = {"omit_default": True}


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordSelection:
    """Records of one device: those whose values are among the listed ones.

    ``terms`` are asked of dimensions, by canonical value; ``where`` of upstream columns, as the
    source wrote them (see `KeyText`). A record that does not state a value is not selected.
    """

    device: str
    operations: tuple[str, ...]
    kinds: tuple[RecordKind, ...] = ("measured", "profiled")
    terms: Mapping[str, tuple[Scalar, ...]] = field(default_factory=dict, metadata=_OMITTED)
    where: Mapping[str, tuple[Scalar, ...]] = field(default_factory=dict, metadata=_OMITTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyText:
    """How a record becomes text: ``literals``, then the values of ``columns``, joined.

    A column is looked up among the source columns, then in ``source.keys``, then among the
    dimensions; a name that begins with ``@`` is a fact of the header (`FactName`). ``values``
    writes 8192, ``named`` writes n=8192.
    """

    columns: tuple[str, ...]
    literals: tuple[str, ...] = field(default=(), metadata=_OMITTED)
    form: Literal["values", "named"] = "values"
    separator: str = "|"


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketRange:
    """Buckets from ``at_least`` up to, not including, ``below``."""

    at_least: float
    below: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketRule:
    """Held out by a seeded hash of what has to stay together.

    The text is the seed and the text of each of ``parts``, joined by ``separator``; without parts
    it ends in the record's key. The first ``hex_digits`` digits of its SHA-256 are a number: its
    remainder by ``modulus`` is the bucket, or its share of the largest such number where there is
    no modulus. ``train`` keeps all other records where it is ``None``; records in neither range
    are not used.
    """

    seed: str
    separator: str = "|"
    parts: tuple[KeyText, ...] = field(default=(), metadata=_OMITTED)
    hex_digits: int
    modulus: int | None = None
    held_out: BucketRange
    train: BucketRange | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CutRule:
    """Held out by the size of one dimension: what lies strictly above, or below, ``at``."""

    dimension: str
    at: float
    held_out: Literal["above", "below"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitRecipe:
    """A split before it meets records: exactly one of ``bucket`` and ``cut`` is the rule.

    ``key`` names a record in the membership digest; records of one key fall on one side.
    ``full-row`` keeps the first of the rows of a record set that are equal but for their number.
    """

    name: str
    description: str
    records: RecordSelection
    deduplicate: Literal["none", "full-row"] = "none"
    key: KeyText
    bucket: BucketRule | None = field(default=None, metadata=_OMITTED)
    cut: CutRule | None = field(default=None, metadata=_OMITTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Membership:
    """What a recipe gave for the records of one snapshot, so that anyone can work it out again.

    ``held_out_digest`` is the SHA-256 of the sorted held-out keys, joined by newlines.
    ``record_sets`` pins the evidence: later records do not move the split. ``retracted`` are the
    records of those sets that were retracted by then and therefore left out.
    """

    record_sets: tuple[str, ...]
    retracted: tuple[str, ...] = field(default=(), metadata=_OMITTED)
    records: int
    train_records: int
    held_out_records: int
    unused_records: int
    held_out_keys: int
    held_out_digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """One split document: the recipe and what it gave."""

    schema: str
    recipe: SplitRecipe
    membership: Membership

"""Answers: metrics with uncertainty, validity, provenance, method and diagnostics.

An estimate has no arithmetic operators, and provenance and method have no defaults: a number
without them is not an answer.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from perfdb_git.model.values import JsonValue, Scalar

ESTIMATE_SCHEMA = "perfdb/estimate/v1"

Method: TypeAlias = Literal["measured", "simulated", "analytical", "calibrated", "fallback"]
AlternativeStatus: TypeAlias = Literal["rejected", "unsupported", "not-selected"]
ValidityKind: TypeAlias = Literal["exact", "interpolated", "extrapolated", "modelled", "bound"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Uncertainty:
    """An interval and the named rule that made it.

    ``confidence`` is about the typical value, ``prediction`` about one further run. ``level`` is
    the coverage that the rule gives, which with few samples can be below the level asked for.
    """

    kind: Literal["confidence", "prediction"]
    level: float
    lower: float
    upper: float
    sample_count: int | None
    quantiles: Mapping[str, float] = field(default_factory=dict)
    rule: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricEstimate:
    """One metric in SI units; ``uncertainty`` is ``None`` when the spread is unknown."""

    value: float
    unit: str
    uncertainty: Uncertainty | None

    @property
    def relative_uncertainty(self) -> float | None:
        """Half the width of the interval over the value; ``None`` where it is unknown."""
        if self.uncertainty is None:
            return None
        half = (self.uncertainty.upper - self.uncertainty.lower) / 2
        return half / self.value if self.value > 0 else math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class Validity:
    """How the answer relates to what was measured.

    ``distance_octaves`` is the largest absolute log2 ratio to the nearest evidence, ``None``
    where a model does not rest on records. ``domain`` states the range in which the method is
    meant to hold, by dimension.
    """

    kind: ValidityKind
    distance_octaves: float | None
    domain: Mapping[str, JsonValue] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """Which evidence, at which commit, through which provider revision."""

    provider: str
    revision: str
    record_ids: tuple[str, ...]
    source_revisions: tuple[str, ...]
    calibration: str | None
    commit: str | None
    measured_at: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stochastic:
    """The seed and protocol of an answer that draws random numbers."""

    seed: int
    protocol: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnostics:
    """What a careful reader needs to know before trusting the number."""

    missing_context: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()
    protocol: str | None = None
    breakdown: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CostEstimate:
    """One provider's answer to one query."""

    schema: str = ESTIMATE_SCHEMA
    metrics: Mapping[str, MetricEstimate]
    method: Method
    stochastic: Stochastic | None
    validity: Validity
    provenance: Provenance
    diagnostics: Diagnostics
    extensions: Mapping[str, JsonValue] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class NearMiss:
    """A context that would have been answerable, and what the query would have to change.

    ``changes`` maps dimension names to the recorded values; ``distance_octaves`` is ``None``
    where a term differs, since terms have no distance.
    """

    changes: Mapping[str, tuple[Scalar, ...]]
    distance_octaves: float | None
    records: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CostSupport:
    """Whether a provider can answer a query, found without computing the answer.

    ``blocking`` stops the resolution unless the policy lets it go on to the next tier: the
    provider does hold evidence, but it is ambiguous or contradicts itself.
    """

    provider: str
    answerable: bool
    code: str
    reason: str
    method: Method
    blocking: bool = False
    missing_fields: tuple[str, ...] = ()
    near_misses: tuple[NearMiss, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """How a provider came to its answer or refusal, step by step, for people."""

    provider: str
    revision: str
    steps: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """A source that did not win, and why; ``latency`` in seconds where it had an answer."""

    provider: str
    status: AlternativeStatus
    code: str
    reason: str
    latency: float | None
    near_misses: tuple[NearMiss, ...] = ()

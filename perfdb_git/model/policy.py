"""Resolver policies: which sources may answer, in which order, under which limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from perfdb_git.model.estimate import Method

Tier: TypeAlias = Literal[
    "recorded-measured", "recorded-simulated", "calibrated", "analytical", "fallback"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchingRules:
    """How a query meets records that know more or less than it does.

    ``query_unknown``: a record knows a dimension that the query leaves open; ``unanimous``
    accepts the value that all admissible records share, as a stated assumption. ``material``
    and ``immaterial`` override the vocabulary's default for single dimensions: a record that
    does not know a material dimension which the query states is not admissible.
    """

    query_unknown: Literal["refuse", "unanimous"]
    material: tuple[str, ...] = ()
    immaterial: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ConflictRule:
    """Sessions conflict when max/min of their medians - 1 exceeds ``threshold``."""

    threshold: float
    action: Literal["show", "refuse"]


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalRule:
    """The coverage that intervals are asked to have."""

    level: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds that an answer must keep; ``None`` is no bound."""

    max_age_days: float | None = None
    max_relative_uncertainty: float | None = None
    max_extrapolation_octaves: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationChoice:
    """The calibration revision that may answer for one response, operation and device."""

    response: str
    operation: str
    device: str
    revision: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """One resolver policy; adding a calibration or profile here is the act of promotion."""

    schema: str
    name: str
    description: str
    tiers: tuple[Tier, ...]
    matching: MatchingRules
    conflict: ConflictRule
    interval: IntervalRule
    on_ambiguity: Literal["stop", "next-tier"]
    protocol_unknown: Literal["accept", "refuse"]
    fallback_allowed: bool
    limits: Limits = field(default_factory=Limits)
    methods: tuple[Method, ...] | None = None
    calibrations: tuple[CalibrationChoice, ...] = ()
    system_profiles: Mapping[str, str] = field(default_factory=dict)

"""Resolver policies: which sources may answer, in which order, under which limits."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from perfdb_git.model.estimate import Method

Tier: TypeAlias = Literal[
    "recorded-measured", "recorded-simulated", "calibrated", "analytical", "fallback"
]

_NO_WORD_ON_CLOCKS = "perfdb/policy/v1"


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
class ExtrapolationLimit:
    """How far beyond the evidence one operation on one device is answered.

    It holds where no dimension but those named lies outside what was measured.
    """

    operation: str
    device: str
    dimensions: tuple[str, ...]
    max_octaves: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds that an answer must keep; ``None`` is no bound.

    An entry of ``extrapolation`` takes the place of ``max_extrapolation_octaves`` where it holds.
    """

    max_age_days: float | None = None
    max_relative_uncertainty: float | None = None
    max_extrapolation_octaves: float | None = None
    extrapolation: tuple[ExtrapolationLimit, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationChoice:
    """The calibration revision that may answer for one response, operation and device."""

    response: str
    operation: str
    device: str
    revision: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """One resolver policy; adding a calibration or profile here is the act of promotion.

    ``throttled`` says whether records that were taken under a clock that the device held down may
    answer. A document of version 1 cannot state it and admits them, whatever is passed.
    """

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
    throttled: Literal["accept", "refuse"] = "refuse"
    limits: Limits = field(default_factory=Limits)
    methods: tuple[Method, ...] | None = None
    calibrations: tuple[CalibrationChoice, ...] = ()
    system_profiles: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Give version 1 the meaning that it had before throttled records could be refused."""
        if self.schema == _NO_WORD_ON_CLOCKS:
            object.__setattr__(self, "throttled", "accept")

    def extrapolation_limit(
        self, operation: str, device: str | None, outside: Collection[str]
    ) -> float | None:
        """Return how many octaves beyond the evidence are answered; ``None`` is no limit.

        Parameters
        ----------
        operation, device : str
            What is asked for.
        outside : collection of str
            Dimensions that lie outside what was measured; none where the query lies in a gap.
        """
        for item in self.limits.extrapolation:
            of_query = (item.operation, item.device) == (operation, device)
            if of_query and outside and set(outside) <= set(item.dimensions):
                return item.max_octaves
        return self.limits.max_extrapolation_octaves

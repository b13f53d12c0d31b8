"""Gates: what evidence must reach before it is merged, by response, operation and device."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import TypeVar

_OMITTED = {"omit_default": True}

L = TypeVar("L", "ErrorLimits", "GateLimits")


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorLimits:
    """Limits of one part of a held-out report; ``None`` takes the default, or is no limit there.

    Errors and half widths are in percent, coverages the share of measurements inside their
    interval. An interval that covers too much says too little, so coverage has two limits.
    """

    max_mape_pct: float | None = field(default=None, metadata=_OMITTED)
    max_p95_pct: float | None = field(default=None, metadata=_OMITTED)
    min_coverage: float | None = field(default=None, metadata=_OMITTED)
    max_coverage: float | None = field(default=None, metadata=_OMITTED)
    max_median_half_width_pct: float | None = field(default=None, metadata=_OMITTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class GateLimits:
    """All that is judged of one series; ``None`` takes the default, or is no limit there.

    ``inside`` judges what a held-out report calls interpolated (all of it where it has no parts),
    ``beyond`` what it calls extrapolated, from ``beyond_judged_from`` records on: fewer say
    nothing. ``max_refused_share`` is the share of held-out records without an answer.
    ``max_validation_mape_pct`` judges a simulator's validation. ``roofline_tolerance`` is how much
    faster than the roofline of its device a record may be, as roofline's time / record's time - 1;
    ``max_disagreement`` by how much a new record may differ from what was known, as
    larger / smaller - 1.
    """

    inside: ErrorLimits = field(default_factory=ErrorLimits, metadata=_OMITTED)
    beyond: ErrorLimits = field(default_factory=ErrorLimits, metadata=_OMITTED)
    beyond_judged_from: int | None = field(default=None, metadata=_OMITTED)
    min_held_out_records: int | None = field(default=None, metadata=_OMITTED)
    min_training_records: int | None = field(default=None, metadata=_OMITTED)
    max_refused_share: float | None = field(default=None, metadata=_OMITTED)
    max_validation_mape_pct: float | None = field(default=None, metadata=_OMITTED)
    roofline_tolerance: float | None = field(default=None, metadata=_OMITTED)
    max_disagreement: float | None = field(default=None, metadata=_OMITTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesGates:
    """Limits of one response, operation and device; what they leave open is the default's."""

    response: str
    operation: str
    device: str
    limits: GateLimits


@dataclass(frozen=True, slots=True, kw_only=True)
class Gates:
    """The gates of a repository: defaults, and series that are held to other limits."""

    schema: str
    description: str
    defaults: GateLimits
    series: tuple[SeriesGates, ...] = field(default=(), metadata=_OMITTED)

    def limits_for(self, response: str, operation: str, device: str) -> GateLimits:
        """Return the limits in force for a series, defaults filled in."""
        for item in self.series:
            if (item.response, item.operation, item.device) == (response, operation, device):
                return _filled(item.limits, self.defaults)
        return self.defaults


def _filled(stated: L, defaults: L) -> L:
    """Return limits with each open one taken from the defaults."""
    changes: dict[str, object] = {}
    for item in fields(stated):
        value, default = getattr(stated, item.name), getattr(defaults, item.name)
        if isinstance(value, ErrorLimits):
            changes[item.name] = _filled(value, default)
        elif value is None:
            changes[item.name] = default
    return replace(stated, **changes)  # type: ignore[arg-type]

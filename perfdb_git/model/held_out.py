"""Held-out reports: how far predictions are from measurements that no fit has seen."""

from __future__ import annotations

from dataclasses import dataclass, field

_OMITTED = {"omit_default": True}


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorStatistics:
    """Errors of ``n`` predictions in percent of the measured value.

    Absolute but for ``bias_pct``, the mean signed error (positive: predicted too slow).
    ``coverage`` is the share of measurements inside their interval, ``median_half_width_pct`` the
    median of half the interval's width in percent of the prediction; ``None`` without intervals.
    ``r_squared`` stands beside the others and never alone; ``None`` where it has no meaning.
    """

    n: int
    mape_pct: float
    median_pct: float
    p90_pct: float
    p95_pct: float
    max_pct: float
    bias_pct: float
    coverage: float | None = None
    median_half_width_pct: float | None = None
    r_squared: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportGroup:
    """The records that have one value of one grouping, such as dtype or size decade."""

    by: str
    value: str
    errors: ErrorStatistics


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldOutReport:
    """Errors over held-out records, all together and by group.

    ``held_out`` counts the held-out records, ``refused`` those that got no answer; ``overall``
    covers the rest, ``interpolated`` and ``extrapolated`` its two parts apart. ``records_digest``
    is the SHA-256 of the sorted ids of all held-out records, joined by newlines. ``level`` is the
    coverage that was asked of the intervals.
    """

    schema: str
    response: str
    held_out: int
    refused: int
    records_digest: str
    level: float | None = None
    overall: ErrorStatistics | None
    interpolated: ErrorStatistics | None = None
    extrapolated: ErrorStatistics | None = None
    groups: tuple[ReportGroup, ...] = field(default=(), metadata=_OMITTED)

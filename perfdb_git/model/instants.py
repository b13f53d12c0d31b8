"""Times of measurement as instants."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta, timezone

_EARLIEST_ZONE = timezone(timedelta(hours=14))
"""The zone in which a calendar day begins first."""


def earliest_instant(measured_at: str) -> float:
    """Return the earliest instant that a time of measurement can mean.

    Parameters
    ----------
    measured_at : str
        ISO 8601 time with a zone, or a date, whose zone nobody stated.

    Returns
    -------
    float
        Seconds since 1970-01-01T00:00Z.

    Raises
    ------
    ValueError
        For another text, or a time without a zone.
    """
    if len(measured_at) == len("2026-01-31"):
        day = date.fromisoformat(measured_at)
        return datetime.combine(day, time(), _EARLIEST_ZONE).timestamp()
    moment = datetime.fromisoformat(measured_at)
    if moment.tzinfo is None:
        raise ValueError(f"{measured_at!r} has no time zone")
    return moment.astimezone(UTC).timestamp()

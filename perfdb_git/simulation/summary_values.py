"""Summaries as JSON values."""

from __future__ import annotations

from decimal import Decimal

from perfdb_git.formats.codec import encode
from perfdb_git.formats.json_value import MAX_SAFE_INTEGER, JsonValue


def summary_value(value: object) -> JsonValue:
    """JSON value of a result; a number that readers with float64 would change becomes a string.

    These are integers beyond ±(2**53 - 1), which sums of waits over many jobs reach, and decimals
    that are not the shortest ones of their float64.
    """
    return _safe(encode(value))


def _safe(value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        return {key: _safe(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_safe(item) for item in value]
    if isinstance(value, Decimal):
        nearest = float(value)
        if value != int(value):
            return nearest if Decimal(repr(nearest)) == value else str(value)
        value = int(value)
    if type(value) is int and not -MAX_SAFE_INTEGER <= value <= MAX_SAFE_INTEGER:
        return str(value)
    return value

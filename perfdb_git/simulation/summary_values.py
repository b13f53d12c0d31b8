"""Summaries as JSON values."""

from __future__ import annotations

from perfdb_git.formats.codec import encode
from perfdb_git.formats.json_value import MAX_SAFE_INTEGER, JsonValue


def summary_value(value: object) -> JsonValue:
    """JSON value of a result; an integer beyond ±(2**53 - 1) becomes a string.

    Sums of waits over many jobs reach such integers, which readers with float64 would change.
    """
    return _safe(encode(value))


def _safe(value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        return {key: _safe(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_safe(item) for item in value]
    if type(value) is int and not -MAX_SAFE_INTEGER <= value <= MAX_SAFE_INTEGER:
        return str(value)
    return value

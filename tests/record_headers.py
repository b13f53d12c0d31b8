"""Parts of record-set headers that every test has to state, and few tests are about."""

from __future__ import annotations

from typing import Any


def table_source(**changes: Any) -> dict[str, Any]:
    """Return a source: a table of the tool ``bench``."""
    return {
        "tool": "bench",
        "revision": None,
        "file": "table.csv",
        "sha256": "0" * 64,
        "git_blob": None,
        "license": "MIT",
        "keys": {},
        "labels": {},
        "importer": "table/1",
        "mapping": None,
        "measured_at": None,
        **changes,
    }


def timed_protocol(**changes: Any) -> dict[str, Any]:
    """Return a protocol: 20 repetitions after one warm-up, timed to 1 us, the rest unknown."""
    return {
        "warmup": 1,
        "repetitions": 20,
        "synchronization": None,
        "timer_resolution": {"value": 1, "unit": "us"},
        "clock_state": None,
        "power_state": None,
        "measurement_error": None,
        **changes,
    }


def retraction_document(target: str, reason: str) -> dict[str, Any]:
    """Return a retraction of a record or a record set."""
    return {
        "schema": "perfdb/retraction/v1",
        "target": target,
        "reason": reason,
        "replacement": None,
        "retracted_on": None,
    }

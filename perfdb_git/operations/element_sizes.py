"""Bytes of one element of each data type."""

from __future__ import annotations

from collections.abc import Mapping

ELEMENT_BYTES: Mapping[str, float] = {
    "float64": 8,
    "float32": 4,
    "tf32": 4,
    "float16": 2,
    "bfloat16": 2,
    "float8": 1,
    # Block-scaled: one 4-byte scale for each 128 elements is left out of the traffic.
    "float8_block": 1,
    "float8_e5m2": 1,
    "int8": 1,
    "int4": 0.5,
    "uint8": 1,
    "int32": 4,
    "uint32": 4,
    "int64": 8,
    "uint64": 8,
}
"""Canonical dtype term to bytes."""


def element_bytes(dtype: str) -> float:
    """Return the bytes of one element; KeyError names a dtype without a known size."""
    return ELEMENT_BYTES[dtype]

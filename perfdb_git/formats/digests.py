"""Digests: of bytes, and of values whatever their notation."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any


def sha256_hex(data: bytes) -> str:
    """SHA-256 of bytes as 64 lower-case hexadecimal digits, as ``sha256sum`` prints it."""
    return hashlib.sha256(data).hexdigest()


def canonical_digest(value: object) -> str:
    """``sha256:<hex>`` of a JSON value's canonical text.

    Parameters
    ----------
    value : mapping, sequence or scalar
        Nested `Mapping`, `list` and `tuple` of str, int, float, bool and None. 1 and 1.0 are one
        value, 0.0 and -0.0 too.

    Raises
    ------
    TypeError
        For a value of another type, numpy scalars included.
    ValueError
        For a number that is not finite, an integer beyond ±(2**53 - 1) or half a surrogate pair.

    Notes
    -----
    Source: RFC 8785, JSON Canonicalization Scheme.
    """
    # Late: most commands digest no value.
    import rfc8785

    return "sha256:" + sha256_hex(rfc8785.dumps(_plain(value)))


def _plain(value: object) -> Any:
    """The value as the canonicaliser takes it, with one form for each number."""
    kind = type(value)
    if kind is float:
        assert isinstance(value, float)
        return int(value) if value.is_integer() and abs(value) < 2.0**53 else value
    if value is None or kind is str or kind is bool or kind is int:
        return value
    if isinstance(value, Mapping):
        return {_key(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    raise TypeError(f"{kind.__module__}.{kind.__qualname__} is not a JSON value; convert it first")


def _key(key: object) -> str:
    if type(key) is not str:
        raise TypeError(f"a key must be str, not {type(key).__qualname__}")
    return key

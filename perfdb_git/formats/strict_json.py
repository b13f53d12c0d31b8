"""Strict JSON: what two readers could understand differently is refused.

UTF-8 without a byte order mark, no duplicate keys, no NaN or infinity, no number that float64
would turn into infinity or zero, no integer beyond ±(2**53 - 1), at most 100 levels. Longer
decimals round to float64.
"""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn

from perfdb_git.errors import InvalidInputError
from perfdb_git.formats._located_json import LocatedReader
from perfdb_git.formats.json_value import (
    MAX_DEPTH,
    JsonValue,
    read_decimal,
    read_float,
    read_integer,
)

_orjson: Any
try:
    import orjson as _orjson
except ImportError:
    _orjson = None

# The closing quote is optional so that an open string is consumed at once: a pattern that fails
# there would be tried again from every escaped quote, in quadratic time.
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
_HALF_PAIR = re.compile(
    r"\\u[dD][89abAB]..(?!\\u[dD][c-fC-F])|(?<!\\u[dD][89abAB]..)\\u[dD][c-fC-F]"
)

_ONE_BRACKET = bytes.maketrans(b"{}", b"[]")
_NO_BRACKETS = bytes(byte for byte in range(256) if byte not in b"[]{}")

# Digits become 0, exponent letters e, the decimal point stays; anything else ends a number.
_NUMBER_SHAPE = bytes(
    ord("0") if 48 <= byte <= 57 else byte if byte == 46 else 101 if byte in b"eE" else 32
    for byte in range(256)
)
_LONG_INTEGER = b" " + b"0" * 16
_LONG_EXPONENT = b"e000"
_LONG_DIGITS = b"0" * 200


class _RefusedError(ValueError):
    """The fast reader met something that is illegal; the located reader says what and where."""


def decode_utf8(data: bytes, *, document: str) -> str:
    """Text of a document.

    Parameters
    ----------
    data : bytes
        The whole document.
    document : str
        Its name, for messages.

    Raises
    ------
    InvalidInputError
        If the bytes are not UTF-8, or begin with a byte order mark.
    """
    if data.startswith(b"\xef\xbb\xbf"):
        raise InvalidInputError(
            "begins with a byte order mark",
            code="byte-order-mark",
            document=document,
            line=1,
            remedy="save it as UTF-8 without BOM",
        )
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidInputError(
            f"byte 0x{data[error.start]:02x} at offset {error.start} is not UTF-8",
            code="not-utf8",
            document=document,
            line=data.count(b"\n", 0, error.start) + 1,
            remedy="save it as UTF-8",
        ) from error


def _pairs(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise _RefusedError
    return result


def _constant(_name: str) -> NoReturn:
    raise _RefusedError


class _Decoder(json.JSONDecoder):
    def __init__(self) -> None:
        super().__init__(
            object_pairs_hook=_pairs,
            parse_constant=_constant,
            parse_int=read_integer,
            parse_float=read_float,
        )


class _DecimalDecoder(json.JSONDecoder):
    def __init__(self) -> None:
        super().__init__(
            object_pairs_hook=_pairs,
            parse_constant=_constant,
            parse_int=read_integer,
            parse_float=read_decimal,
        )


_FLOATS = _Decoder()
_DECIMALS = _DecimalDecoder()
_UNJUDGED_NUMBERS = json.JSONDecoder(object_pairs_hook=_pairs, parse_constant=_constant)


def _is_shallow(without_strings: bytes) -> bool:
    brackets = without_strings.translate(_ONE_BRACKET, _NO_BRACKETS)
    for _ in range(MAX_DEPTH):
        if not brackets:
            return True
        brackets = brackets.replace(b"[]", b"")
    return not brackets


def _may_split_a_pair(text: str) -> bool:
    return "\\u" in text and _HALF_PAIR.search(text) is not None


def _may_be_deep(data: bytes) -> bool:
    if data.count(b"[") + data.count(b"{") <= MAX_DEPTH:
        return False
    return not _is_shallow(_STRING.sub(b"", data))


def read_json(data: bytes, *, document: str, decimal: bool = False) -> JsonValue:
    """Value of a JSON document, read strictly.

    Parameters
    ----------
    data : bytes
        The whole document.
    document : str
        Its name, for messages.
    decimal : bool
        Give numbers with a fraction or exponent as exact `decimal.Decimal` instead of float.

    Raises
    ------
    InvalidInputError
        If the document is not strict JSON; with the line, and the pointer of a wrong value.
    """
    text = decode_utf8(data, document=document)
    if not (_may_be_deep(data) or _may_split_a_pair(text)):
        try:
            value: JsonValue = (_DECIMALS if decimal else _FLOATS).decode(text)
        except ValueError:
            pass
        else:
            return value
    return LocatedReader(text, document=document, decimal=decimal).read()


def _has_risky_number(without_strings: bytes) -> bool:
    """Whether a number might overflow, underflow or be too large an integer.

    Below 200 digits in a run and 3 in the exponent a number lies within 1e±300; an integer of 15
    digits is safe.
    """
    shape = b" " + without_strings.translate(_NUMBER_SHAPE, b"+-")
    return _LONG_INTEGER in shape or _LONG_EXPONENT in shape or _LONG_DIGITS in shape


def _keys_and_objects(value: JsonValue) -> tuple[int, int]:
    """Count the keys and the objects of a value, looking into no list of lists."""
    keys = objects = 0
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            objects += 1
            keys += len(item)
            waiting += item.values()
        elif isinstance(item, list) and not (item and isinstance(item[0], list)):
            waiting += item
    return keys, objects


def _decode_fast(data: bytes, without_strings: bytes) -> JsonValue:
    """Decode with orjson, which keeps the last of duplicate keys without a word.

    Every key stands before a colon: where the result has fewer keys than the text has colons
    outside strings, one key stood twice (or an object was overlooked), and the slow reader judges.
    """
    value: JsonValue = _orjson.loads(data)
    written = (without_strings.count(b":"), without_strings.count(b"{"))
    if _keys_and_objects(value) != written:
        raise _RefusedError
    return value


def read_json_rows(data: bytes, *, document: str) -> JsonValue:
    """Value of a JSON document that is mostly numbers: `read_json`, faster.

    The bytes are searched for literals that could break a number rule; only a document which has
    one pays for a Python call per number. orjson reads the rest where the extra ``fast`` is
    installed, the standard library elsewhere; the value is the same.

    Parameters
    ----------
    data : bytes
        The whole document.
    document : str
        Its name, for messages.

    Raises
    ------
    InvalidInputError
        As `read_json`.
    """
    text = decode_utf8(data, document=document)
    without_strings = _STRING.sub(b"", data)
    if (
        _is_shallow(without_strings)
        and not _has_risky_number(without_strings)
        and not _may_split_a_pair(text)
    ):
        try:
            if _orjson is not None:
                return _decode_fast(data, without_strings)
            value: JsonValue = _UNJUDGED_NUMBERS.decode(text)
        except ValueError:
            pass
        else:
            return value
    return read_json(data, document=document)

"""The one canonical JSON layout of documents that are never edited by hand.

Equal values give equal bytes: keys sort by their UTF-8 bytes with ``schema`` first, numbers take
their shortest form (1.0 and 1 are one value, written ``1``), text stays unescaped UTF-8, and the
last byte is a newline. A list of scalars stays on one line, so that diffs are read by rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from json.encoder import encode_basestring
from typing import Any

from perfdb_git.formats.json_value import MAX_SAFE_INTEGER

RECORD_SET_PREFIX = "perfdb/record-set/"

_HEADER_ORDER = (
    "schema",
    "kind",
    "session",
    "source",
    "environment",
    "protocol",
    "context",
    "columns",
)
_INDENT = "  "
_FIRST_UNSAFE = float(MAX_SAFE_INTEGER + 1)


def float_text(value: float) -> str:
    """Return the shortest text of a finite number, as every canonical document has it.

    Raises
    ------
    ValueError
        For an infinite number or NaN.
    """
    if value.is_integer() and -_FIRST_UNSAFE < value < _FIRST_UNSAFE:
        return str(int(value))  # drops ".0", and the sign of a negative zero
    if not math.isfinite(value):
        raise ValueError(f"{value} cannot be written: JSON has no such number")
    return repr(value)


def _integer_text(value: int) -> str:
    if not -MAX_SAFE_INTEGER <= value <= MAX_SAFE_INTEGER:
        raise ValueError(f"integer {value} is beyond ±(2**53 - 1); store it as a string")
    return str(value)


# By exact type: a subclass such as numpy.float64 or an IntEnum may print itself in its own way.
_SCALAR_TEXT: dict[type, Callable[[Any], str]] = {
    float: float_text,
    int: _integer_text,
    str: encode_basestring,
    bool: lambda value: "true" if value else "false",
    type(None): lambda _: "null",
}
_NUMBERS = (float, int)


def _refuse_type(value: object) -> TypeError:
    kind = type(value)
    return TypeError(f"{kind.__module__}.{kind.__qualname__} is not a JSON value; convert it first")


def _scalar(value: object) -> str:
    write = _SCALAR_TEXT.get(type(value))
    if write is None:
        raise _refuse_type(value)
    return write(value)


def _sorted_keys(value: Mapping[str, object]) -> list[str]:
    for key in value:
        if type(key) is not str:
            raise _refuse_type(key)
    # Python orders str by code points, which is the order of the UTF-8 bytes.
    return sorted(value, key=lambda key: (key != "schema", key))


def _compact(value: object) -> str:
    if isinstance(value, Mapping):
        entries = (
            f"{encode_basestring(key)}: {_compact(value[key])}" for key in _sorted_keys(value)
        )
        return "{" + ", ".join(entries) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_compact, value)) + "]"
    return _scalar(value)


def _indented(value: object, margin: str) -> str:
    inner = margin + _INDENT
    if isinstance(value, Mapping):
        if not value:
            return "{}"
        lines = [
            f"{inner}{encode_basestring(key)}: {_indented(value[key], inner)}"
            for key in _sorted_keys(value)
        ]
        return "{\n" + ",\n".join(lines) + f"\n{margin}}}"
    if isinstance(value, (list, tuple)):
        if not any(isinstance(item, (Mapping, list, tuple)) for item in value):
            return _compact(value)
        lines = [inner + _indented(item, inner) for item in value]
        return "[\n" + ",\n".join(lines) + f"\n{margin}]"
    return _scalar(value)


def canonical_document(value: object) -> bytes:
    """Canonical bytes of an immutable document.

    Parameters
    ----------
    value : mapping, sequence or scalar
        Nested `Mapping`, `list` and `tuple` of str, int, float, bool and None.

    Raises
    ------
    TypeError
        For a value of another type, numpy scalars included.
    ValueError
        For a number or text that JSON cannot hold.
    """
    return (_indented(value, "") + "\n").encode("utf-8")


def canonical_record_set(header: Mapping[str, object], rows: Sequence[Sequence[object]]) -> bytes:
    """Canonical bytes of a record set: one line per header entry, column and row.

    Parameters
    ----------
    header : Mapping
        Every entry but ``rows``. Written in a fixed order, entries of other names after those,
        sorted.
    rows : sequence of sequences
        Cells are numbers, None, str, bool or sequences of numbers.

    Raises
    ------
    TypeError
        For a cell or header value of another type, numpy scalars included.
    ValueError
        For a number or text that JSON cannot hold, or a header which has ``rows``.
    """
    return _record_set(header, _lines([_row(row) for row in rows]))


ROW_SEPARATOR = "],\n    ["
"""What stands between the cells of one row and those of the next."""


def canonical_record_set_of_texts(header: Mapping[str, object], rows: str) -> bytes:
    """Canonical bytes of a record set whose rows are written already.

    Parameters
    ----------
    header : Mapping
        As `canonical_record_set` takes it.
    rows : str
        The cells of at least one row, canonical, separated by ``", "`` and rows by
        `ROW_SEPARATOR`.

    Raises
    ------
    TypeError, ValueError
        As `canonical_record_set`, for the header.
    """
    return _record_set(header, _lines([f"[{rows}]"]))


def _record_set(header: Mapping[str, object], rows: str) -> bytes:
    if "rows" in header:
        raise ValueError("the header of a record set has no entry 'rows'")
    known = [key for key in _HEADER_ORDER if key in header]
    others = sorted(key for key in header if key not in _HEADER_ORDER)
    entries = [
        f"{_INDENT}{encode_basestring(key)}: {_header_value(key, header[key])}"
        for key in [*known, *others]
    ]
    entries.append(f'{_INDENT}"rows": {rows}')
    return ("{\n" + ",\n".join(entries) + "\n}\n").encode("utf-8")


def _header_value(key: str, value: object) -> str:
    if key == "columns" and isinstance(value, (list, tuple)):
        return _lines([_compact(column) for column in value])
    return _compact(value)


def _lines(items: Sequence[str]) -> str:
    if not items:
        return "[]"
    inner = _INDENT * 2
    return f"[\n{inner}" + f",\n{inner}".join(items) + f"\n{_INDENT}]"


def _row(row: Sequence[object]) -> str:
    if not isinstance(row, (list, tuple)):
        raise _refuse_type(row)
    try:
        return "[" + ", ".join([_SCALAR_TEXT[type(cell)](cell) for cell in row]) + "]"
    except KeyError:
        return "[" + ", ".join([_cell(cell) for cell in row]) + "]"


def _cell(cell: object) -> str:
    if not isinstance(cell, (list, tuple)):
        return _scalar(cell)
    for sample in cell:
        if type(sample) not in _NUMBERS:
            raise TypeError(f"a cell's array holds numbers, not {type(sample).__qualname__}")
    return "[" + ", ".join([_scalar(sample) for sample in cell]) + "]"


def canonical_bytes(value: object) -> bytes:
    """Canonical bytes of a document in the layout that its schema calls for.

    Parameters
    ----------
    value : mapping, sequence or scalar
        The whole document; a record set is recognised by its ``schema`` and its ``rows``.

    Raises
    ------
    TypeError, ValueError
        As `canonical_document` and `canonical_record_set`.
    """
    if isinstance(value, Mapping) and str(value.get("schema")).startswith(RECORD_SET_PREFIX):
        rows = value.get("rows")
        if isinstance(rows, (list, tuple)):
            return canonical_record_set({k: v for k, v in value.items() if k != "rows"}, rows)
    return canonical_document(value)


def first_uncanonical_line(data: bytes, value: object) -> int | None:
    """First line (from 1) where `data` differs from the canonical bytes of `value`.

    Parameters
    ----------
    data : bytes
        The document as it is stored.
    value : mapping, sequence or scalar
        What was read from it.

    Returns
    -------
    int or None
        None if the bytes are canonical.
    """
    expected = canonical_bytes(value)
    if data == expected:
        return None
    lines = zip(data.splitlines(keepends=True), expected.splitlines(keepends=True), strict=False)
    same = 0
    for found, wanted in lines:
        if found != wanted:
            break
        same += 1
    return same + 1


def is_canonical(data: bytes, value: object) -> bool:
    """Whether `data` are the canonical bytes of `value`, which was read from them."""
    return data == canonical_bytes(value)

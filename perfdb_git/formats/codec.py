"""One encode/decode pair between JSON values and frozen dataclasses.

The schemas judge shape; the codec follows the type hints, and refuses what they do not allow.

Field metadata: ``{"name": "json-key"}`` renames the key; ``{"omit_default": True}`` leaves the
field out when it equals its default.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import types
import typing
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Literal, TypeVar, Union

from perfdb_git.errors import InvalidInputError
from perfdb_git.formats.frozen import FrozenMap, freeze
from perfdb_git.formats.json_value import JsonValue, pointer_of

T = TypeVar("T")
_Decoder = Callable[[Any], Any]

_KIND_NAMES: dict[type, str] = {
    type(None): "null",
    bool: "boolean",
    int: "number",
    float: "number",
    Decimal: "number",
    str: "string",
    list: "array",
    dict: "object",
}


class _MismatchError(Exception):
    """A value does not fit its type; containers add their key or index on the way out."""

    def __init__(self, message: str, code: str, *path: str | int) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.path = list(path)


def decode(cls: type[T], value: object, *, document: str, pointer: str = "") -> T:
    """Object of a dataclass (or of any supported type) from a JSON value.

    Parameters
    ----------
    cls : type
        The class to build.
    value : JSON value
        As a strict reader gave it.
    document : str
        Its name, for messages.
    pointer : str
        JSON pointer of `value` in that document.

    Raises
    ------
    InvalidInputError
        With the pointer of the first value that does not fit.
    TypeError
        If a type hint is of a kind that the codec does not know: a fault in the class.
    """
    try:
        hint: Any = cls
        result: T = _decoder(hint)(value)
    except _MismatchError as mismatch:
        raise InvalidInputError(
            mismatch.message,
            code=mismatch.code,
            document=document,
            pointer=pointer + pointer_of(mismatch.path),
        ) from None
    return result


def encode(value: object) -> JsonValue:
    """JSON value of a dataclass object, or of anything nested in one.

    Raises
    ------
    TypeError
        For an object that is neither a dataclass, an enum, a mapping, a tuple nor a JSON scalar.
    """
    if isinstance(value, enum.Enum):
        return encode(value.value)
    kind = type(value)
    if value is None or kind in (str, int, float, bool, Decimal):
        return typing.cast(JsonValue, value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _encode_fields(value)
    if isinstance(value, Mapping):
        return {_key(key): encode(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [encode(item) for item in value]
    raise TypeError(f"{kind.__module__}.{kind.__qualname__} has no JSON form")


def _key(key: object) -> str:
    if isinstance(key, enum.Enum):
        key = key.value
    if type(key) is not str:
        raise TypeError(f"a key must be str, not {type(key).__qualname__}")
    return key


def _encode_fields(value: object) -> dict[str, JsonValue]:
    result: dict[str, JsonValue] = {}
    cls: Any = type(value)
    for field in _fields(cls):
        item = getattr(value, field.attribute)
        if field.omit_default and field.has_default and item == field.default():
            continue
        result[field.key] = encode(item)
    return result


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Field:
    attribute: str
    key: str
    hint: Any
    has_default: bool
    default: Callable[[], Any]
    omit_default: bool


@functools.cache
def _fields(cls: type) -> tuple[_Field, ...]:
    hints = typing.get_type_hints(cls)
    result = []
    for field in dataclasses.fields(cls):
        if not field.init:
            continue
        default: Callable[[], Any] = functools.partial(getattr, field, "default")
        if field.default_factory is not dataclasses.MISSING:
            default = field.default_factory
        result.append(
            _Field(
                attribute=field.name,
                key=field.metadata.get("name", field.name),
                hint=hints[field.name],
                has_default=not (
                    field.default is dataclasses.MISSING
                    and field.default_factory is dataclasses.MISSING
                ),
                default=default,
                omit_default=bool(field.metadata.get("omit_default", False)),
            )
        )
    return tuple(result)


def _found(value: object) -> str:
    name = _KIND_NAMES.get(type(value), type(value).__name__)
    if isinstance(value, (list, dict)) or value is None:
        return name
    text = repr(value)
    return f"{name} {text if len(text) <= 40 else text[:37] + '...'}"


def _expected(what: str, value: object) -> _MismatchError:
    return _MismatchError(f"expected {what}, found {_found(value)}", "wrong-type")


@functools.cache
def _decoder(hint: Any) -> _Decoder:
    if hint in _SCALARS:
        return _SCALARS[hint]
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is Literal:
        return functools.partial(_decode_choice, {(type(a), a): a for a in arguments})
    if origin is Union or origin is types.UnionType:
        return _union_decoder(arguments)
    if origin is tuple:
        return _tuple_decoder(arguments)
    if isinstance(origin, type) and issubclass(origin, Mapping) and arguments:
        return functools.partial(_decode_mapping, _decoder(arguments[0]), _decoder(arguments[1]))
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return functools.partial(_decode_choice, {(type(m.value), m.value): m for m in hint})
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return functools.partial(_decode_object, hint)
    if isinstance(hint, typing.NewType):
        return _decoder(hint.__supertype__)
    raise TypeError(f"the codec does not know the type hint {hint!r}")


def _decode_str(value: object) -> str:
    if type(value) is not str:
        raise _expected("a string", value)
    return value


def _decode_bool(value: object) -> bool:
    if type(value) is not bool:
        raise _expected("true or false", value)
    return value


def _decode_int(value: object) -> int:
    if type(value) is int:
        return value
    # 1 and 1.0 are one value, whichever the author wrote.
    if (isinstance(value, float) and value.is_integer()) or (
        isinstance(value, Decimal) and value == value.to_integral_value()
    ):
        return int(value)
    raise _expected("an integer", value)


def _decode_float(value: object) -> float:
    if type(value) is float:
        return value
    if type(value) is int or isinstance(value, Decimal):
        return float(value)
    raise _expected("a number", value)


def _decode_decimal(value: object) -> Decimal:
    # Not from float: the digits that the author wrote are lost by then.
    if isinstance(value, Decimal) or type(value) is int:
        return Decimal(value)
    raise _expected("a number read as an exact decimal", value)


def _decode_null(value: object) -> None:
    if value is not None:
        raise _expected("null", value)


_SCALARS: dict[Any, _Decoder] = {
    str: _decode_str,
    bool: _decode_bool,
    int: _decode_int,
    float: _decode_float,
    Decimal: _decode_decimal,
    type(None): _decode_null,
    object: freeze,
    Any: freeze,
}


def _decode_choice(choices: Mapping[tuple[type, Any], Any], value: object) -> Any:
    # With the type in the key, True is no 1.
    if not isinstance(value, (list, dict)) and (type(value), value) in choices:
        return choices[type(value), value]
    names = ", ".join(repr(raw) for _, raw in choices)
    raise _MismatchError(f"expected one of {names}, found {_found(value)}", "wrong-choice")


def _tuple_decoder(arguments: tuple[Any, ...]) -> _Decoder:
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        return functools.partial(_decode_array, _decoder(arguments[0]))
    return functools.partial(_decode_fixed, tuple(_decoder(argument) for argument in arguments))


def _decode_array(item: _Decoder, value: object) -> tuple[Any, ...]:
    if not isinstance(value, (list, tuple)):
        raise _expected("an array", value)
    result: list[Any] = []
    try:
        result.extend(map(item, value))
    except _MismatchError as mismatch:
        # extend() keeps what it had got before the fault, so the length is the index.
        mismatch.path.insert(0, len(result))
        raise
    return tuple(result)


def _decode_fixed(items: tuple[_Decoder, ...], value: object) -> tuple[Any, ...]:
    if not isinstance(value, (list, tuple)) or len(value) != len(items):
        raise _expected(f"an array of {len(items)}", value)
    result: list[Any] = []
    for index, (item, part) in enumerate(zip(items, value, strict=True)):
        try:
            result.append(item(part))
        except _MismatchError as mismatch:
            mismatch.path.insert(0, index)
            raise
    return tuple(result)


def _decode_mapping(key_of: _Decoder, item: _Decoder, value: object) -> FrozenMap[Any]:
    if not isinstance(value, Mapping):
        raise _expected("an object", value)
    result = {}
    for key, part in value.items():
        try:
            result[key_of(key)] = item(part)
        except _MismatchError as mismatch:
            mismatch.path.insert(0, key)
            raise
    return FrozenMap(result)


def _union_decoder(arguments: tuple[Any, ...]) -> _Decoder:
    # An integer must not become a float because the hint names float first.
    order = sorted(arguments, key=lambda hint: hint is float)
    nullable = type(None) in order
    options = tuple(_decoder(hint) for hint in order if hint is not type(None))
    return functools.partial(_decode_union, nullable, options)


def _decode_union(nullable: bool, options: tuple[_Decoder, ...], value: object) -> Any:
    if value is None and nullable:
        return None
    faults: list[_MismatchError] = []
    for option in options:
        try:
            return option(value)
        except _MismatchError as mismatch:
            faults.append(mismatch)
    # The option that fits to the greatest depth is most likely the one that was meant.
    deepest = max(faults, key=lambda fault: len(fault.path))
    if deepest.path or len(faults) == 1:
        raise deepest
    expectations = " or ".join(dict.fromkeys(fault.message for fault in faults))
    raise _MismatchError(expectations, deepest.code)


def _decode_object(cls: type, value: object) -> Any:
    if not isinstance(value, Mapping):
        raise _expected("an object", value)
    fields = _fields(cls)
    arguments: dict[str, Any] = {}
    for field in fields:
        if field.key not in value:
            if not field.has_default:
                raise _MismatchError(f"key {field.key!r} is missing", "missing-key")
            continue
        try:
            arguments[field.attribute] = _decoder(field.hint)(value[field.key])
        except _MismatchError as mismatch:
            mismatch.path.insert(0, field.key)
            raise
    known = {field.key for field in fields}
    for key in value:
        if key not in known:
            raise _MismatchError(f"key {key!r} is unknown", "unknown-key", key)
    try:
        return cls(**arguments)
    except ValueError as error:  # the class's own rules
        raise _MismatchError(str(error), "invalid-value") from error

"""Schema violations in plain words."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

_LIMIT = 60


def describe(error: Any) -> tuple[str, str]:
    """Message and code of a `jsonschema.ValidationError`."""
    keyword = str(error.validator)
    if error.schema is False or error.validator is None:
        return "nothing may stand here", "schema-violation"
    writer = _WRITERS.get(keyword)
    message = writer(error) if writer is not None else _shortened(error.message, 200)
    return message, _CODES.get(keyword, "schema-violation")


def _shortened(text: str, limit: int = _LIMIT) -> str:
    return text if len(text) <= limit else text[: limit - 3] + "..."


def _shown(value: object) -> str:
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return f"an array of {len(value)}"
    return _shortened(json.dumps(value, ensure_ascii=False, default=str))


def _listed(values: Any) -> str:
    return ", ".join(_shown(value) for value in values)


def _unknown_keys(error: Any) -> str:
    known = set(error.schema.get("properties", ()))
    # Keys that `unevaluatedProperties` refuses may be known in a part of the schema that is
    # elsewhere; its message names just those it refuses.
    if error.validator == "unevaluatedProperties":
        unknown = [key for key in error.instance if f"'{key}'" in error.message]
    else:
        unknown = [key for key in error.instance if key not in known]
    message = f"unknown {'key' if len(unknown) == 1 else 'keys'} {_listed(unknown)}"
    return f"{message}; known: {', '.join(sorted(known))}" if known else message


def _missing_keys(error: Any) -> str:
    missing = [key for key in error.validator_value if key not in error.instance]
    return f"missing {'key' if len(missing) == 1 else 'keys'} {_listed(missing)}"


def _wrong_type(error: Any) -> str:
    types = error.validator_value
    names = [types] if isinstance(types, str) else types
    return f"expected {' or '.join(names)}, found {_shown(error.instance)}"


def _no_alternative(error: Any) -> str:
    return f"{_shown(error.instance)} fits none of {len(error.validator_value)} accepted forms"


def _one_of(error: Any) -> str:
    if not error.context:
        return f"{_shown(error.instance)} fits more than one of the accepted forms"
    return _no_alternative(error)


def _comparison(words: str) -> Callable[[Any], str]:
    return lambda error: f"expected {words} {error.validator_value}, found {_shown(error.instance)}"


_WRITERS: dict[str, Callable[[Any], str]] = {
    "additionalProperties": _unknown_keys,
    "unevaluatedProperties": _unknown_keys,
    "required": _missing_keys,
    "type": _wrong_type,
    "enum": lambda e: f"expected one of {_listed(e.validator_value)}, found {_shown(e.instance)}",
    "const": lambda e: f"expected {_shown(e.validator_value)}, found {_shown(e.instance)}",
    "pattern": _comparison("text of the form"),
    "minimum": _comparison("at least"),
    "maximum": _comparison("at most"),
    "exclusiveMinimum": _comparison("more than"),
    "exclusiveMaximum": _comparison("less than"),
    "multipleOf": _comparison("a multiple of"),
    "minItems": lambda e: f"expected {e.validator_value} or more items, found {len(e.instance)}",
    "maxItems": lambda e: f"expected {e.validator_value} or fewer items, found {len(e.instance)}",
    "minProperties": lambda e: (
        f"expected {e.validator_value} or more keys, found {len(e.instance)}"
    ),
    "maxProperties": lambda e: (
        f"expected {e.validator_value} or fewer keys, found {len(e.instance)}"
    ),
    "minLength": lambda e: f"expected {e.validator_value} or more characters: {_shown(e.instance)}",
    "maxLength": lambda e: (
        f"expected {e.validator_value} or fewer characters: {_shown(e.instance)}"
    ),
    "uniqueItems": lambda _: "the items must differ from each other",
    "anyOf": _no_alternative,
    "oneOf": _one_of,
    "not": lambda e: f"{_shown(e.instance)} is excluded here",
}

_CODES = {
    "additionalProperties": "unknown-key",
    "unevaluatedProperties": "unknown-key",
    "required": "missing-key",
    "type": "wrong-type",
    "enum": "wrong-choice",
    "const": "wrong-choice",
}

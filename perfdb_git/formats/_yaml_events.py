"""Values from YAML parser events; imported late because it needs PyYAML.

Events come before any resolver or constructor, so no YAML type rule can have had an effect.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NoReturn

import yaml

from perfdb_git.errors import InvalidInputError
from perfdb_git.formats.json_value import (
    MAX_DEPTH,
    NUMBER,
    SURROGATE,
    JsonValue,
    NumberFaultError,
    pointer_of,
    read_decimal,
    read_float,
    read_integer,
)

_WORDS: dict[str, JsonValue] = {"null": None, "true": True, "false": False}

# What YAML 1.1 or 1.2 readers resolve to something else than a string: compared in lower case,
# wider than either specification, since quoting costs the author nothing.
_OTHER_WORDS = frozenset(
    ["", "~", "null", "true", "false", "yes", "no", "on", "off", "y", "n", "<<", "="]
)
_OTHER_TYPES = re.compile(
    r"""
      [-+]?0x[0-9a-f_]+ | [-+]?0o[0-7_]+ | [-+]?0b[01_]+             # other bases
    | [-+]?(?:[0-9][0-9_]*\.?[0-9_]*|\.[0-9_]+)(?:e[-+]?[0-9_]+)?    # +1  012  1_000  .5  1.
    | [-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?               # 12:30:00
    | [-+]?\.(?:inf|nan)
    | [0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[t\s].*)?                     # dates
    """,
    re.VERBOSE | re.DOTALL,
)

# Libyaml reads over a comment glued to the header of a block scalar, the Python scanner does not.
_GLUED_COMMENT = re.compile(r"[|>][-+0-9]*#")

_Loader = type[yaml.SafeLoader] | type[yaml.CSafeLoader]


def default_loader() -> _Loader:
    """Libyaml's loader where PyYAML was built with it, else the Python one."""
    return getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def build_document(
    text: str, *, document: str, decimal: bool, loader: _Loader | None = None
) -> JsonValue:
    """Value of the one document in `text`.

    Raises
    ------
    InvalidInputError
        At the first fault, with its line.
    """
    events = yaml.parse(text, Loader=loader or default_loader())
    try:
        return _Builder(text, events, document=document, decimal=decimal).build()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise InvalidInputError(
            f"not YAML: {error.problem or error.context}",
            code="yaml-syntax",
            document=document,
            line=_line(mark, text),
        ) from error
    except yaml.YAMLError as error:
        raise InvalidInputError(
            f"not YAML: {error}", code="yaml-syntax", document=document
        ) from error


def _line(mark: Any, text: str) -> int | None:
    if mark is None:
        return None
    # Libyaml counts one line more than there is at the end of a text without a final newline.
    line: int = mark.line + 1
    return max(1, min(line, len(text.splitlines())))


class _Builder:
    def __init__(
        self, text: str, events: Iterator[yaml.Event], *, document: str, decimal: bool
    ) -> None:
        self._text = text
        self._events = events
        self._document = document
        self._decimal = decimal
        self._path: list[str | int] = []
        self._flow_depth = 0

    def build(self) -> JsonValue:
        next(self._events)  # the start of the stream
        start = next(self._events)
        if not isinstance(start, yaml.DocumentStartEvent):
            self._fail(start, "holds no document", "yaml-empty")
        value = self._value(next(self._events), 0)
        next(self._events)  # the end of the document
        after = next(self._events)
        if not isinstance(after, yaml.StreamEndEvent):
            self._fail(after, "holds more than one document", "yaml-several-documents")
        return value

    def _fail(
        self, event: yaml.Event, message: str, code: str, *, remedy: str | None = None
    ) -> NoReturn:
        raise InvalidInputError(
            message,
            code=code,
            document=self._document,
            line=_line(event.start_mark, self._text),
            pointer=pointer_of(self._path),
            remedy=remedy,
        )

    def _value(self, event: yaml.Event, depth: int) -> JsonValue:
        self._refuse_node_properties(event)
        if isinstance(event, yaml.ScalarEvent):
            return self._scalar(event)
        if depth == MAX_DEPTH:
            self._fail(event, f"nesting is deeper than {MAX_DEPTH} levels", "nesting-too-deep")
        assert isinstance(event, yaml.CollectionStartEvent)
        is_flow = bool(event.flow_style)
        self._flow_depth += is_flow
        is_mapping = isinstance(event, yaml.MappingStartEvent)
        value = self._mapping(depth + 1) if is_mapping else self._sequence(depth + 1)
        self._flow_depth -= is_flow
        return value

    def _refuse_node_properties(self, event: yaml.Event) -> None:
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None) is not None:
            self._fail(event, "anchors and aliases are not used", "yaml-alias", remedy="repeat it")
        tag = getattr(event, "tag", None)
        if tag is not None:
            self._fail(event, f"tag {tag} is not used", "yaml-tag", remedy="leave it out")

    def _mapping(self, depth: int) -> dict[str, JsonValue]:
        result: dict[str, JsonValue] = {}
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            key = self._key(event)
            self._path.append(key)
            if key in result:
                self._fail(event, f"key {key!r} occurs twice in one mapping", "duplicate-key")
            result[key] = self._value(next(self._events), depth)
            self._path.pop()
        return result

    def _key(self, event: yaml.Event) -> str:
        self._refuse_node_properties(event)
        if not isinstance(event, yaml.ScalarEvent):
            self._fail(event, "a key must be a string", "yaml-key")
        is_plain = event.implicit[0]  # libyaml and the Python scanner differ in `style`
        if is_plain and event.value == "<<":
            self._fail(event, "merge keys are not used", "yaml-merge-key", remedy="repeat the keys")
        if is_plain and (event.value in _WORDS or NUMBER.fullmatch(event.value)):
            self._fail(event, f"key {event.value} is not a string", "yaml-key", remedy="quote it")
        key = self._scalar(event)
        assert isinstance(key, str)
        return key

    def _sequence(self, depth: int) -> list[JsonValue]:
        result: list[JsonValue] = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            self._path.append(len(result))
            result.append(self._value(event, depth))
            self._path.pop()
        return result

    def _scalar(self, event: yaml.ScalarEvent) -> JsonValue:
        text: str = event.value
        if SURROGATE.search(text):
            self._fail(event, "a string holds half of a surrogate pair", "lone-surrogate")
        if not event.implicit[0]:
            mark = event.start_mark
            if mark is not None and _GLUED_COMMENT.match(self._text, mark.index):
                self._fail(event, "a comment needs a space before its '#'", "yaml-syntax")
            return text
        if text in _WORDS:
            return _WORDS[text]
        number = NUMBER.fullmatch(text)
        if number is not None:
            return self._number(event, number)
        self._refuse_ambiguous(event, text)
        return text

    def _refuse_ambiguous(self, event: yaml.ScalarEvent, text: str) -> None:
        # Between brackets the Python scanner ends a scalar at a question mark, libyaml reads on.
        if self._flow_depth and "?" in text:
            self._fail(
                event,
                "'?' in a plain scalar between brackets",
                "yaml-ambiguous-scalar",
                remedy="quote it",
            )
        lowered = text.lower()
        if lowered in _OTHER_WORDS or _OTHER_TYPES.fullmatch(lowered):
            shown = text or "an empty value"
            self._fail(
                event,
                f"{shown} means different things to different YAML readers",
                "yaml-ambiguous-scalar",
                remedy="quote it if it is a string"
                if text
                else "write null, or '' for an empty string",
            )

    def _number(self, event: yaml.ScalarEvent, match: re.Match[str]) -> JsonValue:
        try:
            if match["fraction"] is None and match["exponent"] is None:
                return read_integer(match.group())
            return read_decimal(match.group()) if self._decimal else read_float(match.group())
        except NumberFaultError as fault:
            self._fail(event, str(fault), fault.code, remedy="quote it if it is a string")

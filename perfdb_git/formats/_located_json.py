"""A slow, exact JSON reader that knows the line and pointer of every fault.

`strict_json` turns to it when its fast reader met something it must refuse or cannot judge. It
decides alone what is wrong: the first fault in document order.
"""

from __future__ import annotations

import json
import re
from decimal import Decimal
from typing import NoReturn

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

_SPACE = re.compile(r"[ \t\n\r]*")
_STRING = re.compile(r'"[^"\\\x00-\x1f]*+(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*+)*+"')
_WORDS: tuple[tuple[str, JsonValue], ...] = (("null", None), ("true", True), ("false", False))
_NOT_FINITE = ("NaN", "Infinity", "-Infinity")


class LocatedReader:
    """Recursive-descent reader of one JSON document; the depth cap bounds the recursion."""

    def __init__(self, text: str, *, document: str, decimal: bool) -> None:
        self._text = text
        self._document = document
        self._decimal = decimal
        self._position = 0
        self._path: list[str | int] = []

    def read(self) -> JsonValue:
        """Value of the whole document.

        Raises
        ------
        InvalidInputError
            At the first fault, with its line.
        """
        value = self._value(0)
        if self._peek():
            self._syntax("text after the end of the document")
        return value

    def _peek(self) -> str:
        match = _SPACE.match(self._text, self._position)
        assert match is not None
        self._position = match.end()
        return self._text[self._position : self._position + 1]

    def _fail(self, message: str, code: str, *, remedy: str | None = None) -> NoReturn:
        raise InvalidInputError(
            message,
            code=code,
            document=self._document,
            line=self._text.count("\n", 0, self._position) + 1,
            pointer=None if code == "json-syntax" else pointer_of(self._path),
            remedy=remedy,
        )

    def _syntax(self, message: str) -> NoReturn:
        rest = self._text[self._position : self._position + 20]
        found = repr(rest) if rest else "the end of the document"
        self._fail(f"{message}: found {found}", "json-syntax")

    def _value(self, depth: int) -> JsonValue:
        first = self._peek()
        if first and first in "{[":
            if depth == MAX_DEPTH:
                self._fail(f"nesting is deeper than {MAX_DEPTH} levels", "nesting-too-deep")
            return self._object(depth + 1) if first == "{" else self._array(depth + 1)
        if first == '"':
            return self._string()
        number = NUMBER.match(self._text, self._position)
        if number is not None:
            return self._number(number)
        return self._word()

    def _object(self, depth: int) -> dict[str, JsonValue]:
        self._position += 1
        result: dict[str, JsonValue] = {}
        if self._peek() == "}":
            self._position += 1
            return result
        while True:
            if self._peek() != '"':
                self._syntax("expected a key in double quotes")
            before = self._position
            key = self._string()
            self._path.append(key)
            if key in result:
                self._position = before
                self._fail(f"key {key!r} occurs twice in one object", "duplicate-key")
            if self._peek() != ":":
                self._syntax("expected ':' after a key")
            self._position += 1
            result[key] = self._value(depth)
            self._path.pop()
            if self._closes("}"):
                return result

    def _array(self, depth: int) -> list[JsonValue]:
        self._position += 1
        result: list[JsonValue] = []
        if self._peek() == "]":
            self._position += 1
            return result
        while True:
            self._path.append(len(result))
            result.append(self._value(depth))
            self._path.pop()
            if self._closes("]"):
                return result

    def _closes(self, closing: str) -> bool:
        found = self._peek()
        if found != closing and found != ",":
            self._syntax(f"expected ',' or '{closing}'")
        self._position += 1
        return found == closing

    def _string(self) -> str:
        match = _STRING.match(self._text, self._position)
        if match is None:
            self._syntax("a string is not closed on its line, or holds a wrong escape")
        value = json.loads(match.group())
        assert isinstance(value, str)
        if SURROGATE.search(value):
            self._fail("a string holds half of a surrogate pair", "lone-surrogate")
        self._position = match.end()
        return value

    def _number(self, match: re.Match[str]) -> int | float | Decimal:
        try:
            if match["fraction"] is None and match["exponent"] is None:
                value: int | float | Decimal = read_integer(match.group())
            elif self._decimal:
                value = read_decimal(match.group())
            else:
                value = read_float(match.group())
        except NumberFaultError as fault:
            self._fail(str(fault), fault.code)
        self._position = match.end()
        return value

    def _word(self) -> JsonValue:
        for word, value in _WORDS:
            if self._text.startswith(word, self._position):
                self._position += len(word)
                return value
        for word in _NOT_FINITE:
            if self._text.startswith(word, self._position):
                self._fail(
                    f"{word} is not JSON", "number-not-finite", remedy="write null if unknown"
                )
        return self._syntax("expected a value")

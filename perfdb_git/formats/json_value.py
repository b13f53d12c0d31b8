"""What a strictly read document is made of, and how its numbers are read.

JSON and YAML share these rules, so a value cannot depend on the notation it was written in.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from decimal import Decimal
from typing import TypeAlias

JsonValue: TypeAlias = (
    "bool | int | float | Decimal | str | list[JsonValue] | dict[str, JsonValue] | None"
)
"""``Decimal`` occurs only in documents that were read with ``decimal=True``."""

MAX_SAFE_INTEGER = 2**53 - 1
MAX_DEPTH = 100

NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?P<fraction>\.[0-9]+)?(?P<exponent>[eE][+-]?[0-9]+)?")
SURROGATE = re.compile("[\ud800-\udfff]")

_NON_ZERO_DIGIT = re.compile(r"[1-9]")
_SAFE_DIGITS = len(str(MAX_SAFE_INTEGER))


class NumberFaultError(ValueError):
    """A number literal that no float64 or safe integer can stand for.

    Parameters
    ----------
    message : str
        What is wrong with the literal.
    code : str
        Stable error code.
    """

    def __init__(self, message: str, *, code: str) -> None:
        super().__init__(message)
        self.code = code


def _shown(literal: str) -> str:
    return literal if len(literal) <= 40 else f"{literal[:37]}..."


def read_integer(literal: str) -> int:
    """Integer of a JSON integer literal.

    Raises
    ------
    NumberFaultError
        If it lies beyond ±(2**53 - 1), where float64 readers would change it.
    """
    # Length first: int() of a very long literal is slow, and limited by the interpreter.
    if len(literal) <= _SAFE_DIGITS + 1:
        value = int(literal)
        if -MAX_SAFE_INTEGER <= value <= MAX_SAFE_INTEGER:
            return value
    raise NumberFaultError(
        f"integer {_shown(literal)} is beyond ±(2**53 - 1); store it as a string",
        code="integer-too-large",
    )


def read_float(literal: str) -> float:
    """Nearest float64 of a JSON number literal with a fraction or an exponent.

    Raises
    ------
    NumberFaultError
        If it overflows, or underflows to zero without being zero.
    """
    value = float(literal)
    if not math.isfinite(value):
        raise NumberFaultError(
            f"number {_shown(literal)} overflows float64", code="number-not-finite"
        )
    if value == 0.0 and _NON_ZERO_DIGIT.search(re.split("[eE]", literal)[0]):
        raise NumberFaultError(
            f"number {_shown(literal)} underflows float64 to zero", code="number-underflow"
        )
    return value


def read_decimal(literal: str) -> Decimal:
    """Exact value of a literal which `read_float` accepts.

    Raises
    ------
    NumberFaultError
        If float64 could not hold it.
    """
    # A zero with a huge exponent is legal text but no legal Decimal.
    return Decimal(literal) if read_float(literal) != 0.0 else Decimal(0)


def pointer_of(path: Iterable[str | int]) -> str:
    """JSON pointer (RFC 6901) of a path of keys and indices."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in path)

"""The value types that documents, queries and records are made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from decimal import Decimal

    # A decimal stands where a reader was asked for the exact value of a literal.
    JsonValue: TypeAlias = (
        "bool | int | float | Decimal | str | Sequence[JsonValue] | Mapping[str, JsonValue] | None"
    )
else:
    # A recursive alias cannot be resolved at run time, where the codec reads type hints.
    JsonValue = object

Number: TypeAlias = int | float

Scalar: TypeAlias = int | float | str
"""The value of one dimension; an unknown one is ``None``, never a default."""


def plain_number(value: float) -> Scalar:
    """Return a whole float as an int, so that 128.0 reads as 128."""
    number = float(value)
    return int(number) if number.is_integer() else number

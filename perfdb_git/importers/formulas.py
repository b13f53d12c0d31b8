"""The named formulas that derive values from columns; there is no expression language."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from perfdb_git.model.values import Number

MAX_EXACT = 2**53 - 1


class FormulaFaultError(ValueError):
    """The arguments have no result under the formula."""


@dataclass(frozen=True, slots=True)
class Formula:
    """A named function of numbers.

    ``minimum`` and ``maximum`` bound the number of arguments; ``None`` is no bound. The argument
    at index ``free`` may be any value, a text or an unknown among them.
    """

    function: Callable[..., Any]
    minimum: int
    maximum: int | None
    free: int | None = None

    def accepts(self, count: int) -> bool:
        """Say whether the formula takes that many arguments."""
        return count >= self.minimum and (self.maximum is None or count <= self.maximum)


def _exact(value: Number) -> Number:
    if isinstance(value, float) and not math.isfinite(value):
        raise FormulaFaultError("the result is not finite")
    if abs(value) > MAX_EXACT:
        raise FormulaFaultError(f"the result {value} is beyond ±(2**53 - 1)")
    return value


def product(*factors: Number) -> Number:
    """Multiply all arguments; integers stay integers."""
    return _exact(math.prod(factors))


def sum_of(*terms: Number) -> Number:
    """Add all arguments; integers stay integers."""
    return _exact(sum(terms))


def difference(minuend: Number, subtrahend: Number) -> Number:
    """Subtract the second argument from the first."""
    return _exact(minuend - subtrahend)


def exact_quotient(dividend: Number, divisor: Number) -> Number:
    """Divide integers without a remainder, as tensor parallelism splits a shape."""
    _require_integers(dividend, divisor)
    quotient, remainder = divmod(dividend, divisor)
    if remainder:
        raise FormulaFaultError(f"{dividend} / {divisor} leaves the remainder {remainder}")
    return quotient


def ceil_quotient(dividend: Number, divisor: Number) -> Number:
    """Divide integers and round up, as padding to whole blocks does."""
    _require_integers(dividend, divisor)
    return -(-dividend // divisor)


def value_if_at_most(value: Number, limit: Number, result: object) -> object:
    """Return ``result`` where ``value <= limit``; elsewhere it is unknown."""
    return result if value <= limit else None


def _require_integers(dividend: Number, divisor: Number) -> None:
    if not isinstance(dividend, int) or not isinstance(divisor, int):
        raise FormulaFaultError(f"{dividend} / {divisor} is not a division of whole numbers")
    if divisor == 0:
        raise FormulaFaultError(f"{dividend} / 0 has no result")


LOOKUP = "lookup"
"""Translation of one argument by the derivation's own table; handled where columns are."""

FORMULAS: Mapping[str, Formula] = {
    "product": Formula(product, 2, None),
    "sum": Formula(sum_of, 2, None),
    "difference": Formula(difference, 2, 2),
    "exact_quotient": Formula(exact_quotient, 2, 2),
    "ceil_quotient": Formula(ceil_quotient, 2, 2),
    "value_if_at_most": Formula(value_if_at_most, 3, 3, free=2),
}
"""Every formula that a mapping may name, ``lookup`` apart."""

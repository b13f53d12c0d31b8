"""Strict reading of stored parameters: every name is used once, none is left over."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from perfdb_git.errors import InvalidInputError
from perfdb_git.formats.arrays import decode_array
from perfdb_git.model.calibration import Parameters

T = TypeVar("T")

FORM_VERSION = 1
"""Version of every form's parameters, where they hold nothing that came later."""

LATER_FORM_VERSION = 2
"""Of a Gaussian process with noise factors, and of trees over a sum of parts."""

_LATER_FORMS = ("gaussian-process", "boosted-trees")


def knows_form(form: str, version: int) -> bool:
    """Whether parameters of that version of a form can be read."""
    return version == FORM_VERSION or (version == LATER_FORM_VERSION and form in _LATER_FORMS)


def bad_parameters(
    message: str, *, document: str, pointer: str, code: str = "bad-parameters"
) -> InvalidInputError:
    """Return the error for parameters that do not make a model."""
    return InvalidInputError(
        message,
        code=code,
        document=document,
        pointer=pointer,
        remedy="write the calibration with perfdb instead of by hand",
    )


def named_order(prefix: str, names: Iterable[str]) -> dict[str, float]:
    """Return names with their places, as numbers: what `ParameterReader.names` reads."""
    return {f"{prefix}.{name.replace('-', '_')}": float(i) for i, name in enumerate(names)}


class ParameterReader:
    """The parameters of one model or interval.

    Parameters
    ----------
    parameters : Parameters
        As a document states them.
    document, pointer : str
        Where they stand, for messages.
    """

    def __init__(self, parameters: Parameters, *, document: str, pointer: str) -> None:
        self._numbers = dict(parameters.numbers)
        self._arrays = dict(parameters.arrays)
        self.document = document
        self.pointer = pointer

    def fault(self, message: str, code: str = "bad-parameters") -> InvalidInputError:
        """Return an error about these parameters."""
        return bad_parameters(message, document=self.document, pointer=self.pointer, code=code)

    def number(self, name: str, *, least: float | None = None) -> float:
        """Return a number that must be there, and at least ``least``."""
        if name not in self._numbers:
            raise self.fault(f"the number {name} is missing")
        value = float(self._numbers.pop(name))
        if not np.isfinite(value) or (least is not None and value < least):
            raise self.fault(f"the number {name} is {value:g}")
        return value

    def optional(self, name: str, *, least: float | None = None) -> float | None:
        """Return a number that may be missing."""
        return self.number(name, least=least) if name in self._numbers else None

    def names(self, prefix: str) -> tuple[str, ...]:
        """Return the names written by `named_order`, in order; none if there are none."""
        found = {
            name: self._numbers[name] for name in self._numbers if name.startswith(prefix + ".")
        }
        ordered = sorted(found, key=lambda name: found[name])
        if [found[name] for name in ordered] != list(range(len(ordered))):
            raise self.fault(f"the numbers {prefix}.* do not count 0, 1, 2")
        for name in ordered:
            del self._numbers[name]
        return tuple(name.removeprefix(prefix + ".") for name in ordered)

    def numbers_below(self, prefix: str, *, least: float | None = None) -> dict[str, float]:
        """Return the numbers named ``<prefix>.<name>`` by name; none if there are none."""
        found = sorted(name for name in self._numbers if name.startswith(prefix + "."))
        return {name.removeprefix(prefix + "."): self.number(name, least=least) for name in found}

    def array(self, name: str, dtype: str, dimensions: int) -> NDArray[Any]:
        """Return an array that must be there, of one type and number of dimensions."""
        if name not in self._arrays:
            raise self.fault(f"the array {name} is missing")
        pointer = f"{self.pointer}/arrays/{name}"
        array = decode_array(self._arrays.pop(name), document=self.document, pointer=pointer)
        if array.dtype != np.dtype(dtype) or array.ndim != dimensions:
            raise bad_parameters(
                f"an array of {array.dtype} with {array.ndim} dimensions, not {dtype} with "
                f"{dimensions}",
                document=self.document,
                pointer=pointer,
            )
        return array

    def build(self, make: Callable[[], T]) -> T:
        """Return what a constructor makes; its ValueError is an error of the document."""
        try:
            return make()
        except ValueError as error:
            raise self.fault(str(error)) from error

    def finish(self) -> None:
        """Refuse names that nothing has read."""
        left = sorted([*self._numbers, *self._arrays])
        if left:
            raise self.fault(f"the form has no parameter {', '.join(left)}")

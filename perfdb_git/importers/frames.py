"""A table with its path variables and derived values, looked up by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from perfdb_git.importers.cells import Cell, Fault, RawCell, numbers_of, text_of
from perfdb_git.importers.formulas import FORMULAS, LOOKUP, FormulaFaultError
from perfdb_git.importers.tables import RawTable
from perfdb_git.model.mapping import Derivation
from perfdb_git.model.values import Scalar

Variables = Mapping[str, "Scalar | None"]


class Frame:
    """Columns of one file under every name that a mapping may use.

    Derivations see upstream columns, variables and earlier derivations, in that order; a
    `Fault` among a formula's arguments is its result too.
    """

    def __init__(self, table: RawTable, variables: Variables) -> None:
        self.table = table
        self.variables = variables
        self._derived: dict[str, list[Cell]] = {}
        self._numbers: dict[str, list[Cell]] = {}

    def __len__(self) -> int:
        return len(self.table.row_numbers)

    def with_derived(self, derivations: Sequence[Derivation]) -> Frame:
        """Return a frame that has the results of further derivations too."""
        if not derivations:
            return self
        frame = Frame(self.table, self.variables)
        frame._numbers = self._numbers
        frame._derived = dict(self._derived)
        for derivation in derivations:
            frame._derived[derivation.name] = frame._evaluate(derivation)
        return frame

    def raw(self, name: str) -> Sequence[RawCell]:
        """Return an upstream column."""
        return self.table.columns[name]

    def is_derived(self, name: str) -> bool:
        """Say whether the name is that of a derivation."""
        return name in self._derived

    def numbers(self, name: str) -> list[Cell]:
        """Return a column, variable or derivation as numbers."""
        if name in self._derived:
            return self._derived[name]
        if name not in self._numbers:
            if name in self.table.columns:
                cells, is_text = self.raw(name), self.table.is_text
                self._numbers[name] = numbers_of(name, cells, is_text=is_text)
            else:
                self._numbers[name] = self._constant(name)
        return self._numbers[name]

    def _constant(self, name: str) -> list[Cell]:
        # A variable from a path is text even where the table has typed numbers.
        value = self.variables[name]
        return numbers_of(name, [value], is_text=isinstance(value, str)) * len(self)

    def _anything(self, name: str) -> Sequence[Cell]:
        if name in self._derived:
            return self._derived[name]
        if name in self.table.columns:
            return self.raw(name)
        return [self.variables[name]] * len(self)

    def _evaluate(self, derivation: Derivation) -> list[Cell]:
        if derivation.formula == LOOKUP:
            name = str(derivation.arguments[0])
            return translated(name, self._anything(name), derivation.table or {})
        free = FORMULAS[derivation.formula].free
        inputs: list[Sequence[Cell]] = []
        for index, argument in enumerate(derivation.arguments):
            if not isinstance(argument, str):
                inputs.append([argument] * len(self))
            elif index == free:
                inputs.append(self._anything(argument))
            else:
                inputs.append(self.numbers(argument))
        known: dict[tuple[Cell, ...], Cell] = {}
        result: list[Cell] = []
        for arguments in zip(*inputs, strict=True):
            if arguments not in known:
                known[arguments] = _apply(derivation, arguments)
            result.append(known[arguments])
        return result


def _apply(derivation: Derivation, arguments: tuple[Cell, ...]) -> Cell:
    formula = FORMULAS[derivation.formula]
    for index, argument in enumerate(arguments):
        if isinstance(argument, Fault):
            return argument
        if index != formula.free and not isinstance(argument, int | float):
            return Fault(derivation.name, f"needs numbers, not {argument!r}")
    try:
        result: Cell = formula.function(*arguments)
    except FormulaFaultError as fault:
        names = ", ".join(str(argument) for argument in derivation.arguments)
        return Fault(derivation.name, f"{derivation.formula}({names}): {fault}")
    return result


def translated(
    column: str, cells: Sequence[Cell], table: Mapping[str, Scalar | None]
) -> list[Cell]:
    """Translate a column by an explicit table; an unlisted value is a fault."""
    known: dict[Cell, Cell] = {}
    for cell in set(cells):
        if isinstance(cell, Fault):
            known[cell] = cell
            continue
        text = text_of(cell)
        if text in table:
            known[cell] = table[text]
        else:
            listed = ", ".join(repr(key) for key in sorted(table))
            shown = "is empty" if cell is None else f"{text!r} is not listed"
            known[cell] = Fault(column, f"{shown}; the mapping translates {listed}")
    return [known[cell] for cell in cells]

"""Columns of many questions: typed cells to canonical values, a fault for each wrong cell."""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from perfdb_git.errors import UsageError
from perfdb_git.model.values import Scalar, plain_number
from perfdb_git.model.vocabulary import Dimension, Vocabulary
from perfdb_git.operations.queries import LARGEST_INTEGER, typed_dimension

Cells: TypeAlias = Sequence[Any] | NDArray[Any]
"""One cell a question; None, and NaN in an array of floats, state nothing."""

UNKNOWN = -1
"""Code of a term that a question does not state."""

_DECIMALS = re.compile(r"(?:(?:-?[0-9]+(?:\.[0-9]+)?)?(?:\0|$))*+")
"""Decimal numbers as most programs write them, or nothing, with a separator that no number has."""

_PLAIN_CELLS = frozenset({int, float, type(None)})


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionFault:
    """Why one question cannot be asked."""

    code: str
    message: str

    @classmethod
    def of(cls, error: UsageError) -> QuestionFault:
        """Return what an error says."""
        return cls(code=error.code, message=str(error))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Terms:
    """A column of terms or labels: ``words[codes]``, `UNKNOWN` where none is stated."""

    codes: NDArray[np.int32]
    words: tuple[str, ...]


Numbers: TypeAlias = NDArray[np.float64]
"""A column of numbers, NaN where none is stated."""


@dataclass(slots=True)
class QuestionColumns:
    """Canonical columns by dimension, ``(count,)`` each, and the first fault of each question."""

    count: int
    vocabulary: Vocabulary
    terms: dict[str, Terms] = field(default_factory=dict)
    numbers: dict[str, Numbers] = field(default_factory=dict)
    faults: dict[int, QuestionFault] = field(default_factory=dict)

    def add(self, name: str, cells: Cells | Scalar | None) -> None:
        """Read the cells of one dimension; a single value stands for all questions."""
        if _is_scalar(cells):
            self._add_distinct(name, np.zeros(self.count, np.int32), [cells])
            return
        column = cast(Cells, cells)
        if len(column) != self.count:
            raise UsageError(
                f"column {name} has {len(column)} cells, others have {self.count}",
                code="uneven-columns",
            )
        dimension = self.vocabulary.dimensions.get(name)
        is_number = dimension is not None and dimension.type in ("integer", "number")
        numbers = _as_numbers(column) if is_number else None
        if numbers is not None:
            self._add_numbers(name, cast(Dimension, dimension), numbers, column)
        else:
            self._add_distinct(name, *_distinct(column))

    def fail(self, rows: NDArray[np.intp], fault: QuestionFault) -> None:
        """Note a fault of some questions; one noted earlier stays."""
        for row in rows.tolist():
            self.faults.setdefault(row, fault)

    def _add_numbers(self, name: str, dimension: Dimension, numbers: Numbers, cells: Cells) -> None:
        bad = np.flatnonzero(_is_illegal(numbers, dimension))
        for row in bad.tolist():
            cell = cells[row]
            try:
                typed_dimension(
                    name,
                    cell if isinstance(cell, str) else plain_number(numbers[row]),
                    self.vocabulary,
                )
            except UsageError as error:
                self.faults.setdefault(row, QuestionFault.of(error))
        if len(bad):
            numbers = numbers.copy()
            numbers[bad] = np.nan
        self._merge_numbers(name, numbers)

    def _add_distinct(self, name: str, codes: NDArray[np.int32], cells: list[Any]) -> None:
        """Read each distinct cell once; ``cells[codes]`` are the questions'."""
        stated: dict[str, list[Scalar | None]] = {}
        for code, cell in enumerate(cells):
            try:
                found = {} if cell is None else typed_dimension(name, cell, self.vocabulary)
            except UsageError as error:
                self.fail(np.flatnonzero(codes == code), QuestionFault.of(error))
                continue
            for dimension, value in found.items():
                if dimension not in stated:
                    stated[dimension] = [None] * len(cells)
                stated[dimension][code] = value
        for dimension, values in stated.items():
            self._merge(dimension, values, codes)

    def _merge(self, name: str, values: Sequence[Scalar | None], codes: NDArray[np.int32]) -> None:
        if self.vocabulary.dimensions[name].type in ("integer", "number"):
            table = np.array([np.nan if value is None else value for value in values], np.float64)
            self._merge_numbers(name, table[codes])
            return
        words = tuple(dict.fromkeys(str(value) for value in values if value is not None))
        places = {word: place for place, word in enumerate(words)}
        lookup = np.array(
            [UNKNOWN if value is None else places[str(value)] for value in values], np.int32
        )
        self._merge_terms(name, Terms(codes=lookup[codes], words=words))

    def _merge_terms(self, name: str, added: Terms) -> None:
        known = self.terms.get(name)
        if known is None:
            self.terms[name] = added
            return
        words = tuple(dict.fromkeys((*known.words, *added.words)))
        old = _renamed(known, words)
        new = _renamed(added, words)
        clash = np.flatnonzero((old != UNKNOWN) & (new != UNKNOWN) & (old != new))
        for row in clash.tolist():
            self._repeat(row, name, words[old[row]], words[new[row]])
        merged = np.where(old == UNKNOWN, new, old)
        self.terms[name] = Terms(codes=merged, words=words)

    def _merge_numbers(self, name: str, added: Numbers) -> None:
        known = self.numbers.get(name)
        if known is None:
            self.numbers[name] = added
            return
        for row in np.flatnonzero((known != added) & (known == known) & (added == added)).tolist():
            self._repeat(row, name, plain_number(known[row]), plain_number(added[row]))
        self.numbers[name] = np.where(np.isnan(known), added, known)

    def _repeat(self, row: int, name: str, one: Scalar, other: Scalar) -> None:
        fault = QuestionFault(
            code="repeated-dimension",
            message=f"{name} is given twice, as {one!r} and {other!r}",
        )
        self.faults.setdefault(row, fault)


def _renamed(column: Terms, words: tuple[str, ...]) -> NDArray[np.int32]:
    places = {word: place for place, word in enumerate(words)}
    # The last one is what UNKNOWN, -1, finds.
    lookup = np.array([*(places[word] for word in column.words), UNKNOWN], np.int32)
    return lookup[column.codes]


def _as_numbers(cells: Cells) -> Numbers | None:
    """Return cells as float64, or None where one of them states something else."""
    if isinstance(cells, np.ndarray) and cells.dtype != np.object_:
        return cells.astype(np.float64) if cells.dtype.kind in "iuf" else None
    values = cells.tolist() if isinstance(cells, np.ndarray) else cells
    kinds = set(map(type, values))
    if kinds <= {str, type(None)}:
        return _from_texts(values)
    if not kinds <= _PLAIN_CELLS:
        return None
    # None becomes NaN; a whole number beyond float64 becomes infinite, which is refused.
    try:
        return np.array(values, np.float64)
    except OverflowError:
        return None


def _from_texts(values: Sequence[str | None]) -> Numbers | None:
    """Return plain decimal texts as numbers, None where one of them needs a closer look."""
    joined = "\0".join("" if value is None else value for value in values)
    is_one_each = joined.count("\0") == len(values) - 1 and "" not in values
    if not is_one_each or _DECIMALS.fullmatch(joined) is None:
        return None
    return np.array(["nan" if value is None else value for value in values], np.float64)


def _is_illegal(numbers: Numbers, dimension: Dimension) -> NDArray[np.bool_]:
    with np.errstate(invalid="ignore"):
        illegal = (numbers < 0) | (numbers > LARGEST_INTEGER)
        if not dimension.zero:
            illegal |= numbers == 0
        if dimension.type == "integer":
            illegal |= (numbers != np.floor(numbers)) & ~np.isnan(numbers)
    return np.asarray(illegal)


def _distinct(cells: Cells) -> tuple[NDArray[np.int32], list[Any]]:
    """Return a code for each cell, and the cell behind each code."""
    values = cells.tolist() if isinstance(cells, np.ndarray) else cells
    values = [value.item() if isinstance(value, np.generic) else value for value in values]
    # Frames mark a missing text by NaN, which no question can mean.
    values = [None if isinstance(value, float) and math.isnan(value) else value for value in values]
    # 1, 1.0 and true are equal keys, and are not the same cell.
    places: dict[Hashable, int] = {}
    found = [places.setdefault((type(value), value), len(places)) for value in values]
    distinct = [value for _, value in cast("dict[tuple[type, Any], int]", places)]
    return np.array(found, np.int32), distinct


def canonical_columns(
    columns: Mapping[str, Cells | Scalar | None],
    vocabulary: Vocabulary,
    *,
    count: int | None = None,
    faults: Mapping[int, QuestionFault] | None = None,
) -> QuestionColumns:
    """Read a table of questions, a column a dimension.

    Parameters
    ----------
    columns : Mapping[str, sequence, array or scalar]
        Cells by dimension, one a question: lists, arrays, and what numpy makes arrays of, such as
        columns of frames. A scalar holds for all of them.
    vocabulary : Vocabulary
        Dimensions, terms and aliases in force.
    count : int or None
        Questions; None takes the length of the columns, or 1 where all are scalars.
    faults : Mapping[int, QuestionFault] or None
        Of questions that could not even be read.

    Raises
    ------
    UsageError
        'uneven-columns' where columns differ in length.
    """
    plain = {name: _plain_cells(cells) for name, cells in columns.items()}
    lengths = [len(cast(Cells, cells)) for cells in plain.values() if not _is_scalar(cells)]
    if count is None:
        count = lengths[0] if lengths else 1
    found = QuestionColumns(count=count, vocabulary=vocabulary, faults=dict(faults or {}))
    for name, cells in plain.items():
        found.add(name, cells)
    return found


def _is_scalar(cells: Any) -> bool:
    return cells is None or isinstance(cells, str | int | float)


def _plain_cells(cells: Any) -> Cells | Scalar | None:
    """Return cells of any kind as one that is read here: columns of frames become arrays."""
    if isinstance(cells, np.generic):
        return cast("Scalar", cells.item())
    if _is_scalar(cells) or isinstance(cells, list | tuple | range | np.ndarray):
        return cast("Cells | Scalar | None", cells)
    return np.asarray(cells)

"""Many questions in groups that state the same dimensions and the same terms."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from perfdb_git.errors import UsageError
from perfdb_git.model.query import CostQuery, EvidencePolicy
from perfdb_git.model.values import Scalar, plain_number
from perfdb_git.model.vocabulary import Vocabulary
from perfdb_git.operations.queries import build_query
from perfdb_git.operations.query_columns import (
    UNKNOWN,
    QuestionColumns,
    QuestionFault,
    Terms,
)

_LARGEST_KEY = 2**62


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class QueryGroup:
    """Questions of one operation that differ in numbers only.

    Attributes
    ----------
    terms : Mapping[str, str]
        Terms and labels that are matched and that all of them state, ``operation`` among them.
    numbers : Mapping[str, ndarray]
        Numeric dimensions that all of them state, float64 ``(count,)``.
    count : int
        How many there are.
    """

    terms: Mapping[str, str]
    numbers: Mapping[str, NDArray[np.float64]]
    count: int

    @property
    def operation(self) -> str:
        """The operation."""
        return self.terms["operation"]

    @property
    def device(self) -> str | None:
        """The device, None where it is left open."""
        return self.terms.get("device")

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for groups that state the same terms and the same names of numbers."""
        return (*sorted(self.terms.items()), *sorted(self.numbers))

    def coordinates(self, row: int) -> dict[str, Scalar]:
        """Return the known dimensions of one question."""
        return {
            **self.terms,
            **{name: plain_number(values[row]) for name, values in self.numbers.items()},
        }

    def take(self, rows: NDArray[np.intp]) -> QueryGroup:
        """Return some of the questions."""
        numbers = {name: values[rows] for name, values in self.numbers.items()}
        return QueryGroup(terms=self.terms, numbers=numbers, count=len(rows))


def query_groups(columns: QuestionColumns) -> Iterator[tuple[NDArray[np.intp], QueryGroup]]:
    """Yield the places of each group's questions, and the group.

    Questions that cannot be asked are in no group: ``columns.faults`` tells why, those of groups
    once all of them are taken.
    """
    fine = np.ones(columns.count, np.bool_)
    fine[list(columns.faults)] = False
    asked = np.flatnonzero(fine)
    if not len(asked):
        return
    key = _group_keys(columns)[asked]
    if (key == key[0]).all():
        members = [asked]
    else:
        order = np.argsort(key, kind="stable")
        ends = np.flatnonzero(np.diff(key[order])) + 1
        members = [asked[places] for places in np.split(order, ends)]
    for rows in members:
        group = _group(columns, rows)
        fault = _fault(group, columns)
        if fault is None:
            yield rows, group
        else:
            columns.fail(rows, fault)


def _matched_terms(columns: QuestionColumns) -> dict[str, Terms]:
    """Leave out labels for people, such as the name of a layer: no answer depends on them."""
    dimensions = columns.vocabulary.dimensions
    return {name: item for name, item in columns.terms.items() if dimensions[name].matched}


def _group_keys(columns: QuestionColumns) -> NDArray[np.int64]:
    """Return a number for each question, equal for questions of one group."""
    key, size = np.zeros(columns.count, np.int64), 1
    parts = [(item.codes + 1, len(item.words) + 1) for item in _matched_terms(columns).values()]
    parts += [(~np.isnan(values), 2) for values in columns.numbers.values()]
    for codes, base in parts:
        if size * base > _LARGEST_KEY:
            _, key = np.unique(key, return_inverse=True)
            size = int(key.max()) + 1
        key = key * base + codes
        size *= base
    return key


def _group(columns: QuestionColumns, rows: NDArray[np.intp]) -> QueryGroup:
    first, is_all = rows[0], len(rows) == columns.count
    terms = {
        name: item.words[item.codes[first]]
        for name, item in _matched_terms(columns).items()
        if item.codes[first] != UNKNOWN
    }
    numbers = {
        name: values if is_all else values[rows]
        for name, values in columns.numbers.items()
        if not np.isnan(values[first])
    }
    return QueryGroup(terms=terms, numbers=numbers, count=len(rows))


def _fault(group: QueryGroup, columns: QuestionColumns) -> QuestionFault | None:
    try:
        representative(group, columns.vocabulary)
    except UsageError as error:
        return QuestionFault.of(error)
    return None


def representative(
    group: QueryGroup,
    vocabulary: Vocabulary,
    *,
    limits: EvidencePolicy | None = None,
    row: int = 0,
) -> CostQuery:
    """Return one question of a group by itself.

    Raises
    ------
    UsageError
        Where there is no operation, or it has no such shape.
    """
    return build_query(group.coordinates(row), vocabulary, limits=limits)

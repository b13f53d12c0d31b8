"""Tables of questions, one after the other: what is learned for one serves the next."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from perfdb_git.errors import UsageError
from perfdb_git.model.values import Scalar
from perfdb_git.model.vocabulary import Vocabulary
from perfdb_git.operations.query_columns import Cells, QuestionColumns, canonical_columns
from perfdb_git.operations.units import METRIC_UNITS
from perfdb_git.resolution.answer_table import AnswerTable, answer_table
from perfdb_git.resolution.batch_resolver import BatchResolver
from perfdb_git.storage.index import IndexRebuiltError


class BatchSession:
    """Answers tables of questions at one snapshot, under one policy.

    Memory grows with the evidence that is asked for, not with the number of questions.

    Parameters
    ----------
    make_resolver : callable
        Returns a new resolver.
    vocabulary : Vocabulary
        Dimensions, terms and aliases in force.
    metric : str
        The metric whose values are wanted.

    Raises
    ------
    UsageError
        'unknown-metric'.
    """

    def __init__(
        self, make_resolver: Callable[[], BatchResolver], vocabulary: Vocabulary, metric: str
    ) -> None:
        if metric not in METRIC_UNITS:
            raise UsageError(
                f"unknown metric {metric!r}",
                code="unknown-metric",
                remedy=f"one of {', '.join(sorted(METRIC_UNITS))}",
            )
        self._make_resolver = make_resolver
        self._vocabulary = vocabulary
        self._unit = METRIC_UNITS[metric]
        self._resolver: BatchResolver | None = None

    def table(
        self, columns: Mapping[str, Cells | Scalar | None] | QuestionColumns, *, first: int = 0
    ) -> AnswerTable:
        """Answer a table of questions.

        Parameters
        ----------
        columns : mapping or QuestionColumns
            Cells by dimension, one a question; a scalar holds for all of them.
        first : int
            Number of the first question.

        Raises
        ------
        UsageError, InvalidInputError, RepositoryUnavailableError
            For columns of different lengths, wrong evidence, or evidence that is not here. A wrong
            question raises nothing: it gets a row of its own status.
        """
        if not isinstance(columns, QuestionColumns):
            columns = canonical_columns(columns, self._vocabulary)
        try:
            return self._answer(columns, first)
        except IndexRebuiltError:
            # The index said something else than Git and has been made anew; Git's word stands.
            self._resolver = None
            return self._answer(columns, first)

    def tables(
        self, chunks: Iterable[Mapping[str, Cells | Scalar | None]]
    ) -> Iterator[AnswerTable]:
        """Answer tables of questions one by one, numbering the questions through."""
        first = 0
        for chunk in chunks:
            found = self.table(chunk, first=first)
            first += found.count
            yield found

    def _answer(self, columns: QuestionColumns, first: int) -> AnswerTable:
        if self._resolver is None:
            self._resolver = self._make_resolver()
        return answer_table(self._resolver, columns, metric_unit=self._unit, first=first)

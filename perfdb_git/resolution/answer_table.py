"""Answers to many questions as a table: one row a question, in the order they were asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from perfdb_git.model.policy import Tier
from perfdb_git.model.records import record_id
from perfdb_git.operations.query_columns import QuestionColumns
from perfdb_git.operations.query_groups import query_groups
from perfdb_git.providers.batch.answers import BatchAnswers, RecordLists, joined
from perfdb_git.resolution.batch_resolver import NOBODY, BatchOutcome, BatchResolver

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from perfdb_git.providers.batch.answers import Codes, Floats, Places

OK, NO_EVIDENCE, ERROR = "ok", "no-evidence", "error"
"""Statuses of rows."""

NUMBERS = ("value", "lower", "upper", "level", "sample_count", "distance_octaves")


def alternative_name(tier: Tier) -> str:
    """Return the name of the column of codes with which a source lost."""
    return f"alternative_{tier.replace('-', '_')}"


def value_name(tier: Tier) -> str:
    """Return the name of the column of what a source that lost would have answered."""
    return f"alternative_value_{tier.replace('-', '_')}"


@dataclass(frozen=True, kw_only=True, eq=False)
class AnswerTable:
    """Answers to consecutive questions.

    Attributes
    ----------
    first : int
        Number of the first question, from 0.
    count : int
        Questions.
    metric, unit : str
        What ``value``, ``lower`` and ``upper`` are.
    numbers : Mapping[str, ndarray of float64]
        `NUMBERS`, and those of `value_name` where asked for; NaN for none.
    texts : Mapping[str, ndarray of int32]
        Status, code, source and so on, and those of `alternative_name`, as places in ``words``.
    words : tuple
        Texts by place; the first is None.
    records : RecordLists
        The records behind each answer.
    reasons : Mapping[int, str]
        Why questions of status ``error`` cannot be asked, by row of this table.
    """

    first: int
    count: int
    metric: str
    unit: str
    numbers: Mapping[str, Floats]
    texts: Mapping[str, Codes]
    words: tuple[str | None, ...]
    records: RecordLists
    reasons: Mapping[int, str]

    def __len__(self) -> int:
        return self.count

    @cached_property
    def _starts(self) -> NDArray[np.int64]:
        return self.records.starts

    def text(self, name: str) -> list[str | None]:
        """Return a column of texts."""
        return [self.words[code] for code in self.texts[name].tolist()]

    def record_ids(self, row: int) -> tuple[str, ...]:
        """Return the ids of the records behind one answer."""
        part = slice(*self._starts[row : row + 2].tolist())
        pairs = zip(self.records.sets[part].tolist(), self.records.rows[part].tolist(), strict=True)
        return tuple(record_id(str(self.words[code]), number) for code, number in pairs)

    def row(self, row: int) -> dict[str, Any]:
        """Return one answer by column, numbers that are not there as None."""
        found: dict[str, Any] = {"query": self.first + row, "metric": self.metric}
        found["unit"] = self.unit
        for name, codes in self.texts.items():
            found[name] = self.words[int(codes[row])]
        for name, values in self.numbers.items():
            number = float(values[row])
            found[name] = None if np.isnan(number) else number
        found["records"] = self.record_ids(row)
        found["reason"] = self.reasons.get(row)
        return found

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield every answer as `row` gives it."""
        return map(self.row, range(self.count))

    def statuses(self) -> dict[str, int]:
        """Return how many rows have each status."""
        counts = np.bincount(self.texts["status"], minlength=len(self.words)).tolist()
        return {str(word): count for word, count in zip(self.words, counts, strict=True) if count}


def answer_table(
    resolver: BatchResolver, columns: QuestionColumns, *, metric_unit: str, first: int = 0
) -> AnswerTable:
    """Answer a table of questions.

    Parameters
    ----------
    resolver : BatchResolver
        Chooses among the sources.
    columns : QuestionColumns
        The questions; those that cannot be asked get rows of their own status.
    metric_unit : str
        SI unit of the metric asked for.
    first : int
        Number of the first question.
    """
    outcomes = [(rows, resolver.resolve(group)) for rows, group in query_groups(columns)]
    table = _Assembly(resolver, columns.count)
    table.write(outcomes)
    table.write_faults(columns)
    answers = joined([(rows, outcome.answers) for rows, outcome in outcomes], columns.count)
    return AnswerTable(
        first=first,
        count=columns.count,
        metric=resolver.context.metric,
        unit=metric_unit,
        numbers={**_numbers(answers), **table.values},
        texts={
            "status": table.status,
            "code": table.code,
            "interval_rule": answers.rule,
            "method": table.method,
            "validity": answers.validity,
            "provider": table.provider,
            "provider_revision": table.revision,
            "calibration": answers.calibration,
            **table.alternatives,
        },
        words=resolver.context.words.all,
        records=answers.records,
        reasons={row: fault.message for row, fault in columns.faults.items()},
    )


def _numbers(answers: BatchAnswers) -> dict[str, Floats]:
    columns = (*NUMBERS[:-1], "distance")
    return {name: getattr(answers, column) for name, column in zip(NUMBERS, columns, strict=True)}


class _Assembly:
    """Columns that come from the choice and not from the chosen answers."""

    def __init__(self, resolver: BatchResolver, count: int) -> None:
        self._resolver = resolver
        self._count = count
        self.status, self.code = np.zeros((2, count), np.int32)
        self.method, self.provider, self.revision = np.zeros((3, count), np.int32)
        self.alternatives: dict[str, Codes] = {}
        self.values: dict[str, Floats] = {}

    def write(self, outcomes: Sequence[tuple[Places, BatchOutcome]]) -> None:
        words, tiers = self._resolver.context.words, self._resolver.policy.tiers
        by_tier = _tier_words(self._resolver)
        for tier in tiers:
            self.alternatives[alternative_name(tier)] = np.zeros(self._count, np.int32)
            if self._resolver.wants_values:
                self.values[value_name(tier)] = np.full(self._count, np.nan)
        for rows, outcome in outcomes:
            answered = outcome.tier != NOBODY
            self.status[rows] = np.where(answered, words.code(OK), words.code(NO_EVIDENCE))
            self.code[rows] = outcome.code
            # The last column of the table is what NOBODY, -1, finds.
            self.method[rows], self.provider[rows], self.revision[rows] = by_tier[:, outcome.tier]
            for tier, codes in outcome.alternatives.items():
                self.alternatives[alternative_name(tier)][rows] = codes
            for tier, values in outcome.alternative_values.items():
                self.values[value_name(tier)][rows] = values

    def write_faults(self, columns: QuestionColumns) -> None:
        words = self._resolver.context.words
        for row, fault in columns.faults.items():
            self.status[row], self.code[row] = words.code(ERROR), words.code(fault.code)


def _tier_words(resolver: BatchResolver) -> NDArray[np.int32]:
    """Return the codes of method, provider and revision by tier, ``(3, n_tiers + 1)``."""
    words, names, revisions = resolver.context.words, resolver.names, resolver.revisions
    table = np.zeros((3, len(resolver.policy.tiers) + 1), np.int32)
    for place, tier in enumerate(resolver.policy.tiers):
        if tier in names:
            provider, method = names[tier]
            table[:, place] = (
                words.code(method),
                words.code(provider),
                words.code(revisions[tier]),
            )
    return table

"""What one source says of many questions, as columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

from perfdb_git.model.estimate import Method
from perfdb_git.operations.query_groups import QueryGroup

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]
    Booleans: TypeAlias = NDArray[np.bool_]
    Codes: TypeAlias = NDArray[np.int32]
    Places: TypeAlias = NDArray[np.intp]


class Words:
    """Texts by number, so that columns of texts are columns of numbers; 0 stands for none."""

    def __init__(self) -> None:
        self._codes: dict[str | None, int] = {None: 0}

    def code(self, word: str | None) -> int:
        """Return the number of a text, a new one for a new text."""
        return self._codes.setdefault(word, len(self._codes))

    @property
    def all(self) -> tuple[str | None, ...]:
        """The texts by number."""
        return tuple(self._codes)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RecordLists:
    """The records behind each answer: row numbers of record sets, one list after the other.

    ``counts`` is ``(n,)``; ``sets`` (codes of SHA-256) and ``rows`` are ``(counts.sum(),)``.
    """

    counts: NDArray[np.int64]
    sets: Codes
    rows: NDArray[np.int64]

    @classmethod
    def none(cls, count: int) -> RecordLists:
        """Return empty lists."""
        return cls(
            counts=np.zeros(count, np.int64), sets=np.zeros(0, np.int32), rows=np.zeros(0, np.int64)
        )

    @property
    def starts(self) -> NDArray[np.int64]:
        """Where each list begins, ``(n + 1,)``."""
        return np.concatenate(([0], np.cumsum(self.counts)))

    def take(self, rows: Places) -> RecordLists:
        """Return the lists of some answers."""
        flat = spread(self.starts[:-1][rows], self.counts[rows])
        return RecordLists(counts=self.counts[rows], sets=self.sets[flat], rows=self.rows[flat])


def spread(starts: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return ``start, start + 1, ...`` of each list, one list after the other."""
    if len(counts) and bool((counts == 1).all()):
        return starts
    before = np.cumsum(counts) - counts
    return np.repeat(starts - before, counts) + np.arange(int(counts.sum()))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BatchAnswers:
    """One source's answers; every array has shape ``(n,)``.

    Codes of texts are those of `Words`. Numbers are NaN where there is none, all of them where
    ``answerable`` is False or no values were asked for.

    Attributes
    ----------
    code : ndarray of int32
        As in `CostSupport`.
    answerable, blocking : ndarray of bool
        As in `CostSupport`.
    value, lower, upper, level, sample_count : ndarray of float64
        Of the metric asked for, in SI units.
    rule, validity, calibration : ndarray of int32
        The interval's rule, the kind of validity, the calibration revision.
    distance : ndarray of float64
        Octaves to the nearest evidence.
    farthest : ndarray of float64
        Octaves beyond the evidence that the policy admits there; infinite without a limit.
    relative : ndarray of float64
        Half width over value of the metric that a limit on uncertainty judges first; NaN where it
        is unknown.
    measured_at : ndarray of float64
        The oldest measurement in seconds since 1970.
    records : RecordLists
        Records behind the answers.
    """

    code: Codes
    answerable: Booleans
    blocking: Booleans
    value: Floats
    lower: Floats
    upper: Floats
    level: Floats
    sample_count: Floats
    rule: Codes
    validity: Codes
    calibration: Codes
    distance: Floats
    farthest: Floats
    relative: Floats
    measured_at: Floats
    records: RecordLists

    @classmethod
    def refusals(cls, count: int, code: int = 0, *, blocking: bool = False) -> BatchAnswers:
        """Return ``count`` refusals of one code, in arrays that may be written to."""
        arrays: dict[str, Any] = {name: np.full(count, np.nan) for name in _FLOATS}
        arrays["farthest"] = np.full(count, np.inf)
        arrays |= {name: np.zeros(count, np.int32) for name in ("rule", "validity", "calibration")}
        return cls(
            code=np.full(count, code, np.int32),
            answerable=np.zeros(count, np.bool_),
            blocking=np.full(count, blocking, np.bool_),
            records=RecordLists.none(count),
            **arrays,
        )

    def take(self, rows: Places) -> BatchAnswers:
        """Return the answers to some of the questions."""
        return self.values_at(rows, self.records.take(rows))

    def values_at(self, rows: Places, records: RecordLists) -> BatchAnswers:
        """Return the answers to some of the questions with these records."""
        return BatchAnswers(
            **{item.name: getattr(self, item.name)[rows] for item in _PLAIN}, records=records
        )

    def write(self, rows: Places | slice, answers: BatchAnswers) -> None:
        """Write answers at some places, all but their records."""
        for item in _PLAIN:
            getattr(self, item.name)[rows] = getattr(answers, item.name)

    def with_records(self, records: RecordLists) -> BatchAnswers:
        """Return the answers with other records."""
        return replace(self, records=records)


_PLAIN = tuple(item for item in fields(BatchAnswers) if item.name != "records")
_FLOATS = (
    "value",
    "lower",
    "upper",
    "level",
    "sample_count",
    "distance",
    "farthest",
    "relative",
    "measured_at",
)


class BatchProvider(Protocol):
    """A source of answers to many questions, equal to its `CostProvider` for each of them."""

    @property
    def name(self) -> str:
        """Name of the provider."""

    @property
    def method(self) -> Method:
        """Method of every answer."""

    @property
    def revision(self) -> str:
        """Revision of the provider."""

    def answers(self, group: QueryGroup, *, values: bool) -> BatchAnswers:
        """Answer the questions of a group.

        Parameters
        ----------
        group : QueryGroup
            Questions that state the same terms.
        values : bool
            Whether the numbers are wanted; without them only what decides between sources is:
            ``code``, ``answerable``, ``blocking``, ``validity``, ``distance``, ``measured_at``.
        """


def joined(parts: Sequence[tuple[Places, BatchAnswers]], count: int) -> BatchAnswers:
    """Return answers to all questions from those to some, by their places."""
    if len(parts) == 1 and len(parts[0][0]) == count:
        return parts[0][1]
    whole = BatchAnswers.refusals(count)
    counts = np.zeros(count, np.int64)
    for rows, answers in parts:
        whole.write(rows, answers)
        counts[rows] = answers.records.counts
    starts = np.cumsum(counts) - counts
    total = int(counts.sum())
    sets, numbers = np.zeros(total, np.int32), np.zeros(total, np.int64)
    for rows, answers in parts:
        flat = spread(starts[rows], counts[rows])
        sets[flat], numbers[flat] = answers.records.sets, answers.records.rows
    return whole.with_records(RecordLists(counts=counts, sets=sets, rows=numbers))

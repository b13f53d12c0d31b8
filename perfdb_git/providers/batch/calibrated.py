"""Calibrated answers to many questions: one evaluation for each slice and side of its domain."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from perfdb_git.analysis.symmetric_trees import BLOCK_ROWS
from perfdb_git.errors import UsageError
from perfdb_git.model.calibration import CalibrationSlice
from perfdb_git.operations.query_groups import QueryGroup
from perfdb_git.operations.work_inputs import in_work_terms
from perfdb_git.providers.batch.answers import BatchAnswers, joined
from perfdb_git.providers.batch.context import BatchContext
from perfdb_git.providers.batch.row_by_row import distinct_rows
from perfdb_git.providers.batch.twin import ProviderTwin
from perfdb_git.providers.calibrated import CalibratedProvider
from perfdb_git.providers.calibrated_points import (
    CalibratedPoints,
    evaluate,
    model_for,
    octaves_outside,
)
from perfdb_git.providers.calibration_models import CalibrationDocument
from perfdb_git.providers.calibration_selection import (
    CalibrationSelection,
    interval_rule,
)
from perfdb_git.providers.calibration_slices import SelectedSlice, Unanswered

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from perfdb_git.providers.batch.answers import Booleans, Floats, Places
    from perfdb_git.providers.fitted_decoding import FittedPredictor

    Columns: TypeAlias = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Asked:
    """Questions that one slice answers; ``stated`` names the numbers that they state."""

    document: CalibrationDocument
    number: int
    inputs: Columns
    stated: frozenset[str]

    @property
    def slice(self) -> CalibrationSlice:
        return self.document.value.slices[self.number]

    @property
    def count(self) -> int:
        return len(next(iter(self.inputs.values())))

    def take(self, rows: Places) -> _Asked:
        inputs = {name: values[rows] for name, values in self.inputs.items()}
        return replace(self, inputs=inputs)


class CalibratedBatch(ProviderTwin):
    """`CalibratedProvider` for many questions.

    Parameters
    ----------
    selection : CalibrationSelection
        The revisions that the policy names.
    context : BatchContext
        Of the batch.
    """

    def __init__(self, selection: CalibrationSelection, context: BatchContext) -> None:
        super().__init__(CalibratedProvider(selection), context)
        self._selection = selection

    def answers(self, group: QueryGroup, *, values: bool) -> BatchAnswers:
        """Answer the questions of a group; see `BatchProvider`."""
        document = self._selection.document(group.operation, group.device)
        if isinstance(document, Unanswered):
            return self._refused(document, group.count)
        parts = []
        for rows in self._by_terms(document, group):
            some = group if len(rows) == group.count else group.take(rows)
            selected = self._selection.select(document, some.coordinates(0))
            if isinstance(selected, Unanswered):
                parts.append((rows, self._refused(selected, some.count)))
            else:
                parts.append((rows, self._from_slice(document, selected, some, values=values)))
        return joined(parts, group.count)

    def _by_terms(self, document: CalibrationDocument, group: QueryGroup) -> Iterator[Places]:
        """Yield the rows with the same numbers in what tells slices apart."""
        calibration = document.value
        named = {name for item in calibration.slices for name in item.terms} | set(
            calibration.terms
        )
        deciding = {name: group.numbers[name] for name in named if name in group.numbers}
        if not deciding:
            yield np.arange(group.count)
            return
        of_terms = QueryGroup(terms=group.terms, numbers=deciding, count=group.count)
        firsts, places = distinct_rows(of_terms)
        for number in range(len(firsts)):
            yield np.flatnonzero(places == number)

    def _refused(self, why: Unanswered, count: int) -> BatchAnswers:
        code = self._context.words.code(why.code)
        return BatchAnswers.refusals(count, code, blocking=why.blocking)

    def _from_slice(
        self,
        document: CalibrationDocument,
        selected: SelectedSlice,
        group: QueryGroup,
        *,
        values: bool,
    ) -> BatchAnswers:
        calibration = document.value
        coordinates = in_work_terms(
            {**group.terms, **group.numbers}, calibration.inputs, self._selection.vocabulary
        )
        inputs = {
            name: np.broadcast_to(np.asarray(coordinates[name], np.float64), group.count)
            for name in calibration.inputs
        }
        asked = _Asked(
            document=document,
            number=selected.number,
            inputs=inputs,
            stated=frozenset(group.numbers),
        )
        outside = octaves_outside(inputs, asked.slice.domain, self._selection.is_zero_legal)
        distances = np.max([np.zeros(group.count), *outside.values()], axis=0)
        parts = []
        for rows, names in _by_side(outside, group.count):
            some = asked if len(rows) == group.count else asked.take(rows)
            answers = self._from_side(some, names, distances[rows], values=values)
            parts.append((rows, answers))
        return joined(parts, group.count)

    def _from_side(
        self, asked: _Asked, outside: frozenset[str], distances: Floats, *, values: bool
    ) -> BatchAnswers:
        predictor_of = self._selection.predictor_of(asked.document, asked.number)
        predictor = model_for(asked.slice, outside, predictor_of)
        if isinstance(predictor, Unanswered):
            return self._refused(predictor, asked.count)
        answers = BatchAnswers.refusals(asked.count, self._context.words.code("no-value"))
        answers.farthest[:] = self._farthest(asked, outside)
        beyond = bool(outside)
        for start in range(0, asked.count, BLOCK_ROWS):
            rows = np.arange(start, min(start + BLOCK_ROWS, asked.count))
            some = asked if len(rows) == asked.count else asked.take(rows)
            try:
                if values:
                    points = evaluate(
                        predictor,
                        some.slice,
                        some.inputs,
                        beyond=beyond,
                        distances=distances[rows],
                        looks_for_steps=False,
                    )
                    has_value = points.has_value()
                    self._write_values(answers, rows, some.slice, points, has_value)
                else:
                    has_value = has_values(predictor, some.inputs)
            except UsageError as error:
                return self._refused(Unanswered(code=error.code, reason=error.message), asked.count)
            self._write_places(answers, rows, some, has_value, distances[rows], beyond=beyond)
        return answers

    def _farthest(self, asked: _Asked, outside: frozenset[str]) -> float:
        """Return the policy's limit on distances, as it judges them by what queries state."""
        calibration = asked.document.value
        not_stated = set(asked.slice.domain) - asked.stated
        limit = self._context.policy.extrapolation_limit(
            calibration.operation, calibration.device, outside | not_stated
        )
        return math.inf if limit is None else limit

    def _write_places(
        self,
        answers: BatchAnswers,
        rows: Places,
        asked: _Asked,
        has_value: Booleans,
        distances: Floats,
        *,
        beyond: bool,
    ) -> None:
        """Write whether and how far from the evidence the queries are answered."""
        words, limit = self._context.words, self._context.policy.limits.max_extrapolation_octaves
        kinds = np.full(len(rows), words.code("extrapolated" if beyond else "interpolated"))
        if not beyond:
            training = self._selection.training_points(asked.document, asked.number)
            nearest = (
                np.full(len(rows), np.nan) if training is None else training.octaves(asked.inputs)
            )
            distances = np.maximum(0.0, np.nan_to_num(nearest, nan=0.0))
            if limit is not None:
                kinds[distances > limit] = words.code("extrapolated")
        some = rows[has_value]
        answers.answerable[some] = True
        answers.code[some] = answers.validity[some] = kinds[has_value]
        answers.distance[some] = distances[has_value]
        answers.calibration[some] = words.code(asked.document.sha256)

    def _write_values(
        self,
        answers: BatchAnswers,
        rows: Places,
        item: CalibrationSlice,
        points: CalibratedPoints,
        has_value: Booleans,
    ) -> None:
        if not self._context.wants_latency:
            return
        seconds = np.where(has_value, points.seconds, np.nan)
        answers.value[rows] = seconds
        model = item.beyond if points.beyond and item.beyond is not None else item.inside
        if model.interval is None:
            return
        factor = np.array([math.exp(width) for width in points.half_widths.tolist()])
        with np.errstate(invalid="ignore"):
            lower, upper = seconds / factor, seconds * factor
            known = np.isfinite(lower) & np.isfinite(upper)
            relative = (upper - lower) / 2 / seconds
        words = self._context.words
        plain, over_jump = (
            words.code(interval_rule(model.interval.method, beyond=points.beyond, over_jump=jump))
            for jump in (False, True)
        )
        answers.lower[rows] = np.where(known, lower, np.nan)
        answers.upper[rows] = np.where(known, upper, np.nan)
        answers.level[rows] = np.where(known, model.interval.level, np.nan)
        answers.sample_count[rows] = np.where(known, model.interval.residuals, np.nan)
        answers.rule[rows] = np.where(known, np.where(points.over_jump, over_jump, plain), 0)
        answers.relative[rows] = np.where(known, relative, np.nan)


def has_values(predictor: FittedPredictor, inputs: Columns) -> Booleans:
    """Return where a model has a positive value, ``(n,)``, at no more cost than that takes."""
    seconds = predictor.up_to_factor(inputs)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.isfinite(seconds) & (seconds > 0))


def _by_side(outside: Mapping[str, Floats], count: int) -> Iterator[tuple[Places, frozenset[str]]]:
    """Yield the rows that have the same inputs outside the domain, with the inputs' names."""
    pattern = np.zeros(count, np.int64)
    for bit, distances in enumerate(outside.values()):
        pattern |= (distances != 0).astype(np.int64) << bit
    for value in np.unique(pattern).tolist():
        names = frozenset(name for bit, name in enumerate(outside) if value >> bit & 1)
        yield np.flatnonzero(pattern == value), names

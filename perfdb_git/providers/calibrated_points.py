"""Calibrated answers: inside the domain or beyond it, with their distances and intervals.

Everything is computed on columns: one question is a column of one row, so that a batch and its
questions one by one give the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from perfdb_git.analysis.curves import LogLogCurve
from perfdb_git.model.calibration import CalibrationSlice, DomainRange
from perfdb_git.providers.calibration_slices import Unanswered
from perfdb_git.providers.fitted_decoding import FittedPredictor
from perfdb_git.providers.fitted_forms import CurveEvaluator, ProcessEvaluator, TreesEvaluator
from perfdb_git.providers.matching import octaves
from perfdb_git.providers.model_steps import Steps, neighbours_of, steps_around

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]
    Booleans: TypeAlias = NDArray[np.bool_]
    Columns: TypeAlias = Mapping[str, NDArray[Any]]

EXTENDING = ("affine", "log-log-curve", "scale-offset")
"""Forms with a rule of their own beyond the sizes that they were fitted to."""

_JUMP = 0.05
"""What counts as a jump where no interval is known, on the natural logarithm."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibratedPoints:
    """Answers of one model to queries that lie on the same side of the domain.

    Attributes
    ----------
    predictor : FittedPredictor
        The model.
    beyond : bool
        Whether the queries lie outside the domain.
    seconds : ndarray of float64
        Latencies, ``(n,)``; not a positive number where the model has no value.
    half_widths : ndarray of float64
        On the natural logarithm, ``(n,)``; NaN without an interval.
    over_jump : ndarray of bool
        Whether the interval covers both sides of a jump, ``(n,)``.
    steps : Steps or None
        Where trees or a process step close by; None for other forms, and where none was looked
        for.
    """

    predictor: FittedPredictor
    beyond: bool
    seconds: Floats
    half_widths: Floats
    over_jump: Booleans
    steps: Steps | None

    def has_value(self) -> Booleans:
        """Return where the model has a positive value, ``(n,)``."""
        with np.errstate(invalid="ignore"):
            return np.asarray(np.isfinite(self.seconds) & (self.seconds > 0))


def octaves_outside(
    inputs: Columns,
    domain: Mapping[str, DomainRange],
    is_zero_legal: Callable[[str], bool],
) -> dict[str, Floats]:
    """Return how far each input lies outside its range, ``(n,)``, 0 inside.

    Inputs that are inside in all rows are left out.
    """
    found = {}
    for name, limits in domain.items():
        values = inputs[name]
        outside = np.flatnonzero((values < limits.minimum) | (values > limits.maximum))
        if not len(outside):
            continue
        distances = np.zeros(len(values))
        for row in outside.tolist():
            value = float(values[row])
            nearest = min(max(value, limits.minimum), limits.maximum)
            legal = is_zero_legal(name) or nearest == 0
            distances[row] = octaves(value, nearest, zero_legal=legal)
        found[name] = distances
    return found


def model_for(
    item: CalibrationSlice,
    outside: frozenset[str],
    predictor_of: Callable[[bool], FittedPredictor | None],
) -> FittedPredictor | Unanswered:
    """Return the slice's model for queries with the same inputs outside the domain.

    Parameters
    ----------
    item : CalibrationSlice
        The slice.
    outside : frozenset of str
        Names of those inputs.
    predictor_of : callable
        Returns the model inside (False) or beyond (True), ``None`` where there is none.
    """
    inside = predictor_of(False)
    if not outside:
        assert inside is not None
        return inside
    found = predictor_of(True)
    if found is not None:
        return found
    if inside is not None and item.inside.form in EXTENDING and _extends(inside, outside):
        return inside
    where = ", ".join(
        f"{name} in {limits.minimum:g} to {limits.maximum:g}"
        for name, limits in item.domain.items()
        if name in outside
    )
    return Unanswered(
        code="outside-domain", reason=f"the calibration holds for {where} and has no model beyond"
    )


def evaluate(
    predictor: FittedPredictor,
    item: CalibrationSlice,
    inputs: Columns,
    *,
    beyond: bool,
    distances: Floats,
    looks_for_steps: bool = True,
) -> CalibratedPoints:
    """Answer queries by one model.

    Parameters
    ----------
    predictor : FittedPredictor
        As `model_for` gives it.
    item : CalibrationSlice
        Its slice.
    inputs : Mapping[str, ndarray]
        Every input of the slice, float64 ``(n,)``.
    beyond : bool
        Whether the queries lie outside the domain.
    distances : ndarray of float64
        How far, ``(n,)``.
    looks_for_steps : bool
        Whether to look for steps that change no number: those of trees, which are only told.

    Raises
    ------
    UsageError
        'missing-input' or 'unknown-term-of-features'.
    """
    count, neighbours = len(distances), None
    if not beyond and _is_searched(predictor, looks_for_steps):
        neighbours = neighbours_of(inputs, item.domain)
        inputs = neighbours.columns
    # One call for the queries and their neighbours: most of the cost of few is that of a call.
    repeated = distances if neighbours is None else np.resize(distances, neighbours.count)
    all_seconds, all_widths = predictor.predict_with_half_width(inputs, octaves=repeated)
    seconds, widths = all_seconds[:count], all_widths[:count]
    steps, over_jump = None, np.zeros(count, np.bool_)
    if neighbours is not None:
        steps = steps_around(neighbours, all_seconds, widths)
        if not isinstance(predictor.evaluator, TreesEvaluator):
            widths, over_jump = np.where(steps.found, steps.widths, widths), steps.found
    elif not beyond:
        widths, over_jump = _over_cliffs(predictor, inputs, widths)
    return CalibratedPoints(
        predictor=predictor,
        beyond=beyond,
        seconds=seconds,
        half_widths=np.where(np.isfinite(widths), widths, np.nan),
        over_jump=over_jump,
        steps=steps,
    )


def _is_searched(predictor: FittedPredictor, looks_for_steps: bool) -> bool:
    if isinstance(predictor.evaluator, TreesEvaluator):
        # Their widths come from an error scale that knows such places: held-out intervals cover
        # there as elsewhere (docs/adr/006), and a step is told without widening.
        return looks_for_steps
    return isinstance(predictor.evaluator, ProcessEvaluator)


def _extends(predictor: FittedPredictor, outside: frozenset[str]) -> bool:
    """Whether the form reads every input that lies outside, itself or through its base."""
    evaluator = predictor.evaluator
    assert isinstance(evaluator, CurveEvaluator | ProcessEvaluator | TreesEvaluator)
    reads = evaluator.reads
    if reads.features:
        return False
    return not reads.inputs or outside <= set(reads.inputs)


def _over_cliffs(
    predictor: FittedPredictor, inputs: Columns, widths: Floats
) -> tuple[Floats, Booleans]:
    """Return half-widths that cover both sides of measured jumps, and where there are any."""
    evaluator = predictor.evaluator
    nothing = np.zeros(len(widths), np.bool_)
    if not isinstance(evaluator, CurveEvaluator) or not isinstance(evaluator.curve, LogLogCurve):
        return widths, nothing
    complete = predictor.reader.complete(inputs)
    jumps = evaluator.jumps(complete)
    assert jumps is not None
    plain = np.broadcast_to(evaluator.plain_widths(complete), widths.shape)
    is_known = np.isfinite(plain)
    found = jumps.excess > np.where(is_known, plain, _JUMP)
    covering = np.where(is_known, np.maximum(jumps.reach, plain), plain)
    return np.where(found, covering, widths), found


def jump_note(points: CalibratedPoints, inputs: Columns) -> str | None:
    """Say which jump or step lies around the first query; None where there is none."""
    if points.steps is not None:
        return points.steps.note(0, is_covered=bool(points.over_jump[0]))
    if not points.over_jump[0]:
        return None
    predictor, evaluator = points.predictor, points.predictor.evaluator
    assert isinstance(evaluator, CurveEvaluator)
    assert isinstance(evaluator.curve, LogLogCurve)
    curve = evaluator.curve
    size = float(evaluator.size(predictor.reader.complete(inputs))[0])
    upper = int(np.searchsorted(curve.sizes, size))
    sizes, values = curve.sizes[upper - 1 : upper + 1], curve.values[upper - 1 : upper + 1]
    is_known = bool(np.isfinite(points.half_widths[0]))
    return (
        f"a jump lies between the measured sizes {sizes[0]:g} and {sizes[1]:g} "
        f"(factor {values[1] / values[0]:.3g}): "
        + ("the interval covers both sides" if is_known else "either side's value may hold")
    )

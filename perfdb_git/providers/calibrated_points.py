"""One calibrated answer: inside the domain or beyond it, with its distance and its interval."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from perfdb_git.analysis.curves import LogLogCurve
from perfdb_git.errors import UsageError
from perfdb_git.model.calibration import CalibrationSlice, DomainRange
from perfdb_git.providers.calibration_slices import SelectedSlice, Unanswered
from perfdb_git.providers.fitted_decoding import FittedPredictor
from perfdb_git.providers.fitted_forms import CurveEvaluator, ProcessEvaluator, TreesEvaluator
from perfdb_git.providers.matching import octaves

if TYPE_CHECKING:
    from numpy.typing import NDArray

EXTENDING = ("affine", "log-log-curve", "scale-offset")
"""Forms with a rule of their own beyond the sizes that they were fitted to."""

_JUMP = 0.05
"""What counts as a jump where no interval is known, on the natural logarithm."""

_AROUND = 2.0 ** (1 / 8)
"""How far around a query of several inputs a step of the model is looked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibratedPoint:
    """An answer.

    ``half_width`` is on the natural logarithm, ``None`` without an interval; ``beyond`` says
    whether it lies outside the domain, ``octaves`` how far.
    """

    predictor: FittedPredictor
    seconds: float
    half_width: float | None
    beyond: bool
    octaves: float
    notes: tuple[str, ...] = ()

    @property
    def bounds(self) -> tuple[float, float] | None:
        """Lower and upper bound in seconds."""
        if self.half_width is None:
            return None
        factor = math.exp(self.half_width)
        return self.seconds / factor, self.seconds * factor


def octaves_outside(
    inputs: Mapping[str, float],
    domain: Mapping[str, DomainRange],
    is_zero_legal: Callable[[str], bool],
) -> dict[str, float]:
    """Return how far each input lies outside its range; inputs inside theirs are left out."""
    found = {}
    for name, value in inputs.items():
        limits = domain[name]
        nearest = min(max(value, limits.minimum), limits.maximum)
        if value != nearest:
            found[name] = octaves(value, nearest, zero_legal=is_zero_legal(name) or nearest == 0)
    return found


def evaluate(
    selected: SelectedSlice,
    outside: Mapping[str, float],
    predictor_of: Callable[[bool], FittedPredictor | None],
) -> CalibratedPoint | Unanswered:
    """Answer by the slice's model for the place of the query.

    Parameters
    ----------
    selected : SelectedSlice
        The slice and the inputs.
    outside : Mapping[str, float]
        As `octaves_outside` gives it.
    predictor_of : callable
        Returns the model inside (False) or beyond (True), ``None`` where there is none.
    """
    predictor = _model(selected.slice, outside, predictor_of)
    if isinstance(predictor, Unanswered):
        return predictor
    distance = max(outside.values(), default=0.0)
    around = [] if outside or isinstance(predictor.evaluator, CurveEvaluator) else _around(selected)
    columns = _columns(selected, around)
    try:
        # One call for the query and its neighbours: most of the cost is that of a call.
        seconds, widths = predictor.predict_with_half_width(columns, octaves=np.array([distance]))
    except UsageError as error:
        return Unanswered(code=error.code, reason=error.message)
    value, width = float(seconds[0]), float(widths[0])
    if not (math.isfinite(value) and value > 0):
        return Unanswered(code="no-value", reason="the model has no positive value there")
    cliff = None
    if not outside:
        cliff = _step(around, seconds, width) if around else _cliff(predictor, columns)
    notes: tuple[str, ...] = ()
    if cliff is not None:
        width, note = cliff
        notes = (note,)
    elif outside and not math.isfinite(width):
        notes = ("no interval: none is calibrated outside the domain",)
    return CalibratedPoint(
        predictor=predictor,
        seconds=value,
        half_width=width if math.isfinite(width) else None,
        beyond=bool(outside),
        octaves=distance,
        notes=notes,
    )


def _model(
    item: CalibrationSlice,
    outside: Mapping[str, float],
    predictor_of: Callable[[bool], FittedPredictor | None],
) -> FittedPredictor | Unanswered:
    if not outside:
        inside = predictor_of(False)
        assert inside is not None
        return inside
    found = predictor_of(True)
    if found is not None:
        return found
    inside = predictor_of(False)
    if inside is not None and item.inside.form in EXTENDING and _extends(inside, outside):
        return inside
    where = ", ".join(
        f"{name} in {item.domain[name].minimum:g} to {item.domain[name].maximum:g}"
        for name in outside
    )
    return Unanswered(
        code="outside-domain", reason=f"the calibration holds for {where} and has no model beyond"
    )


def _extends(predictor: FittedPredictor, outside: Mapping[str, float]) -> bool:
    """Whether the form reads every input that lies outside, itself or through its base."""
    evaluator = predictor.evaluator
    assert isinstance(evaluator, CurveEvaluator | ProcessEvaluator | TreesEvaluator)
    reads = evaluator.reads
    if reads.features:
        return False
    return not reads.inputs or set(outside) <= set(reads.inputs)


def _cliff(
    predictor: FittedPredictor,
    columns: Mapping[str, NDArray[np.float64]],
) -> tuple[float, str] | None:
    """Return a half-width that covers both sides of a measured jump, and a note on it."""
    evaluator = predictor.evaluator
    if not isinstance(evaluator, CurveEvaluator) or not isinstance(evaluator.curve, LogLogCurve):
        return None
    curve, complete = evaluator.curve, predictor.reader.complete(columns)
    jumps = evaluator.jumps(complete)
    assert jumps is not None
    plain = float(evaluator.plain_widths(complete)[0])
    is_known = math.isfinite(plain)
    if not float(jumps.excess[0]) > (plain if is_known else _JUMP):
        return None
    upper = int(np.searchsorted(curve.sizes, float(evaluator.size(complete)[0])))
    sizes, values = curve.sizes[upper - 1 : upper + 1], curve.values[upper - 1 : upper + 1]
    note = (
        f"a jump lies between the measured sizes {sizes[0]:g} and {sizes[1]:g} "
        f"(factor {values[1] / values[0]:.3g}): "
        + ("the interval covers both sides" if is_known else "either side's value may hold")
    )
    return max(float(jumps.reach[0]), plain) if is_known else plain, note


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two sizes of an input, below and above a query."""

    name: str
    low: float
    high: float


def _around(selected: SelectedSlice) -> list[_Pair]:
    """Return a whole size below and above each input that can be varied inside the domain."""
    found = []
    for name, size in selected.inputs.items():
        limits = selected.slice.domain[name]
        low = max(math.floor(size / _AROUND), limits.minimum)
        high = min(math.ceil(size * _AROUND), limits.maximum)
        if 0 < low < high:
            found.append(_Pair(name, low, high))
    return found


def _columns(selected: SelectedSlice, around: list[_Pair]) -> dict[str, NDArray[np.float64]]:
    """Return the query, then each of its neighbours: one input of it differs."""
    columns = {
        name: np.repeat(value, 1 + 2 * len(around)) for name, value in selected.inputs.items()
    }
    for place, pair in enumerate(around):
        columns[pair.name][1 + 2 * place : 3 + 2 * place] = pair.low, pair.high
    return columns


def _step(
    around: list[_Pair], seconds: NDArray[np.float64], width: float
) -> tuple[float, str] | None:
    """Return a half-width that covers a step of the model close by, and a note on it.

    A model of several inputs holds no measured sizes to compare. Its own answers at sizes an
    eighth of an octave below and above stand for them, inside the domain and one input at a time:
    tile, alignment and protocol edges between measured sizes may lie on either side of the query.
    """
    found = seconds[1:].reshape(len(around), 2)
    if not math.isfinite(width) or not bool((np.isfinite(found) & (found > 0)).all()):
        return None
    rises = np.log(found[:, 1] / found[:, 0])
    runs = np.array([math.log(pair.high / pair.low) for pair in around])
    jumps = np.maximum(rises - runs, -rises)
    place = int(jumps.argmax())
    if not jumps[place] > width:
        return None
    covering = float(np.abs(np.log(found[place] / seconds[0])).max())
    pair = around[place]
    note = (
        f"the model has a step of {pair.name} between {pair.low:g} and {pair.high:g} "
        f"(factor {math.exp(rises[place]):.3g}): the interval covers both sides"
    )
    return max(covering, width), note

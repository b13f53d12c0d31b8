"""What a calibration may not learn from: names of cases, answers, models, and corrections.

A model that reads which case it is asked about repeats its training records and knows nothing of
any other; so an input has to be a dimension of the vocabulary that can make the work take longer.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from perfdb_git.model.calibration import Calibration, CalibrationSpec
from perfdb_git.model.values import Scalar
from perfdb_git.model.vocabulary import Dimension, Vocabulary
from perfdb_git.operations.units import METRIC_UNITS

CAUSAL_GROUPS = frozenset({"workload", "shape", "architecture", "deployment", "execution"})

_SERIES = frozenset({"operation", "device"})
_FIXED_BY_SERIES = "a calibration is for one operation and one device, which are stated once"
_NAMED = "the name of a model or network does not make work take longer, its shape does"
_NAMES: tuple[tuple[re.Pattern[str], str], ...] = (
    (
        re.compile(r"(^|_)(case|benchmark|bench|row|index|id|uuid|record|session)(_|s?$)"),
        "an id says which measurement it was, not why it took that long",
    ),
    (
        re.compile(r"(^|_)(oracle|total|latency|time|duration|measured|target|answer)(_|s?$)"),
        "it is the answer, or is made from it",
    ),
    (
        re.compile(r"(^|_)(factor|correction|scale|residual|efficiency|ratio)(_|s?$)"),
        "a factor for each case repeats that case's answer",
    ),
    (
        re.compile(r"(^|_)(model|network|net|llm|checkpoint|name|label|op|layer)(_|s?$)"),
        _NAMED,
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ForbiddenInput:
    """A name that may not be learned from, with the reason, at a JSON pointer."""

    pointer: str
    name: str
    reason: str


def input_fault(name: str, vocabulary: Vocabulary) -> str | None:
    """Say why a model may not read a name as an input; None if it may."""
    dimension = vocabulary.dimensions.get(name)
    if dimension is None:
        return _unknown_reason(name)
    if name in _SERIES:
        return _FIXED_BY_SERIES
    if not dimension.matched:
        return "it is for people and never matched"
    if dimension.group not in CAUSAL_GROUPS:
        return f"a dimension of the {dimension.group} names who asks, not what is to be done"
    if _is_name(dimension):
        return _NAMED
    if dimension.type == "label":
        return "free text has no size; state it as a term that must be equal"
    return None


def slice_term_fault(name: str, vocabulary: Vocabulary) -> str | None:
    """Say why queries may not be told apart by a name; None if they may."""
    dimension = vocabulary.dimensions.get(name)
    if dimension is None:
        return _unknown_reason(name)
    if name in _SERIES:
        return _FIXED_BY_SERIES
    if _is_name(dimension):
        return _NAMED
    return None if dimension.matched else "it is for people and never matched"


def _is_name(dimension: Dimension) -> bool:
    """Say whether a dimension names the work as a whole: a model, a benchmark, a kernel."""
    return dimension.group == "shape" and dimension.type == "label"


def _unknown_reason(name: str) -> str:
    if name in METRIC_UNITS:
        return "it is a metric: the answer cannot be an input"
    for pattern, reason in _NAMES:
        if pattern.search(name):
            return reason
    return "it is no dimension of the vocabulary"


def forbidden_inputs(calibration: Calibration, vocabulary: Vocabulary) -> Iterator[ForbiddenInput]:
    """Yield everything that a calibration revision may not read, or tell apart by."""
    yield from _inputs(calibration.inputs, vocabulary)
    yield from _terms(calibration.terms, "/terms", vocabulary)
    for number, item in enumerate(calibration.slices):
        where = f"/slices/{number}"
        yield from _terms(item.terms, f"{where}/terms", vocabulary)
        for name in item.domain:
            if name not in calibration.inputs:
                yield ForbiddenInput(
                    pointer=f"{where}/domain/{name}",
                    name=name,
                    reason="it is not among the declared inputs",
                )
        fault = _case_fault(calibration, number)
        if fault is not None:
            yield ForbiddenInput(pointer=where, name=_terms_text(item.terms), reason=fault)


def forbidden_in_spec(spec: CalibrationSpec, vocabulary: Vocabulary) -> Iterator[ForbiddenInput]:
    """Yield everything that a spec asks to read, or to tell apart by, and may not."""
    yield from _inputs(spec.inputs, vocabulary)
    for number, part in enumerate(spec.parts):
        where = f"/parts/{number}"
        yield from _terms(dict.fromkeys(part.terms), f"{where}/terms", vocabulary)
        for place, name in enumerate(part.slice_by):
            fault = slice_term_fault(name, vocabulary)
            if fault is not None:
                yield ForbiddenInput(pointer=f"{where}/slice_by/{place}", name=name, reason=fault)


def _inputs(names: Collection[str], vocabulary: Vocabulary) -> Iterator[ForbiddenInput]:
    for number, name in enumerate(names):
        fault = input_fault(name, vocabulary)
        if fault is not None:
            yield ForbiddenInput(pointer=f"/inputs/{number}", name=name, reason=fault)


def _terms(
    terms: Mapping[str, Scalar | None], where: str, vocabulary: Vocabulary
) -> Iterator[ForbiddenInput]:
    for name in terms:
        fault = slice_term_fault(name, vocabulary)
        if fault is not None:
            yield ForbiddenInput(pointer=f"{where}/{name}", name=name, reason=fault)


def _case_fault(calibration: Calibration, number: int) -> str | None:
    """Say why a slice is a factor for one case, or None."""
    item = calibration.slices[number]
    pinned = {**calibration.terms, **item.terms}
    if all(pinned.get(name) is not None for name in calibration.inputs):
        return "its terms leave no input free: a model of one point is a factor for that case"
    if item.training.records < 2:
        return "one training record makes a factor for that case"
    return None


def _terms_text(terms: Mapping[str, Scalar | None]) -> str:
    return " ".join(f"{name}={value}" for name, value in terms.items()) or "the only slice"

"""Which slice of a calibration a query belongs to, by the rules that records are matched by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from perfdb_git.model.calibration import Calibration, CalibrationSlice
from perfdb_git.model.estimate import NearMiss
from perfdb_git.model.values import Scalar
from perfdb_git.providers.matching import Matcher

_MOST_NEAR = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Unanswered:
    """Why a calibration cannot answer a query; ``blocking`` as in `CostSupport`."""

    code: str
    reason: str
    missing: tuple[str, ...] = ()
    blocking: bool = False
    near: tuple[NearMiss, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectedSlice:
    """The slice that answers.

    Attributes
    ----------
    number : int
        Its place in the calibration.
    inputs : Mapping[str, float]
        The query's value of every input.
    assumed : Mapping[str, Scalar]
        Terms that the query leaves open, with the value that all slices in question share.
    unstated : tuple of str
        Dimensions that the query states and the training records do not know.
    """

    number: int
    slice: CalibrationSlice
    inputs: Mapping[str, float]
    assumed: Mapping[str, Scalar]
    unstated: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Comparison:
    number: int
    slice: CalibrationSlice
    differing: Mapping[str, Scalar | None] = field(default_factory=dict)
    open_values: Mapping[str, Scalar] = field(default_factory=dict)
    unstated: tuple[str, ...] = ()


def select_slice(
    calibration: Calibration,
    coordinates: Mapping[str, Scalar],
    matcher: Matcher,
    *,
    refuse_open: bool,
) -> SelectedSlice | Unanswered:
    """Find the one slice whose terms are those of a query, and the query's inputs.

    Parameters
    ----------
    calibration : Calibration
        For the query's operation and device.
    coordinates : Mapping[str, Scalar]
        Known dimensions of the query.
    matcher : Matcher
        Says which dimensions are compared, and which are material.
    refuse_open : bool
        Whether a term that the query leaves open is refused even where all slices agree.
    """
    wanted = matcher.relevant(coordinates)
    compared = [
        _compare(calibration, number, item, wanted, matcher)
        for number, item in enumerate(calibration.slices)
    ]
    matching = [item for item in compared if not item.differing]
    if not matching:
        return _no_slice(compared)
    deciding = _deciding(matching, refuse_open=refuse_open)
    if deciding or len(matching) > 1:
        return _ambiguous(matching, deciding)
    found = matching[0]
    missing = tuple(name for name in calibration.inputs if name not in coordinates)
    if missing:
        return Unanswered(
            code="missing-input",
            reason=f"the calibration reads {', '.join(missing)}",
            missing=missing,
        )
    return SelectedSlice(
        number=found.number,
        slice=found.slice,
        inputs={name: float(coordinates[name]) for name in calibration.inputs},
        assumed=found.open_values,
        unstated=found.unstated,
    )


def _compare(
    calibration: Calibration,
    number: int,
    item: CalibrationSlice,
    wanted: Mapping[str, Scalar],
    matcher: Matcher,
) -> _Comparison:
    terms = {**calibration.terms, **item.terms}
    known = {name: value for name, value in terms.items() if value is not None}
    differing: dict[str, Scalar | None] = {
        name: value for name, value in known.items() if name in wanted and wanted[name] != value
    }
    unknown = [name for name in wanted if name not in known and name not in calibration.inputs]
    differing |= {name: None for name in unknown if matcher.is_material(name)}
    return _Comparison(
        number=number,
        slice=item,
        differing=differing,
        open_values={name: value for name, value in known.items() if name not in wanted},
        unstated=tuple(sorted(name for name in unknown if not matcher.is_material(name))),
    )


def _deciding(matching: list[_Comparison], *, refuse_open: bool) -> dict[str, tuple[Scalar, ...]]:
    """Return the open terms whose value the query must state."""
    values: dict[str, set[Scalar]] = {}
    for item in matching:
        for name, value in item.open_values.items():
            values.setdefault(name, set()).add(value)
    return {
        name: tuple(sorted(values[name], key=_sort_key))
        for name in sorted(values)
        if refuse_open or len(values[name]) > 1
    }


def _ambiguous(
    matching: list[_Comparison], deciding: Mapping[str, tuple[Scalar, ...]]
) -> Unanswered:
    choices = "; ".join(
        f"{name} = {' or '.join(str(value) for value in values)}"
        for name, values in deciding.items()
    )
    slices = "1 slice matches" if len(matching) == 1 else f"{len(matching)} slices match"
    records = sum(item.slice.training.records for item in matching)
    near = (NearMiss(changes=dict(deciding), distance_octaves=0, records=records),)
    return Unanswered(
        code="ambiguous-context",
        reason=f"{slices}, but the query leaves open: {choices or 'what tells them apart'}",
        missing=tuple(deciding),
        blocking=True,
        near=near if deciding else (),
    )


def _no_slice(compared: list[_Comparison]) -> Unanswered:
    nearest = sorted(compared, key=lambda item: len(item.differing))[:_MOST_NEAR]
    best = nearest[0]
    texts = [
        f"{name} is unknown to its training records" if value is None else f"{name} = {value}"
        for name, value in best.differing.items()
    ]
    near = tuple(
        NearMiss(
            changes={name: (value,) for name, value in item.differing.items() if value is not None},
            distance_octaves=None,
            records=item.slice.training.records,
        )
        for item in nearest
        if all(value is not None for value in item.differing.values())
    )
    return Unanswered(
        code="no-slice",
        reason=f"no slice of the calibration has these terms; the nearest: {', '.join(texts)}",
        near=near,
    )


def _sort_key(value: Scalar) -> tuple[int, float, bytes]:
    return (1, 0.0, value.encode()) if isinstance(value, str) else (0, value, b"")

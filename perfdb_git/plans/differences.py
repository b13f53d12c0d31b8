"""How two outcomes of one query differ: exactly in what was measured, within 1e-12 in the rest.

SIMD variants of logarithm and exponential differ in the last bits between machines and versions of
numpy; everything else is the same everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from perfdb_git.formats.codec import encode
from perfdb_git.model.plan_lock import CompositionResult, LockedAnswer, LockedQuery
from perfdb_git.model.values import JsonValue
from perfdb_git.plans.tracked import STAGE_PREFIX

TOLERANCE = 1e-12
"""Largest relative difference of a calculated value that counts as none."""

_RECORDED_METHODS = ("measured", "simulated")
_CALCULATED = frozenset({"value", "lower", "upper", "level", "distance_octaves", "quantiles"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One field that differs; ``relative`` is ``None`` where it is no pair of numbers."""

    field: str
    locked: JsonValue
    current: JsonValue
    relative: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What differs beyond the tolerance, and the largest relative difference within it."""

    differences: tuple[Difference, ...]
    largest_within: float


def relative_difference(first: float, second: float) -> float:
    """Return |first - second| over the larger magnitude; 0 where both are 0."""
    largest = max(abs(first), abs(second))
    return 0.0 if largest == 0 else abs(first - second) / largest


def compare_queries(locked: LockedQuery, current: LockedQuery, *, same_commit: bool) -> Comparison:
    """Compare two outcomes of one query.

    Parameters
    ----------
    locked, current : LockedQuery
        The outcomes.
    same_commit : bool
        Whether the provider's revision and the query's digest have to be equal too. Elsewhere they
        say nothing of the answer: the one names all evidence that the provider reads, the other
        every dimension that the vocabulary has.
    """
    if (locked.answer is None) != (current.answer is None):
        return _appeared(locked, current)
    left, right = _members(locked, same_commit), _members(current, same_commit)
    method = None if locked.answer is None else locked.answer.method
    return _compare(left, right, exact_value=method in _RECORDED_METHODS)


def compare_results(
    locked: CompositionResult, current: CompositionResult, *, slack_ps: int
) -> Comparison:
    """Compare two composed numbers.

    Parameters
    ----------
    locked, current : CompositionResult
        The numbers.
    slack_ps : int
        Picoseconds by which two makespans may differ; see `rounding_slack_ps`.
    """
    left, right = _flat(encode(locked)), _flat(encode(current))
    within = 0.0
    if locked.makespan_ps is not None and current.makespan_ps is not None:
        first, second = int(locked.makespan_ps), int(current.makespan_ps)
        if first != second and abs(first - second) <= slack_ps:
            within = abs(first - second) / max(first, second)
            for name in ("makespan_ps", "value"):
                right[name] = left[name]
    compared = _compare(left, right, exact_value=False)
    return replace(compared, largest_within=max(within, compared.largest_within))


def rounding_slack_ps(queries: Iterable[LockedQuery]) -> int:
    """Return how far apart two makespans may be that stand for one.

    A calculated service time that lies on the border between two ticks may round either way: one
    picosecond for each visit of a stage with such an answer. Recorded answers leave no slack.
    """
    return sum(
        query.multiplicity
        for query in queries
        if query.name.startswith(STAGE_PREFIX)
        and query.answer is not None
        and query.answer.method not in _RECORDED_METHODS
    )


def _members(query: LockedQuery, same_commit: bool) -> dict[str, JsonValue]:
    members = _flat(encode(query))
    members.pop("name")
    if not same_commit:
        members.pop("query_digest")
        members.pop("answer/provider_revision", None)
    return members


def _appeared(locked: LockedQuery, current: LockedQuery) -> Comparison:
    """Name the outcomes alone where an answer is on one side only."""
    difference = Difference(field="code", locked=locked.code, current=current.code, relative=None)
    return Comparison(differences=(difference,), largest_within=0.0)


def _flat(value: JsonValue, prefix: str = "") -> dict[str, JsonValue]:
    """Return nested members by path; lists and null stay values."""
    assert isinstance(value, Mapping)
    found: dict[str, JsonValue] = {}
    for name, item in value.items():
        if isinstance(item, Mapping):
            found |= _flat(item, f"{prefix}{name}/")
        else:
            found[f"{prefix}{name}"] = item
    return found


def _compare(
    left: Mapping[str, JsonValue], right: Mapping[str, JsonValue], *, exact_value: bool
) -> Comparison:
    differences: list[Difference] = []
    within = 0.0
    for field in _fields(left, right):
        first, second = left.get(field), right.get(field)
        if first == second:
            continue
        relative = None
        if _is_number(first) and _is_number(second):
            assert isinstance(first, int | float) and isinstance(second, int | float)
            relative = relative_difference(first, second)
            calculated = _is_calculated(field, exact_value)
            if calculated and relative <= TOLERANCE:
                within = max(within, relative)
                continue
        differences.append(Difference(field=field, locked=first, current=second, relative=relative))
    return Comparison(differences=tuple(differences), largest_within=within)


def _fields(left: Mapping[str, JsonValue], right: Mapping[str, JsonValue]) -> Iterator[str]:
    yield from left
    yield from (field for field in right if field not in left)


def _is_number(value: JsonValue) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_calculated(field: str, exact_value: bool) -> bool:
    if field == "answer/value" and exact_value:
        return False
    return not _CALCULATED.isdisjoint(field.split("/"))


def log_ratio(locked: LockedAnswer | None, current: LockedAnswer | None) -> float | None:
    """Return ln(current / locked), or ``None`` where one of them has no positive value."""
    if locked is None or current is None or locked.value <= 0 or current.value <= 0:
        return None
    return math.log(current.value / locked.value)

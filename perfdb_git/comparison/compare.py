"""Two sides of evidence, context by context, each with a verdict on the second."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from perfdb_git.analysis.multiple_tests import holm
from perfdb_git.comparison.contexts import ENVIRONMENT, ContextKey, checked_across
from perfdb_git.comparison.groups import (
    Group,
    Progress,
    Reading,
    read_groups,
    record_set_ids,
    retracted_rows,
)
from perfdb_git.comparison.pairs import contrast_pair, failed_pairs, finished_pair
from perfdb_git.comparison.results import (
    ComparedPair,
    Comparison,
    Gate,
    MatchHint,
    Side,
    SideReference,
    UnmatchedContext,
    Verdict,
)
from perfdb_git.comparison.rules import Rules
from perfdb_git.comparison.selections import EVERYTHING, Choice, Selection, differing
from perfdb_git.database import DEFAULT_POLICY, DatabaseSnapshot
from perfdb_git.errors import UsageError
from perfdb_git.model.values import Scalar

_ORDER: Mapping[Verdict, int] = {"worse": 0, "better": 1, "cannot-tell": 2, "same": 3}


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonRequest:
    """What to compare.

    Attributes
    ----------
    base, new : Choice
        Both sides.
    texts : tuple of str
        Both sides as the user wrote them.
    where : Selection
        What both sides are narrowed to.
    across : tuple of str
        Further dimensions (or ``environment``) in which the sides may differ.
    metrics : tuple of str
        The only metrics to compare; all where empty.
    rules : Rules
        How to judge.
    """

    base: Choice
    new: Choice
    texts: tuple[str, str]
    where: Selection = EVERYTHING
    across: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()
    rules: Rules = field(default_factory=Rules)


def compare_sides(
    snapshot: DatabaseSnapshot, request: ComparisonRequest, progress: Progress | None = None
) -> Comparison:
    """Compare two sides of one snapshot.

    Raises
    ------
    UsageError
        For records or dimensions that are not there, or a record on both sides.
    InvalidInputError
        For evidence that breaks its format.
    """
    across = _across(snapshot, request, differing(request.base, request.new))
    readings = [_reading(choice, request, across) for choice in (request.base, request.new)]
    groups = [read_groups(snapshot, reading, progress) for reading in readings]
    base, new = groups
    _require_disjoint(base, new)
    references = [
        _reference(text, snapshot, side) for text, side in zip(request.texts, groups, strict=True)
    ]
    hints = _hints(base, new)
    return _compared(snapshot, request, across, references, (base, new), hints)


def compare_commits(
    base: DatabaseSnapshot,
    new: DatabaseSnapshot,
    request: ComparisonRequest,
    progress: Progress | None = None,
) -> Comparison:
    """Compare what one commit adds to the evidence with what another one holds.

    Side A are the records at ``base``; side B those at ``new`` that are not at ``base``. A record
    that ``new`` retracts is on neither side.

    Raises
    ------
    UsageError, InvalidInputError
        As `compare_sides`.
    """
    across = _across(new, request, ())
    reading = _reading(request.new, request, across)
    known: dict[str, Collection[int] | None] = dict.fromkeys(record_set_ids(base))
    added = read_groups(new, replace(reading, skipped=known), progress)
    # Only series that the new commit adds to: an evidence repository holds many others.
    reading = replace(reading, skipped=retracted_rows(new), headers=_series(added, across))
    old = read_groups(base, reading, progress)
    references = [
        _reference(request.texts[0], base, old),
        _reference(request.texts[1], new, added),
    ]
    # A context that the new commit does not measure again is no partner that is missing.
    measured_again = {key: old[key] for key in added if key in old}
    hints = _hints(old, added)
    return _compared(new, request, across, references, (measured_again, added), hints)


def _require_disjoint(base: Mapping[ContextKey, Group], new: Mapping[ContextKey, Group]) -> None:
    both = _records(base) & _records(new)
    if both:
        raise UsageError(
            f"{len(both)} records are on both sides, such as {min(both)}",
            code="overlapping-sides",
            remedy="name sides that share no record",
        )


def _records(groups: Mapping[ContextKey, Group]) -> set[str]:
    return {member.record for group in groups.values() for member in group.members}


def _reference(
    text: str, snapshot: DatabaseSnapshot, groups: Mapping[ContextKey, Group]
) -> SideReference:
    return SideReference(text=text, commit=snapshot.commit, records=len(_records(groups)))


def _across(
    snapshot: DatabaseSnapshot, request: ComparisonRequest, derived: Iterable[str]
) -> frozenset[str]:
    return checked_across(request.across, snapshot.vocabulary) | {*derived}


def _reading(choice: Choice, request: ComparisonRequest, across: frozenset[str]) -> Reading:
    return Reading(
        choice=choice, where=request.where, across=across, metrics=frozenset(request.metrics)
    )


def _series(groups: Iterable[ContextKey], across: frozenset[str]) -> dict[str, frozenset[Scalar]]:
    contexts = [dict(key.values) for key in groups]
    return {
        name: frozenset(context[name] for context in contexts)
        for name in ("operation", "device")
        if name not in across
    }


def _compared(
    snapshot: DatabaseSnapshot,
    request: ComparisonRequest,
    across: frozenset[str],
    references: Sequence[SideReference],
    groups: tuple[Mapping[ContextKey, Group], Mapping[ContextKey, Group]],
    hints: tuple[MatchHint, ...],
) -> Comparison:
    rules = request.rules
    base, new = groups
    conflict = _conflict_threshold(snapshot)
    contrasted = [
        contrast_pair(key, group, new[key], rules, conflict_threshold=conflict)
        for key, group in base.items()
        if key in new
    ]
    tested = [pair for pair in contrasted if pair.p_value is not None]
    adjusted = holm([pair.p_value for pair in tested if pair.p_value is not None])
    corrected = dict(zip(map(id, tested), adjusted, strict=True))
    pairs = [finished_pair(pair, corrected.get(id(pair)), rules) for pair in contrasted]
    counts = Counter(pair.verdict for pair in pairs)
    return Comparison(
        base=references[0],
        new=references[1],
        across=tuple(sorted(across)),
        alpha=rules.alpha,
        level=rules.level,
        threshold=rules.threshold,
        verdicts={verdict: counts[verdict] for verdict in _ORDER},
        pairs=tuple(sorted(pairs, key=_rank)),
        unmatched=(*_unmatched("A", base, new), *_unmatched("B", new, base)),
        hints=hints,
        gate=_gate(pairs, rules),
        bootstrap_seed=rules.bootstrap_seed,
    )


def _conflict_threshold(snapshot: DatabaseSnapshot) -> float | None:
    if DEFAULT_POLICY not in snapshot.evidence.policies():
        return None
    return snapshot.policy(DEFAULT_POLICY).policy.conflict.threshold


def _gate(pairs: Sequence[ComparedPair], rules: Rules) -> Gate | None:
    if rules.gate is None:
        return None
    return Gate(verdict="worse", threshold=rules.gate, failed=failed_pairs(pairs, rules))


def _rank(pair: ComparedPair) -> tuple[int, float]:
    """Sort by verdict, the largest change of each first."""
    change = 0.0 if pair.cost_ratio is None else abs(math.log(pair.cost_ratio.value))
    return _ORDER[pair.verdict], -change


def _unmatched(
    side: Side, own: Mapping[ContextKey, Group], other: Mapping[ContextKey, Group]
) -> list[UnmatchedContext]:
    return [
        UnmatchedContext(
            side=side,
            context=dict(key.values),
            metric=key.metric,
            records=len(group.members),
        )
        for key, group in own.items()
        if key not in other
    ]


def _hints(
    base: Mapping[ContextKey, Group], new: Mapping[ContextKey, Group]
) -> tuple[MatchHint, ...]:
    """Say which single dimension, left open, would bring more contexts together.

    Numbers are sizes of the work: nobody means to compare different ones.
    """
    alone = [[key for key in own if key not in other] for own, other in ((base, new), (new, base))]
    names = _differing_terms(alone)
    found = []
    for name in sorted({*names, ENVIRONMENT} - {"operation"}):
        left, right = ({key.without(name) for key in keys} for keys in alone)
        if left & right:
            found.append(MatchHint(across=name, contexts=len(left & right)))
    return tuple(sorted(found, key=lambda hint: -hint.contexts))


def _differing_terms(alone: Sequence[Sequence[ContextKey]]) -> set[str]:
    """Return the dimensions with texts that are not one and the same on both sides."""
    stated: list[dict[str, set[Scalar]]] = [{}, {}]
    for keys, found in zip(alone, stated, strict=True):
        for key in keys:
            for name, value in key.values:
                if isinstance(value, str):
                    found.setdefault(name, set()).add(value)
    return {
        name
        for name in {*stated[0], *stated[1]}
        if len(stated[0].get(name, set()) | stated[1].get(name, set())) > 1
        or (name in stated[0]) != (name in stated[1])
    }

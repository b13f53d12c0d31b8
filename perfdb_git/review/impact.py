"""Answers before and after a change, and why they differ."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from perfdb_git.model.values import Scalar
from perfdb_git.review.answers import (
    Answer,
    ChangedField,
    changed_fields,
    log_ratio,
)
from perfdb_git.review.inputs import InputComparison, Subject, values_of
from perfdb_git.review.reasons import Reason, ReasonFinder
from perfdb_git.review.tracked import Origin, TrackedQuery


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerChange:
    """One query whose answer a change alters.

    Attributes
    ----------
    name, origin : str
        From the tracked query.
    query : mapping of str to Scalar
        Its known dimensions by flat name.
    before, after : Answer
        Both answers.
    changed : tuple of str
        In what they differ.
    log_ratio : float or None
        ln(after / before) of the main metric; ``None`` where one of them has no value.
    reasons : tuple of Reason
        What made the difference.
    """

    name: str
    origin: Origin
    query: Mapping[str, Scalar]
    before: Answer
    after: Answer
    changed: tuple[ChangedField, ...]
    log_ratio: float | None
    reasons: tuple[Reason, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Impact:
    """How many queries were asked, and those whose answers differ, largest change first."""

    asked: int
    from_plans: int
    changes: tuple[AnswerChange, ...]


def answer_impact(
    comparison: InputComparison,
    tracked: Sequence[TrackedQuery],
    *,
    policy: str,
    progress: Callable[[int, int, str], None] | None = None,
) -> Impact:
    """Ask every tracked query before and after a change.

    Parameters
    ----------
    comparison : InputComparison
        Both snapshots.
    tracked : sequence of TrackedQuery
        What to ask.
    policy : str
        Name of the policy of queries that name none.
    progress : callable or None
        Called with the queries done, their number and the name of the last one.
    """
    finder = ReasonFinder(comparison)
    changes = []
    for done, query in enumerate(tracked, start=1):
        change = _change(comparison, finder, query, query.policy or policy)
        if change is not None:
            changes.append(change)
        if progress is not None:
            progress(done, len(tracked), query.name)
    return Impact(
        asked=len(tracked),
        from_plans=sum(query.origin == "plan" for query in tracked),
        changes=tuple(sorted(changes, key=_order)),
    )


def _change(
    comparison: InputComparison, finder: ReasonFinder, query: TrackedQuery, policy: str
) -> AnswerChange | None:
    values, limits = values_of(query), query.query.evidence_policy
    differing = comparison.differing(Subject.of(query), policy, limits)
    if not differing:
        return None
    before = comparison.base.asked.answer(values, limits, policy)
    after = comparison.head.asked.answer(values, limits, policy)
    changed = changed_fields(before, after)
    if not changed:
        return None
    return AnswerChange(
        name=query.name,
        origin=query.origin,
        query=values,
        before=before,
        after=after,
        changed=changed,
        log_ratio=log_ratio(before, after),
        reasons=finder.reasons(query, policy, differing, (before, after)),
    )


def _order(change: AnswerChange) -> tuple[int, float, int, bytes]:
    """Sort lost answers first, then by the size of the change; new answers after changed ones."""
    is_lost = change.before.is_resolved and not change.after.is_resolved
    size = 0.0 if change.log_ratio is None else abs(change.log_ratio)
    group = 0 if is_lost else 1 if change.before.is_resolved else 2
    return group, -size, 0 if change.origin == "plan" else 1, change.name.encode()

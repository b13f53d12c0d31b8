"""What a plan's number depends on: each source of its answers, changed by one percent."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from perfdb_git.model.plan_lock import CompositionResult
from perfdb_git.plans.answer_sources import AnswerSources, Grouping, Source, SourceKind
from perfdb_git.plans.composing import AnsweredQuery
from perfdb_git.plans.lock import require_answers
from perfdb_git.plans.resolving import ResolvedPlan
from perfdb_git.plans.stage_changes import StageChanges
from perfdb_git.plans.tracked import STAGE_PREFIX

STEP = 0.01
"""The change of one source, as a fraction."""

Way: TypeAlias = Literal["sum", "simulation"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependence:
    """One source of a plan's answers.

    Parameters
    ----------
    kind : str
        ``record-set`` or ``session``, ``calibration``, ``profile`` (of a model without records), or
        ``component`` (of a pipeline's timing profile).
    name : str
        The record set's or calibration's SHA-256, or a name.
    label : str
        The session of a record set, the operation and device of a calibration; for people.
    queries : tuple of str
        Queries of the plan, or stages of its pipeline, that it answers alone or with others.
    time_s : float
        What they take together, repeats included.
    change_s : float
        What the plan's number changes by where this source alone gives 1 % more.
    relative : float or None
        The same as a fraction of the number; ``None`` where that is zero.
    """

    kind: SourceKind
    name: str
    label: str
    queries: tuple[str, ...]
    time_s: float
    change_s: float
    relative: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensitivity:
    """Every source of a plan's number, the one with the largest effect first.

    ``way`` is how the effects were found: as a ``sum``, exact but for rounding, or by
    ``simulation`` of the pipeline with changed services. ``left_out`` are queries that the number
    lacks.
    """

    plan: str
    commit: str | None
    result: CompositionResult
    step: float
    way: Way
    dependences: tuple[Dependence, ...]
    left_out: tuple[str, ...]


def plan_sensitivity(resolved: ResolvedPlan, *, by: Grouping = "record-set") -> Sensitivity:
    """Change each source of a plan's answers by 1 %, one at a time.

    Measured answers are pooled again from their records with those of the source changed, so that
    a session that is not the median has the effect that it really has. Answers of a calibration or
    a profile are changed as a whole; the records that a calibration was fitted to are not followed.

    Parameters
    ----------
    resolved : ResolvedPlan
        With an answer for each required query.
    by : str
        Whether records are changed by ``record-set`` or by ``session``.

    Raises
    ------
    NoEvidenceError
        'plan-incomplete', as `lock_plan` does.

    Notes
    -----
    Of a sum, the change is sum of multiplicity times change of latency; where one source alone
    answers a query, that is its share times 1 %. Source: finite difference; JCGM 100:2008 (GUM),
    5.1.3, calls its quotient the sensitivity coefficient.
    """
    require_answers(resolved)
    known = [item for item in resolved.answered if item.latency is not None]
    sources = AnswerSources(resolved.snapshot, by)
    groups: dict[Source, list[AnsweredQuery]] = {}
    for item in known:
        for source in sources.of(item):
            groups.setdefault(source, []).append(item)
    is_sum = resolved.document.value.composition.kind == "sum"
    found = (
        _sum_dependences(groups, sources, resolved.result)
        if is_sum
        else _pipeline_dependences(groups, sources, resolved)
    )
    return Sensitivity(
        plan=resolved.document.value.name,
        commit=resolved.snapshot.commit,
        result=resolved.result,
        step=STEP,
        way="sum" if is_sum else "simulation",
        dependences=tuple(sorted(found, key=_order)),
        left_out=resolved.result.left_out,
    )


def _order(one: Dependence) -> tuple[float, str, bytes]:
    return (-abs(one.change_s), one.kind, one.name.encode("utf-8"))


def _sum_dependences(
    groups: Mapping[Source, Sequence[AnsweredQuery]],
    sources: AnswerSources,
    result: CompositionResult,
) -> list[Dependence]:
    found = []
    for source, items in groups.items():
        changes = [
            item.tracked.multiplicity * (sources.changed(item, source, 1 + STEP) - _value(item))
            for item in items
        ]
        found.append(_dependence(source, items, math.fsum(changes), result))
    return found


def _pipeline_dependences(
    groups: Mapping[Source, Sequence[AnsweredQuery]],
    sources: AnswerSources,
    resolved: ResolvedPlan,
) -> list[Dependence]:
    """Simulate once for each source; queries that no stage asks change nothing."""
    stages = {
        item.tracked.name: item
        for item in resolved.answered
        if item.tracked.name.startswith(STAGE_PREFIX)
    }
    run = StageChanges(resolved)
    found = []
    for source, items in groups.items():
        changed = {
            item.tracked.name: sources.changed(item, source, 1 + STEP)
            for item in items
            if item.tracked.name in stages
        }
        change = run.makespan_s(changed) - run.makespan_s({})
        found.append(_dependence(source, items, change, resolved.result))
    for component, names, time_s in run.components():
        change = run.makespan_s({}, component=component, factor=1 + STEP) - run.makespan_s({})
        source = Source(kind="component", name=component, label=run.profile_name)
        found.append(_with_effect(source, names, time_s, change, resolved.result))
    return found


def _value(item: AnsweredQuery) -> float:
    assert item.latency is not None
    return item.latency.value


def _dependence(
    source: Source, items: Sequence[AnsweredQuery], change_s: float, result: CompositionResult
) -> Dependence:
    return _with_effect(
        source,
        tuple(item.tracked.name for item in items),
        math.fsum(item.tracked.multiplicity * _value(item) for item in items),
        change_s,
        result,
    )


def _with_effect(
    source: Source,
    names: tuple[str, ...],
    time_s: float,
    change_s: float,
    result: CompositionResult,
) -> Dependence:
    return Dependence(
        kind=source.kind,
        name=source.name,
        label=source.label,
        queries=names,
        time_s=time_s,
        change_s=change_s,
        relative=change_s / result.value if result.value else None,
    )

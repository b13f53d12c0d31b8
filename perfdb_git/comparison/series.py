"""Measured values of each context over time, and where their level changed for good."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar, get_args

from perfdb_git.analysis.change_points import (
    ALPHA,
    THRESHOLD,
    ChangePoint,
    fewest_values,
    find_change_points,
)
from perfdb_git.analysis.multiple_tests import benjamini_hochberg
from perfdb_git.comparison.arrivals import Arrival, arrivals
from perfdb_git.comparison.contexts import ContextKey, checked_across
from perfdb_git.comparison.groups import Group, Progress, Reading, read_groups
from perfdb_git.comparison.results import Ratio
from perfdb_git.comparison.selections import EVERYTHING, Selection
from perfdb_git.comparison.series_points import Located, OrderChoice, OrderedPoints, ordered_points
from perfdb_git.comparison.series_results import (
    ChangeVerdict,
    Series,
    SeriesChange,
    SeriesOutcome,
    SeriesPoint,
    SeriesReport,
)
from perfdb_git.database import DatabaseSnapshot
from perfdb_git.operations.directions import Direction, direction_of
from perfdb_git.storage.git import GitStore

FALSE_DISCOVERY_RATE = 0.05
"""Expected share of false ones among the series said to have changed, where many are judged."""

_LEVEL = 0.95

Name = TypeVar("Name", bound=str)


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesRequest:
    """What to follow over time.

    Attributes
    ----------
    selection : Selection
        Whose records.
    texts : tuple of str
        The selection as the user wrote it.
    across : tuple of str
        Dimensions (or ``environment``) that may change along a series.
    metrics : tuple of str
        The only metrics to follow; all where empty.
    order : str
        What to sort the sessions by.
    alpha : float
        Probability of an alarm in one series without a change.
    threshold : float
        Smallest change that matters, as a fraction.
    directions : mapping of str to str
        Which way a metric is better, where the caller states it.
    """

    selection: Selection
    texts: tuple[str, ...] = ()
    across: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()
    order: OrderChoice = "auto"
    alpha: float = ALPHA
    threshold: float = THRESHOLD
    directions: Mapping[str, Direction] = field(default_factory=dict)


def follow_series(
    store: GitStore,
    snapshot: DatabaseSnapshot,
    request: SeriesRequest,
    progress: Progress | None = None,
) -> SeriesReport:
    """Search every context of a selection for lasting changes of level, up or down.

    Parameters
    ----------
    store : GitStore
        The repository.
    snapshot : DatabaseSnapshot
        One of its commits.
    request : SeriesRequest
        What to follow.
    progress : callable or None
        Called with the record sets read, how many there are, and the path of the next one.

    Raises
    ------
    UsageError
        'unknown-dimension' for what may change.
    InvalidInputError
        For evidence that breaks its format.
    RepositoryUnavailableError
        Where an object of the history is missing; a shallow clone is no error.
    """
    assert snapshot.commit is not None
    reading = Reading(
        choice=request.selection,
        where=EVERYTHING,
        across=checked_across(request.across, snapshot.vocabulary),
        metrics=frozenset(request.metrics),
    )
    located = _located(snapshot, read_groups(snapshot, reading, progress))
    paths = {record.path for records in located.values() for record in records}
    brought, complete = arrivals(store, snapshot.commit, paths)
    fewest = fewest_values(request.alpha)
    searched = [
        _searched(key, records, brought, request, fewest) for key, records in located.items()
    ]
    rate = max(FALSE_DISCOVERY_RATE, request.alpha)
    series = sorted(_corrected(searched, rate), key=_rank)
    return SeriesReport(
        commit=snapshot.commit,
        selection=request.texts,
        across=tuple(sorted(reading.across)),
        alpha=request.alpha,
        false_discovery_rate=rate,
        threshold=request.threshold,
        fewest=fewest,
        outcomes=_counts(get_args(SeriesOutcome), [item.outcome for item in series]),
        verdicts=_counts(
            get_args(ChangeVerdict), [change.verdict for item in series for change in item.changes]
        ),
        complete_history=complete,
        series=tuple(series),
    )


def _located(
    snapshot: DatabaseSnapshot, groups: Mapping[ContextKey, Group]
) -> dict[ContextKey, list[Located]]:
    """Sort all records by context alone: the environment becomes a condition within it."""
    paths: dict[str, str] = {}
    found: dict[ContextKey, list[Located]] = {}
    for key, group in groups.items():
        for member in group.members:
            sha256 = member.record.partition("#")[0]
            if sha256 not in paths:
                paths[sha256] = snapshot.evidence.find_record_set(sha256).path
            context = replace(key, environment=())
            record = Located(member, paths[sha256], key.environment)
            found.setdefault(context, []).append(record)
    return found


def _searched(
    key: ContextKey,
    records: Sequence[Located],
    brought: Mapping[str, Arrival],
    request: SeriesRequest,
    fewest: int,
) -> Series:
    """Search one context, before the correction for many."""
    ordered = ordered_points(records, brought, request.order)
    points = ordered.points
    series = Series(
        context=dict(key.values),
        metric=key.metric,
        unit=key.unit,
        direction=request.directions.get(key.metric) or direction_of(key.metric, key.unit),
        outcome=_obstacle(ordered, fewest) or "no-change",
        order=ordered.order,
        tied=ordered.tied,
        adjusted_p_value=None,
        points=points,
        conditions=ordered.conditions,
        changes=(),
        not_comparable=(),
    )
    if series.outcome != "no-change":
        return series
    found = find_change_points(
        [point.value for point in points],
        [str(point.condition) for point in points],
        alpha=request.alpha,
        threshold=request.threshold,
    )
    return replace(
        series,
        outcome="changed" if found.changes else "no-change",
        changes=tuple(_change(change, points, series.direction) for change in found.changes),
        not_comparable=_apart(points, fewest),
    )


def _apart(points: Sequence[SeriesPoint], fewest: int) -> tuple[int, ...]:
    """Return the sessions under conditions that no change can be found among."""
    sizes = Counter(point.condition for point in points)
    return tuple(i for i, point in enumerate(points) if sizes[point.condition] < fewest)


def _obstacle(ordered: OrderedPoints, fewest: int) -> SeriesOutcome | None:
    """Return why a series cannot be searched."""
    if len(_apart(ordered.points, fewest)) == len(ordered.points):
        return "too-few-sessions"
    if ordered.order is None:
        return "no-order"
    if any(not point.value > 0 for point in ordered.points):
        return "zero-value"
    return None


def _change(
    change: ChangePoint, points: Sequence[SeriesPoint], direction: Direction | None
) -> SeriesChange:
    condition = points[change.index].condition
    earlier = (i for i in range(change.index - 1, -1, -1) if points[i].condition == condition)
    verdict: ChangeVerdict = "no-direction"
    if direction is not None:
        verdict = "worse" if (change.ratio > 1) == (direction == "lower") else "better"
    return SeriesChange(
        index=change.index,
        previous=next(earlier),
        verdict=verdict,
        before=change.before,
        after=change.after,
        ratio=Ratio(
            value=change.ratio,
            lower=change.lower,
            upper=change.upper,
            level=None if change.lower is None else _LEVEL,
        ),
        p_value=change.p_value,
    )


def _corrected(searched: Sequence[Series], rate: float) -> list[Series]:
    """Take back changes that are not clear enough among all the series judged."""
    judged = [item for item in searched if item.outcome in ("changed", "no-change")]
    smallest = [min((change.p_value for change in item.changes), default=1.0) for item in judged]
    adjusted = dict(zip(map(id, judged), benjamini_hochberg(smallest), strict=True))
    corrected = []
    for item in searched:
        if item.outcome != "changed":
            corrected.append(item)
        elif adjusted[id(item)] < rate:
            corrected.append(replace(item, adjusted_p_value=adjusted[id(item)]))
        else:
            corrected.append(
                replace(
                    item,
                    outcome="not-significant-among-many",
                    adjusted_p_value=adjusted[id(item)],
                    changes=(),
                )
            )
    return corrected


def _counts(names: Sequence[Name], found: Sequence[Name]) -> dict[Name, int]:
    counts = Counter(found)
    return {name: counts[name] for name in names}


def _rank(series: Series) -> tuple[int, float]:
    """Sort what got worse first, then other changes, the largest of each first."""
    if not series.changes:
        return 2, 0.0
    worse = [change for change in series.changes if change.verdict == "worse"]
    largest = max(abs(math.log(change.ratio.value)) for change in worse or series.changes)
    return 0 if worse else 1, -largest

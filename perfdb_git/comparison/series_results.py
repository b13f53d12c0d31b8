"""Values of one context over time and where they changed, as renderers and programs read them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from perfdb_git.comparison.results import Ratio
from perfdb_git.model.values import Scalar

SeriesOrder: TypeAlias = Literal["date", "commit"]
ChangeVerdict: TypeAlias = Literal["worse", "better", "no-direction"]
SeriesOutcome: TypeAlias = Literal[
    "changed",
    "no-change",
    "not-significant-among-many",
    "too-few-sessions",
    "no-order",
    "zero-value",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesPoint:
    """One session of a series.

    Attributes
    ----------
    session : str
        Its name.
    condition : int
        Sessions of equal environment and statistic have the same number, counted from 0 in the
        order of the series; values of different ones are not held against each other.
    value : float
        Median of its samples, or of its records' typical values, in the SI unit.
    samples : int
        Raw ones; 0 where only summaries were recorded.
    throttled : bool
        Whether a clock that was recorded beside them fell.
    measured_at : str or None
        The earliest time of its record sets, None where one of them has none.
    commit, summary : str or None
        First-parent commit that first brought a record set of it, and the first line of its
        message; None where a shallow clone's history is cut before it.
    paths : tuple of str
        Its record sets.
    record_ids : tuple of str
        Its records.
    """

    session: str
    condition: int
    value: float
    samples: int
    throttled: bool
    measured_at: str | None
    commit: str | None
    summary: str | None
    paths: tuple[str, ...]
    record_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesChange:
    """A lasting change of level.

    Attributes
    ----------
    index : int
        From 0, of the first session at the new level.
    previous : int
        Of the last one at the old level under the same condition.
    verdict : str
        On the new level, by the direction of the metric.
    before, after : float
        Medians of both levels in the SI unit.
    ratio : Ratio
        Hodges-Lehmann ratio after / before.
    p_value : float
        Of the place itself, the search over all places included.
    """

    index: int
    previous: int
    verdict: ChangeVerdict
    before: float
    after: float
    ratio: Ratio
    p_value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """All sessions of one context and metric, oldest first.

    Attributes
    ----------
    context : mapping of str to scalar
        What all of them share.
    metric, unit : str
        What was measured, and its SI unit.
    direction : str or None
        Which way it is better.
    outcome : str
        What the search came to.
    order : str or None
        What the sessions are sorted by; None where nothing says it.
    tied : int
        Sessions that neither commit nor time of measurement tells from another one: they stand
        in order of their names.
    adjusted_p_value : float or None
        Of the clearest change, all series that were judged counted in (Benjamini-Hochberg); None
        where no change was found.
    points : tuple of SeriesPoint
        The sessions.
    conditions : tuple of mapping of str to str
        By the number that points have: the facts of the environment, and the statistic, in which
        the conditions of this series differ.
    changes : tuple of SeriesChange
        In order.
    not_comparable : tuple of int
        Indices of sessions under conditions with too few of them for a change to be found, in a
        series that has others.
    """

    context: Mapping[str, Scalar]
    metric: str
    unit: str
    direction: Literal["lower", "higher"] | None
    outcome: SeriesOutcome
    order: SeriesOrder | None
    tied: int
    adjusted_p_value: float | None
    points: tuple[SeriesPoint, ...]
    conditions: tuple[Mapping[str, str], ...]
    changes: tuple[SeriesChange, ...]
    not_comparable: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesReport:
    """The answer of ``perfdb log --series``; series with a change come first, worst first.

    ``fewest`` is how many sessions of one condition a change can be found among at all.
    ``complete_history`` is False where a shallow clone hides which commit brought a session.
    """

    commit: str
    selection: tuple[str, ...]
    across: tuple[str, ...]
    alpha: float
    false_discovery_rate: float
    threshold: float
    fewest: int
    outcomes: Mapping[SeriesOutcome, int]
    verdicts: Mapping[ChangeVerdict, int]
    complete_history: bool
    series: tuple[Series, ...]

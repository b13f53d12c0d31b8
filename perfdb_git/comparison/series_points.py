"""The sessions of one context as points of a series, in order of dates or of commits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from perfdb_git.comparison.arrivals import Arrival
from perfdb_git.comparison.contrasts import statistic_kind
from perfdb_git.comparison.groups import Member
from perfdb_git.comparison.pairs import throttled
from perfdb_git.comparison.series_results import SeriesOrder, SeriesPoint
from perfdb_git.model.instants import earliest_instant
from perfdb_git.providers.observations import session_center

OrderChoice: TypeAlias = Literal["auto", "date", "commit"]
Condition: TypeAlias = tuple[tuple[tuple[str, str], ...], str]
"""Facts of the environment, and the statistic."""

_BEFORE_HISTORY = float("-inf")


@dataclass(frozen=True, slots=True)
class Located:
    """A record with the path of its record set and the facts of its environment."""

    member: Member
    path: str
    environment: tuple[tuple[str, str], ...]

    @property
    def condition(self) -> Condition:
        """What has to be equal for two values to be held against each other."""
        return (self.environment, statistic_kind(self.member.observation.statistic))


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderedPoints:
    """Points with what they are sorted by; ``order`` is None where nothing tells their order."""

    points: tuple[SeriesPoint, ...]
    conditions: tuple[Mapping[str, str], ...]
    order: SeriesOrder | None
    tied: int


@dataclass(frozen=True, slots=True)
class _Placed:
    """A point with what it can be sorted by: seconds since 1970, and the place in history."""

    point: SeriesPoint
    condition: Condition
    instant: float | None
    age: float

    def by_date(self) -> tuple[float, ...]:
        assert self.instant is not None
        return (self.instant, self.age)

    def by_commit(self, dated: Mapping[float, bool]) -> tuple[float, ...]:
        # Within one commit times count where all have one; half of them would mix two orders.
        instant = self.instant if dated[self.age] else None
        return (self.age,) if instant is None else (self.age, instant)


def ordered_points(
    records: Sequence[Located], arrivals: Mapping[str, Arrival], choice: OrderChoice
) -> OrderedPoints:
    """Return a point for each session, oldest first.

    Parameters
    ----------
    records : sequence of Located
        All of one context and metric.
    arrivals : mapping of str to Arrival
        Which commit brought a record set, by path.
    choice : str
        ``auto`` sorts by date where every session has one, else by commit.
    """
    sessions: dict[tuple[Condition, str], list[Located]] = {}
    for record in records:
        key = (record.condition, record.member.header.session)
        sessions.setdefault(key, []).append(record)
    placed = [_placed(key[0], found, arrivals) for key, found in sessions.items()]
    all_dated = all(item.instant is not None for item in placed)
    order: SeriesOrder = (
        "date" if choice == "date" or (choice == "auto" and all_dated) else "commit"
    )
    if order == "date" and not all_dated:
        return _ordered(placed, order=None, tied=0)
    if order == "date":
        keys = [item.by_date() for item in placed]
    else:
        dated: dict[float, bool] = {}
        for item in placed:
            dated[item.age] = dated.get(item.age, True) and item.instant is not None
        keys = [item.by_commit(dated) for item in placed]
    ranks = sorted(range(len(placed)), key=lambda i: (keys[i], placed[i].point.session))
    counts = Counter(keys)
    return _ordered(
        [placed[rank] for rank in ranks],
        order=None if len(counts) == 1 < len(placed) else order,
        tied=sum(count for count in counts.values() if count > 1),
    )


def _placed(
    condition: Condition, records: Sequence[Located], arrivals: Mapping[str, Arrival]
) -> _Placed:
    paths = tuple(sorted({record.path for record in records}))
    times = {record.member.header.source.measured_at for record in records}
    stated = [time for time in times if time is not None]
    first = min(stated, key=earliest_instant) if len(stated) == len(times) else None
    known = [arrivals[path] for path in paths if path in arrivals]
    arrival = max(known, key=lambda item: item.place) if len(known) == len(paths) else None
    observations = [record.member.observation for record in records]
    point = SeriesPoint(
        session=records[0].member.header.session,
        condition=0,
        value=session_center(observations),
        samples=sum(len(item.samples) for item in observations),
        throttled=throttled(record.member for record in records),
        measured_at=first,
        commit=None if arrival is None else arrival.commit,
        summary=None if arrival is None else arrival.summary,
        paths=paths,
        record_ids=tuple(record.member.record for record in records),
    )
    instant = None if first is None else earliest_instant(first)
    age = _BEFORE_HISTORY if arrival is None else -float(arrival.place)
    return _Placed(point, condition, instant, age)


def _ordered(placed: Sequence[_Placed], *, order: SeriesOrder | None, tied: int) -> OrderedPoints:
    numbers: dict[Condition, int] = {}
    points = tuple(
        replace(item.point, condition=numbers.setdefault(item.condition, len(numbers)))
        for item in placed
    )
    return OrderedPoints(points=points, conditions=_differing(numbers), order=order, tied=tied)


def _differing(conditions: Iterable[Condition]) -> tuple[Mapping[str, str], ...]:
    """Return what is not the same in all conditions, for each of them."""
    stated = [{**dict(environment), "statistic": kind} for environment, kind in conditions]
    names = sorted({name for facts in stated for name in facts})
    differing = [name for name in names if len({facts.get(name) for facts in stated}) > 1]
    return tuple({name: facts[name] for name in differing if name in facts} for facts in stated)

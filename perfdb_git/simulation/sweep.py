"""Runs over changed profiles: sweeps of one field, and sensitivities of every component.

Each point is simulated. Nothing is interpolated or taken from the critical path: with re-entrant
stages a faster component may end later.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from decimal import Decimal, InvalidOperation
from fractions import Fraction

from perfdb_git.errors import UsageError
from perfdb_git.formats.frozen import FrozenMap
from perfdb_git.model.pipeline import Pipeline
from perfdb_git.model.simulation import (
    Picoseconds,
    ResolvedService,
    Sensitivity,
    SimulationSummary,
    SweepPoint,
    TickName,
)
from perfdb_git.model.spreading import Spread
from perfdb_git.model.timing_profile import RATE_FIELDS, Component, TimingProfile
from perfdb_git.simulation.documents import ReadDocument
from perfdb_git.simulation.simulate import simulate

_DECIMALS = ("fixed_latency_ns", *RATE_FIELDS, "calibration_scale", "calibration_offset_ns")
SWEPT_FIELDS = (*_DECIMALS, "lanes", "resource_mode")
"""Fields that change a schedule."""

_SLOWER = Fraction(101, 100)
_FASTER = Fraction(99, 100)


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepAxis:
    """The field of a component that a sweep varies, and its values as typed."""

    component: str
    field: str
    values: tuple[str, ...]


def parse_sweep(text: str) -> SweepAxis:
    """Axis of ``component.field=v1,v2,...``; a component's name may have dots.

    Raises
    ------
    UsageError
        If the text has another form, or the field changes no schedule.
    """
    left, equals, right = text.partition("=")
    component, dot, name = left.strip().rpartition(".")
    values = tuple(value.strip() for value in right.split(","))
    if not (equals and dot and component) or not all(values):
        raise UsageError(
            f"sweep {text!r} does not have the form component.field=v1,v2,...", code="sweep"
        )
    if name not in SWEPT_FIELDS:
        raise UsageError(
            f"sweep {text!r}: field {name!r} cannot be swept",
            code="sweep",
            remedy=f"fields: {', '.join(SWEPT_FIELDS)}",
        )
    return SweepAxis(component=component, field=name, values=values)


def sweep(
    profile: ReadDocument[TimingProfile],
    pipeline: ReadDocument[Pipeline],
    axis: SweepAxis,
    *,
    answers: Mapping[str, ResolvedService] | None = None,
    tick: TickName = "ps",
    spread: Spread = map,
) -> Iterator[SweepPoint]:
    """Run the pipeline once for each value of a field.

    Parameters
    ----------
    profile, pipeline, answers, tick
        As for `simulate`.
    axis : SweepAxis
        What varies. All its values are checked before anything runs.
    spread : Spread
        Where the runs are done.

    Raises
    ------
    UsageError
        If the profile has no such component, or a value does not fit the field.
    InvalidInputError
        As `simulate`.
    """
    changed = [_changed(profile, axis, value) for value in axis.values]
    run = functools.partial(_summary, pipeline=pipeline, answers=answers, tick=tick)
    for value, summary in zip(axis.values, spread(run, changed), strict=True):
        yield SweepPoint(value=value, summary=summary)


def _summary(
    profile: ReadDocument[TimingProfile],
    *,
    pipeline: ReadDocument[Pipeline],
    answers: Mapping[str, ResolvedService] | None,
    tick: TickName,
) -> SimulationSummary:
    return simulate(profile, pipeline, answers=answers, tick=tick).summary


def _changed(
    profile: ReadDocument[TimingProfile], axis: SweepAxis, text: str
) -> ReadDocument[TimingProfile]:
    component = profile.value.components.get(axis.component)
    if component is None:
        raise UsageError(
            f"profile {profile.value.name!r} has no component {axis.component!r}",
            code="unknown-component",
            remedy=f"known: {', '.join(sorted(profile.value.components))}",
        )
    try:
        one = _with_field(component, axis.field, text)
    except (ValueError, InvalidOperation) as error:
        raise UsageError(
            f"{axis.component}.{axis.field} cannot be {text!r}: {error}", code="sweep"
        ) from error
    components = FrozenMap({**profile.value.components, axis.component: one})
    return replace(profile, value=replace(profile.value, components=components))


def _with_field(component: Component, name: str, text: str) -> Component:
    assert name in {item.name for item in fields(component)}
    value: object
    if name == "lanes":
        value = int(text)
    elif name == "resource_mode":
        if text not in ("overlap", "serial"):
            raise ValueError("it is overlap or serial")
        value = text
    else:
        try:
            value = Decimal(text)
        except InvalidOperation:
            raise ValueError("it is no number") from None
    return replace(component, **{name: value})  # type: ignore[arg-type]


def sensitivities(
    profile: ReadDocument[TimingProfile],
    pipeline: ReadDocument[Pipeline],
    *,
    answers: Mapping[str, ResolvedService] | None = None,
    tick: TickName = "ps",
) -> tuple[Sensitivity, ...]:
    """Change of the makespan for 1 % more and 1 % less of each used component's services.

    Parameters
    ----------
    profile, pipeline, answers, tick
        As for `simulate`.

    Returns
    -------
    tuple of Sensitivity
        The largest change first.

    Raises
    ------
    InvalidInputError
        As `simulate`.
    """

    def makespan(factors: Mapping[str, Fraction]) -> Picoseconds:
        run = simulate(
            profile, pipeline, answers=answers, factors=factors, recorded_visits=0, tick=tick
        )
        return run.summary.makespan_ps

    base = makespan({})
    rows = []
    for name in dict.fromkeys(stage.component for stage in pipeline.value.stages):
        slower = makespan({name: _SLOWER}) - base
        faster = makespan({name: _FASTER}) - base
        rows.append(
            Sensitivity(
                component=name,
                slower_ps=slower,
                faster_ps=faster,
                slower_pct=float(100 * slower / base) if base else 0.0,
                faster_pct=float(100 * faster / base) if base else 0.0,
            )
        )
    return tuple(sorted(rows, key=lambda row: (-abs(Fraction(row.slower_ps)), row.component)))

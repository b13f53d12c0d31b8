"""Test, effect and interval of one pair of groups, before any verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from perfdb_git.analysis.rank_tests import (
    hodges_lehmann_ratio,
    mann_whitney,
    smallest_p_value,
)
from perfdb_git.analysis.summary_ratio import Summary, summary_ratio
from perfdb_git.comparison.groups import Group
from perfdb_git.comparison.results import Ratio, SampleUnit
from perfdb_git.comparison.rules import UnitChoice
from perfdb_git.providers.observations import Observation, Pooled

_MEDIANS = frozenset({"median", "sample", "p50"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Contrast:
    """What the numbers of two groups say of each other.

    ``refusal`` is the code and text of why no verdict can come of them, whatever the threshold.
    """

    sample_unit: SampleUnit
    base_units: tuple[float, ...]
    new_units: tuple[float, ...]
    method: str | None = None
    ratio: Ratio | None = None
    p_value: float | None = None
    refusal: tuple[str, str] | None = None
    notes: tuple[str, ...] = ()


def contrast(
    base: Group,
    new: Group,
    pooled: tuple[Pooled, Pooled],
    *,
    unit: UnitChoice,
    level: float,
    alpha: float,
) -> Contrast:
    """Hold two groups against each other.

    Parameters
    ----------
    base, new : Group
        At least one record each.
    pooled : tuple of Pooled
        Both of them, pooled.
    unit : str
        What counts as one independent value; ``auto`` is the outermost level of which either side
        has more than one: sessions, then records, then raw samples.
    level : float
        Coverage asked of the interval.
    alpha : float
        Level of the test.
    """
    groups = base, new
    sample_unit = _sample_unit(groups, pooled) if unit == "auto" else unit
    values = tuple(
        _units(group, pool, sample_unit) for group, pool in zip(groups, pooled, strict=True)
    )
    if min(item.estimate.value for item in pooled) <= 0 or any(
        value <= 0 for units in values for value in units
    ):
        return Contrast(
            sample_unit=sample_unit,
            base_units=values[0],
            new_units=values[1],
            refusal=("zero-value", "a value of zero stands in no ratio to anything"),
        )
    if sample_unit == "summary":
        return _of_summaries(base.members[0].observation, new.members[0].observation, level)
    return _of_units(sample_unit, values[0], values[1], pooled, level=level, alpha=alpha)


def _sample_unit(groups: Sequence[Group], pooled: Sequence[Pooled]) -> SampleUnit:
    if any(len(item.session_centers) > 1 for item in pooled):
        return "session"
    if any(len(group.members) > 1 for group in groups):
        return "record"
    if all(item.samples for group in groups for item in group.observations):
        return "sample"
    return "summary"


def _units(group: Group, pooled: Pooled, unit: SampleUnit) -> tuple[float, ...]:
    if unit == "session":
        return tuple(pooled.session_centers.values())
    if unit == "record":
        return tuple(item.center for item in group.observations)
    return tuple(sample for item in group.observations for sample in item.samples)


def _of_units(
    unit: SampleUnit,
    base: tuple[float, ...],
    new: tuple[float, ...],
    pooled: tuple[Pooled, Pooled],
    *,
    level: float,
    alpha: float,
) -> Contrast:
    shape = Contrast(sample_unit=unit, base_units=base, new_units=new)
    if not base or not new:
        text = "one side has no raw samples, so samples cannot be the unit of comparison"
        return _refused(shape, "no-samples", text, _point(pooled))
    estimate = hodges_lehmann_ratio(base, new, level)
    ratio = Ratio(
        value=estimate.ratio,
        lower=estimate.lower,
        upper=estimate.upper,
        level=estimate.coverage,
    )
    differing = _different_statistics(pooled) if unit != "sample" else None
    if differing is not None:
        return _refused(shape, "different-statistics", differing, ratio)
    if smallest_p_value(len(base), len(new)) >= alpha or ratio.level is None:
        return _refused(shape, "too-few-samples", _too_few(unit, len(base), len(new)), ratio)
    test = mann_whitney(base, new)
    return Contrast(
        sample_unit=unit,
        base_units=base,
        new_units=new,
        method=f"mann-whitney-{test.method}",
        ratio=ratio,
        p_value=test.p_value,
        notes=_unit_notes(unit, pooled),
    )


def _of_summaries(base: Observation, new: Observation, level: float) -> Contrast:
    shape = Contrast(sample_unit="summary", base_units=(), new_units=())
    point = Ratio(value=new.center / base.center, lower=None, upper=None, level=None)
    if statistic_kind(base.statistic) != statistic_kind(new.statistic):
        text = f"A states the {base.statistic}, B the {new.statistic}"
        return _refused(shape, "different-statistics", text, point)
    known = [_summary(item) for item in (base, new)]
    first, second = known
    if first is None or second is None:
        text = "single values without samples or spread, so noise and change look alike"
        return _refused(shape, "no-spread", text, point)
    found = summary_ratio(first, second, level)
    if found is None:
        text = "both recorded spreads are 0: the timer is too coarse to show one"
        return _refused(shape, "no-spread", text, point)
    return Contrast(
        sample_unit="summary",
        base_units=(),
        new_units=(),
        method="welch-on-logs",
        ratio=Ratio(value=found.ratio, lower=found.lower, upper=found.upper, level=level),
        p_value=found.p_value,
        notes=(
            "summary only: the runs behind it are taken as independent and log-normal",
            "one session a side: what differs from session to session is not seen",
        ),
    )


def _summary(item: Observation) -> Summary | None:
    if item.variance is None or item.count is None or item.count < 2:
        return None
    return Summary(
        center=item.center,
        is_median=statistic_kind(item.statistic) == "median",
        variance=item.variance,
        count=item.count,
    )


def _refused(shape: Contrast, code: str, text: str, ratio: Ratio | None) -> Contrast:
    return Contrast(
        sample_unit=shape.sample_unit,
        base_units=shape.base_units,
        new_units=shape.new_units,
        ratio=ratio,
        refusal=(code, text),
    )


def _too_few(unit: SampleUnit, base: int, new: int) -> str:
    if base == new == 1:
        return f"1 {unit} a side has no spread"
    return f"{base} against {new} {unit}s are too few for any test"


def statistic_kind(statistic: str) -> str:
    """Return what a statistic stands for: the median, however stated, or itself."""
    return "median" if statistic in _MEDIANS else statistic


def _different_statistics(pooled: tuple[Pooled, Pooled]) -> str | None:
    kinds = [{statistic_kind(name) for name in item.statistics} for item in pooled]
    if kinds[0] == kinds[1] and len(kinds[0]) == 1:
        return None
    stated = [" and ".join(item.statistics) for item in pooled]
    return f"A states {stated[0]}, B {stated[1]}"


def _unit_notes(unit: SampleUnit, pooled: tuple[Pooled, Pooled]) -> tuple[str, ...]:
    if unit == "session":
        return ()
    if any(len(item.session_centers) > 1 for item in pooled):
        return (f"{unit}s of several sessions are taken as independent, as asked for",)
    return ("one session a side: what differs from session to session is not seen",)


def _point(pooled: tuple[Pooled, Pooled]) -> Ratio:
    values = [item.estimate.value for item in pooled]
    return Ratio(value=values[1] / values[0], lower=None, upper=None, level=None)

"""One context of both sides: what is odd about it, its contrast, and its verdict."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from perfdb_git.analysis.order_statistics import median_interval
from perfdb_git.analysis.sample_flags import modes, modes_text, outliers, sample_flags
from perfdb_git.comparison.contexts import ContextKey
from perfdb_git.comparison.contrasts import Contrast, contrast
from perfdb_git.comparison.groups import Group, Member
from perfdb_git.comparison.levels import mean_over_units, resampled_median, samples_by_unit
from perfdb_git.comparison.results import ComparedGroup, ComparedPair, Ratio, SampleUnit
from perfdb_git.comparison.rules import Rules
from perfdb_git.comparison.verdicts import Judgement, judge
from perfdb_git.operations.directions import Direction, direction_of
from perfdb_git.providers.held_clocks import held_clocks
from perfdb_git.providers.observations import Pooled, pool

_SHOWN_RECORDS = 3
_PROTOCOL_FACTS = ("warmup", "synchronization", "clock_state", "power_state")


@dataclass(frozen=True, slots=True, kw_only=True)
class ContrastedPair:
    """A pair before the correction for many tests."""

    key: ContextKey
    direction: Direction | None
    groups: tuple[Group, Group]
    pooled: tuple[Pooled, Pooled]
    contrast: Contrast
    flags: tuple[tuple[str, ...], tuple[str, ...]]
    notes: tuple[str, ...]

    @property
    def p_value(self) -> float | None:
        """P-value of the test, None where no verdict hangs on one."""
        if self.contrast.refusal is not None or self.direction is None:
            return None
        return self.contrast.p_value


def contrast_pair(
    key: ContextKey, base: Group, new: Group, rules: Rules, *, conflict_threshold: float | None
) -> ContrastedPair:
    """Hold both sides of one context against each other.

    Parameters
    ----------
    key : ContextKey
        The context.
    base, new : Group
        Records of either side.
    rules : Rules
        How to judge.
    conflict_threshold : float or None
        Sessions of one side that differ by more than this fraction are flagged.
    """
    groups = base, new
    pooled = (
        pool(base.observations, key.unit, rules.level),
        pool(new.observations, key.unit, rules.level),
    )
    found = contrast(base, new, pooled, unit=rules.unit, level=rules.level, alpha=rules.alpha)
    fallen = [throttled(group.members) for group in groups]
    if any(fallen) and not rules.accept_throttled and found.refusal is None:
        side = " and ".join(name for name, is_so in zip("AB", fallen, strict=True) if is_so)
        text = f"{side} ran under a lowered clock, so it does not stand for the usual one"
        found = replace(found, refusal=("throttled", text))
    found = _widened(found, groups, pooled)
    flags = [
        tuple(_flags(group, item, units, key.unit, found.sample_unit, conflict_threshold))
        for group, item, units in zip(
            groups, pooled, (found.base_units, found.new_units), strict=True
        )
    ]
    return ContrastedPair(
        key=key,
        direction=rules.directions.get(key.metric) or direction_of(key.metric, key.unit),
        groups=groups,
        pooled=pooled,
        contrast=found,
        flags=(flags[0], flags[1]),
        notes=(*found.notes, *_notes(groups)),
    )


def finished_pair(
    pair: ContrastedPair, adjusted_p_value: float | None, rules: Rules
) -> ComparedPair:
    """Give a pair its verdict.

    Parameters
    ----------
    pair : ContrastedPair
        With its contrast.
    adjusted_p_value : float or None
        After the correction for all tests; None where the pair has none.
    rules : Rules
        How to judge.
    """
    found = pair.contrast
    cost = _cost_ratio(found.ratio, pair.direction)
    judgement = _judgement(pair, cost, adjusted_p_value, rules)
    sides = [
        _compared_group(group, pooled, units, flags, unit=found.sample_unit, rules=rules)
        for group, pooled, units, flags in zip(
            pair.groups, pair.pooled, (found.base_units, found.new_units), pair.flags, strict=True
        )
    ]
    return ComparedPair(
        context=dict(pair.key.values),
        metric=pair.key.metric,
        unit=pair.key.unit,
        direction=pair.direction,
        verdict=judgement.verdict,
        code=judgement.code,
        reason=judgement.reason,
        base=sides[0],
        new=sides[1],
        sample_unit=found.sample_unit,
        method=found.method,
        ratio=found.ratio,
        cost_ratio=cost,
        p_value=found.p_value,
        adjusted_p_value=adjusted_p_value,
        notes=pair.notes,
    )


def failed_pairs(pairs: Sequence[ComparedPair], rules: Rules) -> int:
    """Count the pairs that are worse by more than the gate's threshold."""
    if rules.gate is None:
        return 0
    return sum(
        judge(
            pair.cost_ratio,
            pair.adjusted_p_value,
            p_value=pair.p_value,
            alpha=rules.alpha,
            threshold=rules.gate,
        ).verdict
        == "worse"
        for pair in pairs
        if pair.cost_ratio is not None
        and pair.adjusted_p_value is not None
        and pair.p_value is not None
    )


def _judgement(
    pair: ContrastedPair, cost: Ratio | None, adjusted: float | None, rules: Rules
) -> Judgement:
    if pair.contrast.refusal is not None:
        code, reason = pair.contrast.refusal
        return Judgement(verdict="cannot-tell", code=code, reason=reason)
    if cost is None or adjusted is None or pair.p_value is None:
        return Judgement(
            verdict="cannot-tell",
            code="unknown-direction",
            reason=f"nothing says whether a higher {pair.key.metric} in {pair.key.unit} is better "
            "or worse",
        )
    return judge(cost, adjusted, p_value=pair.p_value, alpha=rules.alpha, threshold=rules.threshold)


def _cost_ratio(ratio: Ratio | None, direction: Direction | None) -> Ratio | None:
    if ratio is None or direction is None:
        return None
    return ratio if direction == "lower" else ratio.inverted()


def _compared_group(
    group: Group,
    pooled: Pooled,
    units: Sequence[float],
    flags: tuple[str, ...],
    *,
    unit: SampleUnit,
    rules: Rules,
) -> ComparedGroup:
    runs = samples_by_unit(group, unit)
    return ComparedGroup(
        value=pooled.estimate.value,
        interval=median_interval(units, rules.level),
        statistic=" and ".join(pooled.statistics),
        sessions=len(pooled.session_centers),
        records=len(group.members),
        samples=sum(len(item.samples) for item in group.observations),
        across=group.across(),
        flags=flags,
        record_ids=tuple(member.record for member in group.members),
        levels=mean_over_units(runs, units, rules.level),
        bootstrap=resampled_median(runs, rules.level, rules.bootstrap_seed),
    )


def _widened(found: Contrast, groups: Sequence[Group], pooled: Sequence[Pooled]) -> Contrast:
    """Widen the interval by half a tick of the timer on either side."""
    ratio = found.ratio
    if ratio is None or ratio.lower is None or ratio.upper is None:
        return found
    factor = 1.0
    for group, item in zip(groups, pooled, strict=True):
        quanta = [one.quantum for one in group.observations if one.quantum is not None]
        factor += max(quanta, default=0.0) / 2 / item.estimate.value
    if factor == 1:
        return found
    wider = replace(ratio, lower=ratio.lower / factor, upper=ratio.upper * factor)
    return replace(found, ratio=wider)


def throttled(members: Iterable[Member]) -> bool:
    """Return whether any record says that its clock was held down."""
    return any(held is not None for held in _held(members))


def _held(members: Iterable[Member]) -> list[str | None]:
    return held_clocks([(item.header, item.clock) for item in members])


def _flags(
    group: Group,
    pooled: Pooled,
    units: Sequence[float],
    unit: str,
    sample_unit: str,
    conflict_threshold: float | None,
) -> Iterator[str]:
    if conflict_threshold is not None and pooled.disagreement > conflict_threshold:
        yield f"{len(pooled.session_centers)} sessions disagree by {pooled.disagreement:.0%}"
    if conflict_threshold is not None and sample_unit == "record" and min(units, default=0) > 0:
        apart = max(units) / min(units) - 1
        if apart > conflict_threshold:
            yield f"{len(units)} records of one context disagree by {apart:.0%}"
    if sample_unit in ("session", "record") and units:
        two = modes(units)
        count = len(outliers(units).indices)
        # The smaller mode is no outlier.
        if two is not None:
            yield modes_text(two, f"{sample_unit}s", unit)
        elif count:
            yield f"{count} outlier{'s' if count > 1 else ''} among the {sample_unit}s, kept"
    yield from dict.fromkeys(held for held in _held(group.members) if held is not None)
    flagged = 0
    for member in group.members:
        samples = member.observation.samples
        if len(samples) < 2:
            continue
        texts = sample_flags(samples).texts(unit)
        flagged += bool(texts)
        if flagged <= _SHOWN_RECORDS:
            head = f"{_short(member.record)}: " if len(group.members) > 1 else ""
            yield from (f"{head}{text}" for text in texts)
    if flagged > _SHOWN_RECORDS:
        yield f"and {flagged - _SHOWN_RECORDS} more records with flags"


def _short(record: str) -> str:
    record_set, _, row = record.partition("#")
    return f"{record_set[:8]}#{row}"


def _notes(groups: tuple[Group, Group]) -> Iterator[str]:
    for name in _PROTOCOL_FACTS:
        stated = [
            {
                str(fact)
                for item in group.members
                if (fact := getattr(item.header.protocol, name)) is not None
            }
            for group in groups
        ]
        if stated[0] and stated[1] and stated[0] != stated[1]:
            texts = [" or ".join(sorted(values)) for values in stated]
            yield f"protocol differs, {name}: A {texts[0]}; B {texts[1]}"
    for side, group in zip("AB", groups, strict=True):
        if any(item.header.protocol.grade == "protocol-unknown" for item in group.members):
            yield f"{side}: nothing is known of the measurement protocol"
        for name, values in group.across().items():
            if len(values) > 1:
                yield f"{side} pools {name} {', '.join(map(str, values))}"
        environments = {item.header.environment for item in group.members}
        if len(environments) > 1:
            yield f"{side} pools {len(environments)} environments"

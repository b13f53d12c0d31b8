"""Gates at work: what exceeds them, and what a change makes looser.

Which gates judge is the caller's choice: for a pull request those of its merge base, so that a
change cannot pass by loosening what it is measured with.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields

from perfdb_git.checks.rules import Rule
from perfdb_git.checks.terms import pointer
from perfdb_git.model.calibration import Calibration
from perfdb_git.model.findings import Finding
from perfdb_git.model.gates import ErrorLimits, GateLimits, Gates
from perfdb_git.model.held_out import ErrorStatistics
from perfdb_git.model.validation import Validation
from perfdb_git.storage import layout

GATE_EXCEEDED = Rule(
    code="gate-exceeded",
    documentation="Calibrations that a policy names, and validations that admit, pass the gates.",
    remedy="fit or validate again with more or better evidence; an owner may change the gate",
)
GATE_NOT_MET = Rule(
    code="gate-not-met",
    severity="note",
    documentation="Calibrations that no policy names would pass the gates.",
    remedy="do not promote it",
)
LOOSENED_GATE = Rule(
    code="loosened-gate",
    documentation="No change loosens the gates that judge it.",
    remedy="keep the gate, or let an owner change it in a pull request of its own",
)

_LIMITS = ("max_mape_pct", "max_p95_pct", "max_median_half_width_pct")
_COVERAGES = ("min_coverage", "max_coverage")
_SMALLER_IS_LOOSER = frozenset({"min_coverage", "min_held_out_records", "min_training_records"})
_JUDGED_FROM = "beyond_judged_from"

_Series = tuple[str, str, str] | None
"""Response, operation and device; None for all series that are not named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedRevision:
    """A calibration revision at its path, and whether a policy names it."""

    path: str
    calibration: Calibration
    promoted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedValidation:
    """A simulator's validation at its path."""

    path: str
    validation: Validation


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fault:
    pointer: str
    text: str


def gate_findings(gates: Gates, revisions: Iterable[JudgedRevision]) -> Iterator[Finding]:
    """Yield each limit that a promoted revision exceeds, and one note for each other revision.

    Parameters
    ----------
    gates : Gates
        The gates that judge.
    revisions : iterable of JudgedRevision
        The revisions of the snapshot that is judged.
    """
    for item in revisions:
        found = item.calibration
        limits = gates.limits_for(found.response, found.operation, found.device)
        faults = list(_revision_faults(limits, found))
        if item.promoted:
            for fault in faults:
                yield GATE_EXCEEDED.broken(item.path, fault.text, pointer=fault.pointer)
        elif faults:
            text = "; ".join(fault.text for fault in faults)
            yield GATE_NOT_MET.broken(item.path, text, pointer=faults[0].pointer)


def validation_gate_findings(
    gates: Gates, validations: Iterable[JudgedValidation]
) -> Iterator[Finding]:
    """Yield validations that let a simulator answer with a larger error than the gates allow."""
    for item in validations:
        found = item.validation
        limits = gates.limits_for(found.response, found.operation, found.target.device)
        limit, errors = limits.max_validation_mape_pct, found.held_out_report.overall
        # One over its own limit admits no record, so nothing depends on it.
        if limit is None or errors is None or not found.is_within_limit:
            continue
        if errors.mape_pct > limit:
            yield GATE_EXCEEDED.broken(
                item.path,
                _over("mape_pct", errors.mape_pct, limit),
                pointer="/held_out_report/overall/mape_pct",
            )


def loosened(base: Gates | None, head: Gates | None) -> Iterator[Finding]:
    """Yield every limit of the base's gates that the head's gates make looser or drop.

    Parameters
    ----------
    base, head : Gates or None
        The gates before and after; None where there are none.
    """
    if base is None:
        return
    if head is None:
        yield LOOSENED_GATE.broken(layout.GATES, "the gates are removed")
        return
    general = set(_looser(base.defaults, head.defaults))
    yield from _loosened_findings(None, sorted(general), head)
    named = {(item.response, item.operation, item.device) for item in (*base.series, *head.series)}
    for series in sorted(named):
        found = set(_looser(base.limits_for(*series), head.limits_for(*series)))
        yield from _loosened_findings(series, sorted(found - general), head)


_Change = tuple[str, float, float | None]
"""Name of a limit, its old value, and its new one: None where it is dropped."""


def _looser(base: GateLimits, head: GateLimits) -> Iterator[_Change]:
    before, after = _stated(base), _stated(head)
    # Without a number of its own it judges one record, as 1 does.
    before.setdefault(_JUDGED_FROM, 1)
    after.setdefault(_JUDGED_FROM, 1)
    for name, old in before.items():
        new = after.get(name)
        smaller = name.rpartition("/")[2] in _SMALLER_IS_LOOSER
        if new is None or (new < old if smaller else new > old):
            yield name, old, new


def _loosened_findings(series: _Series, changes: list[_Change], head: Gates) -> Iterator[Finding]:
    whose = "by default" if series is None else f"for {' '.join(series)}"
    for name, old, new in changes:
        became = "dropped" if new is None else f"{new:g}"
        yield LOOSENED_GATE.broken(
            layout.GATES,
            f"{name.replace('/', '.')} {whose} was {old:g} and is {became}",
            pointer=_where(series, head),
        )


def _where(series: _Series, head: Gates) -> str:
    for number, item in enumerate(head.series):
        if (item.response, item.operation, item.device) == series:
            return pointer("series", number, "limits")
    return pointer("defaults")


def _stated(limits: GateLimits) -> dict[str, float]:
    """Return every limit that is there by its path in the limits."""
    found: dict[str, float] = {}
    for item in fields(limits):
        value = getattr(limits, item.name)
        if isinstance(value, ErrorLimits):
            inner = ((part.name, getattr(value, part.name)) for part in fields(value))
            found |= {f"{item.name}/{name}": limit for name, limit in inner if limit is not None}
        elif value is not None:
            found[item.name] = value
    return found


def _revision_faults(limits: GateLimits, calibration: Calibration) -> Iterator[_Fault]:
    report = calibration.held_out_report
    answered = report.held_out - report.refused
    # Slices that share their records state the same digest; the records count once.
    training = {item.training.digest: item.training.records for item in calibration.slices}
    yield from _too_few("/slices", "training records", sum(training.values()), limits)
    yield from _too_few("/held_out_report/held_out", "held-out records", answered, limits)
    share = report.refused / report.held_out if report.held_out else 0.0
    if limits.max_refused_share is not None and share > limits.max_refused_share:
        yield _Fault(
            pointer="/held_out_report/refused",
            text=_over("the share without an answer", share, limits.max_refused_share),
        )
    inside = "overall" if report.interpolated is None else "interpolated"
    yield from _part_faults(limits.inside, inside, getattr(report, inside))
    beyond = report.extrapolated
    if beyond is not None and beyond.n >= (limits.beyond_judged_from or 1):
        yield from _part_faults(limits.beyond, "extrapolated", beyond)


def _too_few(where: str, what: str, count: int, limits: GateLimits) -> Iterator[_Fault]:
    least = limits.min_training_records
    if what != "training records":
        least = limits.min_held_out_records
    if least is not None and count < least:
        yield _Fault(pointer=where, text=f"{count} {what}, at least {least} are needed")


def _part_faults(
    limits: ErrorLimits, part: str, errors: ErrorStatistics | None
) -> Iterator[_Fault]:
    where = f"/held_out_report/{part}"
    if errors is None:
        if any(getattr(limits, item.name) is not None for item in fields(limits)):
            yield _Fault(pointer=where, text=f"no held-out record is {part}, so nothing is shown")
        return
    for name in _LIMITS:
        limit, statistic = getattr(limits, name), name.removeprefix("max_")
        value = getattr(errors, statistic)
        if limit is not None and (value is None or value > limit):
            yield _Fault(pointer=f"{where}/{statistic}", text=_over(statistic, value, limit))
    for name in _COVERAGES:
        limit, value = getattr(limits, name), errors.coverage
        if limit is not None and (
            value is None or (value < limit if name == "min_coverage" else value > limit)
        ):
            bound = "least" if name == "min_coverage" else "most"
            stated = "no interval is" if value is None else f"{value:.4g} of the records are"
            yield _Fault(
                pointer=f"{where}/coverage",
                text=f"{stated} covered, at {bound} {limit:g} is asked for",
            )


def _over(what: str, value: float | None, limit: float) -> str:
    stated = "unknown" if value is None else f"{value:.4g}"
    return f"{what} is {stated}, at most {limit:g} is allowed"

"""Times that no device can reach: arithmetic beyond the peak, traffic beyond the memory.

A bound is the work over the peak rates of the system profile that the policy selects for the
device, at efficiency 1. Over all measurements that the project ships, matrix operations stay within
4 % of it; element-wise ones, whose operands may sit in a cache, are up to a third faster than the
main memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from perfdb_git.checks.change import Change
from perfdb_git.checks.checked_snapshot import RECORD_SET, CheckedDocument
from perfdb_git.checks.rules import Check, Rule
from perfdb_git.checks.terms import pointer
from perfdb_git.checks.typical_values import dimension_columns, typical_values
from perfdb_git.model.findings import Finding
from perfdb_git.model.system_profile import SystemProfile
from perfdb_git.model.values import Scalar, plain_number
from perfdb_git.model.vocabulary import Operation
from perfdb_git.operations.element_sizes import ELEMENT_BYTES
from perfdb_git.operations.work import FORMULAS_WITHOUT_DTYPE, WORK_FORMULAS, Work, work_of
from perfdb_git.providers.roofline import MAIN_MEMORY, network_tier

TOLERANCE = 0.1
"""A bound may be undercut by this share where no gate says: clocks boost, data sheets round."""

CACHE_SPEEDUP = 10
"""Caches are faster than the main memory, but no device's are by this factor."""

IMPOSSIBLE = Rule(
    code="faster-than-possible",
    documentation="No time undercuts the roofline of the device's profile by more than the gates "
    "allow (10 % without one), nor what main memory or network allow by a factor of 10.",
    remedy="check unit, shape and dtype of the rows; a wrong profile is corrected first",
)
CACHED = Rule(
    code="faster-than-memory",
    severity="warning",
    documentation="Times of element-wise operations, copies and collectives are not over 10 % "
    "below what main memory or network allow.",
    remedy="say in the protocol's notes if operands stay in a cache between repetitions",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bound:
    """The shortest time of a row in seconds, what sets it, and by how much it may be undercut."""

    seconds: float
    resource: str
    hard: bool


def judge_times(change: Change, document: CheckedDocument) -> Iterator[Finding]:
    """Yield times of a new record set that its device cannot reach."""
    header, vocabulary = document.header, change.head.vocabulary
    if document.kind != RECORD_SET or header is None or vocabulary is None:
        return
    operation = vocabulary.operations.get(header.operation)
    profile = change.system_profile(header.device)
    if operation is None or profile is None or document.columns is None:
        return
    if operation.work not in WORK_FORMULAS or header.kind == "simulated":
        return
    rows = len(document.value["rows"])
    times = typical_values(document.value, document.columns, rows).get("latency")
    if times is None:
        return
    constant = {name: value for name, value in header.context.items() if value is not None}
    columns = dimension_columns(document.value, document.columns)
    known = [(name, values.tolist()) for name, values in columns.items()]
    gate = change.gate_limits("latency", header.operation, header.device).roofline_tolerance
    tolerance = TOLERANCE if gate is None else gate
    found: dict[Rule, list[tuple[float, int, _Bound]]] = {}
    for row, seconds in enumerate(times.tolist()):
        here = {name: plain_number(values[row]) for name, values in known if _is(values[row])}
        bound = _bound(operation, header.operation, profile, {**constant, **here})
        if bound is not None and seconds < bound.seconds / (1 + tolerance):
            hard = bound.hard or seconds < bound.seconds / CACHE_SPEEDUP
            ratio = seconds / bound.seconds
            found.setdefault(IMPOSSIBLE if hard else CACHED, []).append((ratio, row, bound))
    for rule, cases in found.items():
        yield _finding(rule, document, profile, cases, times.tolist(), rows)


def _is(value: float) -> bool:
    return value == value


def _finding(
    rule: Rule,
    document: CheckedDocument,
    profile: SystemProfile,
    cases: Sequence[tuple[float, int, _Bound]],
    times: Sequence[float],
    rows: int,
) -> Finding:
    ratio, row, bound = min(cases, key=lambda case: case[:2])
    # One finding a set: a set in a wrong unit would otherwise give one for every row.
    typical = sorted(case[0] for case in cases)[len(cases) // 2]
    message = (
        f"{len(cases)} of {rows} rows are faster than {bound.resource} of profile {profile.name} "
        f"allows; the furthest, row {row}, takes {times[row]:.3g} s where at least "
        f"{bound.seconds:.3g} s are needed (a factor {1 / ratio if ratio else float('inf'):.3g})"
    )
    if typical < 1 / CACHE_SPEEDUP:
        message += "; this looks like a wrong unit, such as us for ms"
    return rule.broken(document.path, message, pointer=pointer("rows", row), row=row)


def _bound(
    operation: Operation, name: str, profile: SystemProfile, coordinates: Mapping[str, Scalar]
) -> _Bound | None:
    work = _work(operation, coordinates)
    if work is None:
        return None
    if operation.engine == "network":
        return _network(name, profile, work, coordinates)
    candidates = []
    memory = profile.memories.get(MAIN_MEMORY)
    is_matrix = operation.engine == "matrix"
    if memory is not None:
        seconds = work.bytes_moved / (memory.bandwidth_gbyte_per_s * 1e9)
        candidates.append(_Bound(seconds=seconds, resource="the main memory", hard=is_matrix))
    rate = profile.engines.get(operation.engine, {}).get(str(coordinates.get("dtype")))
    if rate is not None:
        seconds = work.operations / (rate.peak_tops * 1e12)
        resource = f"the peak of the {operation.engine} engine"
        candidates.append(_Bound(seconds=seconds, resource=resource, hard=True))
    return max(candidates, key=lambda bound: bound.seconds, default=None)


def _work(operation: Operation, coordinates: Mapping[str, Scalar]) -> Work | None:
    needed = list(operation.shape)
    if operation.work not in FORMULAS_WITHOUT_DTYPE:
        needed.append("dtype")
    dtypes = [coordinates[key] for key in ("dtype", "kv_cache_dtype") if key in coordinates]
    if any(key not in coordinates for key in needed) or any(
        dtype not in ELEMENT_BYTES for dtype in dtypes
    ):
        return None
    try:
        return work_of(operation.work, coordinates)
    except (KeyError, TypeError):
        # A term or a text that the formula does not know, which other checks refuse.
        return None


def _network(
    name: str, profile: SystemProfile, work: Work, coordinates: Mapping[str, Scalar]
) -> _Bound | None:
    per_node, link = coordinates.get("participants_per_node"), coordinates.get("link_class")
    stated = coordinates.get("participants")
    if not isinstance(stated, (int, float)) or stated < 1 or isinstance(per_node, str):
        return None
    ranks = int(stated)
    network = network_tier(
        profile.networks,
        participants=ranks,
        participants_per_node=None if per_node is None else int(per_node),
        link_class=None if link is None else str(link),
    )
    factor = None if network is None else network.operations.get(name)
    if network is None or factor is None:
        return None
    share = 1.0 if factor.offset is None else 1 + factor.offset / ranks
    seconds = work.message_bytes * factor.scalar * share / (network.bandwidth_gbyte_per_s * 1e9)
    return _Bound(seconds=seconds, resource=f"network {network.name}", hard=False)


PHYSICAL_LIMITS = Check(
    id="physical-limits",
    documentation="New times are times that the device can reach.",
    rules=(IMPOSSIBLE, CACHED),
    judge_addition=judge_times,
)

"""A plan against measurements that none of its answers may know: errors, coverage and gates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from perfdb_git.database import DatabaseSnapshot, PolicyInForce
from perfdb_git.errors import NoEvidenceError, UsageError
from perfdb_git.model.estimate import Method
from perfdb_git.model.result import PolicyReference
from perfdb_git.plans.composing import AnsweredQuery
from perfdb_git.plans.lock import locked_query
from perfdb_git.plans.oracle_files import OracleFile, identify, profiled_rows, require_distinct
from perfdb_git.plans.oracle_isolation import Isolation, isolate
from perfdb_git.plans.resolving import Progress, ResolvedPlan, resolve_plan
from perfdb_git.plans.tracked import tracked_queries
from perfdb_git.workloads.vidur_baseline import (
    FinishedEstimate,
    FinishedEstimates,
    OracleAnswer,
    OracleLookup,
    OracleRead,
    ProfiledRow,
    VidurProfileBaseline,
)

GateName: TypeAlias = Literal["max-subtotal-error", "max-component-mape", "min-coverage"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OracleGates:
    """Limits in percent; ``None`` is no gate."""

    max_subtotal_error_pct: float | None = None
    max_component_mape_pct: float | None = None
    min_coverage_pct: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GateOutcome:
    """One gate with the figure that it judged."""

    gate: GateName
    limit_pct: float
    value_pct: float
    passed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class OracleSource:
    """A file of measurements, as it was compared with."""

    file: str
    sha256: str
    git_blob: str
    mapping: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentError:
    """One query of the plan beside what was measured.

    ``code`` is ``compared``, the code of a refused query, or why the oracle has no figure
    (``no-row``, ``ambiguous``). ``error_pct`` is signed: positive where the estimate is too long.
    """

    name: str
    multiplicity: int
    code: str
    method: Method | None
    provider: str | None
    calibration: str | None
    estimate_s: float | None
    measured_s: float | None
    error_pct: float | None
    rows: int
    components: tuple[str, ...]
    marks: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """How many queries there are, have an answer, have a measurement, and have both."""

    queries: int
    answered: int
    measured: int
    compared: int
    by_method: dict[str, int]

    @property
    def pct(self) -> float:
        """Share of the queries that could be compared, in percent."""
        return 100 * self.compared / self.queries


@dataclass(frozen=True, slots=True, kw_only=True)
class OracleComparison:
    """What a plan's answers are worth where nobody could copy them.

    The subtotal is multiplicity times latency over the queries that have both figures;
    ``component_mape_pct`` is the mean of their absolute errors, each counted once.
    """

    plan: str
    commit: str | None
    policy: PolicyReference
    oracles: tuple[OracleSource, ...]
    isolation: Isolation
    components: tuple[ComponentError, ...]
    coverage: Coverage
    estimate_subtotal_s: float
    measured_subtotal_s: float
    subtotal_error_pct: float
    component_mape_pct: float
    worst: str
    gates: tuple[GateOutcome, ...]
    reads: tuple[OracleRead, ...]

    @property
    def failed_gates(self) -> tuple[GateOutcome, ...]:
        """Every gate whose limit is broken."""
        return tuple(gate for gate in self.gates if not gate.passed)


def compare_with_oracle(
    snapshot: DatabaseSnapshot,
    plan: str,
    oracles: Sequence[Path],
    *,
    gates: OracleGates,
    policy: PolicyInForce | None = None,
    progress: Progress | None = None,
) -> OracleComparison:
    """Resolve a plan without an oracle's rows, and then compare it with them.

    Parameters
    ----------
    snapshot : DatabaseSnapshot
        The evidence, with the plan in it.
    plan : str
        Name of the plan, or its path in the repository.
    oracles : sequence of Path
        Vidur's tables, or some of their rows.
    gates : OracleGates
        Limits to judge by.
    policy : PolicyInForce or None
        Another policy than the plan's.
    progress : callable or None
        See `resolving.Progress`.

    Raises
    ------
    UsageError, InvalidInputError, RepositoryUnavailableError
        For a wrong plan or oracle, wrong evidence, or evidence that is not here.
    NoEvidenceError
        'nothing-compared' where no query has both an answer and a measurement.
    """
    files = [identify(path, snapshot.vocabulary) for path in oracles]
    require_distinct(files)
    isolation = isolate(snapshot.evidence, files, _devices(snapshot, plan))
    remaining = snapshot.without(isolation.exclusion())
    resolved = resolve_plan(remaining, plan, policy=policy, progress=progress)
    lookup = _baseline(files, snapshot).look_up(_finished(resolved))
    components = tuple(
        _component(item, answer)
        for item, answer in zip(resolved.answered, lookup.answers, strict=True)
    )
    return _judged(resolved, files, isolation, components, lookup, gates)


def _devices(snapshot: DatabaseSnapshot, plan: str) -> frozenset[str]:
    devices = {query.query.deployment.device for query in tracked_queries(snapshot, plan)}
    if len(devices) != 1 or None in devices:
        raise UsageError(
            "Vidur's rows name no device, so a plan that is compared with them asks about one",
            code="oracle-device",
            remedy="state the same device in every query of the plan",
        )
    return frozenset(str(device) for device in devices)


def _finished(resolved: ResolvedPlan) -> FinishedEstimates:
    return FinishedEstimates(
        estimates=tuple(
            FinishedEstimate(name=item.tracked.name, resolution=item.resolution)
            for item in resolved.answered
        )
    )


def _baseline(files: Sequence[OracleFile], snapshot: DatabaseSnapshot) -> VidurProfileBaseline:
    mappings = {file.path: file.mapping for file in files}

    def read(data: bytes, path: Path) -> list[ProfiledRow]:
        return profiled_rows(data, path.name, mappings[path], snapshot.vocabulary)

    return VidurProfileBaseline({file.path: file.sha256 for file in files}, read)


def _component(item: AnsweredQuery, answer: OracleAnswer) -> ComponentError:
    locked = locked_query(item)
    estimate = None if item.latency is None else item.latency.value
    comparable = estimate is not None and answer.seconds is not None
    return ComponentError(
        name=item.tracked.name,
        multiplicity=item.tracked.multiplicity,
        code="compared" if comparable else locked.code if estimate is None else answer.code,
        method=None if locked.answer is None else locked.answer.method,
        provider=None if locked.answer is None else locked.answer.provider_revision,
        calibration=None if locked.answer is None else locked.answer.calibration,
        estimate_s=estimate,
        measured_s=answer.seconds,
        error_pct=(
            100 * (estimate / answer.seconds - 1)
            if estimate is not None and answer.seconds is not None
            else None
        ),
        rows=answer.rows,
        components=answer.components,
        marks=item.resolution.marks,
    )


def _judged(
    resolved: ResolvedPlan,
    files: Sequence[OracleFile],
    isolation: Isolation,
    components: tuple[ComponentError, ...],
    lookup: OracleLookup,
    gates: OracleGates,
) -> OracleComparison:
    errors = {item.name: item.error_pct for item in components if item.error_pct is not None}
    if not errors:
        raise NoEvidenceError(
            f"no query of {resolved.document.value.name} has both an answer and a row in "
            + ", ".join(file.path.name for file in files),
            code="nothing-compared",
            remedy="'perfdb plan show' tells what has an answer; rows match by equal dimensions",
        )
    estimated, measured = _subtotals(components)
    coverage = _coverage(components)
    subtotal_error = 100 * (estimated / measured - 1)
    mape = math.fsum(map(abs, errors.values())) / len(errors)
    return OracleComparison(
        plan=resolved.document.value.name,
        commit=resolved.snapshot.commit,
        policy=resolved.policy.reference,
        oracles=tuple(
            OracleSource(
                file=file.path.name,
                sha256=file.sha256,
                git_blob=file.git_blob,
                mapping=file.mapping,
            )
            for file in files
        ),
        isolation=isolation,
        components=components,
        coverage=coverage,
        estimate_subtotal_s=estimated,
        measured_subtotal_s=measured,
        subtotal_error_pct=subtotal_error,
        component_mape_pct=mape,
        worst=max(errors, key=lambda name: abs(errors[name])),
        gates=_gate_outcomes(gates, abs(subtotal_error), mape, coverage.pct),
        reads=lookup.reads,
    )


def _subtotals(components: Sequence[ComponentError]) -> tuple[float, float]:
    pairs = [
        (item.multiplicity, item.estimate_s, item.measured_s)
        for item in components
        if item.estimate_s is not None and item.measured_s is not None
    ]
    estimated = math.fsum(count * estimate for count, estimate, _ in pairs)
    return estimated, math.fsum(count * measured for count, _, measured in pairs)


def _coverage(components: Sequence[ComponentError]) -> Coverage:
    methods = [item.method for item in components if item.method is not None]
    return Coverage(
        queries=len(components),
        answered=len(methods),
        measured=sum(item.measured_s is not None for item in components),
        compared=sum(item.error_pct is not None for item in components),
        by_method={method: methods.count(method) for method in sorted(set(methods))},
    )


def _gate_outcomes(
    gates: OracleGates, subtotal_error: float, mape: float, coverage: float
) -> tuple[GateOutcome, ...]:
    judged: list[tuple[GateName, float | None, float, bool]] = [
        ("max-subtotal-error", gates.max_subtotal_error_pct, subtotal_error, False),
        ("max-component-mape", gates.max_component_mape_pct, mape, False),
        ("min-coverage", gates.min_coverage_pct, coverage, True),
    ]
    return tuple(
        GateOutcome(
            gate=name,
            limit_pct=limit,
            value_pct=value,
            passed=value >= limit if least else value <= limit,
        )
        for name, limit, value, least in judged
        if limit is not None
    )

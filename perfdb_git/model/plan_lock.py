"""Plan locks: every answer of a plan at one commit, with all that it depended on.

A lock states no host, user or time: two locks of one commit, made by the same versions, have equal
bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from perfdb_git.model.estimate import Method, Uncertainty, ValidityKind
from perfdb_git.model.plan import CompositionKind, Plan
from perfdb_git.model.simulation import EvidenceClass

PLAN_LOCK_SCHEMA = "perfdb/plan-lock/v1"

UncertaintyCode: TypeAlias = Literal[
    "incomplete", "spread-unknown", "kinds-differ", "not-propagated"
]
"""Why a total has no interval."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanSource:
    """Where the plan stands at the locked commit.

    ``sha256`` is that of the file, ``digest`` that of the plan's RFC 8785 text with every default
    written.
    """

    path: str
    sha256: str
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LockedVersions:
    """Versions that computed the answers; they may change calculated values in the last bits."""

    perfdb: str
    python: str
    numpy: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LockedPolicy:
    """The policy in force, by name and by the digest of its file."""

    name: str
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LockedDiagnostics:
    """What a careful reader needs to know, in codes and counts; the texts are at the commit."""

    missing_context: tuple[str, ...]
    assumptions: int
    conflicts: int
    protocol: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LockedAnswer:
    """One answer: the latency in SI units, and where it came from.

    ``seed`` is ``None`` where no random numbers were drawn.
    """

    method: Method
    validity: ValidityKind
    distance_octaves: float | None
    provider: str
    provider_revision: str
    record_ids: tuple[str, ...]
    source_revisions: tuple[str, ...]
    calibration: str | None
    value: float
    unit: str
    uncertainty: Uncertainty | None
    seed: int | None
    diagnostics: LockedDiagnostics


@dataclass(frozen=True, slots=True, kw_only=True)
class LockedQuery:
    """One query with its outcome; ``answer`` is ``None`` where there was none, ``code`` says why.

    ``name`` begins with ``stage:`` where the query is that of a pipeline's stage.
    """

    name: str
    multiplicity: int
    query_digest: str
    code: str
    answer: LockedAnswer | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CompositionResult:
    """The composed number.

    ``value`` is ``None`` where nothing that counts has an answer. ``left_out`` are queries without
    an answer that the plan does not require. ``makespan_ps`` is a pipeline's exact makespan, as a
    text since it may have more digits than readers keep. ``evidence`` is the weakest class of
    evidence behind the number. Without ``uncertainty``, ``uncertainty_code`` says why.
    """

    kind: CompositionKind
    value: float | None
    unit: str
    makespan_ps: str | None
    evidence: EvidenceClass | None
    uncertainty: Uncertainty | None
    uncertainty_code: UncertaintyCode | None
    left_out: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanLock:
    """A plan, the full commit that it was resolved at, and every answer.

    ``trees`` are the Git tree ids of the folders that answers depend on, ``revisions`` those of all
    providers that the policy admits, by tier. ``digest`` is that of the RFC 8785 text of every
    other member.
    """

    schema: str
    plan: Plan
    source: PlanSource
    commit: str
    trees: Mapping[str, str | None]
    vocabulary: str
    policy: LockedPolicy
    revisions: Mapping[str, str]
    versions: LockedVersions
    queries: tuple[LockedQuery, ...]
    result: CompositionResult
    digest: str

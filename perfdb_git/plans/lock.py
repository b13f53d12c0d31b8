"""From a resolved plan to its lock: answers, fingerprint, revisions and versions."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import replace

from perfdb_git import __version__
from perfdb_git.database import DatabaseSnapshot
from perfdb_git.errors import NoEvidenceError, RepositoryUnavailableError, UsageError
from perfdb_git.formats.canonical import canonical_document
from perfdb_git.formats.codec import encode
from perfdb_git.formats.schemas import SchemaStore
from perfdb_git.model.estimate import CostEstimate, MetricEstimate
from perfdb_git.model.plan_lock import (
    PLAN_LOCK_SCHEMA,
    LockedAnswer,
    LockedDiagnostics,
    LockedPolicy,
    LockedQuery,
    LockedVersions,
    PlanLock,
    PlanSource,
)
from perfdb_git.model.vocabulary import Vocabulary
from perfdb_git.plans.composing import AnsweredQuery
from perfdb_git.plans.resolving import ResolvedPlan
from perfdb_git.storage import layout
from perfdb_git.storage.plan_documents import PLAN_LOCK_KIND, lock_digest, plan_digest

NO_LATENCY = "no-latency"
_MOST_NAMED = 20


def lock_plan(resolved: ResolvedPlan) -> PlanLock:
    """Freeze a resolved plan.

    Parameters
    ----------
    resolved : ResolvedPlan
        Of a commit; uncommitted files have no fingerprint.

    Raises
    ------
    UsageError
        'not-reproducible' for uncommitted files.
    NoEvidenceError
        'plan-incomplete', naming every required query without an answer.
    """
    snapshot = resolved.snapshot
    if snapshot.commit is None:
        raise UsageError(
            "uncommitted files cannot be locked",
            code="not-reproducible",
            remedy="commit what you use, and lock that commit",
        )
    if snapshot.exclusion is not None:
        raise UsageError(
            "answers with evidence left aside cannot be locked",
            code="not-reproducible",
            remedy="lock the plan at the commit as it is",
        )
    if resolved.policy.reference.origin != "snapshot":
        raise UsageError(
            "answers under a policy from outside the commit cannot be locked",
            code="not-reproducible",
            remedy="commit the policy, and name it in the plan",
        )
    require_answers(resolved)
    plan = resolved.document.value
    lock = PlanLock(
        schema=PLAN_LOCK_SCHEMA,
        plan=plan,
        source=PlanSource(
            path=resolved.document.path,
            sha256=resolved.document.sha256,
            digest=plan_digest(plan),
        ),
        commit=snapshot.commit,
        trees=tree_ids(snapshot),
        vocabulary=vocabulary_digest(snapshot),
        policy=LockedPolicy(
            name=resolved.policy.reference.name, digest=resolved.policy.reference.digest
        ),
        revisions=snapshot.provider_revisions(resolved.policy),
        versions=present_versions(),
        queries=tuple(locked_query(item) for item in resolved.answered),
        result=resolved.result,
        digest="",
    )
    value = encode(lock)
    assert isinstance(value, dict)
    return replace(lock, digest=lock_digest(value))


def lock_bytes(lock: PlanLock, *, schemas: SchemaStore | None = None) -> bytes:
    """Return the canonical bytes of a lock, judged by its schema."""
    value = encode(lock)
    (schemas or SchemaStore()).validate(
        value, document=layout.plan_lock_path(lock.plan.name), expected_kind=PLAN_LOCK_KIND
    )
    return canonical_document(value)


def locked_query(item: AnsweredQuery) -> LockedQuery:
    """Return a query's outcome as a lock states it."""
    resolution, metric = item.resolution, item.latency
    estimate = resolution.estimate
    code = NO_LATENCY if estimate is not None and metric is None else resolution.code
    return LockedQuery(
        name=item.tracked.name,
        multiplicity=item.tracked.multiplicity,
        query_digest=resolution.query_digest,
        code=code,
        answer=None if estimate is None or metric is None else _answer(estimate, metric),
    )


def _answer(estimate: CostEstimate, metric: MetricEstimate) -> LockedAnswer:
    provenance, diagnostics = estimate.provenance, estimate.diagnostics
    return LockedAnswer(
        method=estimate.method,
        validity=estimate.validity.kind,
        distance_octaves=estimate.validity.distance_octaves,
        provider=provenance.provider,
        provider_revision=provenance.revision,
        record_ids=provenance.record_ids,
        source_revisions=provenance.source_revisions,
        calibration=provenance.calibration,
        value=metric.value,
        unit=metric.unit,
        uncertainty=metric.uncertainty,
        seed=None if estimate.stochastic is None else estimate.stochastic.seed,
        diagnostics=LockedDiagnostics(
            missing_context=diagnostics.missing_context,
            assumptions=len(diagnostics.assumptions),
            conflicts=len(diagnostics.conflicts),
            protocol=diagnostics.protocol,
        ),
    )


def tree_ids(snapshot: DatabaseSnapshot) -> dict[str, str | None]:
    """Return the Git tree ids of every folder that a plan's answers depend on."""
    source = snapshot.evidence.source
    return {**snapshot.evidence.tree_ids(), layout.PIPELINES: source.object_id(layout.PIPELINES)}


def vocabulary_digest(snapshot: DatabaseSnapshot) -> str:
    """Return ``sha256:`` and the digest of the vocabulary's file."""
    document = snapshot.evidence.document(layout.VOCABULARY, Vocabulary, "vocabulary")
    if document is None:
        raise RepositoryUnavailableError(
            f"the snapshot has no {layout.VOCABULARY}", code="no-vocabulary"
        )
    return f"sha256:{document.sha256}"


def present_versions() -> LockedVersions:
    """Return the versions that compute answers in this process."""
    import numpy as np

    return LockedVersions(
        perfdb=__version__, python=platform.python_version(), numpy=np.__version__
    )


def require_answers(resolved: ResolvedPlan) -> None:
    """Refuse a plan that lacks the answer to a required query.

    Raises
    ------
    NoEvidenceError
        'plan-incomplete', naming each of them.
    """
    missing = resolved.missing
    if not missing:
        return
    raise NoEvidenceError(
        f"plan {resolved.document.value.name} has no answer at commit "
        f"{resolved.snapshot.commit} for {_named(missing)}",
        code="plan-incomplete",
        remedy="'perfdb plan show' says what is missing; add evidence, or write 'required: false' "
        "at queries that the plan may lack",
    )


def _named(missing: Sequence[AnsweredQuery]) -> str:
    names = [f"{item.tracked.name} ({locked_query(item).code})" for item in missing[:_MOST_NAMED]]
    if len(missing) > _MOST_NAMED:
        names.append(f"and {len(missing) - _MOST_NAMED} more")
    return ", ".join(names)

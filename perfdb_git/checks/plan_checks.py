"""Plans and their locks: what their schemas cannot say."""

from __future__ import annotations

from collections.abc import Iterator

from perfdb_git.checks.checked_snapshot import CheckedDocument, CheckedSnapshot
from perfdb_git.checks.profile_checks import NAME_STANDS_TWICE
from perfdb_git.checks.rules import Check, Rule
from perfdb_git.checks.terms import hint, pointer
from perfdb_git.errors import InvalidInputError
from perfdb_git.model.findings import Finding
from perfdb_git.model.plan import Plan
from perfdb_git.model.plan_lock import PlanLock
from perfdb_git.operations.stage_queries import query_faults
from perfdb_git.storage import layout
from perfdb_git.storage.plan_documents import PLAN_KIND, PLAN_LOCK_KIND, lock_fault, plan_digest

UNSOUND_PLAN = Rule(
    code="unsound-plan",
    documentation="A plan can be resolved: its queries have names of their own.",
    remedy="change the named value",
)
PLAN_NAME = Rule(
    code="plan-name",
    documentation="A plan, and its lock, has the name of its file.",
    remedy="rename the file or the plan",
)
PLAN_QUERY = Rule(
    code="bad-plan-query",
    documentation="Queries of plans ask for operations, dimensions and terms of the vocabulary.",
    remedy="write the query in canonical names and terms of evidence/vocabulary.yaml",
)
UNKNOWN_PIPELINE = Rule(
    code="unknown-pipeline",
    documentation="The pipeline that a plan composes with exists.",
    remedy="name one of pipelines/, without its suffix",
)
UNKNOWN_TIMING_PROFILE = Rule(
    code="unknown-timing-profile",
    documentation="The timing profile that a plan's pipeline runs on exists.",
    remedy="name one of profiles/, without its suffix",
)
UNKNOWN_POLICY = Rule(
    code="unknown-policy",
    documentation="The policy that a plan names exists.",
    remedy="name one of evidence/policies/, or null for the default one",
)
LOCK_DIGEST = Rule(
    code="lock-digest",
    documentation="A plan lock is as it was written: its digest is that of its content.",
    remedy="restore it, or make it again with 'perfdb plan lock'",
)
UNKNOWN_PLAN = Rule(
    code="unknown-plan",
    documentation="The plan that a lock stands beside exists.",
    remedy="restore the plan, or remove the lock",
)
OUTDATED_LOCK = Rule(
    code="outdated-lock",
    severity="warning",
    documentation="A lock is of the plan as it stands beside it.",
    remedy="'perfdb plan lock' makes it anew; 'perfdb plan diff' shows what that changes",
)


def judge_plan(snapshot: CheckedSnapshot, document: CheckedDocument) -> Iterator[Finding]:
    """Yield what is wrong with one plan."""
    if document.kind != PLAN_KIND or not document.is_valid:
        return
    yield from _twin(snapshot, document)
    try:
        plan = document.as_model(Plan)
    except InvalidInputError as error:
        yield UNSOUND_PLAN.broken(document.path, error.reason, pointer=error.pointer)
        return
    assert plan is not None
    name = layout.document_name(document.path)
    if plan.name != name:
        message = f"the plan is called {plan.name!r}, its file {name!r}"
        yield PLAN_NAME.broken(document.path, message, pointer="/name")
    yield from _unknown_names(snapshot, document.path, plan)
    yield from _bad_queries(snapshot, document.path, plan)


def _twin(snapshot: CheckedSnapshot, document: CheckedDocument) -> Iterator[Finding]:
    name = layout.document_name(document.path) or ""
    first, *others = [path for path in layout.plan_paths(name) if path in snapshot.paths]
    if others and document.path != first:
        yield NAME_STANDS_TWICE.broken(document.path, f"stands beside {first}")


def _unknown_names(snapshot: CheckedSnapshot, path: str, plan: Plan) -> Iterator[Finding]:
    composition = plan.composition
    named = (
        (UNKNOWN_PIPELINE, "composition", "pipeline", composition.pipeline, layout.PIPELINES),
        (UNKNOWN_TIMING_PROFILE, "composition", "profile", composition.profile, layout.PROFILES),
        (UNKNOWN_POLICY, None, "policy", plan.policy, layout.POLICIES),
    )
    for rule, parent, key, name, folder in named:
        if name is None or not snapshot.is_walked(folder):
            continue
        known = _names(snapshot, folder)
        if name not in known:
            message = f"there is no {key} {name!r} in {folder}{hint(name, known)}"
            where = (key,) if parent is None else (parent, key)
            yield rule.broken(path, message, pointer=pointer(*where))


def _names(snapshot: CheckedSnapshot, folder: str) -> set[str]:
    depth = folder.count("/") + 1
    names = {
        layout.document_name(path)
        for path in snapshot.paths
        if path.startswith(f"{folder}/") and path.count("/") == depth
    }
    return {name for name in names if name is not None}


def _bad_queries(snapshot: CheckedSnapshot, path: str, plan: Plan) -> Iterator[Finding]:
    if snapshot.vocabulary is None:
        return
    for place, query in enumerate(plan.queries):
        for fault in query_faults(query.query, snapshot.vocabulary):
            parts: list[str | int] = ["queries", place, "query"]
            where = parts if fault.name is None else [*parts, fault.name]
            yield PLAN_QUERY.broken(
                path, f"query {query.name}: {fault.message}", pointer=pointer(*where)
            )


def judge_lock(snapshot: CheckedSnapshot, document: CheckedDocument) -> Iterator[Finding]:
    """Yield what is wrong with one lock."""
    if document.kind != PLAN_LOCK_KIND or not document.is_valid:
        return
    try:
        lock = document.as_model(PlanLock)
    except InvalidInputError as error:
        yield LOCK_DIGEST.broken(document.path, error.reason, pointer=error.pointer)
        return
    assert lock is not None
    fault = lock_fault(document.value, lock)
    if fault is not None:
        yield LOCK_DIGEST.broken(document.path, fault, pointer="/digest")
    if document.path != layout.plan_lock_path(lock.plan.name):
        message = f"the plan is called {lock.plan.name!r}"
        yield PLAN_NAME.broken(document.path, message, pointer="/plan/name")
        return
    yield from _plan_beside(snapshot, document.path, lock)


def _plan_beside(snapshot: CheckedSnapshot, path: str, lock: PlanLock) -> Iterator[Finding]:
    present = {
        document.path: document
        for document in snapshot.documents(PLAN_KIND)
        if document.path in layout.plan_paths(lock.plan.name)
    }
    if not present:
        if snapshot.is_walked(layout.PIPELINES):
            message = f"there is no plan {lock.plan.name!r} in {layout.PLANS}"
            yield UNKNOWN_PLAN.broken(path, message, pointer="/plan/name")
        return
    try:
        plans = [document.as_model(Plan) for document in present.values()]
    except InvalidInputError:
        # The plan itself is at fault, which its own check says.
        return
    if all(plan is not None and plan_digest(plan) != lock.source.digest for plan in plans):
        yield OUTDATED_LOCK.broken(
            path, "its plan has been changed since", pointer="/source/digest"
        )


PLANS = Check(
    id="plans",
    documentation="Plans can be resolved, and what they name exists.",
    rules=(
        UNSOUND_PLAN,
        PLAN_NAME,
        PLAN_QUERY,
        UNKNOWN_PIPELINE,
        UNKNOWN_TIMING_PROFILE,
        UNKNOWN_POLICY,
        NAME_STANDS_TWICE,
    ),
    judge_document=judge_plan,
)
PLAN_LOCKS = Check(
    id="plan-locks",
    documentation="Locks are as they were written, of plans that exist.",
    rules=(LOCK_DIGEST, PLAN_NAME, UNKNOWN_PLAN, OUTDATED_LOCK),
    judge_document=judge_lock,
)

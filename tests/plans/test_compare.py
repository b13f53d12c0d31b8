"""What newer evidence would change of a locked plan, and why."""

from __future__ import annotations

import math

import pytest

from perfdb_git.model.plan_lock import PlanLock
from perfdb_git.plans.compare import PlanDifference, compare_lock
from perfdb_git.plans.locating import has_changed
from tests.cli.evidence import Evidence
from tests.plans.plan_evidence import (
    LARGE,
    MEASURED,
    SMALL,
    commit_plan,
    edit,
    lock_of,
    plan,
    put_plan,
    query,
    snapshot,
    verification,
)


def compared(evidence: Evidence, lock: PlanLock) -> PlanDifference:
    head = snapshot(evidence)
    found = compare_lock(head, lock, plan_changed=has_changed(head, lock))
    # Whatever the head says: the locked commit still answers as it did.
    assert verification(evidence, lock).verdict == "equal"
    return found


def reasons(found: PlanDifference) -> dict[str, tuple[str, ...]]:
    return {change.name: tuple(change.reasons) for change in found.changes}


def test_evidence_about_something_else_changes_nothing(evidence: Evidence) -> None:
    commit_plan(evidence)
    lock = lock_of(evidence)
    evidence.add_gemm("far", [(512, 10240, 8192, 9.9, 0.1, 20)])
    evidence.commit("evidence about something else")
    found = compared(evidence, lock)
    assert found.is_equal
    assert (found.queries, found.changes, found.result) == (3, (), ())


def test_changes_are_sorted_by_their_size(evidence: Evidence) -> None:
    commit_plan(evidence)
    lock = lock_of(evidence)
    rows = [(128, 10240, 8192, 2.9, 0.1, 20), (3000, 10240, 8192, 30.0, 0.1, 20)]
    evidence.add_gemm("two", rows)
    evidence.commit("new records")
    found = compared(evidence, lock)
    assert [change.name for change in found.changes] == ["unmeasured", "small"]
    assert set(reasons(found).values()) == {("new-records",)}
    first = found.changes[0]
    assert first.locked is not None and first.locked.answer is not None
    assert first.current is not None and first.current.answer is not None
    assert first.current.answer.value == 0.03
    assert first.log_ratio == pytest.approx(math.log(0.03 / first.locked.answer.value))
    assert {"value", "uncertainty"} <= {item.field for item in found.result} | {"uncertainty"}
    assert not found.is_equal


def test_a_retraction_is_named(evidence: Evidence) -> None:
    commit_plan(evidence)
    lock = lock_of(evidence)
    answer = lock.queries[0].answer
    assert answer is not None
    evidence.retract(answer.record_ids[0])
    evidence.commit("retract")
    found = compared(evidence, lock)
    assert reasons(found) == {"small": ("retraction",)}
    current = found.changes[0].current
    assert current is not None and current.answer is not None
    assert current.answer.method == "analytical"


def test_a_retracted_record_set_is_named(evidence: Evidence) -> None:
    commit_plan(evidence, MEASURED)
    lock = lock_of(evidence)
    answer = lock.queries[0].answer
    assert answer is not None
    evidence.retract(answer.record_ids[0].partition("#")[0])
    evidence.commit("retract")
    assert reasons(compared(evidence, lock)) == {
        "small": ("retraction",),
        "large": ("retraction",),
    }


def test_a_changed_policy_is_named(evidence: Evidence) -> None:
    commit_plan(evidence)
    lock = lock_of(evidence)
    edit(evidence, "evidence/policies/default.yaml", "calibrated, analytical", "calibrated")
    evidence.commit("no models")
    found = compared(evidence, lock)
    assert reasons(found) == {"unmeasured": ("policy",)}
    assert found.changes[0].log_ratio is None
    assert found.current_result.value is None


def test_a_changed_profile_is_named(evidence: Evidence) -> None:
    commit_plan(evidence)
    lock = lock_of(evidence)
    profile = "profiles/systems/a100-80g-calculon.json"
    edit(evidence, profile, '"peak_tops": 312', '"peak_tops": 156')
    evidence.commit("half as fast")
    assert reasons(compared(evidence, lock)) == {"unmeasured": ("profile",)}


def test_a_dimension_that_is_gone_is_named(evidence: Evidence) -> None:
    values = {**SMALL, "layout": "row-major"}
    commit_plan(evidence, plan(query("small", values), query("large", LARGE)))
    lock = lock_of(evidence)
    edit(evidence, "evidence/vocabulary.yaml", "  layout:\n", "  memory_layout:\n")
    evidence.commit("another word")
    found = compared(evidence, lock)
    assert reasons(found) == {"small": ("vocabulary",)}
    current = found.changes[0].current
    assert current is not None
    assert current.code == "bad-plan-query"
    assert found.current_result.value is None


def test_the_locked_plan_is_asked(evidence: Evidence) -> None:
    commit_plan(evidence)
    lock = lock_of(evidence)
    put_plan(evidence, MEASURED)
    evidence.commit("another plan")
    found = compared(evidence, lock)
    assert found.plan_changed
    assert (found.queries, found.is_equal) == (3, True)

"""Plans that are composed by a pipeline."""

from __future__ import annotations

import json
from typing import Any

import pytest

from perfdb_git.errors import InvalidInputError, NoEvidenceError
from perfdb_git.plans.compare import compare_lock
from perfdb_git.plans.lock import lock_plan
from perfdb_git.plans.resolving import resolve_plan
from tests.cli.evidence import Evidence
from tests.plans.plan_evidence import (
    LARGE,
    SMALL,
    UNKNOWN,
    UNMEASURED,
    commit_plan,
    forged,
    lock_of,
    plan,
    query,
    snapshot,
    verification,
)

COMPONENT = {
    "fixed_latency_ns": 1000,
    "lanes": 1,
    "resource_mode": "overlap",
    "evidence": "analytic",
    "notes": "Assumption.",
}
COMPOSITION = {"kind": "pipeline", "pipeline": "two-steps", "profile": "machine", "jobs": 2}


def put_pipeline(evidence: Evidence, asked: dict[str, Any]) -> None:
    profile = {
        "name": "machine",
        "version": "1",
        "components": {"cpu": COMPONENT, "gpu": COMPONENT},
    }
    stages = [
        {"name": "submit", "component": "cpu", "work": {}},
        {"name": "kernel", "component": "gpu", "query": asked},
    ]
    evidence.write("profiles/machine.json", json.dumps(profile).encode())
    evidence.write("pipelines/two-steps.json", json.dumps({"stages": stages}).encode())


def commit_pipeline(evidence: Evidence, asked: dict[str, Any], *queries: dict[str, Any]) -> None:
    put_pipeline(evidence, asked)
    commit_plan(evidence, plan(*queries, composition=COMPOSITION))


def test_the_makespan_is_the_result(evidence: Evidence) -> None:
    commit_pipeline(evidence, SMALL)
    lock = lock_of(evidence)
    # One job after the other on the device: 1 us of submission, then two kernels of 2.872 ms.
    assert lock.result.makespan_ps == "5745000000"
    assert lock.result.value == 0.005745
    assert lock.result.evidence == "analytic"
    assert lock.result.uncertainty_code == "not-propagated"
    assert [(item.name, item.multiplicity) for item in lock.queries] == [("stage:kernel", 2)]
    assert verification(evidence, lock).verdict == "equal"


def test_queries_beside_the_pipeline_are_locked_too(evidence: Evidence) -> None:
    commit_pipeline(evidence, SMALL, query("large", LARGE))
    lock = lock_of(evidence)
    assert [item.name for item in lock.queries] == ["large", "stage:kernel"]
    assert lock.result.makespan_ps == "5745000000"


def test_a_stage_without_an_answer_is_named(evidence: Evidence) -> None:
    commit_pipeline(evidence, UNKNOWN)
    found = resolve_plan(snapshot(evidence), "step")
    assert found.result.value is None
    with pytest.raises(NoEvidenceError, match="stage:kernel"):
        lock_plan(found)


def test_a_stage_that_cannot_be_asked_is_refused(evidence: Evidence) -> None:
    commit_pipeline(evidence, {**SMALL, "dtype": "half"})
    with pytest.raises(InvalidInputError) as caught:
        resolve_plan(snapshot(evidence), "step")
    assert (caught.value.code, caught.value.document) == (
        "bad-stage-query",
        "pipelines/two-steps.json",
    )


def move(lock_ps: int) -> Any:
    def change(value: dict[str, Any]) -> None:
        makespan = int(value["result"]["makespan_ps"]) + lock_ps
        value["result"].update(makespan_ps=str(makespan), value=makespan / 10**12)

    return change


@pytest.mark.parametrize(
    ("asked", "moved", "verdict"),
    [
        (SMALL, 1, "differs"),
        (UNMEASURED, 2, "equal"),
        (UNMEASURED, 3, "differs"),
    ],
)
def test_a_calculated_service_may_round_to_the_next_tick(
    evidence: Evidence, asked: dict[str, Any], moved: int, verdict: str
) -> None:
    commit_pipeline(evidence, asked)
    found = verification(evidence, forged(lock_of(evidence), move(moved)))
    assert found.verdict == verdict


def test_a_stage_that_asks_something_else_is_a_change(evidence: Evidence) -> None:
    commit_pipeline(evidence, SMALL)
    lock = lock_of(evidence)
    put_pipeline(evidence, LARGE)
    evidence.commit("another kernel")
    found = compare_lock(snapshot(evidence), lock, plan_changed=False)
    assert [change.name for change in found.changes] == ["stage:kernel"]
    assert [item.field for item in found.result] == ["value", "makespan_ps"]

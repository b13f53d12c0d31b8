"""Sources of a plan's number, and what one percent of each does."""

from __future__ import annotations

import json

import pytest

from perfdb_git.database import DatabaseSnapshot
from perfdb_git.errors import NoEvidenceError
from perfdb_git.plans.resolving import resolve_plan
from perfdb_git.plans.sensitivity import Dependence, Sensitivity, plan_sensitivity
from tests.cli.evidence import Evidence
from tests.plans.plan_evidence import (
    LARGE,
    MIXED,
    SMALL,
    UNKNOWN,
    commit_plan,
    plan,
    query,
    snapshot,
)


def sensitivity(evidence: Evidence, value: dict[str, object], **more: str) -> Sensitivity:
    commit_plan(evidence, value)
    return plan_sensitivity(resolve_plan(snapshot(evidence), "step"), **more)  # type: ignore[arg-type]


def by_label(found: Sensitivity) -> dict[str, Dependence]:
    return {one.label: one for one in found.dependences}


def test_a_source_alone_has_its_share_times_one_percent(evidence: Evidence) -> None:
    found = sensitivity(evidence, MIXED)
    total = found.result.value
    assert total is not None
    records, profile = by_label(found)["one"], by_label(found)["analytical"]
    assert records.kind == "record-set"
    assert records.queries == ("small", "large")
    assert records.time_s == pytest.approx(3 * 2.872e-3 + 5.1e-3)
    assert records.change_s == pytest.approx(0.01 * records.time_s)
    assert (profile.kind, profile.queries) == ("profile", ("unmeasured",))
    assert profile.name.startswith("a100-80g-calculon@")
    # All sources by 1 % are the total by 1 %.
    assert sum(one.change_s for one in found.dependences) == pytest.approx(0.01 * total)
    assert sum(one.relative or 0 for one in found.dependences) == pytest.approx(0.01)
    effects = [abs(one.change_s) for one in found.dependences]
    assert effects == sorted(effects, reverse=True)


def test_a_session_that_is_not_the_median_changes_nothing(evidence: Evidence) -> None:
    """Three sessions say 2.872, 2.9 and 2.95 ms: the answer is that of the second."""
    evidence.add_gemm("two", [(128, 10240, 8192, 2.9, 0.1, 20)])
    evidence.add_gemm("three", [(128, 10240, 8192, 2.95, 0.1, 20)])
    found = by_label(sensitivity(evidence, plan(query("small", SMALL))))
    assert found["three"].change_s == 0
    # 1 % more makes it 2.929 ms, which is the median still.
    assert found["two"].change_s == pytest.approx(0.01 * 2.9e-3)
    # 1 % more makes it 2.9007 ms: it takes the middle, and adds what lies between.
    assert found["one"].change_s == pytest.approx(1.01 * 2.872e-3 - 2.9e-3)


def test_two_sessions_share_an_answer(evidence: Evidence) -> None:
    evidence.add_gemm("two", [(128, 10240, 8192, 3.0, 0.1, 20)])
    found = by_label(sensitivity(evidence, plan(query("small", SMALL), query("large", LARGE))))
    assert found["two"].change_s == pytest.approx(0.01 * 3.0e-3 / 2)
    assert found["one"].change_s == pytest.approx(0.01 * (2.872e-3 / 2 + 5.1e-3))


def test_record_sets_of_a_session_may_be_taken_together(evidence: Evidence) -> None:
    evidence.add_gemm("one", [(512, 10240, 8192, 10.0, 0.1, 20)])
    value = plan(query("small", SMALL), query("more", {**SMALL, "m": 512}))
    apart, together = sensitivity(evidence, value), sensitivity(evidence, value, by="session")
    assert len(apart.dependences) == 2
    (one,) = together.dependences
    assert (one.kind, one.name, one.queries) == ("session", "one", ("small", "more"))
    assert one.relative == pytest.approx(0.01)


def test_without_an_answer_there_is_nothing_to_change(evidence: Evidence) -> None:
    with pytest.raises(NoEvidenceError, match=r"odd \(no-admissible-evidence\)"):
        sensitivity(evidence, plan(query("small", SMALL), query("odd", UNKNOWN)))
    left = sensitivity(evidence, plan(query("small", SMALL), query("odd", UNKNOWN, required=False)))
    assert left.left_out == ("odd",)


PROFILE = {
    "name": "node",
    "version": "1",
    "components": {
        name: {
            "fixed_latency_ns": fixed,
            "lanes": 1,
            "resource_mode": "serial",
            "evidence": "analytic",
            "notes": "made up",
        }
        for name, fixed in (("host", 1_000_000), ("link", 5_000_000), ("gpu", 0))
    },
}
PIPELINE = {
    "stages": [
        {"name": "launch", "component": "host", "work": {}},
        {"name": "copy", "component": "link", "work": {}},
        {"name": "small", "component": "gpu", "query": SMALL},
    ],
}


def pipeline_snapshot(evidence: Evidence) -> DatabaseSnapshot:
    evidence.write("profiles/node.json", json.dumps(PROFILE).encode())
    evidence.write("pipelines/submit.json", json.dumps(PIPELINE).encode())
    composition = {"kind": "pipeline", "pipeline": "submit", "profile": "node", "jobs": 10}
    commit_plan(evidence, plan(query("aside", LARGE), composition=composition))
    return snapshot(evidence)


def test_a_pipeline_is_simulated_again(evidence: Evidence) -> None:
    """Ten jobs wait for the link, 5 ms each; the GPU's 2.872 ms is seen once, at the end."""
    found = plan_sensitivity(resolve_plan(pipeline_snapshot(evidence), "step"))
    assert found.way == "simulation"
    assert found.result.value == pytest.approx(1e-3 + 10 * 5e-3 + 2.872e-3)
    effects = {one.name if one.kind == "component" else one.label: one for one in found.dependences}
    assert effects["link"].change_s == pytest.approx(0.01 * 10 * 5e-3)
    assert effects["host"].change_s == pytest.approx(0.01 * 1e-3)
    # The records answer another query too, which no stage asks.
    assert effects["one"].queries == ("aside", "stage:small")
    assert effects["one"].change_s == pytest.approx(0.01 * 2.872e-3)
    assert found.dependences[0].name == "link"
    assert "gpu" not in effects

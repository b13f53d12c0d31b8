"""A plan resolved and locked."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from perfdb_git.errors import InvalidInputError, NoEvidenceError, UsageError
from perfdb_git.model.plan import PlanQuery
from perfdb_git.plans.composing import AnsweredQuery, compose_sum
from perfdb_git.plans.lock import lock_bytes, lock_plan
from perfdb_git.plans.resolving import ResolvedPlan, resolve_plan
from perfdb_git.plans.tracked import plan_names, tracked_queries
from perfdb_git.storage.plan_documents import read_plan_lock
from tests.cli.evidence import Evidence
from tests.plans.plan_evidence import (
    LARGE,
    MEASURED,
    MIXED,
    SMALL,
    UNKNOWN,
    commit_plan,
    database,
    lock_of,
    plan,
    put_plan,
    query,
    snapshot,
)


def resolved(evidence: Evidence, value: dict[str, Any]) -> ResolvedPlan:
    commit_plan(evidence, value)
    return resolve_plan(snapshot(evidence), "step")


def test_the_sum_weighs_values_and_bounds_by_multiplicity(evidence: Evidence) -> None:
    found = resolved(evidence, MEASURED)
    small, large = (item.latency for item in found.answered)
    assert small is not None and large is not None
    assert small.uncertainty is not None and large.uncertainty is not None
    assert found.result.value == math.fsum([3 * small.value, large.value])
    bounds = found.result.uncertainty
    assert bounds is not None
    assert bounds.rule == "comonotone-sum"
    assert bounds.lower == math.fsum([3 * small.uncertainty.lower, large.uncertainty.lower])
    assert bounds.upper == math.fsum([3 * small.uncertainty.upper, large.uncertainty.upper])
    assert bounds.level == min(small.uncertainty.level, large.uncertainty.level)
    assert found.result.evidence == "measured"


def test_a_part_without_a_spread_leaves_the_sum_without_an_interval(evidence: Evidence) -> None:
    result = resolved(evidence, MIXED).result
    assert (result.uncertainty, result.uncertainty_code) == (None, "spread-unknown")
    assert result.evidence == "analytic"


def with_interval(item: AnsweredQuery, **changes: Any) -> AnsweredQuery:
    """The same answer with another interval."""
    estimate = item.resolution.estimate
    assert estimate is not None
    metric = estimate.metrics["latency"]
    assert metric.uncertainty is not None
    changed = replace(metric, uncertainty=replace(metric.uncertainty, **changes))
    estimate = replace(estimate, metrics={"latency": changed})
    return AnsweredQuery(item.tracked, replace(item.resolution, estimate=estimate))


def test_the_level_of_a_sum_is_the_lowest_of_its_parts(evidence: Evidence) -> None:
    small, large = resolved(evidence, MEASURED).answered
    bounds = compose_sum([small, with_interval(large, level=0.8)]).uncertainty
    assert bounds is not None
    assert bounds.level == 0.8


def test_intervals_of_two_kinds_have_no_sum(evidence: Evidence) -> None:
    small, large = resolved(evidence, MEASURED).answered
    result = compose_sum([small, with_interval(large, kind="confidence")])
    assert (result.uncertainty, result.uncertainty_code) == (None, "kinds-differ")


def test_a_sum_without_a_required_answer_has_no_value(evidence: Evidence) -> None:
    found = resolved(evidence, plan(query("small", SMALL), query("odd", UNKNOWN)))
    assert [item.tracked.name for item in found.missing] == ["odd"]
    assert (found.result.value, found.result.uncertainty_code) == (None, "incomplete")
    with pytest.raises(NoEvidenceError, match=r"odd \(no-admissible-evidence\)"):
        lock_plan(found)


def test_what_is_not_required_is_left_out_and_named(evidence: Evidence) -> None:
    found = resolved(evidence, plan(query("small", SMALL), query("odd", UNKNOWN, required=False)))
    small = found.answered[0].latency
    assert small is not None
    assert found.result.value == small.value
    assert found.result.left_out == ("odd",)
    assert found.result.uncertainty_code == "incomplete"
    lock = lock_plan(found)
    assert (lock.queries[1].code, lock.queries[1].answer) == ("no-admissible-evidence", None)


@pytest.mark.parametrize(
    ("value", "code"),
    [
        (plan(query("a", SMALL), query("a", LARGE)), "invalid-value"),
        (plan(query("a", {**SMALL, "dtype": "fp16"})), "bad-plan-query"),
        (plan(query("a", {**SMALL, "mm": 1})), "bad-plan-query"),
        (plan(query("a", SMALL), policy="strict"), "unknown-policy"),
        (
            plan(composition={"kind": "pipeline", "pipeline": "p", "profile": "q"}),
            "unknown-pipeline",
        ),
        (plan(query("a", SMALL, times=2)), "unknown-key"),
        ({**MEASURED, "name": "stride"}, "plan-name"),
    ],
)
def test_a_wrong_plan_is_refused(evidence: Evidence, value: dict[str, Any], code: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        resolved(evidence, value)
    assert caught.value.code == code


def test_uncommitted_files_are_not_locked(evidence: Evidence) -> None:
    put_plan(evidence, MEASURED)
    found = resolve_plan(database(evidence).worktree(), "step")
    with pytest.raises(UsageError, match="uncommitted"):
        lock_plan(found)


def test_a_lock_states_what_the_answers_depend_on(evidence: Evidence) -> None:
    commit = commit_plan(evidence)
    lock = lock_of(evidence)
    assert lock.commit == commit
    assert lock.trees == {
        folder: evidence.git("rev-parse", f"{commit}:{folder}")
        for folder in ("evidence", "pipelines", "profiles", "schemas")
    }
    methods = [query.answer.method for query in lock.queries if query.answer is not None]
    assert methods == ["measured", "measured", "analytical"]
    assert set(lock.revisions) >= {"recorded-measured", "analytical"}
    assert isinstance(lock.plan.queries[1], PlanQuery)
    assert lock.plan.queries[1].multiplicity == 1


def test_a_lock_of_a_commit_stays_the_same_when_evidence_is_added(evidence: Evidence) -> None:
    commit = commit_plan(evidence)
    first = lock_bytes(lock_of(evidence))
    evidence.add_gemm("two", [(128, 10240, 8192, 2.9, 0.1, 20)])
    evidence.commit("more evidence")
    assert lock_bytes(lock_of(evidence, commit)) == first
    assert lock_bytes(lock_of(evidence)) != first


def test_a_lock_survives_its_file(evidence: Evidence) -> None:
    commit_plan(evidence)
    lock = lock_of(evidence)
    assert read_plan_lock(lock_bytes(lock), document="lock").value == lock


def test_tracked_queries_are_those_of_all_plans(evidence: Evidence) -> None:
    put_plan(evidence, MIXED)
    other = {**plan(query("only", UNKNOWN, required=False)), "name": "other", "policy": "default"}
    put_plan(evidence, other, "pipelines/plans/other.yaml")
    evidence.commit("two plans")
    now = snapshot(evidence)
    assert plan_names(now) == ("other", "step")
    tracked = [item for name in plan_names(now) for item in tracked_queries(now, name)]
    assert [(item.plan, item.name, item.multiplicity, item.policy) for item in tracked] == [
        ("other", "only", 1, "default"),
        ("step", "small", 3, None),
        ("step", "large", 1, None),
        ("step", "unmeasured", 2, None),
    ]
    assert tracked[1].query.coordinates()["m"] == 128
    assert not tracked[0].required

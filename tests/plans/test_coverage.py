"""What a sum rests on: by method, refused tasks apart, and both intervals."""

from __future__ import annotations

import math

import pytest

from perfdb_git.plans.coverage import INDEPENDENT_SUM, Coverage, sum_coverage
from perfdb_git.plans.resolving import resolve_plan
from tests.cli.evidence import Evidence
from tests.plans.plan_evidence import (
    LARGE,
    MEASURED,
    MIXED,
    SMALL,
    UNKNOWN,
    UNMEASURED,
    commit_plan,
    plan,
    query,
    snapshot,
)


def coverage(evidence: Evidence, value: dict[str, object]) -> Coverage:
    commit_plan(evidence, value)
    return sum_coverage(resolve_plan(snapshot(evidence), "step").answered)


def test_every_method_has_its_tasks_and_its_share(evidence: Evidence) -> None:
    found = coverage(evidence, MIXED)
    assert [(item.method, item.tasks) for item in found.methods] == [
        ("measured", 2),
        ("analytical", 1),
    ]
    measured, analytical = found.methods
    assert measured.time_s == pytest.approx(3 * 2.872e-3 + 5.1e-3)
    assert measured.share + analytical.share == pytest.approx(1)
    assert found.answered_s == pytest.approx(measured.time_s + analytical.time_s)
    assert found.without_spread == ("unmeasured",)
    assert (found.spread_s, found.spread_share) == (measured.time_s, measured.share)


def test_a_refused_task_has_no_time(evidence: Evidence) -> None:
    value = plan(query("small", SMALL), query("odd", UNKNOWN, multiplicity=9))
    found = coverage(evidence, value)
    (refused,) = found.refused
    assert (refused.name, refused.multiplicity) == ("odd", 9)
    assert refused.code == "no-admissible-evidence"
    assert (found.tasks, found.answered_s) == (2, pytest.approx(2.872e-3))
    assert sum(item.tasks for item in found.methods) == 1


def test_independent_errors_add_as_squares(evidence: Evidence) -> None:
    found = coverage(evidence, MEASURED)
    answers = resolve_plan(snapshot(evidence), "step").answered
    metrics = [(item.tracked.multiplicity, item.latency) for item in answers]
    below, above = 0.0, 0.0
    for count, metric in metrics:
        assert metric is not None and metric.uncertainty is not None
        below += (count * (metric.value - metric.uncertainty.lower)) ** 2
        above += (count * (metric.uncertainty.upper - metric.value)) ** 2
    assert found.independent is not None and found.comonotone is not None
    assert found.independent.lower == pytest.approx(found.answered_s - math.sqrt(below))
    assert found.independent.upper == pytest.approx(found.answered_s + math.sqrt(above))
    assert found.independent.rule == INDEPENDENT_SUM
    # It lies inside the interval in which all errors go together.
    assert found.comonotone.lower < found.independent.lower
    assert found.independent.upper < found.comonotone.upper


def test_one_question_under_two_names_errs_together(evidence: Evidence) -> None:
    once = coverage(evidence, plan(query("all", SMALL, multiplicity=4), query("other", LARGE)))
    twice = coverage(
        evidence,
        plan(
            query("some", SMALL, multiplicity=3),
            query("rest", SMALL, multiplicity=1),
            query("other", LARGE),
        ),
    )
    assert twice.independent == once.independent


def test_nothing_with_a_spread_has_no_interval(evidence: Evidence) -> None:
    found = coverage(evidence, plan(query("unmeasured", UNMEASURED)))
    assert (found.comonotone, found.independent, found.spread_share) == (None, None, 0)

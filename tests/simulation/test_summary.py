"""Summaries, query stages, sweeps and sensitivities."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import pytest

from perfdb_git.errors import InvalidInputError, UsageError
from perfdb_git.model.simulation import ResolvedService
from perfdb_git.simulation.simulate import simulate
from perfdb_git.simulation.summary_values import summary_value
from perfdb_git.simulation.sweep import SweepAxis, parse_sweep, sensitivities, sweep
from tests.simulation.simulation_fixtures import pipeline_of, profile_of, simple

TWO_LANES = {"A": 2, "B": 1}


def test_what_a_summary_says() -> None:
    profile, pipeline = simple([("A", 3), ("B", 2)], {"count": 4}, TWO_LANES)
    summary = simulate(profile, pipeline).summary
    # A: 0-3, 0-3, 3-6, 3-6; B: 3-5, 5-7, 7-9, 9-11.
    assert (summary.jobs, summary.visits, summary.makespan_ps) == (4, 8, 11_000)
    assert summary.throughput_jobs_per_s == pytest.approx(4 / 11e-9)
    latency = summary.latency_ps
    assert (latency.min, latency.p50, latency.p95, latency.max) == (5000, 7000, 11_000, 11_000)
    assert latency.mean == 8000
    first, second = summary.components
    assert (first.name, first.lanes, first.visits) == ("A", 2, 4)
    assert (first.busy_ps, first.wait_ps, first.wait_max_ps) == (12_000, 6_000, 3_000)
    assert first.utilisation == pytest.approx(12 / 22)
    assert first.queue_length == pytest.approx(6 / 11)
    assert first.lane_use is not None
    assert [lane.busy_ps for lane in first.lane_use] == [6000, 6000]
    assert (second.busy_ps, second.wait_ps) == (8_000, 0 + 2_000 + 1_000 + 3_000)
    assert second.wait_percentiles_ps is not None
    assert (second.wait_percentiles_ps.p50, second.wait_percentiles_ps.max) == (1000, 3000)
    assert summary.capacity is not None
    assert summary.capacity.kind == "upper-bound"
    assert summary.capacity.jobs_per_s == pytest.approx(5e8)
    assert summary.bottleneck == "B"
    assert summary.critical_path is not None
    assert [(step.job, step.stage) for step in summary.critical_path] == [
        (0, "s0"),
        (0, "s1"),
        (1, "s1"),
        (2, "s1"),
        (3, "s1"),
    ]


def test_a_run_that_takes_no_time() -> None:
    summary = simulate(*simple([("A", 0)], {"count": 3})).summary
    assert summary.makespan_ps == 0
    assert summary.throughput_jobs_per_s is None
    assert summary.capacity is None
    assert summary.bottleneck is None
    assert summary.components[0].utilisation == 0


def test_a_large_run_leaves_single_visits_out_and_counts_alike() -> None:
    profile, pipeline = simple([("A", 3), ("B", 2)], {"count": 50}, TWO_LANES)
    full = simulate(profile, pipeline).summary
    lean = simulate(profile, pipeline, recorded_visits=99).summary
    assert lean.critical_path is None
    assert lean.components[0].lane_use is None
    for name in ("makespan_ps", "latency_ps", "stages", "capacity", "grid_error"):
        assert getattr(lean, name) == getattr(full, name)


def test_work_per_job_is_summed() -> None:
    profile, pipeline = simple(
        [("A", 3)], {"work": [{}, {"s0": {"instructions": 4}}, {"s0": {"instructions": 4}}]}
    )
    summary = simulate(profile, pipeline).summary
    assert summary.engine == "feed-forward"
    assert summary.stages[0].service_ps is None
    assert summary.stages[0].busy_ps == 11_000
    assert summary.stages[0].rates[0].ratio == 1


def test_the_weakest_evidence_is_stated() -> None:
    calibrated = {"evidence": "calibrated", "target": "board", "uncertainty_pct": 4}
    stages = [{"name": n, "component": n, "work": {}} for n in ("a", "b")]
    pipeline = pipeline_of({"stages": stages})
    both = profile_of({"a": {**calibrated, "uncertainty_pct": 7.5}, "b": calibrated})
    summary = simulate(both, pipeline).summary
    assert (summary.evidence_class, summary.uncertainty_pct) == ("calibrated", 7.5)
    one = profile_of({"a": {**calibrated, "uncertainty_pct": None}, "b": {"uncertainty_pct": 50}})
    summary = simulate(one, pipeline).summary
    assert (summary.evidence_class, summary.uncertainty_pct) == ("analytic", None)
    assert [one.evidence for one in summary.components] == ["calibrated", "analytic"]


QUERY: dict[str, Any] = {"operation": "gemm", "device": "a100_sxm4_80g", "m": 128, "n": 4.5}


def test_a_query_stage_takes_its_answer() -> None:
    profile = profile_of({"gpu": {"lanes": 2, "calibration_scale": 3, "fixed_latency_ns": 9}})
    pipeline = pipeline_of({"stages": [{"name": "k", "component": "gpu", "query": QUERY}]})
    assert dict(pipeline.value.stages[0].query or {}) == QUERY
    answer = ResolvedService(
        service_ns=Fraction(12_345, 1000),
        lower_ns=Fraction(12),
        upper_ns=Fraction(13),
        evidence="measured",
        uncertainty_pct=Fraction(4),
        provenance={"record_ids": ["0123#4"]},
    )
    summary = simulate(profile, pipeline, answers={"k": answer}).summary
    (stage,) = summary.stages
    assert stage.service_ps == 12_345
    assert stage.answer is not None
    assert (stage.answer.lower_ns, stage.answer.upper_ns) == (12, 13)
    assert stage.answer.provenance == {"record_ids": ["0123#4"]}
    assert (summary.evidence_class, summary.uncertainty_pct) == ("measured", 4)


def test_a_query_without_an_answer_is_an_error() -> None:
    pipeline = pipeline_of({"stages": [{"name": "k", "component": "gpu", "query": QUERY}]})
    with pytest.raises(InvalidInputError) as caught:
        simulate(profile_of({"gpu": {}}), pipeline)
    assert caught.value.code == "unresolved-query"
    with pytest.raises(InvalidInputError) as caught:
        negative = ResolvedService(service_ns=Fraction(-1), evidence="measured")
        simulate(profile_of({"gpu": {}}), pipeline, answers={"k": negative})
    assert caught.value.code == "negative-service-time"


def test_a_summary_is_a_json_value() -> None:
    summary = simulate(*simple([("A", 10**11)], {"count": 500})).summary
    value = summary_value(summary)
    assert isinstance(value, dict)
    assert value["makespan_ps"] == str(500 * 10**14)
    assert json.loads(json.dumps(value)) == value


# Sweeps


def test_a_sweep_simulates_each_value() -> None:
    profile, pipeline = simple([("A", 2), ("B", 1), ("B", 1)], {"count": 4}, {"A": 2, "B": 2})
    points = list(sweep(profile, pipeline, parse_sweep("A.lanes=1,2,3")))
    assert [point.value for point in points] == ["1", "2", "3"]
    # More lanes end later: nothing between two points may be interpolated.
    assert [point.summary.makespan_ps for point in points][1:] == [6000, 7000]
    rates = sweep(profile, pipeline, parse_sweep("A.instruction_rate_mips=500,1e3"))
    assert [point.summary.makespan_ps for point in rates] == [10_000, 6_000]
    assert profile.value.components["A"].lanes == 2


def test_a_name_with_dots_can_be_swept() -> None:
    axis = SweepAxis(component="a.b", field="resource_mode", values=("overlap", "serial"))
    assert parse_sweep("a.b.resource_mode=overlap, serial") == axis


@pytest.mark.parametrize(
    "typed",
    ["", "A.lanes", "A.lanes=", "lanes=1", "A.lanes=1,,2", "A.notes=x", "A.speed=1", ".lanes=1"],
)
def test_a_wrong_axis_is_refused(typed: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_sweep(typed)
    assert caught.value.code == "sweep"


@pytest.mark.parametrize(
    "typed",
    [
        "A.lanes=2,0",
        "A.lanes=1.5",
        "A.instruction_rate_mips=fast",
        "A.clock_mhz=NaN",
        "A.calibration_scale=-1",
        "A.resource_mode=both",
        "C.lanes=1",
    ],
)
def test_a_wrong_value_is_refused_before_anything_runs(typed: str) -> None:
    profile, pipeline = simple([("A", 2)], {"count": 4})
    with pytest.raises(UsageError):
        next(sweep(profile, pipeline, parse_sweep(typed)))


def test_sensitivities_are_simulated() -> None:
    profile, pipeline = simple([("A", 100), ("B", 1000), ("A", 100)], {"count": 10})
    rows = sensitivities(profile, pipeline)
    assert [row.component for row in rows] == ["B", "A"]
    assert (rows[0].slower_ps, rows[0].faster_ps) == (100_000, -100_000)
    assert rows[0].slower_pct == pytest.approx(100 * 100 / 10_200)
    assert (rows[1].slower_ps, rows[1].faster_ps) == (2_000, -2_000)


def test_a_slower_component_may_end_earlier() -> None:
    """E9 scaled: 1 % of the first service moves the order of the queue."""
    profile, pipeline = simple([("A", 199), ("B", 200), ("B", 100), ("A", 300)], {"count": 2})
    rows = {row.component: row for row in sensitivities(profile, pipeline)}
    assert rows["A"].slower_ps < 0

"""Documents: two shapes without a schema line, what is refused, and what ships."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from perfdb_git.errors import InvalidInputError, PerfdbError, UsageError
from perfdb_git.model.pipeline import Arrivals, Jobs, Pipeline, Stage, Work
from perfdb_git.model.timing_profile import Component
from perfdb_git.simulation.documents import ReadDocument, read_pipeline, read_timing_profile
from perfdb_git.simulation.simulate import simulate, with_jobs
from tests.simulation.simulation_fixtures import (
    ANALYTIC,
    PROJECT,
    SCHEMAS,
    component,
    pipeline_of,
    profile_of,
    simple,
    text,
)

SHIPPED = PROJECT / "profiles" / "cnuas-analytic-v0.json"
PIPELINES = sorted((PROJECT / "pipelines").glob("*.*"))


def shipped() -> Any:
    return read_timing_profile(SHIPPED.read_bytes(), document=SHIPPED.name, schemas=SCHEMAS)


def refused(call: Any) -> PerfdbError:
    with pytest.raises(PerfdbError) as caught:
        call()
    return caught.value


def test_both_shapes_load_without_a_schema_line() -> None:
    profile = profile_of({"cpu": {"instruction_rate_mips": 1000}})
    pipeline = pipeline_of(
        {"stages": [{"name": "submit", "component": "cpu", "work": {"instructions": 2500}}]}
    )
    assert simulate(profile, pipeline).summary.makespan_ps == 2_500_000


def test_yaml_and_json_are_the_same() -> None:
    yaml = (
        b"stages:\n- {name: s, component: c, work: {bytes: 0.1, packets: 1e1}}\njobs: {count: 3}\n"
    )
    first = read_pipeline(yaml, document="a.yaml", schemas=SCHEMAS).value
    assert (
        first
        == pipeline_of(
            {
                "stages": [{"name": "s", "component": "c", "work": {"bytes": 0.1, "packets": 10}}],
                "jobs": {"count": 3},
            }
        ).value
    )
    assert first.stages[0].work == Work(bytes=Decimal("0.1"), packets=Decimal(10))


@pytest.mark.parametrize(
    "change",
    [
        {"lanes": 0},
        {"lanes": 1.5},
        {"bandwidth_gbps": 0},
        {"bandwidth_gbps": -1},
        {"bandwidth": 1},
        {"resource_mode": "both"},
        {"evidence": "calibrated"},
        {"evidence": "calibrated", "target": None},
        {"notes": ""},
        {"notes": []},
        {"notes": "  "},
        {"calibration_scale": 0},
        {"uncertainty_pct": -1},
        {"fixed_latency_ns": None},
    ],
)
def test_a_wrong_component_is_refused(change: dict[str, Any]) -> None:
    error = refused(lambda: profile_of({"c": change}))
    assert isinstance(error, InvalidInputError)
    assert error.pointer is not None
    assert error.pointer.startswith("/components/c")


@pytest.mark.parametrize(
    "name", ["fixed_latency_ns", "lanes", "resource_mode", "evidence", "notes"]
)
def test_required_fields(name: str) -> None:
    fields = {key: value for key, value in ANALYTIC.items() if key != name}
    value = {"name": "n", "version": "1", "components": {"c": fields}}
    error = refused(lambda: read_timing_profile(text(value), document="p", schemas=SCHEMAS))
    assert name in str(error)


def test_a_calibrated_component_names_its_target() -> None:
    profile = profile_of({"c": {"evidence": "calibrated", "target": "board", "uncertainty_pct": 5}})
    assert profile.value.components["c"].target == "board"


LOOP = {"kind": "closed-loop", "window": 1}
SLOW = {"kind": "interval", "interval_ns": 10**7}
STAGE = {"name": "s", "component": "c", "work": {}}


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"stages": []},
        {"stages": [{"name": "s", "component": "c"}]},
        {"stages": [{**STAGE, "query": {"operation": "gemm"}}]},
        {"stages": [STAGE, STAGE]},
        {"stages": [{**STAGE, "work": {"bytes": -1}}]},
        {"stages": [{**STAGE, "work": {"flops": 1}}]},
        {"stages": [STAGE], "jobs": {"count": 0}},
        {"stages": [STAGE], "jobs": {"arrivals": {"kind": "interval"}}},
        {"stages": [STAGE], "jobs": {"arrivals": {"interval_ns": 1}}},
        {"stages": [STAGE], "jobs": {"arrivals": {"kind": "list", "times_ns": [-1]}}},
        {"stages": [STAGE], "jobs": {"arrivals": {"kind": "closed-loop", "window": 0}}},
        {"stages": [STAGE], "jobs": {"count": 3, "arrivals": {"kind": "list", "times_ns": [1]}}},
        {"stages": [STAGE], "jobs": {"count": 2, "work": [{}]}},
        {"stages": [STAGE], "jobs": {"work": [{"t": {}}]}},
        {"stages": [STAGE], "speed": 1},
    ],
)
def test_a_wrong_pipeline_is_refused(value: dict[str, Any]) -> None:
    assert isinstance(refused(lambda: pipeline_of(value)), InvalidInputError)


@pytest.mark.parametrize("number", [b"NaN", b"Infinity", b"1e999", b"1e-999"])
def test_numbers_that_are_none_are_refused(number: bytes) -> None:
    data = b'{"stages": [{"name": "s", "component": "c", "work": {"bytes": ' + number + b"}}]}"
    assert isinstance(
        refused(lambda: read_pipeline(data, document="p.json", schemas=SCHEMAS)), InvalidInputError
    )


@pytest.mark.parametrize("number", ["NaN", "sNaN", "Infinity", "-1"])
def test_objects_refuse_them_too(number: str) -> None:
    for call in (
        lambda: Work(bytes=Decimal(number)),
        lambda: component(fixed_latency_ns=Decimal(number)),
        lambda: component(bandwidth_gbps=Decimal(number)),
        lambda: component(uncertainty_pct=Decimal(number)),
        lambda: Arrivals(kind="interval", interval_ns=Decimal(number)),
        lambda: Arrivals(kind="list", times_ns=(Decimal(number),)),
    ):
        with pytest.raises(ValueError, match="finite"):
            call()
    with pytest.raises(ValueError, match="finite"):
        component(calibration_offset_ns=Decimal("NaN"))


def test_a_million_stages_are_refused_at_once() -> None:
    data = b'{"stages": [' + b",".join([b'{"name":"s","component":"c","work":{}}'] * 10**6) + b"]}"
    error = refused(lambda: read_pipeline(data, document="p.json", schemas=SCHEMAS))
    assert error.code == "too-many-items"
    assert "1000000" in str(error)
    stage = Stage(name="s", component="c", work=Work())
    with pytest.raises(ValueError, match="1000000 stages"):
        Pipeline(stages=(stage,) * 10**6)


def test_the_longest_pipeline_runs() -> None:
    profile = profile_of({"c": {"fixed_latency_ns": 1}})
    stages = tuple(Stage(name=f"s{n}", component="c", work=Work()) for n in range(10_000))
    pipeline = ReadDocument(
        document="p", sha256="0" * 64, value=Pipeline(stages=stages, jobs=Jobs(count=2))
    )
    summary = simulate(profile, pipeline).summary
    assert summary.makespan_ps == 20_000_000
    assert summary.critical_path is not None


def test_an_unknown_component_lists_the_known_ones() -> None:
    pipeline = pipeline_of({"stages": [{"name": "s", "component": "gpu", "work": {}}]})
    error = refused(lambda: simulate(profile_of({"cpu": {}, "nic": {}}), pipeline))
    assert error.code == "unknown-component"
    assert "cpu, nic" in str(error)


@pytest.mark.parametrize(
    ("stages", "jobs"),
    [
        ([("a", 9 * 10**15)], {"count": 2}),
        ([("a", 1)], {"count": 9 * 10**9, "arrivals": SLOW}),
        ([("a", 5 * 10**15), ("b", 5 * 10**15)], {"count": 1}),
        (
            [("a", 1), ("a", 9 * 10**15)],
            {"count": 5, "arrivals": {"kind": "closed-loop", "window": 1}},
        ),
    ],
)
def test_an_overflow_is_found_before_anything_runs(stages: Any, jobs: Any) -> None:
    error = refused(lambda: simulate(*simple(stages, jobs)))
    assert error.code == "time-overflow"
    assert "106.75 days" in str(error)


def test_a_service_beyond_the_grid_is_refused() -> None:
    profile = profile_of({"c": {"bandwidth_gbps": 1e-300}})
    pipeline = pipeline_of({"stages": [{"name": "s", "component": "c", "work": {"bytes": 1e300}}]})
    assert refused(lambda: simulate(profile, pipeline)).code == "time-overflow"


def test_more_visits_than_an_engine_takes_on_are_refused() -> None:
    for jobs in ({"count": 10**9, "arrivals": LOOP}, {"count": 10**12}):
        error = refused(lambda jobs=jobs: simulate(*simple([("a", 0)], jobs)))
        assert isinstance(error, UsageError)
        assert error.code == "too-many-visits"


def test_work_per_job_follows_the_job_through_the_sort() -> None:
    profile, pipeline = simple(
        [("a", 1)],
        {
            "arrivals": {"kind": "list", "times_ns": [100, 0]},
            "work": [{"s0": {"instructions": 7}}, {}],
        },
    )
    table = simulate(profile, pipeline).visits()
    assert table.start.tolist() == [0, 100_000]
    assert table.finish.tolist() == [1_000, 107_000]


def test_jobs_can_be_replaced() -> None:
    _, pipeline = simple([("a", 1)], {"count": 3})
    changed = with_jobs(pipeline, count=5, arrivals=Arrivals(kind="closed-loop", window=2))
    assert changed.value.jobs.number == 5
    assert changed.sha256 == pipeline.sha256
    listed = Arrivals(kind="list", times_ns=(Decimal(0), Decimal(1)))
    assert with_jobs(pipeline, arrivals=listed).value.jobs.number == 2
    assert refused(lambda: with_jobs(pipeline, count=5, arrivals=listed)).code == "jobs"


# What ships


def test_every_shipped_component_is_analytic_and_says_why() -> None:
    profile = shipped().value
    assert profile.name == SHIPPED.stem
    assert set(profile.components) >= {
        "guest-cpu-icount-shift0",
        "pcie-gen5-x16",
        "bmc-rs485",
        "cnuasnic",
        "cnuasgpu-compute",
    }
    for one in profile.components.values():
        assert isinstance(one, Component)
        assert one.evidence == "analytic"
        assert all(len(line) > 40 for line in one.note_lines())


def test_shipped_rates_follow_from_their_notes() -> None:
    components = shipped().value.components
    pcie = Fraction(32 * 16 * 128, 130)
    assert abs(Fraction(components["pcie-gen5-x16"].bandwidth_gbps) - pcie) < Fraction(1, 2000)
    rs485 = Fraction(19_200 * 8, 10) / 10**9
    assert Fraction(components["bmc-rs485"].bandwidth_gbps) == rs485
    assert components["guest-cpu-icount-shift0"].instruction_rate_mips == 1000
    packets = Fraction(100 * 10**9, (64 + 20) * 8) / 10**6
    assert abs(Fraction(components["cnuasnic"].packet_rate_mpps) - packets) < Fraction(1, 20)
    assert components["guest-memory"].bandwidth_gbps == Decimal("307.2")


@pytest.mark.parametrize("path", PIPELINES, ids=lambda path: path.stem)
def test_shipped_pipelines_run_without_a_warning(path: Any) -> None:
    pipeline = read_pipeline(path.read_bytes(), document=path.name, schemas=SCHEMAS)
    assert pipeline.value.name == path.stem
    summary = simulate(shipped(), pipeline).summary
    assert summary.warnings == ()
    assert summary.evidence_class == "analytic"
    assert summary.uncertainty_pct is None


def test_three_pipelines_ship() -> None:
    assert len(PIPELINES) >= 3
    path = PROJECT / "pipelines" / "submit-nic-gpu.json"
    pipeline = read_pipeline(path.read_bytes(), document=path.name, schemas=SCHEMAS)
    summary = simulate(shipped(), with_jobs(pipeline, count=1)).summary
    assert [stage.service_ps for stage in summary.stages] == [2_500_000, 327_680, 1_048_576]
    assert summary.makespan_ps == 3_876_256


def test_lanes_that_nothing_takes_cost_nothing() -> None:
    profile = profile_of({n: {"lanes": 10**6, "fixed_latency_ns": 5} for n in ("a", "b")})
    stages = [{"name": f"s{n}", "component": "ab"[n % 2], "work": {}} for n in range(200)]
    summary = simulate(profile, pipeline_of({"stages": stages, "jobs": {"count": 3}})).summary
    assert summary.makespan_ps == 1_000_000
    (first, _) = summary.components
    assert first.lanes == 10**6
    assert first.lane_use is not None
    assert [lane.visits for lane in first.lane_use] == [1] * 300

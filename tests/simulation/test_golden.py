"""Examples that were worked out by hand, through documents without a ``schema`` line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from perfdb_git.simulation.documents import read_pipeline, read_timing_profile
from perfdb_git.simulation.simulate import Simulation, simulate
from tests.simulation.simulation_fixtures import SCHEMAS, simple, text
from tests.simulation.slow_reference import Case, jobs_then_stages, run

GOLDEN = sorted(Path(__file__).with_name("golden").glob("*.json"))


def load(path: Path) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return value


def simulated(example: dict[str, Any]) -> Simulation:
    assert "schema" not in example["profile"]
    assert "schema" not in example["pipeline"]
    return simulate(
        read_timing_profile(text(example["profile"]), document="p.json", schemas=SCHEMAS),
        read_pipeline(text(example["pipeline"]), document="q.json", schemas=SCHEMAS),
    )


def visits_ns(simulation: Simulation) -> list[list[Any]]:
    table = simulation.visits()
    names = [plan.stage.name for plan in simulation.plan.stages]
    return [
        [job, names[stage], lane, start / 1000, finish / 1000]
        for job, stage, lane, start, finish in zip(
            table.job.tolist(),
            table.stage.tolist(),
            table.lane.tolist(),
            table.start.tolist(),
            table.finish.tolist(),
            strict=True,
        )
    ]


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_the_schedule_is_the_one_worked_out_by_hand(path: Path) -> None:
    example = load(path)
    expected = example["expected"]
    simulation = simulated(example)
    assert simulation.summary.makespan_ps == expected["makespan_ns"] * 1000
    if "visits_ns" in expected:
        assert visits_ns(simulation) == expected["visits_ns"]


def test_all_examples_are_there() -> None:
    names = {path.stem.split("-")[0] for path in GOLDEN}
    assert names >= {"e1", "e2", "e3", "e3b", "e4", "e5", "e6", "e7", "e8", "e9"}


# Where the loop over jobs, then stages is wrong: it pushes a stamp past idle time.


def test_a_naive_loop_starts_the_second_job_too_late() -> None:
    case = Case(lanes=(1, 1), routes=(0, 1, 0), services=((1, 10, 1),) * 2, arrivals=(0, 0))
    assert max(visit.finish for visit in jobs_then_stages(case)) == 24
    assert max(visit.finish for visit in run(case)) == 22
    profile, pipeline = simple([("A", 1), ("B", 10), ("A", 1)], {"count": 2})
    assert simulate(profile, pipeline).summary.makespan_ps == 22_000


@pytest.mark.parametrize("n_jobs", [1, 3, 50])
def test_the_naive_loop_is_off_for_every_number_of_jobs(n_jobs: int) -> None:
    case = Case(
        lanes=(1, 1), routes=(0, 1, 0), services=((1, 10, 1),) * n_jobs, arrivals=(0,) * n_jobs
    )
    assert max(visit.finish for visit in jobs_then_stages(case)) == 12 * n_jobs
    profile, pipeline = simple([("A", 1), ("B", 10), ("A", 1)], {"count": n_jobs})
    assert simulate(profile, pipeline).summary.makespan_ps == (10 * n_jobs + 2) * 1000


def test_a_naive_loop_lets_no_job_overtake() -> None:
    case = Case(lanes=(2, 1), routes=(0, 1), services=((10, 5), (1, 5)), arrivals=(0, 0))
    naive = {(v.job, v.stage): (v.start, v.finish) for v in jobs_then_stages(case)}
    assert naive[1, 1] == (15, 20)
    right = {(v.job, v.stage): (v.start, v.finish) for v in run(case)}
    assert right[1, 1] == (1, 6)
    assert max(visit.finish for visit in run(case)) == 15


def test_the_critical_path_of_many_jobs_is_the_slow_stage() -> None:
    profile, pipeline = simple([("A", 1), ("B", 10), ("A", 1)], {"count": 1000})
    summary = simulate(profile, pipeline).summary
    assert summary.path_shares is not None
    shares = {share.component: share.service_ps for share in summary.path_shares}
    assert shares == {"B": 10_000_000, "A": 2_000}
    assert summary.makespan_ps == 10_002_000
    assert summary.bottleneck == "B"

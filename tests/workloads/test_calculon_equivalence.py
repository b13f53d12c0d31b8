"""Every time and memory field of Calculon's runs, re-computed from queries."""

from __future__ import annotations

import dataclasses
import statistics
import typing
from collections.abc import Iterator
from functools import reduce
from pathlib import Path

import pytest

from perfdb_git.errors import NoEvidenceError
from perfdb_git.model.training_estimate import TrainingEstimate
from perfdb_git.workloads.task_costs import CollectiveQuery, ComputeQuery
from perfdb_git.workloads.training import estimate_training
from perfdb_git.workloads.training_tasks import training_tasks
from tests.workloads.calculon_runs import BY_NAME, ESTIMATED, FIELDS, RUNS, Run

TOLERANCE = 1e-12


def field(estimate: TrainingEstimate, path: str) -> float | None:
    value: float | None = reduce(getattr, path.split("."), estimate)  # type: ignore[arg-type]
    return value


def paths(cls: type, prefix: str = "") -> Iterator[str]:
    """Yield every number of a dataclass of dataclasses."""
    for name, hint in typing.get_type_hints(cls).items():
        if dataclasses.is_dataclass(hint):
            assert isinstance(hint, type)
            yield from paths(hint, f"{prefix}{name}.")
        elif hint is not bool:
            yield f"{prefix}{name}"


REPEATED = {
    "data_parallel.link_s": "times.data_link_s",
    "data_parallel.exposed_s": "times.data_exposed_s",
}


def test_the_runs_compare_every_number_of_an_estimate() -> None:
    assert len(ESTIMATED) == 82
    assert set(FIELDS) | set(REPEATED) == set(paths(TrainingEstimate))


@pytest.mark.parametrize("run", ESTIMATED, ids=lambda run: run.name)
def test_a_run_gives_what_calculon_computes(run: Run) -> None:
    estimate = estimate_training(run.plan())
    wrong = {}
    for path, theirs in run.expected.items():
        ours = field(estimate, path)
        if ours is None or theirs is None or theirs == 0:
            # Unknown is unknown and zero is exactly zero.
            same = ours == theirs
        else:
            same = abs(ours - theirs) <= TOLERANCE * abs(theirs)
        if not same:
            wrong[path] = (ours, theirs)
    assert wrong == {}
    assert not estimate.bound
    assert all(field(estimate, path) == field(estimate, same) for path, same in REPEATED.items())


def test_a_refused_run_is_refused() -> None:
    (run,) = (run for run in RUNS if run.refused is not None)
    with pytest.raises(NoEvidenceError, match="no matrix rate for float32") as caught:
        run.plan()
    assert caught.value.code == run.refused


def test_the_errors_against_selene_are_calculons() -> None:
    # Published seconds of a batch, never an input of a fit: they only judge.
    errors = {
        run.name: estimate_training(run.plan()).times.total_s / run.selene_s - 1
        for run in ESTIMATED
        if run.selene_s is not None
    }
    assert len(errors) == 8
    absolute = [abs(error) for error in errors.values()]
    assert statistics.mean(absolute) == pytest.approx(0.0365, abs=5e-5)
    assert max(absolute) == pytest.approx(0.0887, abs=5e-5)
    assert max(errors, key=lambda name: abs(errors[name])) == "seqsel/tab5/turing-530B_seqsel"
    guide = (Path(__file__).parents[2] / "docs/workloads.md").read_text()
    for name, error in errors.items():
        model = BY_NAME[name].model.name
        form = "full" if name.endswith("full") else "selective"
        total = estimate_training(BY_NAME[name].plan()).times.total_s
        row = f"| {model} | {form} | {BY_NAME[name].selene_s:.2f} | {total:.4f} | {error:+.2%} |"
        assert row.replace("%", " %") in guide


@pytest.mark.parametrize("run", ESTIMATED, ids=lambda run: run.name)
def test_the_task_list_holds_every_query_and_no_other(run: Run) -> None:
    plan = run.plan()
    estimate = estimate_training(plan)
    asked = set(plan.costs.asked)
    tasks = training_tasks(plan, estimate)
    # Looking up the tasks asks nothing new, and their normalised queries are those asked.
    assert set(plan.costs.asked) == asked
    assert 15 <= len(asked) <= 32
    listed: set[object] = set()
    for task in tasks:
        query = task.query
        if query.engine in ("matrix", "vector"):
            listed.add(ComputeQuery(query.engine, query.operations, query.bytes_moved))  # type: ignore[arg-type]
        elif query.network_tier is not None:
            assert query.message_bytes is not None
            assert query.participants is not None
            listed.add(
                CollectiveQuery(
                    query.network_tier, query.operation, query.message_bytes, query.participants
                )
            )
        else:
            listed.add((query.transfer_bytes,))
    assert listed == asked


@pytest.mark.parametrize("name", ["seqsel/tab5/gpt3-175B_full", "seqsel/fig1/megatron-22B_none"])
def test_without_overlap_the_tasks_add_up_to_the_batch(name: str) -> None:
    plan = BY_NAME[name].plan()
    times = estimate_training(plan).times
    tasks = training_tasks(plan, estimate_training(plan))
    totals: dict[str, float] = {}
    for task in tasks:
        talks = task.query.network_tier is not None
        talks = talks or task.query.operation == "collective_local_work"
        kind = task.name if task.name.startswith("pipeline") else "tensor" if talks else task.phase
        if talks and task.phase == "recompute":
            kind = "repeated"
        totals[kind] = totals.get(kind, 0) + task.runs * task.latency_s
    assert totals["forward"] == pytest.approx(times.forward_s)
    assert totals["activation_gradient"] + totals["weight_gradient"] == pytest.approx(
        times.backward_s
    )
    assert totals.get("recompute", 0) == pytest.approx(times.recompute_s)
    assert totals["optimizer"] == pytest.approx(times.optimizer_s)
    assert totals["tensor"] == pytest.approx(times.tensor_exposed_s)
    assert totals.get("repeated", 0) == pytest.approx(times.recommunication_exposed_s)
    assert totals["pipeline.message"] == pytest.approx(times.pipeline_exposed_s)

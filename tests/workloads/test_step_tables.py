"""Step tables at their thresholds: no run of Calculon's touches one, so these do."""

from __future__ import annotations

from dataclasses import replace

import pytest

from perfdb_git.model.training import TrainingExecution, TrainingModel
from perfdb_git.workloads.task_costs import (
    CollectiveQuery,
    ComputeQuery,
    Engine,
    OffloadQuery,
    TaskCosts,
)
from perfdb_git.workloads.training import estimate_training, plan_training
from perfdb_git.workloads.training_tasks import training_tasks
from tests.workloads.calculon_runs import BY_NAME, system

A100 = system("a100_80g")


@pytest.mark.parametrize(
    ("engine", "giga_operations", "efficiency", "below"),
    [
        ("matrix", 128, 0.95, 0.9),
        ("matrix", 16, 0.9, 0.6),
        ("matrix", 1, 0.6, 0.1),
        ("vector", 16, 0.95, 0.5),
        ("vector", 1, 0.5, 0.1),
    ],
)
def test_work_at_a_threshold_has_its_efficiency(
    engine: Engine, giga_operations: int, efficiency: float, below: float
) -> None:
    peak = {"matrix": 312e12, "vector": 78e12}[engine]
    costs = TaskCosts(A100, "float16")
    exact = giga_operations * 10**9
    assert costs.compute(ComputeQuery(engine, exact, 0)).compute == exact / (peak * efficiency)
    less = exact - 1
    assert costs.compute(ComputeQuery(engine, less, 0)).compute == less / (peak * below)


@pytest.mark.parametrize(
    ("mega_bytes", "near", "near_below", "far", "far_below"),
    [(100, 0.9, 0.75, 0.95, 0.9), (10, 0.75, 0.6, 0.9, 0.7), (1, 0.6, 0.3, 0.7, 0.3)],
)
def test_traffic_at_a_threshold_has_its_efficiency(
    mega_bytes: int, near: float, near_below: float, far: float, far_below: float
) -> None:
    costs = TaskCosts(A100, "float16")
    exact = mega_bytes * 10**6
    less = exact - 1
    assert costs.compute(ComputeQuery("vector", 0, exact)).memory == exact / (2048e9 * near)
    assert costs.compute(ComputeQuery("vector", 0, less)).memory == less / (2048e9 * near_below)
    assert costs.offload(OffloadQuery(exact)) == exact / (32e9 * far)
    assert costs.offload(OffloadQuery(less)) == less / (32e9 * far_below)


def exact_model(size: int = 4000) -> TrainingModel:
    """A model whose linear layers do exactly 128 * 10^9 operations: 2 * 4000^3."""
    return TrainingModel(
        schema="perfdb/training-model/v1",
        name="exact",
        hidden_size=size,
        feedforward_size=size,
        sequence_length=4000,
        attention_heads=40,
        head_size=size // 40,
        blocks=1,
    )


def one_processor() -> TrainingExecution:
    execution = BY_NAME["seqsel/fig1/megatron-22B_none"].execution
    single = replace(execution, processors=1, batch_size=1, microbatch_size=1)
    return replace(
        single,
        tensor_parallel=replace(single.tensor_parallel, processors=1),
        pipeline_parallel=replace(single.pipeline_parallel, processors=1, interleaving=1),
        data_parallel=replace(single.data_parallel, processors=1),
    )


def linear_seconds(model: TrainingModel) -> set[float | None]:
    plan = plan_training(model, one_processor(), A100)
    tasks = training_tasks(plan, estimate_training(plan))
    found = {task.compute_s for task in tasks if task.query.operation == "gemm"}
    assert found
    return found


def test_a_plan_whose_layers_lie_on_a_threshold() -> None:
    assert linear_seconds(exact_model()) == {128e9 / (312e12 * 0.95)}
    less = 2 * 4000 * 3960 * 3960
    assert linear_seconds(exact_model(3960)) == {less / (312e12 * 0.9)}


def test_an_empty_message_pays_the_latency() -> None:
    costs = TaskCosts(A100, "float16")
    assert costs.collective(CollectiveQuery(0, "all_reduce", 0, 8)) == 1e-5
    assert costs.collective(CollectiveQuery(1, "send_recv", 0, 2)) == 2e-5


def test_factors_make_the_topology() -> None:
    h100 = TaskCosts(system("h100_80g_nvl8"), "float16")
    a100 = TaskCosts(A100, "float16")
    query = CollectiveQuery(0, "all_reduce", 10**9, 8)
    # A ring moves 2 (n - 1) / n of a message, a switch that adds up itself 1 + 1 / n.
    assert a100.collective(query) == pytest.approx(1e-5 + 1e9 * 2 * 7 / 8 / (300e9 * 0.65))
    assert h100.collective(query) == pytest.approx(1e-5 + 1e9 * 9 / 8 / (450e9 * 0.65))


def test_a_roofline_takes_the_larger_part() -> None:
    query = ComputeQuery("matrix", 128 * 10**9, 10**8)
    added = TaskCosts(A100, "float16").compute(query)
    overlapped = TaskCosts(replace(A100, processing_mode="roofline"), "float16").compute(query)
    assert added.latency == added.compute + added.memory
    assert overlapped.latency == max(added.compute, added.memory)
    assert overlapped[1:] == added[1:]

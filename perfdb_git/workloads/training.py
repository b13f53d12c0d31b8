"""Training time and memory of a model under an execution on a system.

Every time comes from a query to the system profile's own models (`TaskCosts`); this composition
holds no factor of its own. The rules re-compute Calculon (Isaev et al., "Calculon: a Methodology
and Tool for High-Level Co-Design of Systems and Large Language Models", SC '23).
"""

from __future__ import annotations

from dataclasses import dataclass

from perfdb_git.errors import NoEvidenceError
from perfdb_git.model.system_profile import SystemProfile
from perfdb_git.model.training import TrainingExecution, TrainingModel
from perfdb_git.model.training_estimate import (
    BatchTimes,
    BlockEstimate,
    Efficiency,
    TrainingEstimate,
)
from perfdb_git.operations.element_sizes import ELEMENT_BYTES
from perfdb_git.workloads.batch_times import batch_times, block_times
from perfdb_git.workloads.block_estimate import estimate_block
from perfdb_git.workloads.data_parallel import data_parallel_traffic
from perfdb_git.workloads.pipeline_schedule import Schedule, schedule_of
from perfdb_git.workloads.task_costs import TaskCosts
from perfdb_git.workloads.tensor_collectives import TensorCollectives
from perfdb_git.workloads.training_layers import Layer
from perfdb_git.workloads.training_memory import offload_bandwidth, training_memory
from perfdb_git.workloads.training_rules import (
    check_execution,
    check_fit,
    check_memory,
    check_networks,
)
from perfdb_git.workloads.transformer_block import block_layers

REVISION = 1
"""Raised whenever the same documents give another estimate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingPlan:
    """A model, an execution and a system that fit together, as layers and a schedule."""

    model: TrainingModel
    execution: TrainingExecution
    layers: tuple[Layer, ...]
    schedule: Schedule
    collectives: TensorCollectives

    @property
    def costs(self) -> TaskCosts:
        """Where every query goes."""
        return self.collectives.costs


def plan_training(
    model: TrainingModel, execution: TrainingExecution, profile: SystemProfile
) -> TrainingPlan:
    """Lay a model out on a system; nothing is asked yet.

    Raises
    ------
    InvalidInputError
        When the documents contradict themselves or each other.
    NoEvidenceError
        When the system has no rate for the dtype or no network for the groups.
    """
    check_execution(execution)
    check_fit(model, execution)
    costs = TaskCosts(profile, execution.dtype)
    check_networks(execution, costs)
    size = _element_bytes(execution.dtype)
    return TrainingPlan(
        model=model,
        execution=execution,
        layers=block_layers(model, execution, size),
        schedule=schedule_of(model, execution),
        collectives=TensorCollectives(execution.tensor_parallel, costs, size),
    )


def estimate_training(plan: TrainingPlan) -> TrainingEstimate:
    """Ask what every task costs, and compose the answers.

    Raises
    ------
    NoEvidenceError
        'no-rate' for a task that the system profile cannot answer, 'memory-too-small' for a
        batch that does not fit.
    """
    execution, schedule, costs = plan.execution, plan.schedule, plan.costs
    block = estimate_block(plan.model, execution, plan.layers, plan.collectives)
    memory = training_memory(execution, schedule, block.memory)
    passes = block_times(execution, block, costs)
    check_memory(costs.profile, memory)
    data = data_parallel_traffic(execution, schedule, block, passes, costs)
    times = batch_times(execution, schedule, block, passes, data)
    return TrainingEstimate(
        times=times,
        memory=memory,
        block=block,
        data_parallel=data,
        offload_bandwidth=offload_bandwidth(execution, block, passes),
        efficiency=_efficiency(plan, block, times),
        bound=costs.bound,
    )


def _efficiency(plan: TrainingPlan, block: BlockEstimate, times: BatchTimes) -> Efficiency:
    """Compare with a processor that does the same operations at its matrix engine's peak.

    Vector and optimizer operations count as useful, so these are not model FLOP utilisations.
    """
    useful = block.forward.operations + (
        block.activation_gradient.operations
        + block.weight_gradient.operations
        + block.optimizer.operations
    )
    runs = plan.schedule.blocks * plan.schedule.microbatches
    perfect = runs * useful / plan.costs.peak_operations_per_s
    busy = times.forward_s + times.backward_s + times.optimizer_s
    return Efficiency(
        useful_operations=useful,
        compute=perfect / busy,
        system=busy / times.total_s,
        total=perfect / times.total_s,
        samples_per_s=plan.execution.batch_size / times.total_s,
    )


def _element_bytes(dtype: str) -> int:
    size = ELEMENT_BYTES.get(dtype)
    if size is None or size != int(size):
        raise NoEvidenceError(
            f"no whole number of bytes is known for an element of {dtype}", code="no-element-size"
        )
    return int(size)

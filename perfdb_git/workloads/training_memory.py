"""Memory of one processor, with and without offload.

Source: Calculon (Isaev et al., SC '23); activations of the interleaved schedule as in
Korthikanti et al. (2022), section 4.
"""

from __future__ import annotations

from perfdb_git.model.training import TrainingExecution
from perfdb_git.model.training_estimate import (
    BlockEstimate,
    BlockMemory,
    MemoryUse,
    OffloadBandwidth,
    TrainingMemory,
)
from perfdb_git.workloads.batch_times import BlockTimes, offload_bytes
from perfdb_git.workloads.pipeline_schedule import Schedule

_DOUBLE_BUFFER = 2
"""Blocks that stay near while the rest is offloaded: the one at work and the next one."""


def training_memory(
    execution: TrainingExecution, schedule: Schedule, memory: BlockMemory
) -> TrainingMemory:
    """Return what one processor holds in a batch."""
    resident = _resident(execution, schedule, memory)
    near = _with_offload(execution, memory, resident)
    tier1, tier2 = _tiers(execution, schedule, memory, resident, near)
    return TrainingMemory(
        resident=resident, with_offload=near, tier1_bytes=tier1, tier2_bytes=tier2
    )


def _resident(execution: TrainingExecution, schedule: Schedule, memory: BlockMemory) -> MemoryUse:
    training, full = execution.training, execution.recompute == "full"
    activations = memory.working_activations_bytes
    if training and not full:
        copies = schedule.blocks * schedule.activation_copies
        activations += memory.stored_activations_bytes * (copies - 1)
    checkpoints = schedule.blocks * memory.checkpoint_bytes * schedule.activation_copies
    # The block at work has its gradients unsharded and in 32 bits, all others as they are sent.
    gradients = memory.full_weight_gradients_bytes + memory.weight_gradients_bytes * (
        schedule.blocks - 1
    )
    return MemoryUse(
        weights_bytes=memory.weights_bytes * schedule.blocks,
        activations_bytes=activations,
        checkpoints_bytes=checkpoints,
        activation_gradients_bytes=memory.activation_gradients_bytes,
        weight_gradients_bytes=gradients,
        optimizer_bytes=memory.optimizer_bytes * schedule.blocks,
    )


def _with_offload(
    execution: TrainingExecution, memory: BlockMemory, resident: MemoryUse
) -> MemoryUse:
    """Return what stays near when everything that can be offloaded is."""
    activations = memory.working_activations_bytes
    if execution.recompute != "full":
        activations += memory.stored_activations_bytes
    return MemoryUse(
        weights_bytes=memory.weights_bytes * _DOUBLE_BUFFER,
        activations_bytes=activations,
        checkpoints_bytes=(
            memory.checkpoint_bytes * _DOUBLE_BUFFER if execution.training else None
        ),
        activation_gradients_bytes=resident.activation_gradients_bytes,
        weight_gradients_bytes=(memory.full_weight_gradients_bytes + memory.weight_gradients_bytes),
        optimizer_bytes=memory.optimizer_bytes * _DOUBLE_BUFFER,
    )


def _tiers(
    execution: TrainingExecution,
    schedule: Schedule,
    memory: BlockMemory,
    resident: MemoryUse,
    near: MemoryUse,
) -> tuple[float, float]:
    """Return the bytes needed in the first and in the second memory."""
    offload, full = execution.offload, execution.recompute == "full"
    tier1 = near.weights_bytes if offload.weights else resident.weights_bytes
    tier2 = resident.weights_bytes if offload.weights else 0
    if offload.activations:
        tier1 += near.activations_bytes + (near.checkpoints_bytes or 0)
        tier2 += (resident.checkpoints_bytes or 0) if full else resident.activations_bytes
    else:
        tier1 += resident.activations_bytes + (resident.checkpoints_bytes or 0)
    if offload.optimizer:
        tier1 += near.weight_gradients_bytes + near.optimizer_bytes
        tier2 += memory.weight_gradients_bytes * schedule.blocks + resident.optimizer_bytes
    else:
        tier1 += resident.weight_gradients_bytes + resident.optimizer_bytes
    return tier1 + resident.activation_gradients_bytes, tier2


def offload_bandwidth(
    execution: TrainingExecution, block: BlockEstimate, times: BlockTimes
) -> OffloadBandwidth:
    """Return the bandwidth that would hide each kind of offload, whether asked for or not."""
    memory = block.memory
    forward = (
        min(times.base_forward.without_offload, times.edge_forward.without_offload)
        - block.forward.memory_time_s
    )
    traffic = block.activation_gradient.memory_time_s + block.weight_gradient.memory_time_s
    backward = (
        min(times.base_backward.without_offload, times.edge_backward.without_offload) - traffic
    )
    full = execution.recompute == "full"
    kept = memory.checkpoint_bytes if full else memory.stored_activations_bytes
    written, read = offload_bytes(execution, block)
    asked = _rate(written, forward)
    if execution.training and asked is not None:
        reading = _rate(read, backward)
        asked = None if reading is None else max(asked, reading)
    state = memory.weight_gradients_bytes + memory.optimizer_bytes
    return OffloadBandwidth(
        activations=_rate(kept, forward),
        weights=_rate(memory.weights_bytes, forward),
        optimizer=_rate(state, backward) if execution.training else 0,
        asked=asked,
    )


def _rate(size: float, seconds: float) -> float | None:
    return size / seconds if seconds > 0 else None

"""Times of a whole batch: pipeline messages, offload, the bubble, and the total.

Source: Calculon (Isaev et al., SC '23).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from perfdb_git.model.training import TrainingExecution
from perfdb_git.model.training_estimate import (
    BatchTimes,
    BlockEstimate,
    BlockTraffic,
    DataParallelTraffic,
)
from perfdb_git.workloads.pipeline_schedule import Schedule
from perfdb_git.workloads.task_costs import CollectiveQuery, OffloadQuery, TaskCosts

PIPELINE_PEERS = 2
"""A pipeline message goes from one processor to the next."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PassTime:
    """Seconds of one pass over one block: without offload, and what offload adds."""

    without_offload: float
    offload: float

    @property
    def seconds(self) -> float:
        """Both together."""
        return self.without_offload + self.offload


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockTimes:
    """Seconds of base and edge blocks in both directions, and of one pipeline message each."""

    base_forward: PassTime
    edge_forward: PassTime
    base_backward: PassTime
    edge_backward: PassTime
    forward_message: float
    backward_message: float


def offload_bytes(execution: TrainingExecution, block: BlockEstimate) -> tuple[float, float]:
    """Return the bytes that move to or from the second memory for a block, by direction.

    The forward pass writes activations while it reads weights, so the larger one counts; the
    backward pass reads what it needs one after the other.
    """
    memory, offload = block.memory, execution.offload
    full = execution.recompute == "full"
    kept = memory.checkpoint_bytes if full else memory.stored_activations_bytes
    weights = memory.weights_bytes if offload.weights else 0
    activations = kept if offload.activations else 0
    optimizer = memory.optimizer_bytes if offload.optimizer else 0
    backward = weights + activations + optimizer if execution.training else 0
    return max(weights, activations), backward


def pipeline_query(execution: TrainingExecution, message_bytes: float) -> CollectiveQuery:
    """Return the query for one message between two stages; it is asked even without a pipeline."""
    tier = execution.pipeline_parallel.network_tier
    return CollectiveQuery(tier, "send_recv", message_bytes, PIPELINE_PEERS)


def block_times(execution: TrainingExecution, block: BlockEstimate, costs: TaskCosts) -> BlockTimes:
    """Compose the passes over one block from its parts.

    Offload is hidden behind a pass except for its memory traffic, which offload needs for
    itself.
    """
    forward_message = costs.collective(pipeline_query(execution, block.pipeline_forward_bytes))
    backward_message = costs.collective(pipeline_query(execution, block.pipeline_backward_bytes))
    written, read = offload_bytes(execution, block)
    writing = costs.offload(OffloadQuery(written))
    reading = costs.offload(OffloadQuery(read)) if execution.training else 0

    def forward(traffic: BlockTraffic, message: float) -> PassTime:
        alone = block.forward.time_s + traffic.forward.exposed_s + message
        return _with_offload(alone, writing + block.forward.memory_time_s)

    def backward(traffic: BlockTraffic, message: float) -> PassTime:
        alone = block.recompute.time_s + traffic.recompute.exposed_s
        alone += block.activation_gradient.time_s + block.weight_gradient.time_s
        alone += traffic.activation_gradient.exposed_s + message
        return _with_offload(
            alone,
            reading + block.activation_gradient.memory_time_s + block.weight_gradient.memory_time_s,
        )

    return BlockTimes(
        base_forward=forward(block.base_traffic, 0),
        edge_forward=forward(block.edge_traffic, forward_message),
        base_backward=backward(block.base_traffic, 0),
        edge_backward=backward(block.edge_traffic, backward_message),
        forward_message=forward_message,
        backward_message=backward_message,
    )


def _with_offload(alone: float, needed: float) -> PassTime:
    return PassTime(without_offload=alone, offload=max(0, needed - alone))


def bubble_time(schedule: Schedule, times: BlockTimes) -> float:
    """Return the time that the first processor waits for the others.

    With p stages, v chunks, m microbatches and c seconds for a chunk in both directions it is
    (p - 1) c; (v - 1) (p - m mod p) c more where the last round of microbatches is not full, and
    a block's time less for each block that the last processors do not hold.
    Source: Narayanan et al. (SC '21), section 2.2, for the first term; Calculon for the others.
    """
    forward = schedule.per_chunk(times.base_forward.seconds, times.edge_forward.seconds)
    backward = schedule.per_chunk(times.base_backward.seconds, times.edge_backward.seconds)
    chunk = forward + backward
    if schedule.base_blocks > 0:
        # The block that is missing ends a chunk half of the time.
        block = (
            times.base_forward.seconds
            + times.edge_forward.seconds
            + times.base_backward.seconds
            + times.edge_backward.seconds
        ) / 2
    else:
        block = times.edge_forward.seconds + times.edge_backward.seconds
    waiting = (schedule.stages - 1) * chunk
    return waiting + (schedule.extra_bubbles * chunk - schedule.missing_blocks * block)


def batch_times(
    execution: TrainingExecution,
    schedule: Schedule,
    block: BlockEstimate,
    times: BlockTimes,
    data: DataParallelTraffic,
) -> BatchTimes:
    """Add up a batch.

    Parameters
    ----------
    execution : TrainingExecution
        Whether there is a backward pass.
    schedule : Schedule
        How often a block runs.
    block, times : BlockEstimate, BlockTimes
        One block and one microbatch.
    data : DataParallelTraffic
        Messages of the data group over the batch.
    """
    runs = schedule.blocks * schedule.microbatches
    link, exposed = _tensor_times(schedule, block)
    pipeline = _pipeline_time(execution, schedule, times)
    parts = {
        "forward_s": runs * block.forward.time_s,
        "backward_s": runs * block.activation_gradient.time_s + runs * block.weight_gradient.time_s,
        "optimizer_s": schedule.blocks * block.optimizer.time_s,
        "forward_offload_exposed_s": schedule.per_batch(
            times.base_forward.offload, times.edge_forward.offload
        ),
        "backward_offload_exposed_s": schedule.per_batch(
            times.base_backward.offload, times.edge_backward.offload
        ),
        "recompute_s": runs * block.recompute.time_s,
        "recommunication_exposed_s": exposed.repeated,
        "bubble_s": bubble_time(schedule, times),
        "tensor_exposed_s": exposed.once,
        "pipeline_exposed_s": pipeline,
        "data_exposed_s": data.exposed_s,
    }
    return BatchTimes(
        **parts,
        recommunication_link_s=link.repeated,
        tensor_link_s=link.once,
        pipeline_link_s=pipeline,
        data_link_s=data.link_s,
        total_s=math.fsum(parts.values()),
    )


class _TensorTime(NamedTuple):
    """Seconds of a batch for messages sent once in each direction, and for repeated ones."""

    once: float
    repeated: float


def _tensor_times(schedule: Schedule, block: BlockEstimate) -> tuple[_TensorTime, _TensorTime]:
    """Return the tensor group's seconds on the link, and those that are exposed."""
    base, edge = block.base_traffic, block.edge_traffic
    back, edge_back = base.activation_gradient, edge.activation_gradient
    link = _TensorTime(
        once=schedule.per_batch(base.forward.link_s, edge.forward.link_s)
        + schedule.per_batch(back.link_s, edge_back.link_s),
        repeated=schedule.per_batch(base.recompute.link_s, edge.recompute.link_s),
    )
    exposed = _TensorTime(
        once=schedule.per_batch(base.forward.exposed_s, edge.forward.exposed_s)
        + schedule.per_batch(back.exposed_s, edge_back.exposed_s),
        repeated=schedule.per_batch(base.recompute.exposed_s, edge.recompute.exposed_s),
    )
    return link, exposed


def _pipeline_time(execution: TrainingExecution, schedule: Schedule, times: BlockTimes) -> float:
    """Return the seconds of all pipeline messages: one a chunk, microbatch and direction."""
    if schedule.stages == 1:
        return 0
    hops = schedule.microbatches * schedule.chunks
    forward = hops * times.forward_message
    return forward + hops * times.backward_message if execution.training else forward

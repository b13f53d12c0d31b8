"""What a training estimate says: work and time of a block, of a batch, and the memory needed.

Times are seconds, sizes bytes, rates bytes per second; operations count a multiply-add as two.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PassWork:
    """One pass over one block and one microbatch.

    ``time_s`` is what the pass takes with compute and memory traffic combined as the system
    profile says; ``operations_time_s`` and ``memory_time_s`` are the two apart.
    """

    operations: float
    operations_time_s: float
    bytes_moved: float
    memory_time_s: float
    time_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorTraffic:
    """Messages of the tensor group in one pass: their size, their time, what is not hidden."""

    message_bytes: float
    link_s: float
    exposed_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockTraffic:
    """Traffic of the tensor group in the three passes that have any."""

    forward: TensorTraffic
    recompute: TensorTraffic
    activation_gradient: TensorTraffic


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockMemory:
    """Bytes that one block needs; stored activations are kept until the backward pass.

    ``full_weight_gradients_bytes`` are the gradients in 32 bits before they are reduced.
    """

    weights_bytes: float
    working_activations_bytes: float
    stored_activations_bytes: float
    checkpoint_bytes: float
    weight_gradients_bytes: float
    full_weight_gradients_bytes: float
    activation_gradients_bytes: float
    optimizer_bytes: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockEstimate:
    """One block and one microbatch on one processor.

    The last block of a chunk is the edge block, the others are base blocks: only the messages
    of the two differ.
    """

    forward: PassWork
    recompute: PassWork
    activation_gradient: PassWork
    weight_gradient: PassWork
    optimizer: PassWork
    base_traffic: BlockTraffic
    edge_traffic: BlockTraffic
    pipeline_forward_bytes: float
    pipeline_backward_bytes: float
    tensor_overlap_bandwidth: float
    memory: BlockMemory


@dataclass(frozen=True, slots=True, kw_only=True)
class DataParallelTraffic:
    """Messages of the data group in one batch; bandwidths are what full overlap would need."""

    block_bytes: float
    link_s: float
    exposed_s: float
    chunk_overlap_bandwidth: float
    tail_overlap_bandwidth: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryUse:
    """Bytes on one processor by what they hold; ``None`` where Calculon states nothing."""

    weights_bytes: float
    activations_bytes: float
    checkpoints_bytes: float | None
    activation_gradients_bytes: float
    weight_gradients_bytes: float
    optimizer_bytes: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingMemory:
    """Memory of one processor: all of it, what stays near with offload, and need by tier."""

    resident: MemoryUse
    with_offload: MemoryUse
    tier1_bytes: float
    tier2_bytes: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchTimes:
    """One batch on one processor; ``total_s`` is the sum of the parts that are not ``link``."""

    forward_s: float
    backward_s: float
    optimizer_s: float
    forward_offload_exposed_s: float
    backward_offload_exposed_s: float
    recompute_s: float
    recommunication_link_s: float
    recommunication_exposed_s: float
    bubble_s: float
    tensor_link_s: float
    tensor_exposed_s: float
    pipeline_link_s: float
    pipeline_exposed_s: float
    data_link_s: float
    data_exposed_s: float
    total_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class OffloadBandwidth:
    """Bytes per second that would hide an offload; ``None`` if no time is left to hide it in."""

    activations: float | None
    weights: float | None
    optimizer: float | None
    asked: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Efficiency:
    """Useful work against the peak, over compute time, over the batch, and both together."""

    useful_operations: float
    compute: float
    system: float
    total: float
    samples_per_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingEstimate:
    """One batch of a model under an execution on a system.

    ``bound`` says that the system profile leaves an efficiency or latency open, so that the
    times are lower bounds.
    """

    times: BatchTimes
    memory: TrainingMemory
    block: BlockEstimate
    data_parallel: DataParallelTraffic
    offload_bandwidth: OffloadBandwidth
    efficiency: Efficiency
    bound: bool

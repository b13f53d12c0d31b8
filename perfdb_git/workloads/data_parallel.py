"""Messages of the data group, and how much of them the backward pass hides.

Source: Calculon (Isaev et al., SC '23): chunks before the last one overlap with the
backward pass of one pipeline round each, the last chunk with its own blocks but the first.
"""

from __future__ import annotations

from dataclasses import dataclass

from perfdb_git.model.training import TrainingExecution
from perfdb_git.model.training_estimate import (
    BlockEstimate,
    BlockTraffic,
    DataParallelTraffic,
)
from perfdb_git.workloads.batch_times import BlockTimes
from perfdb_git.workloads.pipeline_schedule import Schedule
from perfdb_git.workloads.task_costs import CollectiveQuery, TaskCosts

_NOTHING = DataParallelTraffic(
    block_bytes=0, link_s=0, exposed_s=0, chunk_overlap_bandwidth=0, tail_overlap_bandwidth=0
)


def data_queries(execution: TrainingExecution, block: BlockEstimate) -> tuple[CollectiveQuery, ...]:
    """Return the queries for one block's gradients: two of them with a sharded optimizer."""
    data = execution.data_parallel
    if data.processors == 1 or not execution.training:
        return ()
    names = ("reduce_scatter", "all_gather") if data.optimizer_sharding else ("all_reduce",)
    return tuple(
        CollectiveQuery(data.network_tier, name, block.memory.weights_bytes, data.processors)
        for name in names
    )


def data_parallel_traffic(
    execution: TrainingExecution,
    schedule: Schedule,
    block: BlockEstimate,
    times: BlockTimes,
    costs: TaskCosts,
) -> DataParallelTraffic:
    """Return the data group's messages of one batch; there are none without training.

    Raises
    ------
    NoEvidenceError
        'no-rate' when the network has no factor for the collective.
    """
    queries = data_queries(execution, block)
    if not queries:
        return _NOTHING
    seconds: float = 0
    for query in queries:
        seconds += costs.collective(query)
    size = block.memory.weights_bytes
    link = schedule.blocks * seconds
    if not execution.data_parallel.overlap:
        return DataParallelTraffic(
            block_bytes=size,
            link_s=link,
            exposed_s=link,
            chunk_overlap_bandwidth=0,
            tail_overlap_bandwidth=0,
        )
    overlap = _Overlap(execution, schedule, block, times, costs, seconds)
    scalar: float = 0
    for query in queries:
        scalar += costs.network(query.tier).operations[query.operation].scalar
    chunk_size = schedule.blocks_per_chunk * size
    return DataParallelTraffic(
        block_bytes=size,
        link_s=link,
        # The first block's message has nothing left to hide behind.
        exposed_s=seconds + (overlap.chunks_exposed() + overlap.tail_exposed()),
        chunk_overlap_bandwidth=_bandwidth(chunk_size, overlap.chunk_window(), scalar),
        tail_overlap_bandwidth=_bandwidth(chunk_size, overlap.tail_window(), scalar),
    )


def _bandwidth(size: float, window: float, scalar: float) -> float:
    return size / window * scalar if window > 0 else 0


@dataclass(frozen=True, slots=True)
class _Overlap:
    """What the backward pass hides of messages that take ``seconds`` for each block."""

    execution: TrainingExecution
    schedule: Schedule
    block: BlockEstimate
    times: BlockTimes
    costs: TaskCosts
    seconds: float

    @property
    def _usage(self) -> float:
        return self.costs.processor_usage(self.execution.data_parallel.network_tier)

    @property
    def _sharded(self) -> bool:
        return self.execution.data_parallel.optimizer_sharding

    @property
    def _optimizer_slack(self) -> float:
        """Seconds of the optimizer step that are not memory traffic."""
        return self.block.optimizer.time_s - self.block.optimizer.memory_time_s

    def _window(self, traffic: BlockTraffic, seconds: float) -> float:
        """Return how long one block's backward pass leaves the data group's network alone."""
        block = self.block
        window = seconds - (
            block.activation_gradient.memory_time_s
            + block.weight_gradient.memory_time_s
            + block.recompute.memory_time_s
        )
        if not self._sharded:
            window += self._optimizer_slack
        data, tensor = self.execution.data_parallel, self.execution.tensor_parallel
        if data.network_tier == tensor.network_tier:
            window -= traffic.recompute.link_s + traffic.activation_gradient.link_s
        return window

    def _chunk_window(self) -> float:
        base = self._window(self.block.base_traffic, self.times.base_backward.seconds)
        edge = self._window(self.block.edge_traffic, self.times.edge_backward.seconds)
        return self.schedule.per_chunk(base, edge)

    def _arithmetic(self) -> float:
        """Return the seconds of arithmetic in one block that traffic slows down."""
        block = self.block
        seconds = block.activation_gradient.operations_time_s
        seconds += block.weight_gradient.operations_time_s
        seconds += block.recompute.operations_time_s
        return seconds if self._sharded else seconds + block.optimizer.operations_time_s

    def _colliding_messages(self) -> float:
        """Return how many pipeline messages meet one chunk's messages on the same network."""
        data, pipeline = self.execution.data_parallel, self.execution.pipeline_parallel
        if data.network_tier != pipeline.network_tier:
            return 0
        backward = self.schedule.per_chunk(
            self.times.base_backward.seconds, self.times.edge_backward.seconds
        )
        most = self.schedule.uneven_microbatches or self.schedule.stages
        return min(self._chunk_seconds() // backward, most)

    def _chunk_seconds(self) -> float:
        return self.schedule.blocks_per_chunk * self.seconds

    def _round(self) -> tuple[float, float]:
        """Return the window and the arithmetic of one chunk over one pipeline round."""
        stages = self.schedule.stages
        arithmetic = self.schedule.blocks_per_chunk * self._arithmetic()
        return stages * self._chunk_window(), stages * arithmetic

    def chunks_exposed(self) -> float:
        """Return the exposed seconds of all chunks but the last, (v - 1) times those of one.

        One chunk's messages take t, its window is w over a round of the pipeline, c pipeline
        messages of s seconds collide with them, and arithmetic of a seconds is slowed down by
        the usage u: exposed are t - (w - c s) + a u, or t u where that is not positive.
        """
        window, arithmetic = self._round()
        collisions = self._colliding_messages() * self.times.backward_message
        excess = self._chunk_seconds() - (window - collisions) + arithmetic * self._usage
        if excess > 0:
            return (self.schedule.chunks - 1) * excess
        return (self.schedule.chunks - 1) * self._chunk_seconds() * self._usage

    def chunk_window(self) -> float:
        """Return the seconds in which all chunks but the last could hide their messages."""
        window, arithmetic = self._round()
        seconds = window + arithmetic * self._usage
        data, pipeline = self.execution.data_parallel, self.execution.pipeline_parallel
        if data.network_tier == pipeline.network_tier:
            seconds -= self.times.backward_message
        return seconds * (self.schedule.chunks - 1)

    def _last_window(self) -> float:
        """Return the window of the last chunk, without its first block's half."""
        if self.schedule.base_blocks == 0:
            return 0
        times = self.times
        first = (times.base_backward.seconds + times.edge_backward.seconds) / 2
        window = self._chunk_window() - times.backward_message - first
        return window if self._sharded else window + self._optimizer_slack

    def tail_exposed(self) -> float:
        """Return the exposed seconds of the last chunk's messages but the first block's.

        They take t in a window w beside one block's arithmetic a: exposed are t + a u - w, or
        t u where that is not positive.
        """
        hidden = self.schedule.base_blocks * self.seconds
        excess = hidden + (self._arithmetic() * self._usage - self._last_window())
        return excess if excess > 0 else hidden * self._usage

    def tail_window(self) -> float:
        """Return the seconds in which the last chunk could hide its messages."""
        return self._last_window() + self.schedule.base_blocks * self.seconds * self._usage

"""Sums over the layers of one block, for one microbatch.

Source: Calculon (Isaev et al., SC '23). Layers are added in forward order, so that
the sums round as Calculon's do.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from perfdb_git.model.training import TrainingExecution, TrainingModel
from perfdb_git.model.training_estimate import (
    BlockEstimate,
    BlockMemory,
    BlockTraffic,
    PassWork,
    TensorTraffic,
)
from perfdb_git.workloads.task_costs import ComputeAnswer, ComputeQuery
from perfdb_git.workloads.tensor_collectives import (
    TENSOR_PASSES,
    TensorCollectives,
    TensorPass,
)
from perfdb_git.workloads.training_layers import Layer


@dataclass(slots=True)
class _Running:
    """Running totals of one pass."""

    operations: float = 0
    operations_time: float = 0
    bytes_moved: float = 0
    memory_time: float = 0
    time: float = 0

    def add(self, work: ComputeQuery, answer: ComputeAnswer) -> None:
        self.operations += work.operations
        self.operations_time += answer.compute
        self.bytes_moved += work.bytes_moved
        self.memory_time += answer.memory

    def add_totals(self, other: _Running) -> None:
        self.operations += other.operations
        self.operations_time += other.operations_time
        self.bytes_moved += other.bytes_moved
        self.memory_time += other.memory_time

    def frozen(self) -> PassWork:
        return PassWork(
            operations=self.operations,
            operations_time_s=self.operations_time,
            bytes_moved=self.bytes_moved,
            memory_time_s=self.memory_time,
            time_s=self.time,
        )


@dataclass(slots=True)
class _RunningTraffic:
    """Running totals of one pass's messages in one kind of block."""

    message_bytes: float = 0
    link: float = 0
    exposed: float = 0

    def frozen(self) -> TensorTraffic:
        return TensorTraffic(
            message_bytes=self.message_bytes, link_s=self.link, exposed_s=self.exposed
        )


class BlockSums:
    """Adds up the layers of one block.

    Parameters
    ----------
    collectives : TensorCollectives
        Answers for the tensor group's messages.
    training : bool
        Whether the backward pass and the optimizer run.
    """

    def __init__(self, collectives: TensorCollectives, *, training: bool) -> None:
        self._collectives = collectives
        self._costs = collectives.costs
        self._training = training
        self.forward = _Running()
        self.recompute = _Running()
        self.activation_gradient = _Running()
        self.weight_gradient = _Running()
        self.optimizer = _Running()
        self.overlap_bandwidth = 0.0
        self._traffic: dict[tuple[TensorPass, bool], _RunningTraffic] = {
            (which, edge): _RunningTraffic() for which in TENSOR_PASSES for edge in (False, True)
        }

    def add(self, layer: Layer) -> None:
        """Add one layer; the order of the calls is the forward order."""
        seconds, exposed = self._add_pass(self.forward, layer, layer.forward, "forward")
        self._add_traffic(layer, "forward", exposed)
        if not self._training:
            return
        if layer.keep.recompute:
            # Calculon adds the totals so far, not this layer's work; its times for overlapping
            # the data group depend on that, so the quirk is kept.
            self.recompute.add_totals(self.forward)
            self.recompute.time += seconds
        # A repeated message is as exposed as it was in the forward pass.
        self._add_traffic(layer, "recompute", exposed)
        which: TensorPass = "activation_gradient"
        _, exposed = self._add_pass(
            self.activation_gradient, layer, layer.activation_gradient, which
        )
        self._add_traffic(layer, which, exposed)
        # While weights learn, a tiled layer's repeated message is on the link.
        self._add_pass(self.weight_gradient, layer, layer.weight_gradient, "recompute")
        answer = self._costs.compute(layer.optimizer)
        self.optimizer.add(layer.optimizer, answer)
        self.optimizer.time += answer.latency

    def _add_pass(
        self, running: _Running, layer: Layer, work: ComputeQuery, which: TensorPass
    ) -> tuple[float, float | None]:
        """Add one pass; return its time, and what a tiled layer's message adds to it."""
        answer = self._costs.compute(work)
        running.add(work, answer)
        seconds, exposed = answer.latency, None
        if layer.tiled:
            message = self._collectives.message(layer, which, edge=False)
            seconds, exposed = self._collectives.tiled(work, message.seconds)
        elif layer.message is not None:
            # All the work of a collective counts as communication.
            seconds = 0.0
        running.time += seconds
        return seconds, exposed

    def _add_traffic(self, layer: Layer, which: TensorPass, exposed: float | None) -> None:
        if layer.message is None or (which == "recompute" and not layer.message.repeated):
            return
        for edge in (False, True):
            message = self._collectives.message(layer, which, edge=edge)
            running = self._traffic[which, edge]
            running.message_bytes += message.message_bytes
            running.link += message.seconds
            running.exposed += message.seconds if exposed is None else exposed
            if layer.tiled and which != "recompute":
                needed = self._collectives.hiding_bandwidth(layer, which, edge=edge)
                self.overlap_bandwidth = max(self.overlap_bandwidth, needed)

    def traffic(self, *, edge: bool) -> BlockTraffic:
        """Return the messages of a base block or of an edge block."""
        return BlockTraffic(
            forward=self._traffic["forward", edge].frozen(),
            recompute=self._traffic["recompute", edge].frozen(),
            activation_gradient=self._traffic["activation_gradient", edge].frozen(),
        )


def estimate_block(
    model: TrainingModel,
    execution: TrainingExecution,
    layers: Sequence[Layer],
    collectives: TensorCollectives,
) -> BlockEstimate:
    """Add up one block and one microbatch.

    Parameters
    ----------
    model, execution : TrainingModel, TrainingExecution
        Checked documents.
    layers : sequence of Layer
        The block's layers in forward order.
    collectives : TensorCollectives
        Answers for the tensor group's messages, and for everything else.
    """
    sums = BlockSums(collectives, training=execution.training)
    for layer in layers:
        sums.add(layer)
    forward_bytes = _pipeline_bytes(model, execution, collectives.element_bytes)
    return BlockEstimate(
        forward=sums.forward.frozen(),
        recompute=sums.recompute.frozen(),
        activation_gradient=sums.activation_gradient.frozen(),
        weight_gradient=sums.weight_gradient.frozen(),
        optimizer=sums.optimizer.frozen(),
        base_traffic=sums.traffic(edge=False),
        edge_traffic=sums.traffic(edge=True),
        pipeline_forward_bytes=forward_bytes,
        pipeline_backward_bytes=forward_bytes if execution.training else 0,
        tensor_overlap_bandwidth=sums.overlap_bandwidth,
        memory=_memory(model, execution, layers, collectives.element_bytes),
    )


def _activation_elements(model: TrainingModel, execution: TrainingExecution) -> int:
    return execution.microbatch_size * model.sequence_length * model.hidden_size


def _pipeline_bytes(model: TrainingModel, execution: TrainingExecution, element_bytes: int) -> int:
    """Return what a chunk hands to the next processor: split by token where it can be."""
    if execution.pipeline_parallel.processors == 1:
        return 0
    if execution.tensor_parallel.communication == "all_reduce":
        return _activation_elements(model, execution) * element_bytes
    tokens = execution.microbatch_size * model.sequence_length
    share = tokens // execution.tensor_parallel.processors
    return share * model.hidden_size * element_bytes


def _memory(
    model: TrainingModel,
    execution: TrainingExecution,
    layers: Iterable[Layer],
    element_bytes: int,
) -> BlockMemory:
    """Return the bytes that a block keeps; full recomputation keeps its input alone."""
    training, full = execution.training, execution.recompute == "full"
    weights = working = stored = gradients = full_gradients = 0.0
    activation_gradients = optimizer = 0.0
    for layer in layers:
        weights += layer.weights_bytes
        if not layer.keep.shares_input:
            working += layer.activations_bytes
        stored += layer.activations_bytes
        if training:
            stored -= 0 if layer.keep.output else layer.outputs_bytes
            stored -= 0 if layer.keep.activation else layer.activations_bytes
            gradients += layer.weight_gradients_bytes
            full_gradients += layer.full_weight_gradients_bytes
            activation_gradients += layer.activation_gradients_bytes
            optimizer += layer.optimizer_bytes
    checkpoint = _activation_elements(model, execution) * element_bytes
    return BlockMemory(
        weights_bytes=weights,
        working_activations_bytes=working,
        stored_activations_bytes=0 if full else stored,
        checkpoint_bytes=checkpoint if training and full else 0,
        weight_gradients_bytes=gradients,
        full_weight_gradients_bytes=full_gradients,
        activation_gradients_bytes=activation_gradients,
        optimizer_bytes=optimizer,
    )

"""Collectives of the tensor group: which operation, how long, and how much tiling hides.

Source: Calculon (Isaev et al., SC '23); the operations are Megatron's f and g
(Shoeybi et al., 2019) and their split forms (Korthikanti et al., 2022).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from perfdb_git.model.training import TensorParallelism
from perfdb_git.workloads.task_costs import CollectiveQuery, ComputeQuery, TaskCosts
from perfdb_git.workloads.training_layers import Layer, TensorMessage

TensorPass: TypeAlias = Literal["forward", "recompute", "activation_gradient"]
"""Passes in which the tensor group communicates; ``recompute`` repeats forward messages."""

TENSOR_PASSES: tuple[TensorPass, ...] = ("forward", "recompute", "activation_gradient")
"""All of them, in the order in which they happen."""


class Message(NamedTuple):
    """A layer's message in one pass: bytes and seconds on the link."""

    message_bytes: float
    seconds: float


class TiledTime(NamedTuple):
    """A tiled layer's pass: its own time, and the part of its message that is not hidden."""

    seconds: float
    exposed: float


_SILENT = Message(0, 0)


@dataclass(frozen=True, slots=True)
class TensorCollectives:
    """Answers for one tensor group.

    Parameters
    ----------
    group : TensorParallelism
        Processors, tier and form of communication.
    costs : TaskCosts
        Where every query goes.
    element_bytes : int
        Bytes of one element of a message.
    """

    group: TensorParallelism
    costs: TaskCosts
    element_bytes: int

    def query(self, layer: Layer, which: TensorPass, *, edge: bool) -> CollectiveQuery | None:
        """Return the query for a layer's message in a pass, or None where it sends none.

        With point-to-point pipelines of split activations only the edge block of a chunk uses
        the split collectives.
        """
        message = layer.message
        if message is None or self.group.processors == 1:
            return None
        if which == "recompute" and not message.repeated:
            return None
        operation = self._operation(message, which, edge)
        if operation is None:
            return None
        return CollectiveQuery(
            self.group.network_tier, operation, message.message_bytes, self.group.processors
        )

    def _operation(self, message: TensorMessage, which: TensorPass, edge: bool) -> str | None:
        gathers = (message.side == "column") == (which != "activation_gradient")
        form = self.group.communication
        split = form == "reduce_scatter_all_gather" or (
            form == "p2p_reduce_scatter_all_gather" and edge
        )
        if split:
            return "all_gather" if gathers else "reduce_scatter"
        return None if gathers else "all_reduce"

    def message(self, layer: Layer, which: TensorPass, *, edge: bool) -> Message:
        """Return bytes and link time of a layer's message in a pass.

        A reducing collective includes adding up what arrives, except when it is repeated.
        """
        if layer.message is None or self.group.processors == 1:
            return _SILENT
        query = self.query(layer, which, edge=edge)
        seconds = 0.0 if query is None else self.costs.collective(query)
        if not layer.tiled:
            # All its work is part of the communication: adding up, and moving what it sends.
            seconds += self._own_work(layer, which)
        elif query is not None:
            adding = self.adding(layer, which, query)
            seconds += 0.0 if adding is None else self.costs.compute(adding).compute
        return Message(0 if query is None else query.message_bytes, seconds)

    def adding(
        self, layer: Layer, which: TensorPass, query: CollectiveQuery
    ) -> ComputeQuery | None:
        """Return the query for adding up what a tiled layer's reduction receives.

        It is (p - 1) / p operations an element; a gathering has none, and Calculon leaves it
        out where a message is repeated.
        """
        if not layer.tiled or which == "recompute" or query.operation == "all_gather":
            return None
        p = query.participants
        return ComputeQuery("vector", query.message_bytes / self.element_bytes * (p - 1) / p, 0)

    def tiled(self, work: ComputeQuery, message_seconds: float) -> TiledTime:
        """Return a tiled layer's time for one pass, and the exposed part of its message.

        Of p tiles one computes alone and p - 1 run beside a message tile of t / p seconds,
        which slows arithmetic of f seconds down to f / (1 - u). Where the message tile is the
        longer one, (p - 1) (t - f / (1 - u)) / p are exposed; else it costs (p - 1) u t / p.
        ``pipe`` exposes the first message tile too, ``ring`` does not.
        """
        answer = self.costs.compute(work)
        if message_seconds == 0:
            return TiledTime(answer.latency, 0.0)
        usage = self.costs.processor_usage(self.group.network_tier)
        tiles = self.group.processors
        slowed = answer.compute / (1 - usage)
        message_tile = message_seconds / tiles
        excess = message_tile - slowed / tiles
        seconds, exposed = answer.latency / tiles, 0.0
        if excess > 0:
            seconds += (tiles - 1) * (self.costs.combined(slowed, answer.memory) / tiles)
            exposed = (tiles - 1) * excess
        else:
            seconds += (tiles - 1) * seconds + (tiles - 1) * message_tile * usage
        if self.group.overlap == "pipe":
            seconds += message_tile
            exposed += message_tile
        return TiledTime(seconds, exposed)

    def hiding_bandwidth(self, layer: Layer, which: TensorPass, *, edge: bool) -> float:
        """Return the bytes per second that would hide a tiled layer's message entirely."""
        query = self.query(layer, which, edge=edge)
        if not layer.tiled or query is None:
            return 0.0
        work = layer.forward if which == "forward" else layer.activation_gradient
        tiles = self.group.processors
        usage = self.costs.processor_usage(self.group.network_tier)
        slowed_tile = self.costs.compute(work).compute / (1 - usage) / tiles
        return query.message_bytes / tiles / slowed_tile

    def _own_work(self, layer: Layer, which: TensorPass) -> float:
        if which == "recompute":
            return 0.0
        work = layer.forward if which == "forward" else layer.activation_gradient
        return self.costs.compute(work).latency

"""Layers of a transformer block: the work of each pass, and the bytes that it keeps.

Operation counts and traffic follow Calculon's layer model (Isaev et al., SC '23;
released code at revision caa4b11), written anew from its formulas. Sizes given to the builder
are elements, those of a layer bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from perfdb_git.workloads.task_costs import ComputeQuery, Engine

Side: TypeAlias = Literal["column", "row"]
"""A tensor group splits a layer's weights by column before a row-wise one."""

ADAM_OPERATIONS = 11
"""Operations of one optimizer step for each parameter."""

WIDE_BYTES = 4
"""Bytes of the 32-bit copies that mixed-precision training keeps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorGroup:
    """The processors that share a layer's weights."""

    processors: int
    sequence_parallel: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorMessage:
    """What a layer exchanges in its tensor group; ``repeated`` is once more before its backward."""

    side: Side
    message_bytes: int
    repeated: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Keep:
    """What of a layer survives until the backward pass, and what is made again.

    ``shares_input`` says that another layer already holds the input in working memory.
    """

    recompute: bool = False
    shares_input: bool = False
    activation: bool = True
    output: bool = True


class Layer(NamedTuple):
    """One layer of a block on one processor, for one microbatch.

    ``message`` without ``tiled`` is a layer that only communicates: its own work counts as
    communication. ``tiled`` hides the message behind the layer's work, tile by tile.
    """

    name: str
    operation: str
    shape: Mapping[str, int]
    forward: ComputeQuery
    activation_gradient: ComputeQuery
    weight_gradient: ComputeQuery
    optimizer: ComputeQuery
    parameters: int
    optimizer_shards: int
    weights_bytes: int
    activations_bytes: float
    outputs_bytes: int
    weight_gradients_bytes: float
    full_weight_gradients_bytes: int
    activation_gradients_bytes: float
    optimizer_bytes: float
    keep: Keep
    message: TensorMessage | None = None
    tiled: bool = False


class _Operation(NamedTuple):
    """What a layer computes, with the arithmetic operations of its three passes."""

    name: str
    shape: Mapping[str, int]
    engine: Engine
    forward: float
    activation_gradient: float
    weight_gradient: float = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Elements:
    """Elements that a layer reads, writes, keeps and learns."""

    inputs: int
    outputs: int
    weights: int = 0
    activations: int
    gradients: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerBuilder:
    """Builds layers for one data type and one way of sharding the optimizer.

    Parameters
    ----------
    element_bytes : int
        Bytes of one element.
    optimizer_shards : int
        Processors that share one copy of the optimizer state.
    """

    element_bytes: int
    optimizer_shards: int

    def linear(self, name: str, m: int, k: int, n: int, keep: Keep) -> Layer:
        """Product of (m, k) activations and (k, n) weights: 2 m n k operations in each pass."""
        work = 2 * m * k * n
        sizes = _Elements(
            inputs=m * k, outputs=m * n, weights=k * n, activations=m * k, gradients=m * n
        )
        operation = _Operation("gemm", {"m": m, "n": n, "k": k}, "matrix", work, work, work)
        return self._layer(name, operation, sizes, keep)

    def batched_product(self, name: str, batch: int, m: int, k: int, n: int, keep: Keep) -> Layer:
        """``batch`` products of (m, k) and (k, n) activations; the backward pass has two each."""
        inputs, outputs = batch * (m * k + k * n), batch * m * n
        work = batch * 2 * m * k * n
        sizes = _Elements(inputs=inputs, outputs=outputs, activations=inputs, gradients=outputs)
        shape = {"batch": batch, "m": m, "n": n, "k": k}
        operation = _Operation("batched_gemm", shape, "matrix", work, 2 * work)
        return self._layer(name, operation, sizes, keep)

    def layer_norm(self, name: str, elements: int, hidden: int, keep: Keep) -> Layer:
        """Normalisation with learned scale and shift: 9, 14 and 7 operations an element."""
        sizes = _Elements(
            inputs=elements,
            outputs=elements,
            weights=2 * hidden,
            activations=elements,
            gradients=elements,
        )
        shape = {"elements": elements, "hidden_size": hidden}
        operation = _Operation(
            "layer_norm", shape, "vector", 9 * elements, 14 * elements, 7 * elements
        )
        return self._layer(name, operation, sizes, keep)

    def softmax(self, name: str, elements: int, keep: Keep) -> Layer:
        """Softmax: 5 operations an element forward, 8 backward, with the same traffic."""
        operation = _elementwise("softmax", elements, 5, 8)
        return self._layer(name, operation, _same(elements), keep)

    def dropout(self, name: str, elements: int, keep: Keep) -> Layer:
        """Dropout: one operation an element, and a mask of one byte each, all that is kept."""
        moved = 2 * elements * self.element_bytes + elements
        return self._layer(
            name,
            _elementwise("dropout", elements, 1, 1),
            _same(elements),
            keep,
            moved=(moved, moved),
            kept=(elements, elements),
        )

    def gelu(self, name: str, elements: int, keep: Keep, *, fused: bool) -> Layer:
        """GeLU: 8 operations an element forward, 13 backward; a fused one keeps nothing."""
        moved = 2 * elements * self.element_bytes
        kept = 0 if fused else elements * self.element_bytes
        return self._layer(
            name,
            _elementwise("gelu", elements, 8, 13),
            _same(elements),
            keep,
            moved=(moved, moved),
            kept=(kept, kept),
        )

    def residual(self, name: str, elements: int, keep: Keep) -> Layer:
        """Sum of two operands: one operation an element forward, two backward."""
        sizes = _Elements(
            inputs=2 * elements, outputs=elements, activations=2 * elements, gradients=elements
        )
        return self._layer(name, _elementwise("residual_add", elements, 1, 2), sizes, keep)

    def fork(self, name: str, elements: int, users: int, keep: Keep) -> Layer:
        """One activation for several users: free forward, a sum of gradients backward."""
        sizes = _Elements(inputs=elements, outputs=0, activations=elements, gradients=0)
        moved = (0, elements * self.element_bytes * (users + 1))
        shape = {"elements": elements, "users": users}
        operation = _Operation("fork", shape, "vector", 0, users * elements)
        return self._layer(name, operation, sizes, keep, moved=moved)

    def collective(
        self,
        name: str,
        elements: int,
        side: Side,
        keep: Keep,
        group: TensorGroup,
        *,
        repeated: bool,
    ) -> Layer:
        """The tensor group's own collective: the reducing side adds up what arrives.

        Without sequence parallelism the gathering side is the identity and touches no memory.
        """
        size = elements if group.processors > 1 else 0
        adding = size * (group.processors - 1) / group.processors if size else 0
        whole, split = size * self.element_bytes, group.sequence_parallel
        row = side == "row"
        share = whole / group.processors
        operation = _Operation(
            "collective_local_work",
            {"elements": elements, "participants": group.processors},
            "vector",
            adding if row else 0,
            0 if row else adding,
        )
        return self._layer(
            name,
            operation,
            _same(size),
            keep,
            moved=(2 * whole if row or split else 0, 0 if row and not split else 2 * whole),
            kept=(share, share) if split else (whole if row else 0, 0 if row else whole),
            message=TensorMessage(
                side=side, message_bytes=elements * self.element_bytes, repeated=repeated
            ),
        )

    def tiled_linear(
        self,
        name: str,
        product: tuple[int, int, int],
        side: Side,
        keep: Keep,
        group: TensorGroup,
        *,
        repeated: bool,
    ) -> Layer:
        """Product (m, k) by (k, n) of the whole group, cut in tiles that hide its collective."""
        m, k, n = product
        tiles = group.processors
        if side == "column":
            n //= tiles
            kept = (m * k // tiles, m * n) if group.sequence_parallel else (m * k, 0)
        else:
            k //= tiles
            # The gradient is there twice: once computed, once on its way to the others.
            kept = (m * k, 2 * (m * n // tiles)) if group.sequence_parallel else (0, 2 * m * n)
        work = 2 * m * k * n
        shape = {"m": m, "n": n, "k": k, "tiles": tiles}
        sizes = _Elements(
            inputs=m * k, outputs=m * n, weights=k * n, activations=kept[0], gradients=kept[1]
        )
        message = TensorMessage(
            side=side,
            message_bytes=m * (k if side == "column" else n) * self.element_bytes,
            repeated=repeated,
        )
        operation = _Operation("gemm", shape, "matrix", work, work, work)
        return self._layer(name, operation, sizes, keep, message=message, tiled=True)

    def _layer(
        self,
        name: str,
        operation: _Operation,
        sizes: _Elements,
        keep: Keep,
        *,
        moved: tuple[float, float] | None = None,
        kept: tuple[float, float] | None = None,
        message: TensorMessage | None = None,
        tiled: bool = False,
    ) -> Layer:
        """Count bytes; ``moved`` and ``kept`` replace what follows from the elements.

        They are bytes of the forward pass and of the activation gradient. The optimizer keeps
        two moments in 32 bits, and a 32-bit copy of narrower weights.
        """
        e, shards, weights = self.element_bytes, self.optimizer_shards, sizes.weights
        engine = operation.engine
        state = weights * 2 * WIDE_BYTES + (weights * WIDE_BYTES if e < WIDE_BYTES else 0)
        backward = (weights + sizes.activations + sizes.gradients) * e
        forward_moved, gradient_moved = moved or (
            (sizes.inputs + sizes.outputs + weights) * e,
            backward,
        )
        activations, gradients = kept or (sizes.activations * e, sizes.gradients * e)
        optimizer = state / shards
        return Layer(
            name=name,
            operation=operation.name,
            shape=operation.shape,
            forward=ComputeQuery(engine, operation.forward, forward_moved),
            activation_gradient=ComputeQuery(engine, operation.activation_gradient, gradient_moved),
            weight_gradient=ComputeQuery(
                engine, operation.weight_gradient, backward if weights else 0
            ),
            optimizer=ComputeQuery("vector", weights / shards * ADAM_OPERATIONS, optimizer),
            parameters=weights,
            optimizer_shards=shards,
            weights_bytes=weights * e,
            activations_bytes=activations,
            outputs_bytes=sizes.outputs * e,
            weight_gradients_bytes=weights * e / shards,
            full_weight_gradients_bytes=weights * WIDE_BYTES,
            activation_gradients_bytes=gradients,
            optimizer_bytes=optimizer,
            keep=keep,
            message=message,
            tiled=tiled,
        )


def _elementwise(name: str, elements: int, forward: int, backward: int) -> _Operation:
    """Return an operation with so many arithmetic operations an element in either direction."""
    shape = {"elements": elements}
    return _Operation(name, shape, "vector", forward * elements, backward * elements)


def _same(elements: int) -> _Elements:
    return _Elements(inputs=elements, outputs=elements, activations=elements, gradients=elements)

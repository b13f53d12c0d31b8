"""Layers of a transformer block: the work of each pass, and the bytes that it keeps.

Operation counts and traffic follow Calculon's layer model (Isaev et al., SC '23, section 2;
released code at revision caa4b11), written anew from its formulas. Sizes given to the builder
are elements, those of a layer bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
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
        shape = {"m": m, "n": n, "k": k}
        return self._layer(name, "gemm", shape, "matrix", (work, work, work), sizes, keep)

    def batched_product(self, name: str, batch: int, m: int, k: int, n: int, keep: Keep) -> Layer:
        """``batch`` products of (m, k) and (k, n) activations; the backward pass has two each."""
        inputs, outputs = batch * (m * k + k * n), batch * m * n
        work = batch * 2 * m * k * n
        sizes = _Elements(inputs=inputs, outputs=outputs, activations=inputs, gradients=outputs)
        shape = {"batch": batch, "m": m, "n": n, "k": k}
        return self._layer(name, "batched_gemm", shape, "matrix", (work, 2 * work, 0), sizes, keep)

    def layer_norm(self, name: str, elements: int, hidden: int, keep: Keep) -> Layer:
        """Normalisation with learned scale and shift: 9, 14 and 7 operations an element."""
        sizes = _Elements(
            inputs=elements,
            outputs=elements,
            weights=2 * hidden,
            activations=elements,
            gradients=elements,
        )
        work = (9 * elements, 14 * elements, 7 * elements)
        shape = {"elements": elements, "hidden_size": hidden}
        return self._layer(name, "layer_norm", shape, "vector", work, sizes, keep)

    def softmax(self, name: str, elements: int, keep: Keep) -> Layer:
        """Softmax: 5 operations an element forward, 8 backward, with the same traffic."""
        sizes = _same(elements)
        work = (5 * elements, 8 * elements, 0)
        return self._layer(name, "softmax", {"elements": elements}, "vector", work, sizes, keep)

    def dropout(self, name: str, elements: int, keep: Keep) -> Layer:
        """Dropout: one operation an element, and a mask of one byte each, all that is kept."""
        moved = 2 * elements * self.element_bytes + elements
        return self._layer(
            name,
            "dropout",
            {"elements": elements},
            "vector",
            (elements, elements, 0),
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
            "gelu",
            {"elements": elements},
            "vector",
            (8 * elements, 13 * elements, 0),
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
        work = (elements, 2 * elements, 0)
        return self._layer(
            name, "residual_add", {"elements": elements}, "vector", work, sizes, keep
        )

    def fork(self, name: str, elements: int, users: int, keep: Keep) -> Layer:
        """One activation for several users: free forward, a sum of gradients backward."""
        sizes = _Elements(inputs=elements, outputs=0, activations=elements, gradients=0)
        moved = (0, elements * self.element_bytes * (users + 1))
        shape = {"elements": elements, "users": users}
        work = (0, users * elements, 0)
        return self._layer(name, "fork", shape, "vector", work, sizes, keep, moved=moved)

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
        row = side == "row"
        touched = 2 * size * self.element_bytes
        split = group.sequence_parallel
        kept = size * self.element_bytes / group.processors
        moved = (touched if row or split else 0, touched if not row or split else 0)
        whole = size * self.element_bytes
        return self._layer(
            name,
            "tensor_collective",
            {"elements": elements, "participants": group.processors},
            "vector",
            (adding if row else 0, 0 if row else adding, 0),
            _same(size),
            keep,
            moved=moved,
            kept=(kept, kept) if split else (whole if row else 0, 0 if row else whole),
            message=TensorMessage(
                side=side,
                message_bytes=elements * self.element_bytes,
                repeated=repeated,
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
        if side == "column":
            n //= group.processors
        else:
            k //= group.processors
        tiles = group.processors
        if group.sequence_parallel:
            kept = (m * k // tiles, m * n) if side == "column" else (m * k, 2 * (m * n // tiles))
        else:
            kept = (m * k, 0) if side == "column" else (0, 2 * m * n)
        sizes = _Elements(
            inputs=m * k, outputs=m * n, weights=k * n, activations=kept[0], gradients=kept[1]
        )
        work = 2 * m * k * n
        message = TensorMessage(
            side=side,
            message_bytes=m * (k if side == "column" else n) * self.element_bytes,
            repeated=repeated,
        )
        shape = {"m": m, "n": n, "k": k, "tiles": tiles}
        return self._layer(
            name,
            "gemm",
            shape,
            "matrix",
            (work, work, work),
            sizes,
            keep,
            message=message,
            tiled=True,
        )

    def _layer(
        self,
        name: str,
        operation: str,
        shape: Mapping[str, int],
        engine: Engine,
        work: tuple[float, float, float],
        sizes: _Elements,
        keep: Keep,
        *,
        moved: tuple[float, float] | None = None,
        kept: tuple[float, float] | None = None,
        message: TensorMessage | None = None,
        tiled: bool = False,
    ) -> Layer:
        e, shards, weights = self.element_bytes, self.optimizer_shards, sizes.weights
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
            operation=operation,
            shape=shape,
            forward=ComputeQuery(engine, work[0], forward_moved),
            activation_gradient=ComputeQuery(engine, work[1], gradient_moved),
            weight_gradient=ComputeQuery(engine, work[2], backward if weights else 0),
            optimizer=ComputeQuery("vector", weights / shards * ADAM_OPERATIONS, optimizer),
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


def _same(elements: int) -> _Elements:
    return _Elements(inputs=elements, outputs=elements, activations=elements, gradients=elements)

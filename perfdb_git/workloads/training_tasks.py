"""Every task of a batch with its normalised query, its answer and how often it runs.

An estimate asks these queries and no others; a test holds the two lists together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from perfdb_git.model.training_estimate import TrainingEstimate
from perfdb_git.workloads.batch_times import offload_bytes, pipeline_query
from perfdb_git.workloads.data_parallel import data_queries
from perfdb_git.workloads.task_costs import (
    CollectiveQuery,
    ComputeQuery,
    OffloadQuery,
    TaskCosts,
    TaskQuery,
)
from perfdb_git.workloads.tensor_collectives import TENSOR_PASSES, TensorPass
from perfdb_git.workloads.training import TrainingPlan
from perfdb_git.workloads.training_layers import Layer

TaskPass: TypeAlias = Literal[
    "forward", "recompute", "activation_gradient", "weight_gradient", "backward", "optimizer"
]

OFFLOAD = "offload"
"""Operation of a transfer between the two memories."""

_OMITTED = {"omit_default": True}
"""Fields that do not apply to a query are left out of its JSON form."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NormalisedQuery:
    """What is asked about one task: the operation with its shape, and its size.

    ``engine``, ``operations`` and ``bytes_moved`` describe work of a processor;
    ``network_tier``, ``network``, ``participants`` and ``message_bytes`` a message;
    ``transfer_bytes`` a transfer between memories. ``None`` does not apply.
    """

    operation: str
    shape: Mapping[str, int]
    dtype: str
    device: str
    engine: str | None = field(default=None, metadata=_OMITTED)
    operations: float | None = field(default=None, metadata=_OMITTED)
    bytes_moved: float | None = field(default=None, metadata=_OMITTED)
    network_tier: int | None = field(default=None, metadata=_OMITTED)
    network: str | None = field(default=None, metadata=_OMITTED)
    participants: int | None = field(default=None, metadata=_OMITTED)
    message_bytes: float | None = field(default=None, metadata=_OMITTED)
    transfer_bytes: float | None = field(default=None, metadata=_OMITTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingTask:
    """One task of a batch on one processor.

    ``runs`` counts how often it runs in a batch, ``latency_s`` is one run alone: what overlaps
    with it is the composition's business. ``compute_s`` and ``memory_s`` are its two parts.
    """

    name: str
    phase: TaskPass
    query: NormalisedQuery
    runs: int
    latency_s: float
    compute_s: float | None = field(default=None, metadata=_OMITTED)
    memory_s: float | None = field(default=None, metadata=_OMITTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """A query of the estimate, before its answer is looked up."""

    name: str
    phase: TaskPass
    query: TaskQuery
    runs: int
    operation: str
    shape: Mapping[str, int]


def training_tasks(plan: TrainingPlan, estimate: TrainingEstimate) -> tuple[TrainingTask, ...]:
    """Return the tasks in the order of the block, then pipeline, data group and offload.

    Parameters
    ----------
    plan : TrainingPlan
        The plan that was estimated.
    estimate : TrainingEstimate
        Its estimate, which knows the sizes of whole blocks.
    """
    asked: list[_Asked] = []
    for layer in plan.layers:
        asked += _layer_work(plan, layer)
        asked += _layer_messages(plan, layer)
    asked += _block_messages(plan, estimate)
    asked += _offloads(plan, estimate)
    return tuple(_answered(item, plan.costs) for item in asked)


def _layer_work(plan: TrainingPlan, layer: Layer) -> Iterator[_Asked]:
    runs = plan.schedule.blocks * plan.schedule.microbatches
    training = plan.execution.training
    passes: tuple[tuple[TaskPass, ComputeQuery, int], ...] = (
        ("forward", layer.forward, runs),
        ("recompute", layer.forward, runs if training and layer.keep.recompute else 0),
        ("activation_gradient", layer.activation_gradient, runs if training else 0),
        ("weight_gradient", layer.weight_gradient, runs if training else 0),
        ("optimizer", layer.optimizer, plan.schedule.blocks if training else 0),
    )
    for phase, query, count in passes:
        if count and query.has_work:
            operation, shape = _pass_operation(layer, phase)
            yield _Asked(
                name=layer.name,
                phase=phase,
                query=query,
                runs=count,
                operation=operation,
                shape=shape,
            )


def _pass_operation(layer: Layer, phase: TaskPass) -> tuple[str, Mapping[str, int]]:
    """Return what a pass of a layer is, with the shape of that pass.

    The gradients of a matrix product are products themselves: (m, n) by (n, k) for the
    activations, (k, m) by (m, n) for the weights.
    """
    shape = layer.shape
    if phase in ("forward", "recompute"):
        return layer.operation, shape
    if phase == "optimizer":
        return "adam_step", {"parameters": layer.parameters, "shards": layer.optimizer_shards}
    if layer.operation == "gemm":
        m, n, k = shape["m"], shape["n"], shape["k"]
        turned = (m, k, n) if phase == "activation_gradient" else (k, n, m)
        return "gemm", {**shape, **dict(zip("mnk", turned, strict=True))}
    if layer.message is not None:
        return layer.operation, shape
    suffix = "gradient" if phase == "activation_gradient" else "weight_gradient"
    return f"{layer.operation}_{suffix}", shape


def _layer_messages(plan: TrainingPlan, layer: Layer) -> Iterator[_Asked]:
    passes = TENSOR_PASSES if plan.execution.training else TENSOR_PASSES[:1]
    for phase in passes:
        base = plan.collectives.query(layer, phase, edge=False)
        edge = plan.collectives.query(layer, phase, edge=True)
        chunks = plan.schedule.chunks * plan.schedule.microbatches
        if base == edge:
            yield from _message(plan, layer, phase, base, chunks * plan.schedule.blocks_per_chunk)
        else:
            yield from _message(plan, layer, phase, base, chunks * plan.schedule.base_blocks)
            yield from _message(plan, layer, phase, edge, chunks)


def _message(
    plan: TrainingPlan,
    layer: Layer,
    phase: TensorPass,
    query: CollectiveQuery | None,
    runs: int,
) -> Iterator[_Asked]:
    if query is None:
        return
    yield _collective(f"{layer.name}.message", phase, query, runs)
    adding = plan.collectives.adding(layer, phase, query)
    if adding is not None:
        yield _Asked(
            name=f"{layer.name}.message",
            phase=phase,
            query=adding,
            runs=runs,
            operation="reduction_add",
            shape={"participants": query.participants},
        )


def _block_messages(plan: TrainingPlan, estimate: TrainingEstimate) -> Iterator[_Asked]:
    execution, schedule = plan.execution, plan.schedule
    # Without a pipeline the composition still asks what a hop would cost; none is made.
    hops = schedule.chunks * schedule.microbatches if schedule.stages > 1 else 0
    forward = pipeline_query(execution, estimate.block.pipeline_forward_bytes)
    backward = pipeline_query(execution, estimate.block.pipeline_backward_bytes)
    yield _collective("pipeline.message", "forward", forward, hops)
    yield _collective("pipeline.message", "backward", backward, hops if execution.training else 0)
    for query in data_queries(execution, estimate.block):
        yield _collective("data.message", "backward", query, schedule.blocks)


def _offloads(plan: TrainingPlan, estimate: TrainingEstimate) -> Iterator[_Asked]:
    written, read = offload_bytes(plan.execution, estimate.block)
    runs = plan.schedule.blocks * plan.schedule.microbatches
    phases: tuple[tuple[TaskPass, float], ...] = (("forward", written), ("backward", read))
    for phase, size in phases:
        if size:
            yield _Asked(
                name="block.offload",
                phase=phase,
                query=OffloadQuery(size),
                runs=runs,
                operation=OFFLOAD,
                shape={},
            )


def _collective(name: str, phase: TaskPass, query: CollectiveQuery, runs: int) -> _Asked:
    return _Asked(
        name=name, phase=phase, query=query, runs=runs, operation=query.operation, shape={}
    )


def _answered(asked: _Asked, costs: TaskCosts) -> TrainingTask:
    query = asked.query
    compute = memory = None
    if isinstance(query, ComputeQuery):
        latency, compute, memory = costs.compute(query)
    elif isinstance(query, CollectiveQuery):
        latency = costs.collective(query)
    else:
        latency = costs.offload(query)
    return TrainingTask(
        name=asked.name,
        phase=asked.phase,
        query=_normalised(asked, costs),
        runs=asked.runs,
        latency_s=latency,
        compute_s=compute,
        memory_s=memory,
    )


def _normalised(asked: _Asked, costs: TaskCosts) -> NormalisedQuery:
    query, device = asked.query, costs.profile.device
    if isinstance(query, ComputeQuery):
        return NormalisedQuery(
            operation=asked.operation,
            shape=asked.shape,
            dtype=costs.dtype,
            device=device,
            engine=query.engine,
            operations=query.operations,
            bytes_moved=query.bytes_moved,
        )
    if isinstance(query, CollectiveQuery):
        return NormalisedQuery(
            operation=asked.operation,
            shape=asked.shape,
            dtype=costs.dtype,
            device=device,
            network_tier=query.tier,
            network=costs.network(query.tier).name,
            participants=query.participants,
            message_bytes=query.message_bytes,
        )
    return NormalisedQuery(
        operation=asked.operation,
        shape=asked.shape,
        dtype=costs.dtype,
        device=device,
        transfer_bytes=query.transfer_bytes,
    )

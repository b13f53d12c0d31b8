"""What must hold between a model, an execution and a system before a batch can be estimated.

A contradiction inside the two documents is invalid input; what the system cannot do is a refusal.
Source: the assertions of Calculon (Isaev et al., SC '23, released code at revision caa4b11).
"""

from __future__ import annotations

from collections.abc import Iterator

from perfdb_git.errors import InvalidInputError, NoEvidenceError
from perfdb_git.model.system_profile import SystemProfile
from perfdb_git.model.training import TrainingExecution, TrainingModel
from perfdb_git.model.training_estimate import TrainingMemory
from perfdb_git.providers.roofline import MAIN_MEMORY, can_fill
from perfdb_git.workloads.task_costs import OFFLOAD_MEMORY, TaskCosts

_GIB = 2**30


def check_execution(execution: TrainingExecution) -> None:
    """Refuse an execution that contradicts itself.

    Raises
    ------
    InvalidInputError
        'inconsistent-execution', with the first contradiction.
    """
    for fault in _execution_faults(execution):
        raise _inconsistent(execution, fault)


def check_fit(model: TrainingModel, execution: TrainingExecution) -> None:
    """Refuse a model that cannot be split as the execution says.

    Raises
    ------
    InvalidInputError
        'inconsistent-execution', with the first thing that does not divide.
    """
    for fault in _fit_faults(model, execution):
        raise _inconsistent(execution, fault)


def _inconsistent(execution: TrainingExecution, fault: str) -> InvalidInputError:
    return InvalidInputError(
        fault, code="inconsistent-execution", document=f"execution {execution.name}"
    )


def _execution_faults(execution: TrainingExecution) -> Iterator[str]:
    tensor, pipeline = execution.tensor_parallel, execution.pipeline_parallel
    data = execution.data_parallel
    product = tensor.processors * pipeline.processors * data.processors
    if product != execution.processors:
        yield (
            f"tensor x pipeline x data = {tensor.processors} x {pipeline.processors} x "
            f"{data.processors} = {product}, but there are {execution.processors} processors"
        )
    if execution.batch_size % (data.processors * execution.microbatch_size):
        yield (
            f"batch size {execution.batch_size} does not divide into {data.processors} data-"
            f"parallel shares of microbatches of {execution.microbatch_size}"
        )
    if pipeline.processors == 1 and pipeline.interleaving != 1:
        yield "interleaving needs a pipeline"
    if tensor.overlap != "none" and tensor.processors == 1:
        yield "tensor overlap needs more than one tensor-parallel processor"
    if tensor.repeat_all_gather and not execution.sequence_parallel:
        yield "repeat_all_gather needs reduce_scatter_all_gather communication"
    if tensor.repeat_all_gather and execution.recompute == "full":
        yield "full recomputation gathers again anyway: set repeat_all_gather to false"
    if data.processors == 1 and (data.overlap or data.optimizer_sharding):
        yield "data overlap and optimizer sharding need more than one data-parallel processor"
    if not execution.training:
        yield from _inference_faults(execution)


def _inference_faults(execution: TrainingExecution) -> Iterator[str]:
    if execution.recompute != "none":
        yield "without training nothing is recomputed"
    if execution.data_parallel.overlap:
        yield "without training there are no data-parallel messages to overlap"
    if execution.offload.optimizer:
        yield "without training there is no optimizer to offload"


def _fit_faults(model: TrainingModel, execution: TrainingExecution) -> Iterator[str]:
    tensor, pipeline = execution.tensor_parallel, execution.pipeline_parallel
    for name, size in (
        ("hidden size", model.hidden_size),
        ("feed-forward size", model.feedforward_size),
        ("attention heads", model.attention_heads),
    ):
        if size % tensor.processors:
            yield f"{name} {size} does not divide by {tensor.processors} tensor-parallel processors"
    tokens = execution.microbatch_size * model.sequence_length
    if tensor.communication != "all_reduce" and tokens % tensor.processors:
        yield (
            f"{tokens} tokens of a microbatch do not divide by {tensor.processors} "
            "tensor-parallel processors"
        )
    blocks = -(-model.blocks // pipeline.processors)
    if blocks % pipeline.interleaving:
        yield f"{blocks} blocks a processor do not divide into {pipeline.interleaving} chunks"
    offload = execution.offload
    if (offload.weights or offload.activations or offload.optimizer) and blocks < 3:
        yield f"offload needs at least 3 blocks a processor, there are {blocks}"


def check_networks(execution: TrainingExecution, costs: TaskCosts) -> None:
    """Refuse groups that a network tier cannot hold, or would leave partly empty.

    Raises
    ------
    InvalidInputError
        'unknown-tier' for a tier that the profile does not have.
    NoEvidenceError
        'no-network' when a tier is too small, 'network-not-filled' when one that is only used
        whole would be used in part.
    """
    sizes: dict[int, int] = {}
    groups = (
        execution.tensor_parallel,
        execution.pipeline_parallel,
        execution.data_parallel,
    )
    for group in groups:
        costs.network(group.network_tier)
        if group.processors > 1:
            tier = group.network_tier
            sizes[tier] = sizes.get(tier, 1) * group.processors
    for tier, size in sorted(sizes.items()):
        network = costs.network(tier)
        where = f"network tier {tier} ({network.name}) of profile {costs.profile.name}"
        if size > network.size:
            raise NoEvidenceError(
                f"{where} holds {network.size} processors, not {size}", code="no-network"
            )
        if not can_fill(network, size):
            raise NoEvidenceError(
                f"{where} must be filled: {size} processors do not divide its {network.size}",
                code="network-not-filled",
            )


def check_memory(profile: SystemProfile, memory: TrainingMemory) -> None:
    """Refuse a batch that does not fit; an unknown capacity refuses nothing.

    Raises
    ------
    NoEvidenceError
        'memory-too-small', with what is needed and what there is.
    """
    for name, needed in ((MAIN_MEMORY, memory.tier1_bytes), (OFFLOAD_MEMORY, memory.tier2_bytes)):
        if needed == 0:
            continue
        capacity = profile.memories[name].capacity_gib
        if capacity is not None and needed > capacity * _GIB:
            raise NoEvidenceError(
                f"memory {name} of profile {profile.name} holds {capacity:g} GiB, "
                f"the batch needs {needed / _GIB:.4g} GiB",
                code="memory-too-small",
                remedy="shard, recompute or offload more, or take smaller microbatches",
            )

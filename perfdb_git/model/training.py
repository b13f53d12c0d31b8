"""What a training estimate starts from: a transformer, and how it is spread over processors.

The fields are those of Calculon's model and execution files (Isaev et al., SC '23), under the
names that this package uses.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Recompute: TypeAlias = Literal["none", "attention", "full"]
TensorCommunication: TypeAlias = Literal[
    "all_reduce", "p2p_reduce_scatter_all_gather", "reduce_scatter_all_gather"
]
TensorOverlap: TypeAlias = Literal["none", "ring", "pipe"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingModel:
    """A transformer of equal blocks; sizes in elements, ``sequence_length`` in tokens."""

    schema: str
    name: str
    hidden_size: int
    feedforward_size: int
    sequence_length: int
    attention_heads: int
    head_size: int
    blocks: int
    source: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorParallelism:
    """The tensor group, and how its messages are made and hidden.

    Tier 0 is the nearest network of a system profile, here and below.
    ``repeat_all_gather`` drops gathered activations after the forward pass and gathers them
    again in the backward pass.
    """

    processors: int
    network_tier: int
    communication: TensorCommunication
    overlap: TensorOverlap
    repeat_all_gather: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineParallelism:
    """The pipeline group; each processor holds ``interleaving`` chunks of blocks."""

    processors: int
    network_tier: int
    interleaving: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DataParallelism:
    """The data group; ``overlap`` hides its messages behind the backward pass."""

    processors: int
    network_tier: int
    overlap: bool
    optimizer_sharding: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Offload:
    """What is kept in the second memory (``mem2``) while it is not needed."""

    weights: bool
    activations: bool
    optimizer: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingExecution:
    """One batch of a model on ``processors`` devices.

    ``batch_size`` counts sequences over all processors, ``microbatch_size`` those that one
    processor takes at once. Without ``training`` only the forward pass runs.
    """

    schema: str
    name: str
    processors: int
    batch_size: int
    microbatch_size: int
    dtype: str
    training: bool
    attention: Literal["multihead", "multiquery"]
    fused_activation: bool
    recompute: Recompute
    tensor_parallel: TensorParallelism
    pipeline_parallel: PipelineParallelism
    data_parallel: DataParallelism
    offload: Offload
    source: str | None = None

    @property
    def microbatches(self) -> int:
        """Microbatches that one pipeline runs for one batch."""
        return self.batch_size // self.data_parallel.processors // self.microbatch_size

    @property
    def sequence_parallel(self) -> bool:
        """Whether the tensor group splits activations by token between its collectives."""
        return self.tensor_parallel.communication == "reduce_scatter_all_gather"

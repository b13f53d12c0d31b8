"""What an inference estimate starts from: a decoder-only transformer of equal, dense blocks.

Sizes are those of the whole model, not of one rank of a tensor group.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

TRANSFORMER_MODEL_SCHEMA = "perfdb/transformer-model/v1"

NormKind: TypeAlias = Literal["rms", "layer"]
Activation: TypeAlias = Literal["silu_mul", "gelu", "silu", "relu"]
BlockKind: TypeAlias = Literal["sequential", "parallel"]
PositionKind: TypeAlias = Literal["rotary", "none"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TransformerModel:
    """A decoder-only transformer of equal, dense blocks.

    Parameters
    ----------
    hidden_size, feedforward_size, head_size : int
        Elements of one token's vector between layers, inside the feed-forward layers, in one head.
    blocks : int
        Transformer blocks.
    query_heads, kv_heads : int
        Attention heads; fewer key-value heads than query heads is grouped-query attention.
    vocabulary_size : int
        Rows of the embedding table and columns of the logits, padding included.
    norm : str
        The normalisation before attention, before the feed-forward layers and at the end.
    activation : str
        ``silu_mul`` is gated: the projection before it makes both of its inputs.
    block : str
        ``sequential``: attention, then feed-forward, each with its norm. ``parallel``: both read
        the same normalised input.
    position : str
        ``rotary`` embeds positions in queries and keys of every block.
    dtype : str or None
        Canonical element type of the weights; ``None`` leaves it to the question.
    """

    schema: str
    name: str
    hidden_size: int
    feedforward_size: int
    blocks: int
    query_heads: int
    kv_heads: int
    head_size: int
    vocabulary_size: int
    norm: NormKind
    activation: Activation
    block: BlockKind
    position: PositionKind
    dtype: str | None = None
    source: str | None = None

    def __post_init__(self) -> None:
        if self.query_heads % self.kv_heads:
            raise ValueError(
                f"{self.query_heads} query heads do not share {self.kv_heads} kv heads evenly"
            )

    @property
    def is_gated(self) -> bool:
        """Whether the first feed-forward projection makes a gate as well."""
        return self.activation == "silu_mul"

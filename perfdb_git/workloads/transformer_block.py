"""The task list of one transformer block on one processor.

Source: Megatron's tensor-parallel block (Shoeybi et al., 2019, section 3) with sequence
parallelism and selective recomputation (Korthikanti et al., 2022), layer by layer as Calculon
(Isaev et al., SC '23) counts them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from perfdb_git.model.training import TrainingExecution, TrainingModel
from perfdb_git.workloads.training_layers import Keep, Layer, LayerBuilder, Side, TensorGroup


def block_layers(
    model: TrainingModel, execution: TrainingExecution, element_bytes: int
) -> tuple[Layer, ...]:
    """Return the layers of one block in forward order.

    Parameters
    ----------
    model : TrainingModel
        Its sizes divide by the tensor group.
    execution : TrainingExecution
        How the block is split, recomputed and fused.
    element_bytes : int
        Bytes of one element of the execution's dtype.
    """
    data = execution.data_parallel
    builder = LayerBuilder(
        element_bytes=element_bytes,
        optimizer_shards=data.processors if data.optimizer_sharding else 1,
    )
    block = _Block(model, execution, builder)
    return (*block.attention(), *block.feed_forward())


@dataclass(frozen=True, slots=True)
class _Block:
    model: TrainingModel
    execution: TrainingExecution
    build: LayerBuilder

    @property
    def _group(self) -> TensorGroup:
        return TensorGroup(
            processors=self.execution.tensor_parallel.processors,
            sequence_parallel=self.execution.sequence_parallel,
        )

    @property
    def _tokens(self) -> int:
        return self.execution.microbatch_size * self.model.sequence_length

    @property
    def _elements(self) -> int:
        """Activation elements of one microbatch."""
        return self._tokens * self.model.hidden_size

    @property
    def _share(self) -> int:
        """Activation elements that a processor holds outside the tensor-parallel layers."""
        if not self.execution.sequence_parallel:
            return self._elements
        return self._tokens // self._group.processors * self.model.hidden_size

    @property
    def _full(self) -> bool:
        return self.execution.recompute == "full"

    @property
    def _tiled(self) -> bool:
        return self.execution.tensor_parallel.overlap != "none"

    def attention(self) -> Iterator[Layer]:
        """Yield the attention half."""
        yield from self._entry("attention")
        yield from self._projections()
        yield from self._scores()
        width = self.model.attention_heads * self.model.head_size
        yield from self._row("attention", "output", width)
        yield from self._exit("attention")

    def feed_forward(self) -> Iterator[Layer]:
        """Yield the feed-forward half."""
        model, full = self.model, self._full
        again = full or self.execution.tensor_parallel.repeat_all_gather
        yield from self._entry("mlp")
        product = (self._tokens, model.hidden_size, model.feedforward_size)
        if self._tiled:
            yield self._tile("mlp.up", product, "column", again)
        else:
            yield self._collective("mlp.gather", "column", again)
            yield self._linear("mlp.up", product, Keep(recompute=full, activation=not again))
        elements = model.feedforward_size * self._tokens // self._group.processors
        fused = self.execution.fused_activation
        yield self.build.gelu("mlp.gelu", elements, Keep(recompute=full), fused=fused)
        yield from self._row("mlp", "down", model.feedforward_size)
        yield from self._exit("mlp")

    def _entry(self, half: str) -> Iterator[Layer]:
        keep = Keep(recompute=self._full)
        yield self.build.fork(f"{half}.fork", self._share, 2, keep)
        # The fork before it holds the input for the residual path already.
        shared = Keep(recompute=self._full, activation=False, shares_input=True)
        yield self.build.layer_norm(f"{half}.norm", self._share, self.model.hidden_size, shared)

    def _exit(self, half: str) -> Iterator[Layer]:
        yield self.build.dropout(f"{half}.dropout", self._share, Keep(recompute=self._full))
        shared = Keep(recompute=self._full, activation=False, shares_input=True)
        yield self.build.residual(f"{half}.residual", self._share, shared)

    def _projections(self) -> Iterator[Layer]:
        """Yield the query, key and value projections with the collective before them."""
        model = self.model
        again = self._attention_again or self.execution.tensor_parallel.repeat_all_gather
        width = model.attention_heads * model.head_size
        several = self.execution.attention == "multihead"
        if self._tiled and several:
            product = (self._tokens, model.hidden_size, 3 * width)
            yield self._tile("attention.qkv", product, "column", again)
            return
        query = (self._tokens, model.hidden_size, width)
        if self._tiled:
            yield self._tile("attention.query", query, "column", again)
        else:
            yield self._collective("attention.gather", "column", again)
        fork_keep = Keep(recompute=again, activation=not again)
        users = 2 if self._tiled else 3
        yield self.build.fork("attention.projection_fork", self._elements, users, fork_keep)
        shared = Keep(recompute=self._full, activation=False, shares_input=True)
        if not self._tiled:
            yield self._linear("attention.query", query, shared)
        for name in ("attention.key", "attention.value"):
            if several:
                yield self._linear(name, query, shared)
            else:
                yield self.build.linear(
                    name, self._tokens, model.hidden_size, model.head_size, shared
                )

    def _scores(self) -> Iterator[Layer]:
        """Yield the products of queries, keys and values with the softmax between them."""
        model, again = self.model, self._attention_again
        length, size = model.sequence_length, model.head_size
        processors = self._group.processors
        batch = self.execution.microbatch_size * model.attention_heads // processors
        keep = Keep(recompute=again, output=not again)
        pairs = model.attention_heads // processors * length**2 * self.execution.microbatch_size
        yield self.build.batched_product("attention.scores", batch, length, size, length, keep)
        yield self.build.softmax("attention.softmax", pairs, keep)
        masked = Keep(recompute=again, activation=not again)
        yield self.build.dropout("attention.score_dropout", pairs, masked)
        yield self.build.batched_product(
            "attention.values", batch, length, length, size, Keep(recompute=self._full)
        )

    def _row(self, half: str, name: str, width: int) -> Iterator[Layer]:
        """Yield the row-wise product back to the hidden size, and the collective after it."""
        keep = Keep(recompute=self._full)
        if self._tiled:
            product = (self._tokens, width, self.model.hidden_size)
            yield self._tile(f"{half}.{name}", product, "row", self._full)
            return
        share = width // self._group.processors
        yield self.build.linear(f"{half}.{name}", self._tokens, share, self.model.hidden_size, keep)
        yield self._collective(f"{half}.reduce", "row", self._full)

    @property
    def _attention_again(self) -> bool:
        return self.execution.recompute != "none"

    def _linear(self, name: str, product: tuple[int, int, int], keep: Keep) -> Layer:
        m, k, n = product
        return self.build.linear(name, m, k, n // self._group.processors, keep)

    def _tile(self, name: str, product: tuple[int, int, int], side: Side, repeated: bool) -> Layer:
        keep = Keep(recompute=self._full)
        return self.build.tiled_linear(name, product, side, keep, self._group, repeated=repeated)

    def _collective(self, name: str, side: Side, repeated: bool) -> Layer:
        # What goes into a reduction is not kept; nothing of a collective is recomputed, it is
        # sent again.
        keep = Keep(activation=side == "column")
        return self.build.collective(
            name, self._elements, side, keep, self._group, repeated=repeated
        )

"""Inference as tasks: every kernel of one rank, as a query in the vocabulary's terms.

The tasks are those that serving systems run and Vidur profiles (Agrawal et al., "Vidur: A
Large-Scale Simulation Framework For LLM Inference", MLSys 2024, section 4.1), with the embedding
and the logits, which it leaves out. T stands for the new tokens of a pass, over all sequences; h,
f, d and V for hidden, feed-forward, head and vocabulary size; p for the ranks; a and g for the
query and key-value heads of one rank.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from perfdb_git.errors import UsageError
from perfdb_git.model.plan import PlanQuery
from perfdb_git.model.transformer import TransformerModel
from perfdb_git.model.values import Scalar
from perfdb_git.operations.element_sizes import ELEMENT_BYTES
from perfdb_git.workloads.inference_setting import (
    InferenceSetting,
    Pass,
    QueryContext,
    RankShape,
)

_COLLECTIVES = frozenset(["all_reduce", "all_gather"])


def inference_tasks(
    model: TransformerModel, setting: InferenceSetting, context: QueryContext
) -> tuple[PlanQuery, ...]:
    """Return every task of one phase on one rank; nothing is asked yet.

    Parameters
    ----------
    model : TransformerModel
        The whole model.
    setting : InferenceSetting
        Phase, tokens and ranks.
    context : QueryContext
        Device, runtime and topology of the queries.

    Returns
    -------
    tuple of PlanQuery
        In the order of the work; passes with equally many new tokens share their tasks, except
        for attention.

    Raises
    ------
    UsageError
        'does-not-divide', 'no-element-size', or what `InferenceSetting.passes` raises.
    """
    passes = setting.passes()
    counts: dict[int, int] = {}
    for one in passes:
        counts[one.query_length] = counts.get(one.query_length, 0) + 1
    layout = _Layout(model, setting, RankShape.of(model, setting.tensor_parallel))
    tasks: list[_Task] = []
    for place, (length, count) in enumerate(counts.items()):
        same = [one for one in passes if one.query_length == length]
        tasks += _pass_tasks(layout, same, count, suffix="-last" if place else "")
    tasks += layout.logits()
    return tuple(task.query(context) for task in tasks)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Task:
    name: str
    operation: str
    shape: Mapping[str, Scalar]
    runs: int
    notes: str | None = None

    def query(self, context: QueryContext) -> PlanQuery:
        stated = context.of(self.operation, is_collective=self.operation in _COLLECTIVES)
        values = {"operation": self.operation, **stated, **self.shape}
        return PlanQuery(
            name=self.name,
            query={name: value for name, value in values.items() if value is not None},
            multiplicity=self.runs,
            notes=self.notes,
        )


def _pass_tasks(layout: _Layout, passes: list[Pass], count: int, *, suffix: str) -> Iterator[_Task]:
    """Yield the tasks of passes with equally many new tokens, attention by its cached length."""
    tokens = layout.setting.batch_size * passes[0].query_length
    yield from layout.embedding(tokens, count, suffix)
    yield from layout.before_attention(tokens, count, suffix)
    for one in passes:
        yield layout.attention(one, is_only=layout.setting.chunk is None)
    yield from layout.after_attention(tokens, count, suffix)


class _Layout:
    """Shapes of the tasks of one rank."""

    def __init__(self, model: TransformerModel, setting: InferenceSetting, rank: RankShape) -> None:
        self.setting = setting
        self._model = model
        self._rank = rank
        self._element_bytes = _whole_bytes(setting.dtype)

    def embedding(self, tokens: int, count: int, suffix: str) -> Iterator[_Task]:
        """Yield the look-up of T rows among V / p, and the sum of all ranks' rows."""
        shape = {
            "tokens": tokens,
            "hidden_size": self._model.hidden_size,
            "vocabulary_size": self._rank.vocabulary_size,
        }
        yield _Task(name=f"embedding{suffix}", operation="embedding", shape=shape, runs=count)
        if self.setting.tensor_parallel > 1:
            yield self._all_reduce("embedding-all-reduce", tokens, count, suffix)

    def before_attention(self, tokens: int, count: int, suffix: str) -> Iterator[_Task]:
        """Yield norms, h -> (a + 2 g) d, rotation, and the writing of keys and values.

        A sequential block normalises twice, a parallel one once; one norm ends the model.
        """
        model, rank, runs = self._model, self._rank, count * self._model.blocks
        heads = {"query_heads": rank.query_heads, "kv_heads": rank.kv_heads}
        norms = 2 if model.block == "sequential" else 1
        yield self._norm("norm", tokens, norms * runs, suffix)
        columns = (rank.query_heads + 2 * rank.kv_heads) * model.head_size
        yield _gemm(f"qkv-projection{suffix}", tokens, columns, model.hidden_size, runs)
        if model.position == "rotary":
            shape = {"tokens": tokens, **heads, "head_size": model.head_size}
            yield _Task(name=f"rope{suffix}", operation="rope", shape=shape, runs=runs)
        yield _Task(
            name=f"kv-cache-save{suffix}",
            operation="kv_cache_save",
            shape={
                "tokens": tokens,
                "kv_heads": rank.kv_heads,
                "head_size": model.head_size,
                "kv_cache_dtype": self.setting.kv_cache_dtype,
            },
            runs=runs,
        )

    def attention(self, one: Pass, *, is_only: bool) -> _Task:
        """Return attention of the new tokens over the cached ones and themselves.

        The query states the cached length before the pass; a decoding step attends to one more.
        """
        decode = self.setting.phase == "decode"
        shape: dict[str, Scalar] = {
            "batch_size": self.setting.batch_size,
            "query_heads": self._rank.query_heads,
            "kv_heads": self._rank.kv_heads,
            "head_size": self._model.head_size,
            "kv_cache_length": one.cached,
            "window_size": 0,
            "kv_cache_dtype": self.setting.kv_cache_dtype,
        }
        if not decode:
            shape["query_length"] = one.query_length
        return _Task(
            name="attention" if is_only else f"attention-after-{one.cached}",
            operation="attention_decode" if decode else "attention_prefill",
            shape=shape,
            runs=self._model.blocks,
        )

    def after_attention(self, tokens: int, count: int, suffix: str) -> Iterator[_Task]:
        """Yield a d -> h, h -> f / p (twice that with a gate), f / p -> h, sums and additions."""
        model, rank, runs = self._model, self._rank, count * self._model.blocks
        hidden, columns = model.hidden_size, rank.feedforward_size
        attended = rank.query_heads * model.head_size
        yield _gemm(f"output-projection{suffix}", tokens, hidden, attended, runs)
        up, width = ("mlp-up-and-gate", 2) if model.is_gated else ("mlp-up", 1)
        yield _gemm(f"{up}{suffix}", tokens, width * columns, hidden, runs)
        yield self._elementwise("activation", model.activation, tokens * columns, runs, suffix)
        yield _gemm(f"mlp-down{suffix}", tokens, hidden, columns, runs)
        if self.setting.tensor_parallel > 1:
            # One after attention and one after the feed-forward layers.
            yield self._all_reduce("all-reduce", tokens, 2 * runs, suffix)
        yield self._elementwise("residual-add", "add", tokens * hidden, 2 * runs, suffix)
        yield self._norm("final-norm", tokens, count, suffix)

    def logits(self) -> Iterator[_Task]:
        """Yield h -> V / p for the last token of each sequence, and the gathering of all parts."""
        rows, columns = self.setting.batch_size, self._rank.vocabulary_size
        yield _gemm("logits", rows, columns, self._model.hidden_size, 1)
        ranks = self.setting.tensor_parallel
        if ranks > 1:
            size = rows * columns * ranks * self._element_bytes
            shape = {"message_bytes": size, "participants": ranks}
            yield _Task(name="logits-gather", operation="all_gather", shape=shape, runs=1)

    def _norm(self, name: str, tokens: int, runs: int, suffix: str) -> _Task:
        shape: Mapping[str, Scalar] = {
            "tokens": tokens,
            "hidden_size": self._model.hidden_size,
            "norm_kind": self._model.norm,
        }
        return _Task(name=f"{name}{suffix}", operation="norm", shape=shape, runs=runs)

    def _elementwise(self, name: str, kind: str, elements: int, runs: int, suffix: str) -> _Task:
        shape: Mapping[str, Scalar] = {"elements": elements, "elementwise_kind": kind}
        return _Task(name=f"{name}{suffix}", operation="elementwise", shape=shape, runs=runs)

    def _all_reduce(self, name: str, tokens: int, runs: int, suffix: str) -> _Task:
        size = tokens * self._model.hidden_size * self._element_bytes
        shape = {"message_bytes": size, "participants": self.setting.tensor_parallel}
        return _Task(name=f"{name}{suffix}", operation="all_reduce", shape=shape, runs=runs)


def _gemm(name: str, m: int, n: int, k: int, runs: int) -> _Task:
    return _Task(name=name, operation="gemm", shape={"m": m, "n": n, "k": k}, runs=runs)


def _whole_bytes(dtype: str) -> int:
    size = ELEMENT_BYTES.get(dtype)
    if size is None or size != int(size):
        raise UsageError(
            f"no whole number of bytes is known for an element of {dtype}, so messages have no "
            "size",
            code="no-element-size",
            remedy="give the type of the activations as --dtype, and that of single operations "
            "as --given gemm:dtype=...",
        )
    return int(size)

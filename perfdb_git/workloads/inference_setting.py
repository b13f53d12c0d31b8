"""One phase of inference: how many tokens, in which passes, on how many ranks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from perfdb_git.errors import UsageError
from perfdb_git.model.transformer import TransformerModel
from perfdb_git.model.values import Scalar

Phase: TypeAlias = Literal["prefill", "decode"]

_MOST_PASSES = 2_000
"""Chunks of one prefill, so that a plan stays within its queries."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InferenceSetting:
    """One phase of ``batch_size`` equal sequences on ``tensor_parallel`` ranks.

    Parameters
    ----------
    context : int
        Tokens of each sequence. Decode: those in the cache before the step, so that its new token
        attends to ``context + 1``. Prefill: those after it, ``cached`` of them in the cache before.
    chunk : int or None
        New tokens of each sequence in one pass of a prefill; ``None`` does them in one.
    dtype, kv_cache_dtype : str
        Canonical element types of weights and activations, and of the cache.
    """

    phase: Phase
    batch_size: int
    context: int
    tensor_parallel: int
    dtype: str
    kv_cache_dtype: str
    cached: int = 0
    chunk: int | None = None

    def passes(self) -> tuple[Pass, ...]:
        """Return the passes through the model, in their order.

        Notes
        -----
        A chunk attends to all chunks before it, so its cached length grows. Source: Agrawal et al.,
        "SARATHI: Efficient LLM Inference by Piggybacking Decodes with Chunked Prefills" (2023).
        """
        self._check()
        if self.phase == "decode":
            return (Pass(query_length=1, cached=self.context),)
        size = self.chunk or self.context - self.cached
        starts = range(self.cached, self.context, size)
        if len(starts) > _MOST_PASSES:
            raise UsageError(
                f"{len(starts):,} chunks, more than {_MOST_PASSES:,}", code="too-many-chunks"
            )
        return tuple(
            Pass(query_length=min(size, self.context - start), cached=start) for start in starts
        )

    def _check(self) -> None:
        if self.phase == "decode" and (self.chunk is not None or self.cached):
            raise UsageError(
                "chunks and cached tokens belong to a prefill: a decoding step has one new token",
                code="conflicting-options",
                remedy="--context says how many tokens are in the cache",
            )
        if self.phase == "prefill" and self.cached >= self.context:
            raise UsageError(
                f"{self.cached} of {self.context} tokens are cached: nothing is left to do",
                code="nothing-to-do",
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """``query_length`` new tokens of each sequence after ``cached`` ones."""

    query_length: int
    cached: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RankShape:
    """Sizes of one rank of a tensor group.

    Notes
    -----
    Heads, feed-forward columns and vocabulary rows are split; norms and residuals are repeated.
    Key-value heads are copied where there are fewer of them than ranks. Source: Shoeybi et al.,
    "Megatron-LM" (2019), section 3; Ainslie et al., "GQA" (2023), section 2.2.
    """

    query_heads: int
    kv_heads: int
    feedforward_size: int
    vocabulary_size: int

    @classmethod
    def of(cls, model: TransformerModel, ranks: int) -> RankShape:
        """Split a model.

        Raises
        ------
        UsageError
            'does-not-divide' where a rank would get a part of a head or column.
        """
        kv_heads = model.kv_heads
        kv_fits = kv_heads % ranks == 0 if kv_heads >= ranks else ranks % kv_heads == 0
        parts = {
            f"{model.query_heads} query heads": model.query_heads % ranks == 0,
            f"{kv_heads} key-value heads": kv_fits,
            f"{model.feedforward_size} feed-forward columns": model.feedforward_size % ranks == 0,
        }
        wrong = [name for name, fits in parts.items() if not fits]
        if wrong:
            raise UsageError(
                f"{' and '.join(wrong)} of {model.name} cannot be split over {ranks} ranks",
                code="does-not-divide",
                remedy="choose another --tp",
            )
        return cls(
            query_heads=model.query_heads // ranks,
            kv_heads=max(1, kv_heads // ranks),
            feedforward_size=model.feedforward_size // ranks,
            # The last rank's rows are padded, so that all hold as many.
            vocabulary_size=-(-model.vocabulary_size // ranks),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryContext:
    """What all queries state, and what those of one operation state besides or instead.

    Canonical values by flat dimension name; ``collectives`` is for messages between ranks.
    """

    everywhere: Mapping[str, Scalar]
    collectives: Mapping[str, Scalar]
    by_operation: Mapping[str, Mapping[str, Scalar | None]]

    def of(self, operation: str, *, is_collective: bool) -> dict[str, Scalar | None]:
        """Return what a query of an operation states besides its shape."""
        values: dict[str, Scalar | None] = {**self.everywhere}
        if is_collective:
            values |= self.collectives
        values.update(self.by_operation.get(operation, {}))
        return values

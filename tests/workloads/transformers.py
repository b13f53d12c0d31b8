"""Transformers and settings of the inference tests."""

from __future__ import annotations

from typing import Any

from perfdb_git.model.transformer import TRANSFORMER_MODEL_SCHEMA, TransformerModel
from perfdb_git.workloads.inference_setting import InferenceSetting, QueryContext

LLAMA_2_70B = TransformerModel(
    schema=TRANSFORMER_MODEL_SCHEMA,
    name="Llama-2-70B",
    hidden_size=8192,
    feedforward_size=28672,
    blocks=80,
    query_heads=64,
    kv_heads=8,
    head_size=128,
    vocabulary_size=32000,
    norm="rms",
    activation="silu_mul",
    block="sequential",
    position="rotary",
    dtype="float16",
)
PHI_2 = TransformerModel(
    schema=TRANSFORMER_MODEL_SCHEMA,
    name="phi-2",
    hidden_size=2560,
    feedforward_size=10240,
    blocks=32,
    query_heads=32,
    kv_heads=32,
    head_size=80,
    vocabulary_size=51200,
    norm="layer",
    activation="gelu",
    block="parallel",
    position="rotary",
    dtype="float16",
)
A100 = QueryContext(
    everywhere={"device": "a100_80g", "dtype": "float16"},
    collectives={"topology": "dgx_a100"},
    by_operation={},
)


def setting(phase: str, batch_size: int, context: int, ranks: int = 1, **more: Any) -> Any:
    return InferenceSetting(
        phase=phase,  # type: ignore[arg-type]
        batch_size=batch_size,
        context=context,
        tensor_parallel=ranks,
        dtype="float16",
        kv_cache_dtype="float16",
        **more,
    )

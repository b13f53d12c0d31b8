"""Tables of attention: kernels, and whole modules with their projections."""

from __future__ import annotations

from collections.abc import Mapping

from perfdb_git.importers.aiconfigurator.labels import DTYPES
from perfdb_git.importers.aiconfigurator.meaning import (
    DTYPE,
    KV_DTYPE,
    TIMED,
    Operation,
    TableKind,
    Text,
    one,
)

_MODULE_TEXTS = {
    "mla_dtype": DTYPE,
    "kv_cache_dtype": KV_DTYPE,
    "gemm_type": Text(dimension="weight_dtype", table=DTYPES),
    "model": Text(dimension="model"),
}
_PREFILL = {
    "batch_size": "batch_size",
    "num_heads": "attention_heads",
    "isl": "query_length",
    "step": "kv_cache_length",
    "tp_size": "tensor_parallel_size",
    "compress_ratio": "compression_ratio",
}
# Decoding has one new token a sequence: isl is 1 and stays a key of the source.
_DECODE = {name: dimension for name, dimension in _PREFILL.items() if name != "isl"}
# Here isl is the length of the cache, with the new token or without it.
_WIDE_DECODE = {name: text for name, text in _PREFILL.items() if name != "step"}
_WIDE_DECODE["isl"] = "sequence_length"


def _module(name: str, numbers: Mapping[str, str], *op_names: str) -> Operation:
    return Operation(
        name=name, op_names=op_names, texts=_MODULE_TEXTS, numbers=numbers, metrics=TIMED
    )


def _prefill(name: str, *op_names: str) -> Operation:
    return _module(name, _PREFILL, *op_names)


def _decode(name: str, *op_names: str) -> Operation:
    return _module(name, _DECODE, *op_names)


def _scored(name: str, op_name: str) -> Operation:
    texts = {**_MODULE_TEXTS, "score_mode": Text(dimension="score_mode")}
    return Operation(name=name, op_names=(op_name,), texts=texts, numbers=_PREFILL, metrics=TIMED)


def _attention(name: str, op_name: str, numbers: Mapping[str, str]) -> TableKind:
    shared = {
        "batch_size": "batch_size",
        "num_heads": "query_heads",
        "num_key_value_heads": "kv_heads",
        "head_dim": "head_size",
        "step": "kv_cache_length",
        # The collector's 0 is attention over everything.
        "window_size": "window_size",
        "beam_width": "beam_width",
    }
    texts = {"attn_dtype": DTYPE, "kv_cache_dtype": KV_DTYPE}
    numbers = {**shared, **numbers}
    return one(
        Operation(name=name, op_names=(op_name,), texts=texts, numbers=numbers, metrics=TIMED)
    )


def _batched_product(name: str, op_name: str) -> Operation:
    return Operation(
        name=name,
        op_names=(op_name,),
        texts={"bmm_dtype": DTYPE},
        numbers={"num_tokens": "tokens", "num_heads": "attention_heads"},
        metrics=TIMED,
    )


ATTENTION_KINDS: Mapping[str, TableKind] = {
    "context_attention_perf": _attention(
        "attention_prefill", "context_attention", {"isl": "query_length"}
    ),
    "generation_attention_perf": _attention("attention_decode", "generation_attention", {}),
    "encoder_attention_perf": one(
        Operation(
            name="attention_encoder",
            op_names=("encoder_attention",),
            texts={"attn_dtype": DTYPE},
            numbers={
                "batch_size": "batch_size",
                "isl": "query_length",
                "num_heads": "query_heads",
                "head_dim": "head_size",
            },
            metrics=TIMED,
        )
    ),
    "context_mla_perf": one(_prefill("mla_prefill", "mla_context")),
    "generation_mla_perf": one(_decode("mla_decode", "mla_generation")),
    "mla_context_module_perf": one(_prefill("mla_prefill_module", "mla_context_module")),
    "mla_generation_module_perf": one(_decode("mla_decode_module", "mla_generation_module")),
    "wideep_context_mla_perf": one(_prefill("mla_prefill_wide_ep", "mla_context")),
    "wideep_generation_mla_perf": one(
        _module("mla_decode_wide_ep", _WIDE_DECODE, "mla_generation")
    ),
    "mla_bmm_perf": TableKind(
        operations=(
            _batched_product("mla_bmm_pre", "mla_gen_pre"),
            _batched_product("mla_bmm_post", "mla_gen_post"),
        )
    ),
    "dsa_context_module_perf": TableKind(
        operations=(
            _prefill("dsa_prefill_module", "dsa_context_module"),
            _prefill("dsa_prefill_module_without_indexer", "dsa_context_module_skip_indexer"),
        )
    ),
    "dsa_generation_module_perf": TableKind(
        operations=(
            _decode("dsa_decode_module", "dsa_generation_module"),
            _decode("dsa_decode_module_without_indexer", "dsa_generation_module_skip_indexer"),
        )
    ),
    "dsv4_csa_context_module_perf": one(
        _prefill("dsv4_csa_prefill_module", "dsv4_csa_context_module")
    ),
    "dsv4_csa_generation_module_perf": one(
        _decode("dsv4_csa_decode_module", "dsv4_csa_generation_module")
    ),
    "dsv4_hca_context_module_perf": one(
        _prefill("dsv4_hca_prefill_module", "dsv4_hca_context_module")
    ),
    "dsv4_hca_generation_module_perf": one(
        _decode("dsv4_hca_decode_module", "dsv4_hca_generation_module")
    ),
    "dsv4_hca_attn_module_perf": one(_prefill("dsv4_hca_attention", "dsv4_hca_attn_module")),
    "dsv4_csa_topk_calib_perf": one(_scored("dsv4_csa_topk", "dsv4_csa_topk_calib")),
    "dsv4_paged_mqa_logits_module_perf": one(
        _prefill("dsv4_paged_mqa_logits", "dsv4_paged_mqa_logits_module")
    ),
    "glm5_dsa_attn_module_perf": one(_prefill("glm5_dsa_attention", "glm5_dsa_attn_module")),
    "glm5_mqa_logits_module_perf": one(_prefill("glm5_mqa_logits", "glm5_mqa_logits_module")),
    "glm5_topk_module_perf": one(_scored("glm5_topk", "glm5_topk_module")),
    "msa_context_module_perf": one(_prefill("msa_prefill_module", "msa_context_module")),
    "msa_generation_module_perf": one(_decode("msa_decode_module", "msa_generation_module")),
}
"""By the name of the file without suffix."""

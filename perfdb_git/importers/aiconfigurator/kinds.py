"""Every kind of table that is understood."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from perfdb_git.importers.aiconfigurator.attention_kinds import ATTENTION_KINDS
from perfdb_git.importers.aiconfigurator.expert_kinds import EXPERT_KINDS
from perfdb_git.importers.aiconfigurator.labels import TRTLLM_ALL_REDUCE
from perfdb_git.importers.aiconfigurator.meaning import (
    DTYPE,
    PHASE,
    TIMED,
    Operation,
    TableKind,
    Text,
    one,
)

_COLLECTIVES = {
    "all_gather": "all_gather",
    "alltoall": "all_to_all",
    "reduce_scatter": "reduce_scatter",
    "all_reduce": "all_reduce",
}


def _collective(name: str, op_name: str, implementation: str) -> Operation:
    return Operation(
        name=name,
        op_names=(op_name,),
        texts={"nccl_dtype": DTYPE},
        numbers={"num_gpus": "participants"},
        message="message_size",
        metrics=TIMED,
        constants={"implementation": implementation, "participants_per_node": None},
    )


def _library(runtime: Literal["nccl", "oneccl"]) -> TableKind:
    operations = [_collective(name, op_name, runtime) for op_name, name in _COLLECTIVES.items()]
    return TableKind(operations=tuple(operations), runtime=runtime)


def _linear_attention(name: str, op_name: str) -> TableKind:
    numbers = {
        "batch_size": "batch_size",
        "seq_len": "query_length",
        "num_tokens": "tokens",
        "d_model": "hidden_size",
        "d_conv": "convolution_width",
        "num_k_heads": "key_heads",
        "head_k_dim": "key_head_size",
        "num_v_heads": "value_heads",
        "head_v_dim": "value_head_size",
        "nheads": "state_heads",
        "head_dim": "head_size",
        "d_state": "state_size",
        "n_groups": "state_groups",
        "chunk_size": "chunk_size",
    }
    texts = {"phase": PHASE, "model_name": Text(dimension="model")}
    return one(
        Operation(name=name, op_names=(op_name,), texts=texts, numbers=numbers, metrics=TIMED)
    )


def _quantization(name: str, op_name: str) -> TableKind:
    return one(
        Operation(
            name=name,
            op_names=(op_name,),
            texts={"quant_dtype": DTYPE},
            numbers={"m": "m", "k": "k"},
            metrics=TIMED,
        )
    )


def _hyper_connections(name: str, op_name: str) -> Operation:
    return Operation(
        name=name,
        op_names=(op_name,),
        numbers={
            "num_tokens": "tokens",
            "hidden_size": "hidden_size",
            "hc_mult": "residual_streams",
            "sinkhorn_iters": "sinkhorn_iterations",
        },
        metrics=TIMED,
    )


KINDS: Mapping[str, TableKind] = {
    **ATTENTION_KINDS,
    **EXPERT_KINDS,
    "gemm_perf": one(
        Operation(
            name="gemm",
            op_names=("gemm",),
            texts={"gemm_dtype": DTYPE},
            numbers={"m": "m", "n": "n", "k": "k"},
            metrics=TIMED,
        )
    ),
    "nccl_perf": _library("nccl"),
    "oneccl_perf": _library("oneccl"),
    "custom_allreduce_perf": one(
        Operation(
            name="all_reduce",
            op_names=("all_reduce",),
            texts={
                "allreduce_dtype": DTYPE,
                "kernel_source": Text(
                    dimension="implementation", table=TRTLLM_ALL_REDUCE, closed=False
                ),
            },
            numbers={"num_gpus": "participants"},
            message="message_size",
            metrics=TIMED,
            constants={"participants_per_node": None},
        )
    ),
    "gdn_perf": _linear_attention("gated_delta_net", "gdn"),
    "kda_perf": _linear_attention("kimi_delta_attention", "kda"),
    "mamba2_perf": _linear_attention("mamba2", "mamba2"),
    "mhc_module_perf": TableKind(
        operations=(_hyper_connections("mhc_pre", "pre"), _hyper_connections("mhc_post", "post"))
    ),
    "computescale_perf": _quantization("quantize_scale", "compute_scale"),
    "scale_matrix_perf": _quantization("quantize", "scale_matrix"),
}
"""By the name of the file without suffix."""

SOURCE_NUMBERS = frozenset(
    {
        # 1 for every decoding step, or 0 where the length stands elsewhere.
        "isl",
        "step",
        # In the protocol as power state too.
        "power_limit",
        "local_num_heads",
        "num_sites",
        "global_num_tokens",
        "num_fused_shared_experts",
        "effective_num_max_tokens_per_rank",
        "routed_scaling_factor",
        "dp_num_tokens",
    }
)
"""Known columns of numbers that are no dimension; they are kept with the source."""

"""Tables of mixtures of experts: the experts, and the exchange of tokens between ranks."""

from __future__ import annotations

from collections.abc import Mapping

from perfdb_git.importers.aiconfigurator.meaning import (
    DTYPE,
    LATENCY,
    PHASE,
    TIMED,
    Metric,
    Operation,
    TableKind,
    Text,
    one,
)

_EXPERTS = {
    "num_tokens": "tokens",
    "hidden_size": "hidden_size",
    "inter_size": "intermediate_size",
    "num_experts": "experts",
    "topk": "experts_per_token",
    "moe_tp_size": "expert_tensor_parallel_size",
    "moe_ep_size": "expert_parallel_size",
    "num_slots": "expert_slots",
    "rank0_num_tokens": "rank_tokens",
    "num_max_tokens_per_rank": "max_tokens_per_rank",
}
_DISTRIBUTION = Text(dimension="token_distribution")


def _experts(name: str, *op_names: str, phase: str | None = None) -> Operation:
    constants = {} if phase is None else {"inference_phase": phase}
    texts = {"moe_dtype": DTYPE, "distribution": _DISTRIBUTION, "phase": PHASE}
    return Operation(
        name=name,
        op_names=op_names,
        texts=texts,
        numbers=_EXPERTS,
        metrics=TIMED,
        constants=constants,
    )


def _mlp(phase: str) -> TableKind:
    numbers = {
        "num_token": "tokens",
        "hidden_size": "hidden_size",
        "intermediate_size": "intermediate_size",
    }
    return one(
        Operation(
            name="mlp",
            op_names=("mlp",),
            texts={"quant_type": DTYPE},
            numbers=numbers,
            metrics={"avg_ms": LATENCY},
            constants={"inference_phase": phase},
        )
    )


_DEEPEP_NUMBERS = {
    "num_token": "tokens",
    "hidden_size": "hidden_size",
    "num_experts": "experts",
    "num_topk": "experts_per_token",
    "node_num": "nodes",
}


def _deepep_low_latency(way: str) -> Operation:
    return Operation(
        name=f"moe_{way}",
        op_names=("ll",),
        numbers=_DEEPEP_NUMBERS,
        metrics={
            f"{way}_avg_t_us": Metric(name="latency", unit="us"),
            f"{way}_bandwidth_gbps": Metric(name="bandwidth", unit="GB/s"),
        },
        constants={"implementation": "deepep_low_latency", "participants": None},
    )


def _deepep_normal(way: str) -> Operation:
    return Operation(
        name=f"moe_{way}",
        op_names=("normal",),
        numbers={**_DEEPEP_NUMBERS, f"{way}_sms": "communication_multiprocessors"},
        metrics={
            # No column says what the two make together.
            f"{way}_transmit_us": Metric(name="transmit_time", unit="us"),
            f"{way}_notify_us": Metric(name="notify_time", unit="us", zero=True),
        },
        constants={"implementation": "deepep_normal", "participants": None},
    )


def _expert_exchange(way: str) -> Operation:
    return Operation(
        name=f"moe_{way}",
        op_names=("moe_a2a",),
        where=("phase", way),
        texts={"comm_dtype": DTYPE, "comm_backend": Text(dimension="implementation")},
        numbers={
            "num_tokens": "tokens",
            "hidden_size": "hidden_size",
            "num_experts": "experts",
            "topk": "experts_per_token",
            "ep_size": "participants",
            "node_num": "nodes",
            "sms": "communication_multiprocessors",
        },
        metrics={
            "latency": Metric(name="latency", unit="us"),
            "transmit_us": Metric(name="transmit_time", unit="us"),
            "notify_us": Metric(name="notify_time", unit="us", zero=True),
        },
    )


def _trtllm_exchange(name: str, op_name: str) -> Operation:
    return Operation(
        name=name,
        op_names=(op_name,),
        texts={"moe_dtype": DTYPE, "distribution": _DISTRIBUTION},
        numbers={
            "num_tokens": "tokens",
            "hidden_size": "hidden_size",
            "num_experts": "experts",
            "topk": "experts_per_token",
            "moe_ep_size": "participants",
        },
        metrics=TIMED,
    )


EXPERT_KINDS: Mapping[str, TableKind] = {
    "dsv4_megamoe_module_perf": one(_experts("dsv4_mega_moe", "dsv4_megamoe_module")),
    "moe_perf": one(_experts("moe", "moe")),
    "wideep_moe_perf": one(_experts("moe_wide_ep", "wideep_moe", "wideep_moe_eplb")),
    "wideep_context_moe_perf": one(_experts("moe_wide_ep", "moe_context", phase="prefill")),
    "wideep_generation_moe_perf": one(_experts("moe_wide_ep", "moe_generation", phase="decode")),
    "wideep_context_mlp_perf": _mlp("prefill"),
    "wideep_generation_mlp_perf": _mlp("decode"),
    "wideep_deepep_ll_perf": TableKind(
        operations=(_deepep_low_latency("dispatch"), _deepep_low_latency("combine"))
    ),
    "wideep_deepep_normal_perf": TableKind(
        operations=(_deepep_normal("dispatch"), _deepep_normal("combine"))
    ),
    "moe_a2a_perf": TableKind(
        operations=(_expert_exchange("dispatch"), _expert_exchange("combine"))
    ),
    "trtllm_alltoall_perf": TableKind(
        operations=(
            _trtllm_exchange("moe_dispatch_prepare", "alltoall_prepare"),
            _trtllm_exchange("moe_dispatch", "alltoall_dispatch"),
            _trtllm_exchange("moe_combine", "alltoall_combine"),
            _trtllm_exchange("moe_combine_low_precision", "alltoall_combine_low_precision"),
        )
    ),
}
"""By the name of the file without suffix."""

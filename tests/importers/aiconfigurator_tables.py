"""Small tables in the layouts of aiconfigurator-core 0.12.0; every number is made up."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

Columns = dict[str, list[Any]]

PACKAGE = "aiconfigurator_core"
DATA = f"{PACKAGE}/systems/data"
REVISION = "aiconfigurator-core==0.12.0"
METADATA = "Metadata-Version: 2.4\nName: aiconfigurator-core\nVersion: 0.12.0\n\nText.\n"
DATA_SHEET = """\
data_dir: data/h200_sxm
gpu:
  mem_bw: 4800000000000 # 4800GB/s
  bfloat16_tc_flops: 989000000000000 # 989TFLOPS
  fp8_tc_flops: 1978000000000000
  power: 700
misc:
  nccl_mem:
    1: 0
"""

_MODULE = (
    "kernel_source=default model=org/M architecture=A mla_dtype=bfloat16 "
    "kv_cache_dtype=fp8_e4m3 gemm_type=nvfp4 num_heads:i batch_size:i isl:{isl} tp_size:i "
    "step:i"
)
_PREFILL = _MODULE.format(isl="i") + " latency:f"
_DECODE = _MODULE.format(isl="1") + " latency:f"
_COMPRESSED = _MODULE.format(isl="i") + " compress_ratio:i latency:f"
_COMPRESSED_DECODE = _MODULE.format(isl="1") + " compress_ratio:i latency:f"
_EXPERTS = (
    "num_tokens:i hidden_size:i inter_size:i topk:i num_experts:i moe_tp_size:i moe_ep_size:i "
    "distribution=balanced|power_law_1.2"
)
_LINEAR = (
    "kernel_source=causal_conv1d_fn|chunk phase=context|generation batch_size:i seq_len:i "
    "num_tokens:i d_model:i d_conv:i"
)
_GATED = "num_k_heads:i head_k_dim:i num_v_heads:i head_v_dim:i model_name=org/M latency:f"
_ATTENTION = (
    "kernel_source=fa3|torch_flow batch_size:i isl:{isl} num_heads:i num_key_value_heads:i "
    "head_dim:i beam_width:1 attn_dtype=bfloat16|fp8 kv_cache_dtype=fp8 step:{step} "
    "window_size:0 latency:f power:f power_limit:700"
)

LAYOUTS: Mapping[str, str] = {
    "gemm_perf": "gemm kernel_source=torch_flow gemm_dtype=bfloat16|nvfp4|sq m:i n:i k:i latency:f",
    "context_attention_perf": "context_attention " + _ATTENTION.format(isl="i", step="0"),
    "generation_attention_perf": "generation_attention " + _ATTENTION.format(isl="1", step="i"),
    "encoder_attention_perf": "encoder_attention kernel_source=triton batch_size:i isl:i "
    "num_heads:i head_dim:i attn_dtype=bfloat16 latency:f",
    "nccl_perf": "all_gather|alltoall|reduce_scatter|all_reduce kernel_source=NCCL "
    "nccl_dtype=half|int8 num_gpus:i message_size:i latency:f",
    "oneccl_perf": "all_gather|all_reduce kernel_source=oneCCL nccl_dtype=half num_gpus:i "
    "message_size:i latency:f",
    "custom_allreduce_perf": "all_reduce kernel_source=TRTLLM|vLLM_custom_graph "
    "allreduce_dtype=bfloat16 num_gpus:i message_size:i latency:f backend=x",
    "context_mla_perf": "mla_context kernel_source=default mla_dtype=bfloat16 kv_cache_dtype=fp8 "
    "num_heads:i batch_size:i isl:i tp_size:i step:0 latency:f",
    "generation_mla_perf": "mla_generation kernel_source=default mla_dtype=bfloat16 "
    "kv_cache_dtype=fp8 num_heads:i batch_size:i isl:1 tp_size:i step:i latency:f",
    "mla_context_module_perf": "mla_context_module " + _PREFILL,
    "mla_generation_module_perf": "mla_generation_module " + _DECODE,
    "wideep_context_mla_perf": "mla_context " + _PREFILL,
    "wideep_generation_mla_perf": "mla_generation " + _PREFILL,
    "mla_bmm_perf": "mla_gen_pre|mla_gen_post kernel_source=default bmm_dtype=fp8 num_tokens:i "
    "num_heads:i latency:f",
    "dsa_context_module_perf": "dsa_context_module|dsa_context_module_skip_indexer " + _PREFILL,
    "dsa_generation_module_perf": "dsa_generation_module|dsa_generation_module_skip_indexer "
    + _DECODE,
    "dsv4_csa_context_module_perf": "dsv4_csa_context_module " + _COMPRESSED,
    "dsv4_csa_generation_module_perf": "dsv4_csa_generation_module " + _COMPRESSED_DECODE,
    "dsv4_hca_context_module_perf": "dsv4_hca_context_module " + _COMPRESSED,
    "dsv4_hca_generation_module_perf": "dsv4_hca_generation_module " + _COMPRESSED_DECODE,
    "dsv4_hca_attn_module_perf": "dsv4_hca_attn_module local_num_heads:i " + _COMPRESSED,
    "dsv4_csa_topk_calib_perf": "dsv4_csa_topk_calib score_mode=v1_flat|v2_flat " + _COMPRESSED,
    "dsv4_paged_mqa_logits_module_perf": "dsv4_paged_mqa_logits_module " + _COMPRESSED,
    "glm5_dsa_attn_module_perf": "glm5_dsa_attn_module " + _COMPRESSED,
    "glm5_mqa_logits_module_perf": "glm5_mqa_logits_module " + _COMPRESSED,
    "glm5_topk_module_perf": "glm5_topk_module score_mode=flat|top_last " + _COMPRESSED,
    "msa_context_module_perf": "msa_context_module " + _PREFILL,
    "msa_generation_module_perf": "msa_generation_module " + _DECODE,
    "gdn_perf": f"gdn {_LINEAR} {_GATED}",
    "kda_perf": f"kda {_LINEAR.replace('generation', 'verify')} {_GATED}",
    "mamba2_perf": f"mamba2 {_LINEAR} d_state:i nheads:i head_dim:i n_groups:i chunk_size:i "
    "model_name=org/M latency:f",
    "mhc_module_perf": "pre|post kernel_source=torch architecture=A num_tokens:i num_sites:2 "
    "hc_mult:4 hidden_size:i sinkhorn_iters:20 latency:f",
    "computescale_perf": "compute_scale kernel_source=sglang m:i k:i quant_dtype=fp8 latency:f",
    "scale_matrix_perf": "scale_matrix kernel_source=sglang m:i k:i quant_dtype=fp8 latency:f",
    "moe_perf": f"moe kernel_source=deepgemm moe_dtype=w4afp8|int4_wo {_EXPERTS} latency:f",
    "wideep_moe_perf": "wideep_moe|wideep_moe_eplb kernel_source=cutlass moe_dtype=nvfp4 "
    f"moe_kernel=cutlass dp_num_tokens:i rank0_num_tokens:i num_slots:i {_EXPERTS} "
    "simulation_mode=accurate latency:f",
    "wideep_context_moe_perf": "moe_context kernel_source=deepepmoe moe_dtype=fp8_block "
    f"{_EXPERTS} latency:f",
    "wideep_generation_moe_perf": "moe_generation kernel_source=deepepmoe moe_dtype=fp8_block "
    f"{_EXPERTS} latency:f",
    "wideep_context_mlp_perf": "mlp kernel_source=v3 quant_type=fp8_block num_token:i "
    "hidden_size:i intermediate_size:i avg_ms:f",
    "wideep_generation_mlp_perf": "mlp kernel_source=v3 quant_type=fp8_block num_token:i "
    "hidden_size:i intermediate_size:i avg_ms:f",
    "dsv4_megamoe_module_perf": "dsv4_megamoe_module kernel_source=deepgemm_megamoe "
    f"phase=context|generation moe_dtype=w4a8_mxfp4_mxfp8 kernel_dtype=fp8_fp4 {_EXPERTS} "
    "global_num_tokens:i num_fused_shared_experts:0 source_policy=random pre_dispatch=jit "
    "num_max_tokens_per_rank:512 effective_num_max_tokens_per_rank:i routed_scaling_factor:f "
    "includes_routed_scale=True used_cuda_graph=True latency:f",
    "wideep_deepep_ll_perf": "ll kernel_source=deepep node_num:i hidden_size:i num_token:i "
    "num_topk:i num_experts:i combine_avg_t_us:f combine_bandwidth_gbps:f dispatch_avg_t_us:f "
    "dispatch_bandwidth_gbps:f",
    "wideep_deepep_normal_perf": "normal kernel_source=deepep node_num:i hidden_size:i num_token:i "
    "num_topk:i num_experts:i dispatch_sms:i dispatch_transmit_us:f dispatch_notify_us:f "
    "combine_sms:i combine_transmit_us:f combine_notify_us:f",
    "moe_a2a_perf": "moe_a2a kernel_source=deepep comm_backend=deepep_ll phase=combine|dispatch "
    "comm_dtype=default|fp4 ep_size:i node_num:1 hidden_size:i topk:i num_experts:i num_tokens:i "
    "sms:i transmit_us:f notify_us:f latency:f",
    "trtllm_alltoall_perf": "alltoall_prepare|alltoall_dispatch|alltoall_combine|"
    "alltoall_combine_low_precision kernel_source=NVLinkTwoSided moe_dtype=fp8 num_tokens:i "
    "hidden_size:i topk:i num_experts:i moe_ep_size:i distribution=balanced latency:f",
}
"""Kind to its columns after framework, version and device: labels of op_name, then ``name=labels``,
``name:i`` and ``name:f`` for integers and floats that differ, ``name:7`` for a constant."""

PAIRS = frozenset({"wideep_deepep_ll_perf", "wideep_deepep_normal_perf"})
"""Kinds of which each row states a dispatch and a combination."""


@dataclass(frozen=True)
class Label:
    """What stands in the columns framework, version and device."""

    framework: str = "TRTLLM"
    version: str = "1.3.0rc20"
    device: str = "NVIDIA H200"


def table_of(kind: str, rows: int = 12, label: Label | None = None) -> Columns:
    """Return the columns of a table of a kind, with awkward numbers."""
    label = label or Label()
    labels, *specifications = LAYOUTS[kind].split(" ")
    columns: Columns = {
        "framework": [label.framework] * rows,
        "version": [label.version] * rows,
        "device": [label.device] * rows,
        "op_name": _cycled(labels.split("|"), rows),
    }
    for place, specification in enumerate(specifications):
        name, is_text, texts = specification.partition("=")
        if is_text:
            values = [{"True": True, "False": False}.get(t, t) for t in texts.split("|")]
            columns[name] = _cycled(values, rows, 1 + place % 2)
            continue
        name, _, sort = specification.partition(":")
        if sort == "i":
            columns[name] = [(row * (place + 3)) % 7 + place + 1 for row in range(rows)]
        elif sort == "f":
            columns[name] = [(row + 1) / (3.0 + place) + 1e-7 for row in range(rows)]
        else:
            columns[name] = [int(sort)] * rows
    return columns


def _cycled(values: Sequence[Any], rows: int, run: int = 1) -> list[Any]:
    return [values[row // run % len(values)] for row in range(rows)]


def place_of(kind: str, system: str = "h200_sxm", version: str = "1.3.0rc20") -> str:
    """Return the path of a table in a wheel."""
    backend = {"nccl_perf": "nccl", "oneccl_perf": "oneccl"}.get(kind, "trtllm")
    return f"{DATA}/{system}/{_family(kind)}/{backend}/{version}/{kind}.parquet"


def _family(kind: str) -> str:
    if kind.startswith("gemm"):
        return "gemm"
    if kind in ("context_attention_perf", "generation_attention_perf"):
        return "attention"
    return "comm" if "ccl" in kind or "allreduce" in kind else "other"


class Wheel:
    """A database under construction: tables, sidecars and data sheets by path."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {
            "aiconfigurator_core-0.12.0.dist-info/METADATA": METADATA.encode(),
            f"{PACKAGE}/systems/h200_sxm.yaml": DATA_SHEET.encode(),
        }

    def put(self, path: str, columns: Mapping[str, Sequence[Any]]) -> None:
        pyarrow = pytest.importorskip("pyarrow")
        parquet = pytest.importorskip("pyarrow.parquet")
        target = io.BytesIO()
        parquet.write_table(pyarrow.table(dict(columns)), target)
        self.files[path] = target.getvalue()

    def add(self, kind: str, columns: Columns | None = None, **place: str) -> str:
        """Add a table, made up unless given, and return its path."""
        path = place_of(kind, **place)
        self.put(path, table_of(kind) if columns is None else columns)
        return path

    def sidecar(self, path: str, text: str) -> None:
        self.files[f"{path.rpartition('/')[0]}/collection_meta.yaml"] = text.encode()

    def packed(self, folder: Path) -> Path:
        """Write the wheel itself."""
        path = folder / "aiconfigurator_core-0.12.0-py3-none-any.whl"
        with zipfile.ZipFile(path, "w") as archive:
            for name, content in self.files.items():
                archive.writestr(name, content)
        return path

    def unpacked(self, folder: Path) -> Path:
        """Write the files below a folder."""
        for name, content in self.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        return folder

"""Each shipped mapping on a small file in its upstream format, written here by hand."""

from __future__ import annotations

import pytest

from perfdb_git.errors import InvalidInputError, InvalidRowsError
from perfdb_git.importers.mapping_documents import load_mapping, shipped_mappings
from perfdb_git.model.vocabulary import Vocabulary
from tests.importers.import_fixtures import (
    MLP_OPERATIONS,
    MLP_PATH,
    PHI_PATH,
    Evidence,
    attention_row,
    csv_text,
    mlp_row,
    network_row,
)

AIC = "aiconfigurator_core/systems/data/h200_sxm"
COMMON = {
    "framework": "TRTLLM",
    "version": "1.3.0",
    "device": "NVIDIA H200",
    "kernel_source": "torch_flow",
}


@pytest.mark.parametrize("name", shipped_mappings())
def test_loads_under_the_shipped_vocabulary(name: str, vocabulary: Vocabulary) -> None:
    loaded = load_mapping(name, vocabulary)
    assert loaded.mapping.name == name
    assert loaded.mapping.source.license is not None


def test_mlp_gives_one_set_for_each_timed_operation(evidence: Evidence) -> None:
    rows = [mlp_row(tokens, ranks) for ranks in (1, 2) for tokens in (64, 8)]
    report = evidence.run("vidur-mlp", evidence.put(MLP_PATH, csv_text(rows)))
    assert report.records == len(MLP_OPERATIONS) * 4
    sets = {item.source["keys"]["op"]: item for item in evidence.record_sets()}
    assert set(sets) == set(MLP_OPERATIONS)
    assert {item.document["kind"] for item in sets.values()} == {"profiled"}
    assert {item.document["session"] for item in sets.values()} == {
        "vidur-0123456-a100-Llama-2-70b-hf"
    }
    assert sets["emb"].document["protocol"]["repetitions"] == 21
    assert sets["add"].document["protocol"]["repetitions"] == 20
    assert sets["add"].source["file"] == MLP_PATH
    assert sets["add"].source["revision"] == "0123456789abcdef0123456789abcdef01234567"


@pytest.mark.parametrize(
    ("op", "one_rank", "two_ranks"),
    [
        # Width 128 = 8 heads of 16; 2 key-value heads; feed-forward width 480, gated.
        ("attn_pre_proj", (8, 192, 128), (8, 96, 128)),
        ("attn_post_proj", (8, 128, 128), (8, 128, 64)),
        ("mlp_up_proj", (8, 960, 128), (8, 480, 128)),
        ("mlp_down_proj", (8, 128, 480), (8, 128, 240)),
    ],
)
def test_mlp_products_have_the_shape_of_one_rank(
    evidence: Evidence, op: str, one_rank: tuple[int, ...], two_ranks: tuple[int, ...]
) -> None:
    evidence.run("vidur-mlp", evidence.put(MLP_PATH, csv_text([mlp_row(8, 1), mlp_row(8, 2)])))
    products = evidence.one(op=op)
    ranks = products.column("num_tensor_parallel_workers")
    shapes = list(zip(*(products.column(name) for name in "mnk"), strict=True))
    assert dict(zip(ranks, shapes, strict=True)) == {1: one_rank, 2: two_ranks}


def test_mlp_other_operations_have_the_shape_of_one_rank(evidence: Evidence) -> None:
    evidence.run("vidur-mlp", evidence.put(MLP_PATH, csv_text([mlp_row(8, 2)])))
    embedding = evidence.one(op="emb")
    assert embedding.column("vocabulary_size") == [500]
    rope = evidence.one(op="attn_rope")
    shape = [rope.column(n)[0] for n in ("tokens", "query_heads", "kv_heads", "head_size")]
    assert shape == [8, 4, 1, 16]
    norm = evidence.one(op="input_layernorm")
    assert norm.context["norm_kind"] == "rms"
    assert norm.column("hidden_size") == [128]
    activation = evidence.one(op="mlp_act")
    assert activation.context["elementwise_kind"] == "silu_mul"
    assert activation.column("elements") == [8 * 240]
    assert evidence.one(op="add").column("elements") == [8 * 128]


def test_mlp_keeps_every_statistic_of_a_row(evidence: Evidence) -> None:
    evidence.run("vidur-mlp", evidence.put(MLP_PATH, csv_text([mlp_row(8, 1)])))
    record = evidence.one(op="input_layernorm")
    found = {
        statistic: record.column("latency", statistic)[0]
        for statistic in ("min", "max", "mean", "median", "population_std")
    }
    assert found == {"min": 2, "max": 2.5, "mean": 2.25, "median": 2.125, "population_std": 0.0625}


def test_mlp_ungated_model_without_a_second_norm(evidence: Evidence) -> None:
    rows = [mlp_row(8, 1, gated=False, without=("post_attention_layernorm",))]
    report = evidence.run("vidur-mlp", evidence.put(PHI_PATH, csv_text(rows)))
    assert report.files[0].absent == ("norm (post_attention_layernorm)",)
    assert evidence.one(op="mlp_up_proj").column("n") == [480]
    assert evidence.one(op="mlp_act").context["elementwise_kind"] == "gelu"
    assert evidence.one(op="input_layernorm").context["norm_kind"] == "layer"
    # Two additions timed as one are no plain addition.
    assert evidence.one(op="add").context["elementwise_kind"] is None


def test_mlp_operation_with_half_its_columns_is_an_error(evidence: Evidence) -> None:
    row = mlp_row(8, 1)
    del row["time_stats.post_attention_layernorm.std"]
    with pytest.raises(InvalidInputError, match=r"post_attention_layernorm\.std"):
        evidence.run("vidur-mlp", evidence.put(MLP_PATH, csv_text([row])))


def test_mlp_heads_that_do_not_divide_are_bad_rows(evidence: Evidence) -> None:
    with pytest.raises(InvalidRowsError) as caught:
        evidence.run("vidur-mlp", evidence.put(MLP_PATH, csv_text([mlp_row(8, 1), mlp_row(8, 4)])))
    assert len(caught.value.rows) == 1
    assert "line 3" in caught.value.rows[0]
    assert "2 / 4 leaves the remainder 2" in caught.value.rows[0]


@pytest.mark.parametrize(
    ("mapping", "path"),
    [
        ("vidur-attention", "data/profiling/compute/a100/meta-llama/Llama-2-7b-hf/attention.csv"),
        ("vidur-attention-early", "data/profiling/a100/attention.csv"),
    ],
)
def test_attention_phases(evidence: Evidence, mapping: str, path: str) -> None:
    rows = [
        attention_row(True, 1, 64, 32),
        attention_row(True, 1, 64, 0),
        attention_row(False, 3, 0, 32),
    ]
    if mapping == "vidur-attention-early":
        rows = [row | {"profile_method": "ProfileMethod.KINETO"} for row in rows]
    report = evidence.run(mapping, evidence.put(path, csv_text(rows)))
    assert report.records == 3
    prefill = evidence.one(operation="attention_prefill")
    assert prefill.column("kv_cache_length") == [0, 32]
    assert prefill.column("query_length") == [64, 64]
    assert prefill.column("query_heads") == [4, 4]
    assert prefill.column("kv_heads") == [1, 1]
    decode = evidence.one(operation="attention_decode")
    assert decode.column("batch_size") == [3]
    assert decode.column("kv_cache_length") == [32]
    assert decode.context["implementation"] == "flash_attention"
    assert decode.context["runtime"] is None
    assert decode.document["protocol"]["warmup"] == 2
    assert decode.document["protocol"]["repetitions"] == 5


def test_attention_measurement_of_the_other_phase_is_not_dropped(evidence: Evidence) -> None:
    row = attention_row(True, 1, 64, 0) | {"time_stats.attn_decode.min": 0.5}
    path = "compute/a100/meta-llama/Llama-2-7b-hf/attention.csv"
    with pytest.raises(InvalidRowsError) as caught:
        evidence.run("vidur-attention", evidence.put(path, csv_text([row])))
    assert "no observation of its operation" in caught.value.rows[0]


def test_attention_saving_of_the_cache_in_newer_sweeps(evidence: Evidence) -> None:
    saved = {f"time_stats.attn_kv_cache_save.{n}": 0.5 for n in ("min", "max", "mean", "median")}
    saved["time_stats.attn_kv_cache_save.std"] = 0
    rows = [attention_row(True, 1, 64, 0) | saved, attention_row(False, 3, 0, 32) | saved]
    path = "compute/a100/meta-llama/Llama-2-7b-hf/attention.csv"
    report = evidence.run("vidur-attention", evidence.put(path, csv_text(rows)))
    assert report.records == 4
    tokens = [
        item.column("tokens")
        for item in evidence.record_sets()
        if item.context["operation"] == "kv_cache_save"
    ]
    assert sorted(tokens) == [[3], [64]]


def test_all_reduce_within_and_across_nodes(evidence: Evidence) -> None:
    rows = [
        network_row(0, "all_reduce", 8, 8, 2048),
        network_row(1, "all_reduce", 16, 8, 2048),
    ]
    path = "data/profiling/network/h100_dgx/all_reduce.csv"
    evidence.run("vidur-all-reduce", evidence.put(path, csv_text(rows)))
    inside = evidence.one(link_class="nvlink")
    across = evidence.one(link_class=None)
    assert inside.column("participants") == [8]
    assert across.column("participants") == [16]
    assert across.column("participants_per_node") == [8]
    assert inside.column("message_bytes") == [2048]
    for item in (inside, across):
        assert item.context["topology"] == "dgx_h100"
        assert item.context["form_factor"] == "sxm"
        assert item.document["protocol"]["repetitions"] == 3
        assert item.document["protocol"]["warmup"] is None


def test_send_recv_on_linked_pairs(evidence: Evidence) -> None:
    path = "data/profiling/network/a100_pairwise_nvlink/send_recv.csv"
    rows = [network_row(0, "send_recv", 2, 2, 4096)]
    evidence.run("vidur-send-recv", evidence.put(path, csv_text(rows)))
    item = evidence.one(operation="send_recv")
    assert item.context["topology"] == "pairwise_nvlink"
    assert item.context["form_factor"] is None
    assert item.context["link_class"] is None


def test_aiconfigurator_gemm(evidence: Evidence) -> None:
    table = {
        **{name: [value] * 3 for name, value in COMMON.items()},
        "op_name": ["gemm"] * 3,
        "gemm_dtype": ["fp8_block", "bfloat16", "bfloat16"],
        "m": [1, 64, 8],
        "n": [32, 32, 32],
        "k": [64, 64, 64],
        "latency": [0.25, 0.5, 0.125],
    }
    path = evidence.put_parquet(f"{AIC}/gemm/trtllm/1.3.0/gemm_perf.parquet", table)
    revision = "aiconfigurator-core==0.12.0"
    report = evidence.run("aiconfigurator-gemm", path, source_revision=revision)
    assert report.records == 3
    assert report.conflicts == ()
    block = evidence.one(dtype="float8_block")
    assert block.source["keys"]["gemm_dtype"] == "fp8_block"
    assert block.source["revision"] == revision
    assert block.document["session"] == f"{revision}-h200_sxm-trtllm-1.3.0"
    plain = evidence.one(dtype="bfloat16")
    assert plain.column("m") == [8, 64]
    assert plain.column("row") == [2, 1]
    assert plain.column("latency", "mean") == [0.125, 0.5]
    assert plain.context["runtime"] == "trtllm"
    assert plain.context["runtime_revision"] == "1.3.0"
    assert plain.context["form_factor"] == "sxm"


def attention_table(op_name: str, isl: int, step: list[int]) -> dict[str, list[object]]:
    count = len(step)
    return {
        **{name: [value] * count for name, value in COMMON.items()},
        "op_name": [op_name] * count,
        "batch_size": [2] * count,
        "isl": [isl] * count,
        "num_heads": [8] * count,
        "num_key_value_heads": [4] * count,
        "head_dim": [64] * count,
        "window_size": [0] * count,
        "beam_width": [1] * count,
        "attn_dtype": ["bfloat16"] * count,
        "kv_cache_dtype": ["fp8"] * count,
        "step": step,
        "latency": [0.5 + s for s in step],
    }


def test_aiconfigurator_context_attention(evidence: Evidence) -> None:
    table = attention_table("context_attention", 128, [0])
    name = f"{AIC}/attention/trtllm/1.3.0/context_attention_perf.parquet"
    evidence.run("aiconfigurator-context-attention", evidence.put_parquet(name, table))
    item = evidence.one(operation="attention_prefill")
    names = ("batch_size", "query_length", "kv_cache_length", "query_heads", "kv_heads")
    assert [item.column(n)[0] for n in names] == [2, 128, 0, 8, 4]
    assert item.column("window_size") == [0]
    assert item.context["kv_cache_dtype"] == "float8"
    assert item.source["keys"]["kv_cache_dtype"] == "fp8"
    assert item.source["keys"]["isl"] == 128


def test_aiconfigurator_generation_attention(evidence: Evidence) -> None:
    table = attention_table("generation_attention", 1, [7, 1])
    name = f"{AIC}/attention/trtllm/1.3.0/generation_attention_perf.parquet"
    evidence.run("aiconfigurator-generation-attention", evidence.put_parquet(name, table))
    item = evidence.one(operation="attention_decode")
    assert item.column("kv_cache_length") == [1, 7]
    assert item.column("step") == [1, 7]
    assert item.column("latency", "mean") == [1.5, 7.5]


def nccl_table() -> dict[str, list[object]]:
    return {
        **{name: [value] * 3 for name, value in COMMON.items()},
        "version": ["2.29.2"] * 3,
        "op_name": ["all_reduce", "all_reduce", "alltoall"],
        "nccl_dtype": ["half", "int8", "half"],
        "num_gpus": [2, 2, 8],
        "message_size": [256, 512, 1024],
        "latency": [0.5, 0.25, 0.125],
    }


def test_aiconfigurator_nccl_counts_elements_and_contradicts_its_folder(
    evidence: Evidence,
) -> None:
    name = f"{AIC}/comm/nccl/2.26.2/nccl_perf.parquet"
    report = evidence.run("aiconfigurator-nccl", evidence.put_parquet(name, nccl_table()))
    half = evidence.one(operation="all_reduce", dtype="float16")
    assert half.column("message_bytes") == [512]
    assert half.source["keys"]["message_size"] == 256
    assert evidence.one(dtype="int8").column("message_bytes") == [512]
    assert evidence.one(operation="all_to_all").column("message_bytes") == [2048]
    for item in evidence.record_sets():
        assert item.context["runtime_revision"] == "2.29.2"
        assert item.source["labels"] == {"directory_version": "2.26.2"}
    assert {(c.row_label, c.path_label) for c in report.conflicts} == {("2.29.2", "2.26.2")}
    assert "2.26.2" in str(report.conflicts[0])


def test_aiconfigurator_custom_all_reduce(evidence: Evidence) -> None:
    table = {
        **{name: [value] for name, value in COMMON.items()},
        "op_name": ["all_reduce"],
        "allreduce_dtype": ["bfloat16"],
        "num_gpus": [4],
        "message_size": [128],
        "latency": [0.5],
        "implementation": ["trtllm"],
    }
    name = f"{AIC}/comm/trtllm/1.3.0/custom_allreduce_perf.parquet"
    evidence.run("aiconfigurator-custom-allreduce", evidence.put_parquet(name, table))
    item = evidence.one(operation="all_reduce")
    assert item.column("message_bytes") == [256]
    assert item.context["implementation"] == "trtllm_custom_allreduce"
    assert item.context["participants_per_node"] is None

"""Tasks of one rank against shapes worked out by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from perfdb_git.database import PerformanceDatabase
from perfdb_git.errors import UsageError
from perfdb_git.model.plan import PlanQuery
from perfdb_git.model.transformer import TransformerModel
from perfdb_git.operations.stage_queries import query_faults
from perfdb_git.operations.work import work_of
from perfdb_git.workloads.inference_setting import QueryContext
from perfdb_git.workloads.inference_tasks import inference_tasks
from tests.workloads.transformers import A100, LLAMA_2_70B, PHI_2, setting

ROOT = Path(__file__).parents[2]


def by_name(tasks: tuple[PlanQuery, ...]) -> dict[str, PlanQuery]:
    found = {task.name: task for task in tasks}
    assert len(found) == len(tasks)
    return found


def shapes(tasks: tuple[PlanQuery, ...]) -> dict[str, tuple[int, dict[str, Any]]]:
    """Runs and what is not the context, by name."""
    context = {"device", "dtype", "topology"}
    return {
        task.name: (
            task.multiplicity,
            {name: value for name, value in task.query.items() if name not in context},
        )
        for task in tasks
    }


def test_a_decoding_step_of_llama_2_70b_on_four_ranks() -> None:
    """64 query heads over 8 kv heads: 16 and 2 on each of four ranks."""
    tasks = inference_tasks(LLAMA_2_70B, setting("decode", 64, 2048, 4), A100)
    heads = {"query_heads": 16, "kv_heads": 2, "head_size": 128}
    assert shapes(tasks) == {
        "embedding": (
            1,
            {
                "operation": "embedding",
                "tokens": 64,
                "hidden_size": 8192,
                "vocabulary_size": 8000,
            },
        ),
        "embedding-all-reduce": (
            1,
            {"operation": "all_reduce", "message_bytes": 1048576, "participants": 4},
        ),
        "norm": (
            160,
            {"operation": "norm", "tokens": 64, "hidden_size": 8192, "norm_kind": "rms"},
        ),
        "qkv-projection": (80, {"operation": "gemm", "m": 64, "n": 2560, "k": 8192}),
        "rope": (80, {"operation": "rope", "tokens": 64, **heads}),
        "kv-cache-save": (
            80,
            {
                "operation": "kv_cache_save",
                "tokens": 64,
                "kv_heads": 2,
                "head_size": 128,
                "kv_cache_dtype": "float16",
            },
        ),
        "attention": (
            80,
            {
                "operation": "attention_decode",
                "batch_size": 64,
                **heads,
                "kv_cache_length": 2048,
                "window_size": 0,
                "kv_cache_dtype": "float16",
            },
        ),
        "output-projection": (80, {"operation": "gemm", "m": 64, "n": 8192, "k": 2048}),
        "mlp-up-and-gate": (80, {"operation": "gemm", "m": 64, "n": 14336, "k": 8192}),
        "activation": (
            80,
            {"operation": "elementwise", "elements": 458752, "elementwise_kind": "silu_mul"},
        ),
        "mlp-down": (80, {"operation": "gemm", "m": 64, "n": 8192, "k": 7168}),
        "all-reduce": (
            160,
            {"operation": "all_reduce", "message_bytes": 1048576, "participants": 4},
        ),
        "residual-add": (
            160,
            {"operation": "elementwise", "elements": 524288, "elementwise_kind": "add"},
        ),
        "final-norm": (
            1,
            {"operation": "norm", "tokens": 64, "hidden_size": 8192, "norm_kind": "rms"},
        ),
        "logits": (1, {"operation": "gemm", "m": 64, "n": 8000, "k": 8192}),
        "logits-gather": (
            1,
            {"operation": "all_gather", "message_bytes": 4096000, "participants": 4},
        ),
    }


def test_a_decoding_step_attends_to_one_more_token_than_is_cached() -> None:
    tasks = by_name(inference_tasks(LLAMA_2_70B, setting("decode", 1, 2048), A100))
    work = work_of("attention-decode/1", tasks["attention"].query)
    assert work.operations == 4 * 64 * 128 * 2049


def test_a_parallel_block_normalises_once() -> None:
    """Phi-2: attention and feed-forward read one input, so 32 norms, but two sums a block."""
    tasks = shapes(inference_tasks(PHI_2, setting("prefill", 2, 128), A100))
    norm = {"operation": "norm", "tokens": 256, "hidden_size": 2560, "norm_kind": "layer"}
    assert tasks["norm"] == (32, norm)
    assert tasks["final-norm"] == (1, norm)
    assert tasks["residual-add"][0] == 64
    assert tasks["qkv-projection"][1] == {"operation": "gemm", "m": 256, "n": 7680, "k": 2560}
    assert tasks["mlp-up"][1] == {"operation": "gemm", "m": 256, "n": 10240, "k": 2560}
    assert tasks["activation"][1] == {
        "operation": "elementwise",
        "elements": 2621440,
        "elementwise_kind": "gelu",
    }
    assert tasks["attention"][1]["query_length"] == 128
    assert tasks["attention"][1]["kv_cache_length"] == 0
    # Of each sequence only the last token has logits; one rank has no one to talk to.
    assert tasks["logits"][1] == {"operation": "gemm", "m": 2, "n": 51200, "k": 2560}
    assert not [name for name in tasks if "reduce" in name or "gather" in name]


def test_chunks_keep_the_cached_length_as_a_dimension() -> None:
    tasks = by_name(
        inference_tasks(
            LLAMA_2_70B, setting("prefill", 2, 2500, cached=500, chunk=800, ranks=2), A100
        )
    )
    attention = {
        name: (task.query["query_length"], task.query["kv_cache_length"])
        for name, task in tasks.items()
        if name.startswith("attention")
    }
    assert attention == {
        "attention-after-500": (800, 500),
        "attention-after-1300": (800, 1300),
        "attention-after-2100": (400, 2100),
    }
    # Two chunks of 800 tokens in each of two sequences, and one of 400.
    assert tasks["qkv-projection"].query["m"] == 1600
    assert tasks["qkv-projection"].multiplicity == 160
    assert tasks["qkv-projection-last"].query["m"] == 800
    assert tasks["qkv-projection-last"].multiplicity == 80
    assert tasks["logits"].query["m"] == 2


def test_chunks_do_the_work_of_the_whole() -> None:
    """Products are linear in tokens, and causal attention counts each pair once."""

    def operations(chunk: int | None) -> float:
        tasks = inference_tasks(LLAMA_2_70B, setting("prefill", 1, 1000, chunk=chunk), A100)
        formulas = {"gemm": "gemm/1", "attention_prefill": "attention-prefill/1"}
        return sum(
            task.multiplicity
            * work_of(formulas[str(task.query["operation"])], task.query).operations
            for task in tasks
            if task.query["operation"] in formulas
        )

    assert operations(300) == operations(None)


@pytest.mark.parametrize("model", [LLAMA_2_70B, PHI_2])
def test_products_do_two_operations_for_each_weight_and_token(model: TransformerModel) -> None:
    """Over all ranks; the embedding is looked up, not multiplied."""
    ranks = 4
    tasks = inference_tasks(model, setting("decode", 8, 10, ranks), A100)
    done = ranks * sum(
        task.multiplicity * work_of("gemm/1", task.query).operations
        for task in tasks
        if task.query["operation"] == "gemm"
    )
    attention = (2 * model.query_heads + 2 * model.kv_heads) * model.head_size
    feedforward = (3 if model.is_gated else 2) * model.feedforward_size
    weights = model.blocks * model.hidden_size * (attention + feedforward)
    assert done == 2 * 8 * (weights + model.hidden_size * model.vocabulary_size)


def test_few_kv_heads_are_copied_to_every_rank() -> None:
    tasks = by_name(inference_tasks(LLAMA_2_70B, setting("decode", 1, 1, 16), A100))
    assert tasks["attention"].query["kv_heads"] == 1
    assert tasks["qkv-projection"].query["n"] == (4 + 2) * 128


@pytest.mark.parametrize(
    ("ranks", "text"),
    [
        (3, "64 query heads and 8 key-value heads and 28672 feed-forward columns"),
        (128, "64 query heads of"),
    ],
)
def test_a_split_head_is_refused(ranks: int, text: str) -> None:
    with pytest.raises(UsageError, match=text) as caught:
        inference_tasks(LLAMA_2_70B, setting("decode", 1, 1, ranks), A100)
    assert caught.value.code == "does-not-divide"


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        (setting("decode", 1, 8, chunk=4), "conflicting-options"),
        (setting("decode", 1, 8, cached=4), "conflicting-options"),
        (setting("prefill", 1, 8, cached=8), "nothing-to-do"),
        (setting("prefill", 1, 100_000, chunk=1), "too-many-chunks"),
        (replace(setting("decode", 1, 8, 2), dtype="int4"), "no-element-size"),
    ],
)
def test_what_makes_no_sense_is_refused(wrong: Any, code: str) -> None:
    with pytest.raises(UsageError) as caught:
        inference_tasks(LLAMA_2_70B, wrong, A100)
    assert caught.value.code == code


def test_one_operation_may_state_something_else() -> None:
    context = QueryContext(
        everywhere={**A100.everywhere, "runtime": "trtllm"},
        collectives={"topology": "dgx_a100"},
        by_operation={"all_gather": {"runtime": "nccl", "topology": None}},
    )
    tasks = by_name(inference_tasks(LLAMA_2_70B, setting("decode", 1, 1, 2), context))
    assert tasks["norm"].query["runtime"] == "trtllm"
    assert "topology" not in tasks["norm"].query
    assert tasks["all-reduce"].query["topology"] == "dgx_a100"
    assert tasks["logits-gather"].query["runtime"] == "nccl"
    assert "topology" not in tasks["logits-gather"].query


@pytest.mark.parametrize("model", [LLAMA_2_70B, PHI_2])
@pytest.mark.parametrize("phase", ["prefill", "decode"])
def test_every_task_can_be_asked(tmp_path: Path, model: TransformerModel, phase: str) -> None:
    vocabulary = PerformanceDatabase.open(ROOT, cache_directory=tmp_path).worktree().vocabulary
    for task in inference_tasks(model, setting(phase, 3, 700, 4), A100):
        assert list(query_faults(task.query, vocabulary)) == []
        # Nothing of a shape is left open.
        entry = vocabulary.operations[str(task.query["operation"])]
        assert set(entry.shape) <= set(task.query)

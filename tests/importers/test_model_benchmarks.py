"""llama-bench, vLLM, SGLang and MLPerf: directions, failed requests, runs that are not valid."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest

from perfdb_git.errors import InvalidInputError, InvalidRowsError
from perfdb_git.operations.directions import direction_of
from tests.importers.tool_evidence import ToolEvidence

H100 = "device=h100"


def llama_row(**changes: Any) -> dict[str, Any]:
    """Make a row with the keys of llama-bench's JSON."""
    row: dict[str, Any] = {
        "build_commit": "c46583b",
        "build_number": 5882,
        "cpu_info": "Example CPU",
        "gpu_info": "NVIDIA H100 80GB HBM3",
        "backends": "CUDA",
        "model_filename": "/home/alice/models/llama.gguf",
        "model_type": "llama 7B Q4_0",
        "model_size": 3825065984,
        "n_threads": 8,
        "flash_attn": -1,
        "n_prompt": 512,
        "n_gen": 0,
        "n_depth": 0,
        "test_time": "2026-03-29T08:00:00Z",
        "avg_ns": 70000000,
        "stddev_ns": 1000000,
        "avg_ts": 7314.29,
        "stddev_ts": 104.5,
        "samples_ns": [69000000, 70000000, 71000000],
        "samples_ts": [7420.29, 7314.29, 7211.27],
    }
    return {**row, **changes}


GENERATION = {
    "n_prompt": 0,
    "n_gen": 128,
    "avg_ns": 1280000000,
    "avg_ts": 100.0,
    "stddev_ts": 0.5,
    "samples_ns": [1280000000],
    "samples_ts": [100.0],
}


@pytest.mark.parametrize("lines", [False, True])
def test_llama_bench_json(tools: ToolEvidence, lines: bool) -> None:
    rows = [llama_row(), llama_row(**GENERATION), llama_row(n_gen=128)]
    text = "\n".join(map(json.dumps, rows)) if lines else json.dumps(rows)
    taken = tools.take(tools.put("a.json", text))
    assert taken.file.importer == "llama-bench/1"
    item = taken.one(operation="llm_prefill")
    assert item.column("latency", "sample") == [[69000000, 70000000, 71000000]]
    assert item.column("throughput", "sample") == [[7420.29, 7314.29, 7211.27]]
    assert item.context["prompt_tokens"] == 512
    assert item.context["context_tokens"] == 0
    assert item.context["runtime_revision"] == "c46583b"
    assert item.context["device"] == "h100_80g"
    assert item.source["keys"]["flash_attn"] == -1
    assert item.source["measured_at"] == "2026-03-29T08:00:00Z"
    assert "together are no one operation" in item.source["skipped"][0]
    assert taken.one(operation="llm_decode").context["output_tokens"] == 128
    assert "alice" not in taken.texts()
    assert direction_of("throughput", "tokens/s") == "higher"


def test_llama_bench_csv_has_no_samples(tools: ToolEvidence) -> None:
    row = llama_row()
    del row["samples_ns"], row["samples_ts"]
    stream = io.StringIO()
    writer = csv.DictWriter(stream, row, quoting=csv.QUOTE_ALL)
    writer.writeheader()
    writer.writerow(row)
    text = stream.getvalue().replace('"', "", 2 * len(row))
    taken = tools.take(tools.put("a.csv", text))
    item = taken.one(operation="llm_prefill")
    assert item.column("latency", "mean") == [70000000]
    assert item.column("throughput", "std") == [104.5]
    assert item.document["protocol"]["repetitions"] is None
    assert "summary-only" in taken.codes()


def test_llama_bench_rates_of_another_unit_are_bad_rows(tools: ToolEvidence) -> None:
    path = tools.put_json("a.json", [llama_row(avg_ns=70000)])
    with pytest.raises(InvalidRowsError) as caught:
        tools.take(path)
    assert "512 tokens in 70000 ns are not 7314.29 tokens/s" in caught.value.rows[0]


def test_llama_bench_times_without_their_rates_are_bad_rows(tools: ToolEvidence) -> None:
    path = tools.put("a.json", json.dumps([llama_row(samples_ts=[7420.29, 7314.29])]))
    with pytest.raises(InvalidRowsError) as caught:
        tools.take(path)
    assert caught.value.rows == ("a.json: row 0: has 3 times and 2 rates",)


def serving(**changes: Any) -> dict[str, Any]:
    """Make a result with the keys of vLLM's ``bench serve --save-result --save-detailed``."""
    value: dict[str, Any] = {
        "date": "20260329-100000",
        "endpoint_type": "vllm",
        "backend": "vllm",
        "model_id": "/home/alice/models/llama",
        "num_prompts": 3,
        "request_rate": "inf",
        "max_concurrency": None,
        "duration": 2.5,
        "completed": 2,
        "total_input_tokens": 100,
        "total_output_tokens": 50,
        "request_throughput": 0.8,
        "output_throughput": 20.0,
        "total_token_throughput": 60.0,
        "mean_ttft_ms": 150.0,
        "median_ttft_ms": 150.0,
        "std_ttft_ms": 50.0,
        "p99_ttft_ms": 199.0,
        "mean_tpot_ms": 10.0,
        "mean_itl_ms": 9.5,
        "mean_e2el_ms": 400.0,
        "ttfts": [0.1, 0.0, 0.2],
        "errors": ["", "timed out", ""],
        "generated_texts": ["private", "", "private"],
    }
    return {**value, **changes}


def test_a_vllm_result(tools: ToolEvidence) -> None:
    taken = tools.take(tools.put_json("a.json", serving()), H100)
    item = taken.one(operation="llm_serving")
    assert item.column("first_token_latency", "sample") == [[100, 200]]
    assert item.column("first_token_latency", "population_std") == [50]
    assert item.column("request_throughput", "mean") == [0.8]
    assert item.column("total_throughput", "mean") == [60]
    assert item.context["request_rate"] is None
    assert item.source["keys"]["request_rate"] == "inf"
    assert item.source["measured_at"] is None
    assert {"failed-requests", "zone-unknown"} <= taken.codes()
    for name in ("alice", "private", "timed out"):
        assert name not in taken.texts()
    units = {c["name"]: c["unit"] for c in item.document["columns"] if c["role"] == "metric"}
    assert direction_of("first_token_latency", "s") == "lower"
    assert units["first_token_latency"] == "ms"


def test_sglang_lines_need_the_model(tools: ToolEvidence) -> None:
    row = serving(mean_e2e_latency_ms=400.0, request_rate=4.0)
    for key in ("model_id", "endpoint_type", "mean_e2el_ms", "date", "ttfts", "errors"):
        del row[key]
    rows = [row, {**row, "request_rate": 8.0}, {**row, "completed": 0}]
    path = tools.put("a.jsonl", "\n".join(map(json.dumps, rows)))
    with pytest.raises(InvalidInputError, match="does not say model"):
        tools.take(path, H100)
    taken = tools.take(path, H100, "model=llama-3-8b")
    assert taken.file.tool == "sglang-bench"
    item = taken.one(operation="llm_serving")
    assert item.column("request_rate") == [4, 8]
    assert item.column("end_to_end_latency", "mean") == [400, 400]
    assert "no request was completed" in item.source["skipped"][0]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"request_throughput": 800.0}, "2 requests in 2.5 s are not 800 requests a second"),
        ({"mean_ttft_ms": 0.15}, "its ttfts have a mean of 150 ms, and it states 0.15 ms"),
        ({"completed": 3}, "3 requests in 2.5 s are not 0.8"),
    ],
)
def test_serving_figures_that_contradict_each_other(
    tools: ToolEvidence, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidRowsError) as caught:
        tools.take(tools.put_json("a.json", serving(**changes)), H100)
    assert message in caught.value.rows[0]


MLPERF = """================================================
MLPerf Results Summary
================================================
SUT name : PySUT
Scenario : Offline
Mode     : PerformanceOnly
Samples per second: 33.6903
Result is : VALID
  Min duration satisfied : Yes

================================================
Additional Stats
================================================
Min latency (ns)                : 16325180169
Mean latency (ns)               : 16325180170
50.00 percentile latency (ns)   : 16325180169
97.00 percentile latency (ns)   : 16325180169
99.90 percentile latency (ns)   : 16325180171

================================================
Test Parameters Used
================================================
samples_per_query : 550
target_qps : 50
min_duration (ms): 10000
qsl_rng_seed : 13281865557512327830
"""


def test_mlperf(tools: ToolEvidence) -> None:
    path = tools.put("mlperf_log_summary.txt", MLPERF)
    with pytest.raises(InvalidInputError, match="does not say model"):
        tools.take(path, H100)
    taken = tools.take(path, H100, "model=resnet50")
    item = taken.one(scenario="offline")
    assert item.column("sample_throughput", "mean") == [33.6903]
    assert item.column("latency", "p999") == [16325180171]
    assert item.source["keys"]["min_duration_ms"] == 10000
    assert "13281865557512327830" not in taken.texts()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("VALID", "INVALID", "whose result is INVALID"),
        ("PerformanceOnly", "AccuracyOnly", "not for performance"),
        ("Offline", "Edge", "scenario 'Edge'"),
    ],
)
def test_mlperf_runs_that_are_no_evidence(
    tools: ToolEvidence, old: str, new: str, message: str
) -> None:
    path = tools.put("a.txt", MLPERF.replace(old, new))
    with pytest.raises(InvalidInputError, match=message):
        tools.take(path, H100, "model=resnet50")


TOKENS = """Mean First Token latency (ns)               : 200000
50.00 percentile first token latency (ns)   : 190000
99.00 percentile first token latency (ns)   : 290000
Mean Time to Output Token (ns)              : 20000
99.90 percentile time to output token (ns)  : 29000
"""


def test_times_of_tokens_since_version_4(tools: ToolEvidence) -> None:
    text = MLPERF.replace("97.00 percentile latency", TOKENS + "97.00 percentile latency")
    taken = tools.take(tools.put("a.txt", text), H100, "model=llama")
    item = taken.one(scenario="offline")
    assert item.column("first_token_latency", "mean") == [200000]
    assert item.column("first_token_latency", "median") == [190000]
    assert item.column("first_token_latency", "p99") == [290000]
    assert item.column("per_output_token_latency", "mean") == [20000]
    assert item.column("per_output_token_latency", "p999") == [29000]
    assert item.column("latency", "mean") == [16325180170]

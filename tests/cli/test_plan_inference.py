"""`perfdb plan inference` and `perfdb plan sensitivity`, as a user runs them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.cli.evidence import ROOT, Evidence, Result, envelope
from tests.cli.shipped import shipped_a100

MODEL = ROOT / "docs/examples/llama-2-70b.yaml"
GUIDE = (ROOT / "docs/workloads.md").read_text(encoding="utf-8")
TWO_RANKS = ("--tp", "2", "--topology", "dgx_a100", "--per-node", "2")
DECODE = ("--phase", "decode", "--batch", "100", "--context", "2048")
PREFILL = ("--phase", "prefill", "--batch", "1", "--context", "4000", "--chunk", "1024")
PLAN = "pipelines/plans/step.yaml"


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Evidence:
    """A100 evidence that no test changes."""
    return shipped_a100(tmp_path_factory.mktemp("shipped"))


@pytest.fixture
def writable(shipped: Evidence, tmp_path: Path) -> Evidence:
    """The same for one test alone."""
    for path in (shipped.path, shipped.cache):
        shutil.copytree(path, tmp_path / path.name)
    return Evidence(tmp_path / shipped.path.name, tmp_path / shipped.cache.name, shipped.clock)


def inference(evidence: Evidence, *options: str, model: Path = MODEL) -> Result:
    return evidence.perfdb("plan", "inference", "--model", str(model), "--device", "a100", *options)


def tasks(data: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {query["name"]: query for query in data["queries"]}


def guide_block(heading: str) -> list[str]:
    """Return the first block of output under a heading, less its commit."""
    block = GUIDE.split(f"## {heading}\n")[1].split("```text\n")[1].split("\n```")[0]
    return [line for line in block.splitlines() if not line.startswith("  commit")]


def without_commit(text: str) -> list[str]:
    return [line for line in text.splitlines() if not line.startswith("  commit")]


def test_the_guide_shows_this_estimate(shipped: Evidence) -> None:
    printed = inference(shipped, *TWO_RANKS, *DECODE, "--explain")
    assert printed.status == 0
    shown = guide_block("Inference")
    lines = without_commit(printed.out)
    assert shown == lines[: len(shown)]
    # Then come the queries.
    text = " ".join(" ".join(lines[len(shown) :]).split())
    assert "operation=gemm device=a100_80g dtype=float16 m=100 n=5120 k=8192" in text
    assert shipped.git("rev-parse", "HEAD") in printed.out
    assert printed.err == "perfdb: warning: bounds, not expectations, answer 1 of 16 tasks\n"


def test_the_guide_shows_these_sources(shipped: Evidence) -> None:
    printed = shipped.perfdb("plan", "sensitivity", "llama-2-70b-decode-100-a100")
    assert (printed.status, printed.err) == (0, "")
    assert guide_block("Sensitivity") == without_commit(printed.out)


def test_the_envelope_holds_every_answer(shipped: Evidence) -> None:
    data = envelope(inference(shipped, *TWO_RANKS, *DECODE, "--json"))["data"]
    found = tasks(data)
    assert len(found) == data["coverage"]["tasks"] == 16
    total = sum(item["multiplicity"] * item["answer"]["value"] for item in found.values())
    assert data["result"]["value"] == pytest.approx(total, rel=1e-12)
    assert data["coverage"]["answered_s"] == data["result"]["value"]
    attention = found["attention"]["answer"]
    assert attention["method"] == "measured"
    assert attention["record_ids"][0].startswith("f74fe6df3844")
    assert found["qkv-projection"]["answer"]["calibration"].startswith("ad4f7b94b047")
    shares = {item["method"]: item["share"] for item in data["coverage"]["methods"]}
    assert sum(shares.values()) == pytest.approx(1)
    assert data["model_digest"].startswith("sha256:")
    assert data["setting"]["context"] == 2048
    # No bound of the whole is made up where a part states none.
    assert data["result"]["uncertainty"] is None
    assert data["coverage"]["without_spread"] == ["kv-cache-save", "logits", "logits-gather"]
    assert data["coverage"]["lower_bounds"] == ["kv-cache-save"]


def test_a_task_costs_the_same_alone(shipped: Evidence) -> None:
    data = envelope(inference(shipped, *TWO_RANKS, *PREFILL, "--json"))["data"]
    queries = {query["name"]: query["query"] for query in data["plan"]["queries"]}
    for name in ("attention-after-2048", "all-reduce-last"):
        pairs = [f"{key}={value}" for key, value in queries[name].items()]
        alone: Any = envelope(shipped.perfdb("resolve", *pairs, "--json"))["data"]
        answer = tasks(data)[name]
        assert alone["query_digest"] == answer["query_digest"]
        assert alone["estimate"]["metrics"]["latency"]["value"] == answer["answer"]["value"]
    assert queries["attention-after-2048"]["kv_cache_length"] == 2048


def test_a_refused_task_is_no_zero(shipped: Evidence) -> None:
    """Two topologies are recorded, and the question does not say which."""
    result = inference(shipped, "--tp", "4", *DECODE)
    assert result.status == 4
    assert "no total   2 tasks of 16 refused" in result.out
    assert "refused      all-reduce (160 runs): ambiguous-context:" in result.out
    assert "topology = dgx_a100 or pairwise_nvlink" in " ".join(result.out.split())
    assert "refused 2 (time unknown)" in " ".join(result.out.split())
    printed = inference(shipped, "--tp", "4", *DECODE, "--json")
    data = envelope(printed)["data"]
    assert (printed.status, data["result"]["value"]) == (4, None)
    refused = {item["name"] for item in data["coverage"]["refused"]}
    assert refused == {"embedding-all-reduce", "all-reduce"}
    answered = [item for item in data["queries"] if item["answer"] is not None]
    time = sum(item["multiplicity"] * item["answer"]["value"] for item in answered)
    assert data["coverage"]["answered_s"] == pytest.approx(time)
    assert len(answered) == 14


def test_one_operation_may_be_asked_otherwise(shipped: Evidence) -> None:
    options = ("--given", "all_reduce:topology=pairwise_nvlink", "--given", "gemm:dtype=null")
    data = envelope(inference(shipped, *TWO_RANKS, *DECODE, *options, "--json"))["data"]
    queries = {query["name"]: query["query"] for query in data["plan"]["queries"]}
    assert queries["all-reduce"]["topology"] == "pairwise_nvlink"
    assert queries["logits-gather"]["topology"] == "dgx_a100"
    assert "dtype" not in queries["logits"]


def test_the_queries_can_be_written_locked_and_verified(evidence: Evidence) -> None:
    result = inference(evidence, *TWO_RANKS, *PREFILL, "--write", "step")
    assert result.status == 0
    assert f"plan         {PLAN}; commit it" in result.out
    assert evidence.perfdb("check", "--worktree").status == 0
    evidence.commit("a plan")
    asked = envelope(inference(evidence, *TWO_RANKS, *PREFILL, "--json"))["data"]
    assert evidence.perfdb("plan", "lock", "step").status == 0
    lock = "pipelines/plans/step.lock.json"
    assert json.loads((evidence.path / lock).read_bytes())["result"] == asked["result"]
    assert "equal" in evidence.perfdb("plan", "verify", lock).out.splitlines()[0]
    # The same again changes nothing; something else is not written over it.
    before = (evidence.path / PLAN).read_bytes()
    assert inference(evidence, *TWO_RANKS, *PREFILL, "--write", "step").status == 0
    other = inference(evidence, *TWO_RANKS, *DECODE, "--write", "step")
    assert (other.status, "stands there already" in other.err) == (2, True)
    assert (evidence.path / PLAN).read_bytes() == before


def test_the_commit_decides(writable: Evidence) -> None:
    first = writable.git("rev-parse", "HEAD")
    folder = writable.path / "evidence/records/a100_80g/attention_decode"
    for path in folder.iterdir():
        path.unlink()
    writable.commit("without attention")
    then = inference(writable, *TWO_RANKS, *DECODE, "--at", first, "--json")
    now = inference(writable, *TWO_RANKS, *DECODE, "--json")
    methods = [
        tasks(envelope(result)["data"])["attention"]["answer"]["method"] for result in (then, now)
    ]
    assert methods == ["measured", "calibrated"]


CONFIG = {
    "model_type": "mistral",
    "hidden_act": "silu",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "num_key_value_heads": 8,
    "vocab_size": 32000,
}


def test_a_configuration_is_a_model(evidence: Evidence, tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(CONFIG))
    accepted = inference(evidence, *DECODE, "--dtype", "fp16", "--json", model=path)
    assert envelope(accepted)["data"]["model"]["kv_heads"] == 8
    # The element type stands nowhere then.
    result = inference(evidence, *DECODE, model=path)
    assert (result.status, "states no element type" in result.err) == (2, True)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"num_local_experts": 8}, "num_local_experts (a mixture of experts)"),
        ({"sliding_window": 4096}, "sliding_window (a sliding attention window)"),
    ],
)
def test_a_model_that_is_not_counted_is_refused(
    evidence: Evidence, tmp_path: Path, changes: dict[str, Any], named: str
) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**CONFIG, **changes}))
    result = inference(evidence, *DECODE, "--dtype", "fp16", "--json", model=path)
    answer = envelope(result)
    assert (result.status, answer["data"]) == (3, None)
    assert answer["messages"][0]["code"] == "unsupported-model"
    assert named in answer["messages"][0]["text"]


@pytest.mark.parametrize(
    ("options", "status", "text"),
    [
        (("--tp", "3", *DECODE), 2, "cannot be split over 3 ranks"),
        ((*DECODE, "--chunk", "5"), 2, "chunks and cached tokens belong to a prefill"),
        ((*DECODE, "--dtype", "fp17"), 2, "unknown dtype 'fp17'"),
        ((*DECODE, "--given", "gem:m=1"), 2, "'gem:m=1' is not OPERATION:KEY=VALUE"),
        ((*DECODE, "--given", "gemm:tokens=1"), 3, "gemm"),
        ((*DECODE, "--write", "Not A Name"), 3, "name"),
        ((*DECODE, "--policy", "other"), 3, "other"),
    ],
)
def test_what_cannot_be_asked_is_said(
    evidence: Evidence, options: tuple[str, ...], status: int, text: str
) -> None:
    result = inference(evidence, *options)
    assert (result.status, result.out) == (status, "")
    assert text in result.err
    assert "Traceback" not in result.err


def test_sensitivity_for_programs(shipped: Evidence) -> None:
    printed = shipped.perfdb(
        "plan", "sensitivity", "llama-2-70b-decode-64-a100", "--by", "session", "--json"
    )
    data = envelope(printed)["data"]
    assert (printed.status, data["way"], data["step"]) == (0, "sum", 0.01)
    assert {one["kind"] for one in data["dependences"]} == {"session"}
    changes = [one["change_s"] for one in data["dependences"]]
    assert sum(changes) == pytest.approx(0.01 * data["result"]["value"])
    assert changes == sorted(changes, reverse=True)


def test_sensitivity_needs_every_answer(writable: Evidence) -> None:
    inference(writable, "--tp", "4", *DECODE, "--write", "step")
    writable.commit("a plan without a total")
    result = writable.perfdb("plan", "sensitivity", "step")
    assert (result.status, result.out) == (4, "")
    assert "all-reduce (ambiguous-context)" in result.err

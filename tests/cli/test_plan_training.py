"""`perfdb plan training`: the answer, its queries, and the refusals."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.evidence import ROOT, Evidence, Result, envelope

MODEL = ROOT / "docs/examples/gpt3-175b.json"
EXECUTION = ROOT / "docs/examples/selene-64-seqsel.json"
SYSTEM = "a100-80g-calculon"
PROFILE = f"profiles/systems/{SYSTEM}.json"


@pytest.fixture
def repository(new_evidence: Callable[[], Evidence]) -> Evidence:
    made = new_evidence()
    made.commit("start")
    return made


def plan(repository: Evidence, *options: str, **files: Path) -> Result:
    model, execution = files.get("model", MODEL), files.get("execution", EXECUTION)
    return repository.perfdb(
        "plan", "training", "--model", str(model), "--execution", str(execution), *options
    )


def test_the_total_and_its_parts(repository: Evidence) -> None:
    result = plan(repository, "--system", SYSTEM)
    assert (result.status, result.err) == (0, "")
    assert "GPT-3 175B on 64 x a100_80g: 13.64 s a batch (modelled)" in result.out
    assert "pipeline bubble    479.0 ms   3.51 %" in result.out
    assert "24 distinct queries to analytical/" in result.out
    assert repository.git("rev-parse", "HEAD") in result.out
    # Parts that are zero are not shown.
    assert "offload" not in result.out


def test_the_envelope_holds_every_task(repository: Evidence) -> None:
    data = envelope(plan(repository, "--system", SYSTEM, "--json"))["data"]
    assert data["estimate"]["times"]["total_s"] == pytest.approx(13.6380643043, rel=1e-10)
    assert data["method"] == "analytical"
    assert data["system"]["digest"].removeprefix("sha256:")[:12] in data["provider"]
    tasks = {(task["name"], task["phase"]): task for task in data["tasks"]}
    query = tasks["attention.query", "forward"]["query"]
    assert query == {
        "operation": "gemm",
        "shape": {"m": 2048, "n": 1536, "k": 12288},
        "dtype": "float16",
        "device": "a100_80g",
        "engine": "matrix",
        "operations": 2 * 2048 * 1536 * 12288,
        "bytes_moved": 2 * (2048 * 12288 + 12288 * 1536 + 2048 * 1536),
    }
    assert tasks["attention.query", "weight_gradient"]["query"]["shape"] == {
        "m": 12288,
        "n": 1536,
        "k": 2048,
    }
    message = tasks["mlp.gather.message", "forward"]
    assert message["runs"] == 64 * 96 // 8
    assert message["query"]["network"] == "nvlink"
    assert message["query"]["participants"] == 8
    assert message["query"]["message_bytes"] == 2 * 2048 * 12288


def test_a_task_costs_the_same_alone(repository: Evidence) -> None:
    data = envelope(plan(repository, "--system", SYSTEM, "--json"))["data"]
    tasks = {(task["name"], task["phase"]): task for task in data["tasks"]}

    def alone(*pairs: str) -> float:
        answer = repository.perfdb("resolve", *pairs, "device=a100", "--json")
        estimate: Any = envelope(answer)["data"]["estimate"]
        assert estimate["provenance"]["provider"] == "analytical"
        value: float = estimate["metrics"]["latency"]["value"]
        return value

    gemm = ("operation=gemm", "dtype=fp16", "m=2048", "n=1536", "k=12288")
    assert alone(*gemm) == tasks["attention.query", "forward"]["latency_s"]
    gather = ("operation=all_gather", "participants=8", f"message_bytes={2 * 2048 * 12288}")
    assert alone(*gather) == tasks["mlp.gather.message", "forward"]["latency_s"]


def test_explain_lists_the_queries(repository: Evidence) -> None:
    text = " ".join(plan(repository, "--system", SYSTEM, "--explain").out.split())
    assert (
        "operation=gemm m=2048 n=6144 k=12288 engine=matrix operations=309237645312 "
        "bytes_moved=226492416" in text
    )
    assert "operation=send_recv network_tier=1 network=infiniband participants=2" in text


def test_the_commit_decides_about_the_system(repository: Evidence) -> None:
    first = repository.git("rev-parse", "HEAD")
    profile = json.loads((repository.path / PROFILE).read_text())
    profile["engines"]["matrix"]["float16"]["peak_tops"] = 624
    profile["version"] = "2"
    repository.write(PROFILE, json.dumps(profile).encode())
    repository.commit("a faster one")
    before = envelope(plan(repository, "--system", SYSTEM, "--at", first, "--json"))["data"]
    after = envelope(plan(repository, "--system", SYSTEM, "--json"))["data"]
    assert before["estimate"]["times"]["total_s"] == pytest.approx(13.6380643043, rel=1e-10)
    assert after["estimate"]["times"]["total_s"] < 11
    assert before["provider"] != after["provider"]


def edited(path: Path, target: Path, **changes: Any) -> Path:
    value = json.loads(path.read_text())
    for name, change in changes.items():
        value[name] = {**value[name], **change} if isinstance(change, dict) else change
    target.write_text(json.dumps(value))
    return target


@pytest.mark.parametrize(
    ("changes", "status", "code"),
    [
        ({"dtype": "float32"}, 4, "no-rate"),
        ({"microbatch_size": 4}, 4, "memory-too-small"),
        ({"pipeline_parallel": {"network_tier": 0}}, 4, "no-network"),
        ({"processors": 65}, 3, "inconsistent-execution"),
        ({"recompute": "sometimes"}, 3, "wrong-choice"),
    ],
)
def test_refusals_have_codes(
    repository: Evidence, tmp_path: Path, changes: dict[str, Any], status: int, code: str
) -> None:
    execution = edited(EXECUTION, tmp_path / "execution.json", **changes)
    result = plan(repository, "--system", SYSTEM, "--json", execution=execution)
    assert result.status == status
    answer = envelope(result)
    assert answer["data"] is None
    assert answer["messages"][0]["code"] == code


def test_an_unknown_system_or_file_is_named(repository: Evidence) -> None:
    result = plan(repository, "--system", "tpu9")
    assert (result.status, "tpu9" in result.err) == (3, True)
    result = plan(repository, "--system", SYSTEM, model=Path("none.json"))
    assert (result.status, "none.json cannot be read" in result.err) == (2, True)


def test_a_document_may_be_yaml(repository: Evidence, tmp_path: Path) -> None:
    value = json.loads(MODEL.read_text())
    lines = [f"{key}: {json.dumps(item)}" for key, item in value.items()]
    model = tmp_path / "model.yaml"
    model.write_text("\n".join(lines) + "\n")
    result = plan(repository, "--system", SYSTEM, model=model)
    assert "13.64 s a batch" in result.out


def test_open_efficiencies_are_said_to_be_a_bound(repository: Evidence) -> None:
    profile = json.loads((repository.path / PROFILE).read_text())
    profile["networks"][1]["latency_s"] = None
    repository.write(PROFILE, json.dumps(profile).encode())
    result = plan(repository, "--system", SYSTEM, "--worktree")
    assert "(a lower bound)" in result.out
    assert "times are lower bounds" in result.err
    assert "uncommitted files" in result.out


def test_the_guide_shows_this_output(repository: Evidence) -> None:
    guide = (ROOT / "docs/workloads.md").read_text()
    answer, tasks = (block.split("\n```")[0] for block in guide.split("```text\n")[1:3])
    printed = plan(repository, "--system", SYSTEM, "--explain").out
    shown = [line for line in answer.splitlines() if not line.startswith("  commit")]
    assert shown == printed.splitlines()[: len(shown)]
    assert len(shown) > 15
    # The tasks are an excerpt: each of its lines is one of the output.
    assert set(tasks.splitlines()) <= set(printed.splitlines())

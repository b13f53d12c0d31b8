"""`perfdb resolve` end to end, in processes and repositories of their own."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.evidence import GEMM, Evidence, envelope

OTHER_M = (*(pair for pair in GEMM if pair != "m=128"), "m=100")


def resolved(evidence: Evidence, *arguments: str, **options: Any) -> dict[str, Any]:
    """Return the data of a resolution that succeeded."""
    result = evidence.perfdb("resolve", *GEMM, "--json", *arguments, **options)
    value = envelope(result)
    assert (result.status, value["status"], result.err) == (0, "ok", "")
    data = value["data"]
    assert isinstance(data, dict)
    return data


def test_exact_answer_as_text(evidence: Evidence) -> None:
    commit = evidence.git("rev-parse", "HEAD")
    result = evidence.perfdb("resolve", *GEMM)
    assert (result.status, result.err) == (0, "")
    lines = result.out.splitlines()
    assert lines[0] == "2.872 ms   latency, measured, exact"
    assert len(lines) <= 30
    assert all(len(line) <= 100 for line in lines)
    for expected in (
        "[2.700, 3.055] ms (prediction, 90 %, n = 20, log-normal-from-median-std)",
        "#0  one",
        commit,
        "policy       default",
        "protocol     partial",
        "analytical           170.1 µs  lower-tier",
    ):
        assert expected in result.out
    assert "\x1b" not in result.out


def test_exact_answer_as_json(evidence: Evidence) -> None:
    data = resolved(evidence)
    assert data["snapshot"] == {"commit": evidence.git("rev-parse", "HEAD")}
    estimate = data["estimate"]
    assert estimate["metrics"]["latency"]["value"] == pytest.approx(2.872e-3)
    assert estimate["method"] == "measured"
    assert estimate["provenance"]["commit"] == data["snapshot"]["commit"]
    assert [item["provider"] for item in data["alternatives"]] == [
        "recorded-simulated",
        "calibrated",
        "analytical",
        "fallback",
    ]


def test_a_miss_names_the_nearest_context(evidence: Evidence) -> None:
    result = evidence.perfdb("resolve", *OTHER_M, "--method", "measured")
    assert result.status == 4
    assert result.out.startswith("no answer   no-admissible-evidence\n")
    assert "m=128 instead of 100  (0.36 octaves away, 1 record)" in result.out
    value = envelope(evidence.perfdb("resolve", *OTHER_M, "--method", "measured", "--json"))
    assert value["status"] == "no-evidence"
    assert value["data"]["estimate"] is None
    near = value["data"]["alternatives"][0]["near_misses"][0]
    assert near["changes"] == {"m": [128]}


def test_a_model_answers_where_no_record_does(evidence: Evidence) -> None:
    result = evidence.perfdb("resolve", *OTHER_M, "--explain")
    assert result.status == 0
    assert result.out.startswith("152.8 µs   latency, analytical, modelled\n")
    assert "parts        compute 59.75 µs, memory 93.02 µs" in result.out
    assert "nearest: m=128 instead of 100" in result.out
    assert "work by gemm/1" in result.out


def test_ambiguity_names_the_deciding_values(evidence: Evidence) -> None:
    rows = [(128, 10240, 8192, 3.0, 0.1, 20)]
    evidence.add_gemm("two", rows, context={"runtime": "trtllm"})
    evidence.add_gemm("three", rows, context={"runtime": "vllm"})
    evidence.commit("two runtimes")
    result = evidence.perfdb("resolve", *GEMM)
    assert result.status == 4
    assert result.out.startswith("no answer   ambiguous-context\n")
    assert "runtime = trtllm or vllm" in result.out
    assert "blocked: recorded evidence at a higher tier is ambiguous-context" in result.out
    decided = resolved(evidence, "runtime=vllm")
    assert decided["estimate"]["provenance"]["record_ids"][0].endswith("#0")


def test_a_conflict_is_shown_or_refused_by_policy(evidence: Evidence) -> None:
    evidence.add_gemm("two", [(128, 10240, 8192, 9.0, 0.1, 20)])
    evidence.commit("another session")
    shown = evidence.perfdb("resolve", *GEMM)
    assert shown.status == 0
    assert "conflict     latency: 2 sessions disagree by 213%" in shown.out
    policy = (evidence.path / "evidence/policies/default.yaml").read_text()
    strict = evidence.path.parent / "strict.yaml"
    strict.write_text(policy.replace("action: show", "action: refuse"))
    refused = evidence.perfdb("resolve", *GEMM, "--policy-file", str(strict))
    assert refused.status == 4
    assert refused.out.startswith("no answer   conflict\n")
    assert "marked       external-policy" in refused.out


def test_each_commit_keeps_its_answer(evidence: Evidence) -> None:
    first = evidence.git("rev-parse", "HEAD")
    before = resolved(evidence)
    record = before["estimate"]["provenance"]["record_ids"][0]
    evidence.retract(record)
    second = evidence.commit("retract")
    evidence.add_gemm("late", [(128, 10240, 8192, 7.0, 0.1, 20)])
    evidence.commit("late evidence")
    assert resolved(evidence, "--at", first) == before
    assert resolved(evidence, "--at", "HEAD~2") == before
    retracted = envelope(
        evidence.perfdb("resolve", *GEMM, "--method", "measured", "--at", second, "--json")
    )
    assert retracted["data"]["estimate"] is None
    late = resolved(evidence)
    assert late["estimate"]["metrics"]["latency"]["value"] == pytest.approx(7e-3)


def test_every_way_to_the_same_snapshot_gives_equal_data(evidence: Evidence) -> None:
    folder = evidence.path.parent
    commit = evidence.git("rev-parse", "HEAD")
    expected = resolved(evidence)
    assert resolved(evidence) == expected
    for damage in (b"", b"garbage", None):
        for file in [path for path in evidence.cache.rglob("*") if path.is_file()]:
            content = file.read_bytes()
            file.write_bytes(content[:-9] + b"\xff" + content[-8:] if damage is None else damage)
        assert resolved(evidence) == expected
    evidence.git("clone", "--quiet", "--bare", ".", str(folder / "bare"))
    evidence.git("clone", "--quiet", ".", str(folder / "clone"))
    evidence.git("worktree", "add", "--quiet", str(folder / "linked"), commit)
    for name in ("bare", "clone", "linked"):
        assert resolved(evidence, "--repo", str(folder / name), at=folder) == expected
    subfolder = evidence.path / "evidence/records"
    assert resolved(evidence, "--at", "main", at=subfolder) == expected
    assert resolved(evidence, PERFDB_CACHE_DIR=str(folder / "empty")) == expected
    blocked = folder / "file"
    blocked.write_text("no directory")
    result = evidence.perfdb("resolve", *GEMM, "--json", PERFDB_CACHE_DIR=str(blocked))
    value = envelope(result)
    assert value["data"] == expected
    assert [message["code"] for message in value["messages"]] == ["cache-not-writable"]


def test_the_work_tree_is_marked(evidence: Evidence) -> None:
    evidence.add_gemm("two", [(64, 10240, 8192, 1.5, 0.1, 20)])
    query = [*(pair for pair in GEMM if pair != "m=128"), "m=64", "--method", "measured"]
    assert evidence.perfdb("resolve", *query).status == 4
    result = evidence.perfdb("resolve", *query, "--worktree")
    assert result.status == 0
    assert "commit       none: uncommitted files of the work tree" in result.out
    assert "marked       uncommitted" in result.out
    value = envelope(evidence.perfdb("resolve", *query, "--worktree", "--json"))
    assert value["data"]["marks"] == ["uncommitted"]
    assert value["data"]["snapshot"] == {"commit": None}


def test_a_query_document(evidence: Evidence) -> None:
    expected = resolved(evidence)
    document = evidence.path.parent / "question.json"
    document.write_text(json.dumps(expected["query"]))
    result = evidence.perfdb("resolve", "--query", str(document), "--json")
    assert envelope(result)["data"] == expected
    limited = evidence.perfdb("resolve", "--query", str(document), "--max-age-days", "30")
    assert "age-unknown: its age is unknown and the age is limited" in limited.out
    both = evidence.perfdb("resolve", *GEMM, "--query", str(document))
    assert (both.status, both.out) == (2, "")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("--provider", "recorded"), "provider-not-admitted"),
        (("--method", "measured", "--method", "simulated"), "method-not-admitted"),
        (("--max-relative-uncertainty", "0.001"), "too-uncertain"),
        (("--no-fallback",), "fallback-not-allowed"),
    ],
)
def test_limits_tighten_the_policy(
    evidence: Evidence, arguments: tuple[str, ...], code: str
) -> None:
    value = envelope(evidence.perfdb("resolve", *GEMM, *arguments, "--json"))
    assert code in [item["code"] for item in value["data"]["alternatives"]]


def test_hostile_text_stays_text(new_evidence: Callable[[], Evidence], tmp_path: Path) -> None:
    evidence = new_evidence()
    rows = [(128, 10240, 8192, 2.0, 0.1, 20)]
    evidence.add_gemm("safe", rows, context={"layout": "\x1b[2J\u202eforged\nline"})
    evidence.commit("hostile layout")
    for result in (
        evidence.perfdb("resolve", *GEMM),
        evidence.perfdb("resolve", *GEMM, "--json"),
        evidence.perfdb("resolve", *GEMM, PYTHONIOENCODING="ascii"),
    ):
        assert result.status == 0
        assert "forged" in result.out
        assert "\x1b" not in result.out
        assert "\u202e" not in result.out
        assert "\nline" not in result.out

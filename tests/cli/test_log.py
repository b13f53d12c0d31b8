"""``perfdb log`` as a user runs it."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.evidence import GEMM, Evidence, envelope


@pytest.fixture
def lived(evidence: Evidence) -> Evidence:
    """Three sessions of one shape, the second one retracted, and commits without evidence."""
    for number, latency in ((2, 3.0), (3, 3.1)):
        evidence.add_gemm(f"s{number}", [(128, 10240, 8192, latency, 0.1, 20)])
        evidence.commit(f"session {number}")
        evidence.write("README.md", f"{number}".encode())
        evidence.commit("readme")
    return evidence


def data_of(evidence: Evidence, *arguments: str) -> dict[str, Any]:
    result = evidence.perfdb("log", *arguments, "--json")
    assert result.status == 0, result.err
    data: dict[str, Any] = envelope(result)["data"]
    return data


def test_json(lived: Evidence) -> None:
    data = data_of(lived, *GEMM)
    assert data["query"]["m"] == 128
    assert [step["summary"] for step in data["steps"]] == ["session 3", "session 2", "one session"]
    assert data["steps"][0]["commit"] == lived.git("rev-parse", "HEAD~1")
    assert [step["before"] is None for step in data["steps"]] == [False, False, True]
    assert data["steps"][0]["before"] == data["steps"][1]["after"]
    assert data["steps"][0]["reasons"][0]["kind"] == "new-records"
    assert (data["commits"], data["evaluated"], data["ends"]) == (5, 3, "root")
    assert "sources" not in data


def test_text(lived: Evidence) -> None:
    result = lived.perfdb("log", *GEMM, "--limit", "1")
    assert (result.status, result.err) == (0, "")
    assert result.out.startswith("3.000 ms [")
    assert "Ada Author: session 3" in result.out
    assert "session 2" not in result.out
    assert "--limit was reached" in result.out
    assert "1 record set added" in result.out


def test_sources_name_authors_and_no_addresses(lived: Evidence) -> None:
    for arguments in ((*GEMM, "--sources"), (*GEMM, "--sources", "--json")):
        result = lived.perfdb("log", *arguments)
        assert "Ada Author" in result.out
        assert "@example.org" not in result.out
    data = data_of(lived, *GEMM, "--sources")
    assert {source["session"]: source["summary"] for source in data["sources"]} == {
        "one": "one session",
        "s2": "session 2",
        "s3": "session 3",
    }
    assert all(source["path"].startswith("evidence/records/") for source in data["sources"])


def test_from_another_commit(lived: Evidence) -> None:
    data = data_of(lived, *GEMM, "--at", "HEAD~2")
    assert [step["summary"] for step in data["steps"]] == ["session 2", "one session"]


def test_options_of_resolve(lived: Evidence, tmp_path: Path) -> None:
    data = data_of(lived, *GEMM, "--method", "analytical")
    assert [step["after"]["method"] for step in data["steps"]] == ["analytical"]
    shape = {"m": 128, "n": 10240, "k": 8192}
    document = {
        "schema": "perfdb/query/v1",
        "workload": {"operation": "gemm", "dtype": "float16", "shape": shape},
        "deployment": {"device": "a100_80g"},
    }
    query = tmp_path / "question.json"
    query.write_text(json.dumps(document))
    assert data_of(lived, "--query", str(query)) == data_of(lived, *GEMM)
    policy = lived.path / "evidence/policies/default.yaml"
    outside = tmp_path / "outside.yaml"
    outside.write_text(policy.read_text().replace("level: 0.9", "level: 0.5"))
    wide, narrow = data_of(lived, *GEMM), data_of(lived, *GEMM, "--policy-file", str(outside))
    assert [len(wide["steps"]), len(narrow["steps"])] == [3, 3]
    levels = [data["answer"]["metrics"]["latency"]["level"] for data in (wide, narrow)]
    assert levels == [0.9, 0.5]


def test_a_shallow_clone_says_where_it_ends(lived: Evidence, tmp_path: Path) -> None:
    shallow = tmp_path / "shallow"
    lived.git("clone", "-q", "--depth", "2", f"file://{lived.path}", str(shallow))
    result = lived.perfdb("log", *GEMM, "--repo", str(shallow), "--sources")
    assert result.status == 0
    assert "this clone is shallow: its history ends after 2 commits" in result.err
    assert "before this shallow clone's history begins" in result.out


def test_never_an_answer(evidence: Evidence) -> None:
    result = evidence.perfdb("log", *GEMM, "--method", "simulated", "--json")
    assert (result.status, envelope(result)["status"]) == (4, "no-evidence")


@pytest.mark.parametrize(
    ("arguments", "status", "code"),
    [
        ((*GEMM, "--at", "nowhere"), 5, "unknown-revision"),
        (("operation=gemm", "colour=red"), 2, "unknown-dimension"),
        ((*GEMM, "--policy", "nothing"), 3, "unknown-policy"),
        ((*GEMM, "--policy", "a", "--policy-file", "README.md"), 2, "conflicting-options"),
    ],
)
def test_errors(lived: Evidence, arguments: tuple[str, ...], status: int, code: str) -> None:
    result = lived.perfdb("log", *arguments, "--json")
    assert (result.status, envelope(result)["messages"][0]["code"]) == (status, code)

"""`perfdb list`, `show`, `check`, `index`: what a snapshot holds and whether it is sound."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.evidence import GEMM, Evidence, envelope


def test_list_series(evidence: Evidence) -> None:
    evidence.add_gemm("two", [(64, 1, 1, 1.0, 0.1, 20)], measured_at="2024-05-01")
    sha256 = evidence.add_gemm("gone", [(32, 1, 1, 1.0, 0.1, 20)])
    evidence.retract(f"{sha256}#0")
    evidence.commit("more")
    result = evidence.perfdb("list")
    assert result.status == 0
    titles, row, *_, total = result.out.splitlines()
    assert titles.split()[:4] == ["device", "operation", "kind", "records"]
    assert row.split() == [
        *("a100_80g", "gemm", "measured", "3", "(-1)", "3", "3"),
        *("2024-05-01", "or", "unknown", "bench@7d47513"),
    ]
    assert total == f"1 series, 3 records at {evidence.git('rev-parse', 'HEAD')}"
    value = envelope(evidence.perfdb("list", "--json", "--at", "HEAD~1"))
    (series,) = value["data"]["entries"]
    assert (series["records"], series["retracted"], series["sessions"]) == (2, 0, ["one"])
    assert series["measured_from"] is None


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--what", "sets"), "1 set, 2 records at"),
        (("--what", "policies"), "Measurements first"),
        (("--what", "profiles"), "a100-80g-calculon"),
        (("--what", "operations"), "gemm m n k"),
        (("--device", "a100"), "1 series"),
        (("--device", "h100"), "no series at"),
        (("--device", "a100_sxm4_80g"), "no series at"),
        (("--operation", "all_reduce", "--what", "sets"), "no sets at"),
        (("--worktree",), "uncommitted files of the work tree"),
    ],
)
def test_list_the_rest(evidence: Evidence, arguments: tuple[str, ...], expected: str) -> None:
    result = evidence.perfdb("list", *arguments)
    assert (result.status, result.err) == (0, "")
    assert expected in " ".join(result.out.split())


def test_show_a_record_and_its_set(evidence: Evidence) -> None:
    (record,) = envelope(evidence.perfdb("resolve", *GEMM, "--json"))["data"]["estimate"][
        "provenance"
    ]["record_ids"]
    sha256 = record.partition("#")[0]
    text = evidence.perfdb("show", f"{sha256[:6]}#1").out
    assert text.startswith(f"record {sha256}#1\n")
    assert "latency      5.1 ms (median)" in text
    assert "clock_state: unknown" in text
    data = envelope(evidence.perfdb("show", record, "--json"))["data"]
    assert data["document"]["context"]["m"] == 128
    assert data["document"]["metrics"][0] == {
        "name": "latency",
        "statistic": "median",
        "value": 2.872,
        "unit": "ms",
    }
    whole = evidence.perfdb("show", sha256[:4], "--rows", "1")
    assert whole.out.startswith(f"record-set {sha256}\n")
    assert "1 of 2 rows" in whole.out
    assert evidence.perfdb("show", f"{sha256}#2").status == 2
    evidence.retract(record)
    evidence.commit("retract")
    assert "retracted: it answers no question" in evidence.perfdb("show", record).out


def test_show_names_and_digests(evidence: Evidence) -> None:
    (manifest,) = (evidence.path / "evidence/manifests").iterdir()
    for identifier, kind in (
        ("default", "policy"),
        ("a100-80g-calculon", "system-profile"),
        ("gemm", "operation"),
        ("dtype", "dimension"),
        (manifest.stem[:8], "manifest"),
    ):
        assert evidence.perfdb("show", identifier).out.startswith(f"{kind} ")
    data = envelope(evidence.perfdb("show", manifest.stem[:8], "--json"))["data"]
    assert (data["kind"], data["id"]) == ("manifest", manifest.stem)
    assert evidence.perfdb("show", "gemm", "--kind", "policy").status == 2


def test_check(evidence: Evidence) -> None:
    assert evidence.perfdb("check").out.startswith("no findings at ")
    (file,) = (evidence.path / "evidence/records").rglob("*.json")
    file.write_bytes(file.read_bytes().replace(b"2.872", b"-2.872"))
    assert evidence.perfdb("check").status == 0
    text = evidence.perfdb("check", "--worktree")
    assert text.status == 1
    assert "negative-metric" in text.out
    result = evidence.perfdb("check", "--worktree", "--json")
    value = envelope(result)
    assert (result.status, value["status"]) == (1, "findings")
    assert "negative-metric" in [finding["code"] for finding in value["data"]["findings"]]
    assert evidence.perfdb("check", "--worktree", "--format", "json").out == result.out
    github = evidence.perfdb("check", "--worktree", "--format", "github")
    assert github.status == 1
    assert github.out.startswith("::error file=evidence/records/a100_80g/gemm/one-")
    selected = evidence.perfdb("check", "--worktree", "--select", "vocabulary")
    assert selected.status == 0
    assert evidence.perfdb("check", "--select", "nonsense").status == 2


def test_index(cold_evidence: Evidence) -> None:
    evidence = cold_evidence
    before = envelope(evidence.perfdb("index", "status", "--json"))["data"]
    assert (before["indexed"], before["cache"]["segments"]) == (False, 0)
    built = envelope(evidence.perfdb("index", "build", "--json"))["data"]
    assert (built["records"], built["built"]) == (2, 1)
    after = envelope(evidence.perfdb("index", "status", "--json"))["data"]
    assert (after["indexed"], after["cache"]["segments"]) == (True, 1)
    assert envelope(evidence.perfdb("index", "build", "--json"))["data"]["built"] == 0
    assert evidence.perfdb("index", "build", "--jobs", "2").status == 0
    foreign = evidence.cache / "index" / "notes.txt"
    foreign.write_text("mine")
    assert evidence.perfdb("index", "clear").status == 0
    assert [path for path in evidence.cache.rglob("*") if path.is_file()] == [foreign]


def test_index_verify_and_gc(evidence: Evidence) -> None:
    clean = evidence.perfdb("index", "verify")
    assert clean.status == 0
    assert clean.out == "1 record set compared with Git, 0 not indexed, 0 index files wrong\n"
    (segment,) = evidence.cache.rglob("*.segment")
    segment.write_bytes(segment.read_bytes()[:-1])
    broken = evidence.perfdb("index", "verify", "--json")
    value = envelope(broken)
    assert (broken.status, value["status"]) == (1, "findings")
    (fault,) = value["data"]["faults"]
    assert (fault["file"].rpartition("/")[2], fault["fault"]) == (segment.name, "truncated")
    status = envelope(evidence.perfdb("index", "status", "--json"))["data"]
    assert (status["indexed"], status["indexed_record_sets"]) == (False, 0)
    assert evidence.perfdb("resolve", *GEMM).status == 0
    assert evidence.perfdb("index", "verify").out == clean.out

    kept = envelope(evidence.perfdb("index", "gc", "--json"))["data"]
    assert (kept["evicted"], kept["unfinished"]) == (0, 0)
    gone = envelope(evidence.perfdb("index", "gc", "--max-size", "0", "--json"))["data"]
    assert gone["evicted"] > 2
    assert gone["size"] == 0
    assert list(evidence.cache.rglob("*.segment")) == []
    assert evidence.perfdb("resolve", *GEMM).status == 0
    assert evidence.perfdb("index", "gc", "--max-size", "much").status == 2


def test_messages_go_to_standard_error(evidence: Evidence, tmp_path: Path) -> None:
    evidence.git("tag", "double")
    evidence.git("branch", "double")
    result = evidence.perfdb("list", "--at", "double")
    assert result.status == 0
    assert result.err.startswith("perfdb: warning: ")
    value = json.loads(evidence.perfdb("list", "--at", "double", "--json").out)
    assert [message["code"] for message in value["messages"]] == ["revision"]

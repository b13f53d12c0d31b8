"""`perfdb import aiconfigurator`: what it says, writes and commits, and what answers then."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.cli.evidence import Evidence, envelope
from tests.importers.aiconfigurator_tables import Wheel, table_of

pytest.importorskip("pyarrow")


@pytest.fixture
def database(new_evidence: Callable[[], Evidence]) -> tuple[Evidence, str]:
    """An empty repository, and a wheel with one mislabelled row and one repeat."""
    evidence = new_evidence()
    evidence.git("config", "user.name", "Ada Author")
    evidence.git("config", "user.email", "ada@example.org")
    evidence.commit("schemas")
    wheel = Wheel()
    table = table_of("gemm_perf", 4)
    table |= {"gemm_dtype": ["bfloat16"] * 4, "m": [1, 1, 2, 4], "n": [8] * 4, "k": [16] * 4}
    table |= {"version": ["1.3.0rc20"] * 3 + ["1.2.0"], "latency": [0.25, 0.5, 0.1234567, 0.75]}
    wheel.add("gemm_perf", table)
    wheel.add("moe_perf", table_of("moe_perf", 4))
    return evidence, str(wheel.packed(evidence.path.parent))


def test_dry_run_reports_and_writes_nothing(database: tuple[Evidence, str]) -> None:
    evidence, wheel = database
    result = evidence.perfdb("import", "aiconfigurator", "--dry-run", wheel)
    assert result.status == 0, result.err
    assert "aiconfigurator-core==0.12.0" in result.out
    assert "2 rows of a key that another row has too" in result.out
    assert "1 of the rows, in 1 table, contradict their path" in result.out
    assert "say '1.2.0', its path '1.3.0rc20'" in result.out
    assert "0 of 4 records take less time than the data sheet allows; 4 not judged" in result.out
    assert "8 new records, 0 known already" in result.out
    assert "would be written" in result.out
    assert not (evidence.path / "evidence/records").exists()


def test_import_commit_check_resolve(database: tuple[Evidence, str]) -> None:
    evidence, wheel = database
    done = envelope(evidence.perfdb("import", "aiconfigurator", "--commit", "--json", wheel))
    assert done["command"] == "import aiconfigurator"
    assert done["data"]["records"] == 8
    kinds = {kind["kind"]: kind for kind in done["data"]["kinds"]}
    assert kinds["gemm_perf"]["repeated_rows"] == 2
    assert kinds["gemm_perf"]["mislabelled_rows"] == 1
    assert kinds["moe_perf"]["judged_rows"] == 0
    report = done["data"]["import"]
    assert report["commit"] == evidence.git("rev-parse", "HEAD")
    assert evidence.git("status", "--porcelain") == ""
    subject = evidence.git("log", "-1", "--format=%s")
    assert subject == "Import 8 records of aiconfigurator (aiconfigurator-core==0.12.0)"
    checked = evidence.perfdb("check")
    assert checked.status == 0, checked.out + checked.err
    question = ("operation=gemm", "device=h200", "dtype=bf16", "n=8", "k=16")
    answer = envelope(evidence.perfdb("resolve", "--json", *question, "m=2"))
    latency = answer["data"]["estimate"]["metrics"]["latency"]
    assert latency["value"] == 0.0001234567
    assert answer["data"]["estimate"]["validity"]["kind"] == "exact"
    repeats = envelope(evidence.perfdb("resolve", "--json", *question, "m=1"))
    assert len(repeats["data"]["estimate"]["provenance"]["record_ids"]) == 2
    again = evidence.perfdb("import", "aiconfigurator", "--commit", wheel)
    assert "0 new records, 8 known already, 0 files written" in again.out
    assert "0 of 4 records take less time than the data sheet allows; 4 not judged" in again.out
    assert evidence.git("rev-parse", "HEAD") == report["commit"]


def test_bad_rows_and_unknown_tables(database: tuple[Evidence, str]) -> None:
    evidence, _ = database
    wheel = Wheel()
    table = table_of("gemm_perf", 4)
    table["latency"][2] = -1.0
    wheel.add("gemm_perf", table)
    wheel.put("p/systems/data/h200_sxm/x/trtllm/1/odd_perf.parquet", table)
    path = str(wheel.packed(evidence.path.parent))
    refused = evidence.perfdb("import", "aiconfigurator", path)
    assert refused.status == 3
    assert "row 3: column 'latency': is negative" in refused.err
    assert "--skip-bad-rows" in refused.err
    skipped = evidence.perfdb("import", "aiconfigurator", "--skip-bad-rows", path)
    assert skipped.status == 0
    assert "odd_perf.parquet: not imported" in skipped.err
    assert "3 new records" in skipped.out

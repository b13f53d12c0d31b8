"""`perfdb validate`: a simulator judged, written, and then allowed to answer."""

from __future__ import annotations

from typing import Any

import pytest

from perfdb_git.formats.canonical import canonical_record_set
from perfdb_git.formats.digests import sha256_hex
from perfdb_git.formats.strict_json import read_json
from perfdb_git.storage.layout import record_set_path
from tests.cli.evidence import Evidence, envelope

ASKED = ("operation=gemm", "device=a100", "dtype=fp16", "m=9000", "n=64", "k=64")
COMMAND = ("validate", "roofsim@r7", "--target", "a100", "--against")


@pytest.fixture
def simulated(evidence: Evidence) -> tuple[Evidence, str]:
    """Eight sizes, measured and simulated, and one that is only simulated."""
    evidence.git("config", "user.name", "Ada Author")
    evidence.git("config", "user.email", "ada@example.org")
    sizes = [8 * 2**power for power in range(8)]
    measured = evidence.add_gemm("line", [(m, 64, 64, m / 100, 0.01, 20) for m in sizes])
    (path,) = evidence.path.glob(f"evidence/records/*/*/*-{measured[:12]}.json")
    header: Any = read_json(path.read_bytes(), document="line")
    header.pop("rows")
    header |= {"kind": "simulated", "session": "sim"}
    header["source"] |= {"tool": "roofsim", "revision": "r7"}
    rows = [[m, 64, 64, 1.1 * m / 100, 0.0, 1, i] for i, m in enumerate([*sizes, 9000])]
    content = canonical_record_set(header, rows)
    evidence.write(record_set_path("a100_80g", "gemm", "sim", sha256_hex(content)), content)
    evidence.commit("simulate")
    return evidence, measured


def test_a_validated_simulator_answers(simulated: tuple[Evidence, str]) -> None:
    evidence, measured = simulated
    before = evidence.perfdb("resolve", *ASKED)
    assert "not-validated" in before.out
    done = evidence.perfdb(*COMMAND, measured[:8], "--limit", "12", "--commit", "--json")
    assert done.status == 0, done.err
    data = envelope(done)["data"]
    assert data["admits"]
    assert data["path"] == f"evidence/validations/{data['validation']}.json"
    assert evidence.git("rev-parse", "HEAD") == data["committed"]
    after = evidence.perfdb("resolve", *ASKED, "--json")
    estimate = envelope(after)["data"]["estimate"]
    assert estimate["method"] == "simulated"
    assert data["validation"][:12] in estimate["diagnostics"]["notes"][0]
    assert evidence.perfdb("check").status == 0


def test_over_the_limit_is_written_and_admits_nothing(simulated: tuple[Evidence, str]) -> None:
    evidence, measured = simulated
    done = evidence.perfdb(*COMMAND, measured[:8], "--limit", "5")
    assert done.status == 1
    assert "over the limit of 5 %" in done.out
    assert len(list(evidence.path.glob("evidence/validations/*.json"))) == 1
    shown = evidence.perfdb("resolve", *ASKED, "--worktree")
    assert "not-validated" in shown.out


def test_a_dry_run_writes_nothing(simulated: tuple[Evidence, str]) -> None:
    evidence, measured = simulated
    assert evidence.perfdb(*COMMAND, measured[:8], "--limit", "12", "--dry-run").status == 0
    assert evidence.git("status", "--porcelain") == ""


def test_too_few_pairs_are_no_evidence(simulated: tuple[Evidence, str]) -> None:
    evidence, measured = simulated
    done = evidence.perfdb(*COMMAND, measured[:8], "--min-points", "9")
    assert done.status == 4
    assert "8 points, fewer than 9" in done.err

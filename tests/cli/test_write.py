"""`perfdb init`, `import` and `retract`: what changes, and what does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfdb_git.formats.strict_yaml import read_yaml
from perfdb_git.storage.initialise import initialise
from tests.cli.evidence import GEMM, Evidence, envelope

MAPPING = """\
schema: perfdb/mapping/v1
name: bench-csv
version: 1
description: A small table.
kind: measured
format: csv
source: {tool: bench, license: null}
session: bench-a100
environment:
  device: a100_80g
  device_count: 1
  form_factor: null
  driver: null
  firmware: null
  runtimes: {}
  kernel: null
  operating_system: null
  processor: null
  clock_policy: null
  power_policy: null
  topology: null
protocol:
  warmup: 1
  repetitions: 20
  synchronization: profiler kernel time
  timer_resolution: null
  clock_state: null
  power_state: null
  measurement_error: null
dimensions:
  device: {value: a100_80g}
  dtype: {value: float16}
  m: {column: m}
  "n": {column: "n"}
  k: {column: k}
operations:
  - operation: gemm
    dimensions: {}
    metrics:
      - {column: time, metric: latency, statistic: median, unit: ms}
"""
TABLE = "m,n,k,time\n128,10240,8192,2.5\n256,10240,8192,5.0\n"


@pytest.fixture
def inputs(tmp_path: Path) -> tuple[str, str]:
    mapping, table = tmp_path / "bench.yaml", tmp_path / "bench.csv"
    mapping.write_text(MAPPING)
    table.write_text(TABLE)
    return str(mapping), str(table)


@pytest.fixture
def fresh(tmp_path: Path) -> Evidence:
    """What `perfdb init` makes, committed."""
    made = Evidence(tmp_path / "fresh", tmp_path / "cache")
    result = made.perfdb("init", "fresh", at=tmp_path)
    assert result.status == 0, result.err
    made.commit("start")
    made.git("config", "user.name", "Ada Author")
    made.git("config", "user.email", "ada@example.org")
    return made


def test_init_makes_a_sound_repository(fresh: Evidence) -> None:
    assert fresh.git("status", "--short") == ""
    assert fresh.git("symbolic-ref", "HEAD") == "refs/heads/main"
    assert (fresh.path / ".gitattributes").read_text() == "* -text\n"
    check = fresh.perfdb("check")
    assert (check.status, check.out[:11]) == (0, "no findings")
    assert fresh.perfdb("resolve", *GEMM).status == 4


def test_the_first_policy_refuses_throttled_records_and_promises_no_distance(
    fresh: Evidence,
) -> None:
    text = (fresh.path / "evidence/policies/default.yaml").read_text()
    policy = read_yaml(text.encode(), document="default")
    assert policy["schema"] == "perfdb/policy/v2"
    assert policy["throttled"] == "refuse"
    # What is shown for one calibration of this project says nothing of another's.
    assert policy["limits"] == {"max_extrapolation_octaves": 1}
    assert "calibrations" not in policy


def test_init_refuses_evidence_and_keeps_files(fresh: Evidence, tmp_path: Path) -> None:
    again = fresh.perfdb("init")
    assert (again.status, again.out) == (2, "")
    assert "is not empty" in again.err
    inside = fresh.perfdb("init", "below")
    assert inside.status == 2
    assert not (fresh.path / "below").exists()
    fresh.git("clone", "--quiet", "--bare", ".", str(tmp_path / "bare"))
    assert "bare Git repository" in fresh.perfdb("init", str(tmp_path / "bare")).err
    other = tmp_path / "other"
    other.mkdir()
    (other / "README.md").write_text("mine\n")
    (other / ".gitattributes").write_text("*.png binary\n")
    result = fresh.perfdb("init", str(other), "--json")
    value = envelope(result)
    assert value["data"]["kept"] == [".gitattributes", "README.md"]
    assert [message["code"] for message in value["messages"]] == ["attributes-kept"]
    assert (other / "README.md").read_text() == "mine\n"


def test_init_in_place_of_a_file(tmp_path: Path, fresh: Evidence) -> None:
    file = tmp_path / "file"
    file.write_text("")
    assert fresh.perfdb("init", str(file)).status == 2
    assert initialise(tmp_path / "a" / "b").created_git


def test_import_check_resolve(fresh: Evidence, inputs: tuple[str, str]) -> None:
    mapping, table = inputs
    arguments = ("import", "table", "--mapping", mapping, table, "--source-revision", "r1")
    dry = fresh.perfdb(*arguments, "--dry-run")
    assert dry.status == 0, dry.err
    assert "2 new records, 0 known already, 2 files would be written" in dry.out
    assert fresh.git("status", "--short") == ""
    real = fresh.perfdb(*arguments, "--commit")
    assert real.status == 0, real.err
    assert f"commit       {fresh.git('rev-parse', 'HEAD')}" in real.out
    assert fresh.git("status", "--short") == ""
    assert fresh.perfdb("check").status == 0
    assert fresh.perfdb("resolve", *GEMM).out.startswith("2.500 ms   latency, measured, exact\n")
    value = envelope(fresh.perfdb(*arguments, "--json"))
    assert (value["data"]["records"], value["data"]["known"]) == (0, 2)
    assert fresh.git("status", "--short") == ""


def test_bad_rows_are_all_named(fresh: Evidence, inputs: tuple[str, str]) -> None:
    mapping, table = inputs
    Path(table).write_text(TABLE + "x,1,1,1.0\n1,1,1,-1.0\n")
    arguments = ("import", "table", "--mapping", mapping, table)
    refused = fresh.perfdb(*arguments)
    assert (refused.status, refused.out) == (3, "")
    assert refused.err.count("bench.csv:") >= 2
    assert fresh.git("status", "--short") == ""
    value = envelope(fresh.perfdb(*arguments, "--json"))
    assert len([m for m in value["messages"] if m["code"] == "bad-rows"]) == 3
    dry = envelope(fresh.perfdb(*arguments, "--skip-bad-rows", "--dry-run", "--json"))
    assert len(dry["data"]["imports"][0]["files"][0]["bad_rows"]) == 2
    skipped = fresh.perfdb(*arguments, "--skip-bad-rows")
    assert skipped.status == 0
    assert "2 bad rows left out" in skipped.out
    assert skipped.err.count("perfdb: warning:") == 2


@pytest.mark.parametrize(
    "arguments",
    [
        ("table", "--mapping", "no-such-mapping", "x.csv"),
        ("table", "x.csv"),
        ("table", "--mapping", "vidur-mlp"),
        ("vidur", "."),
        ("vidur", "no-such-folder"),
    ],
)
def test_wrong_imports(fresh: Evidence, arguments: tuple[str, ...]) -> None:
    result = fresh.perfdb("import", *arguments)
    assert (result.status, result.out) == (2, "")
    assert "Traceback" not in result.err
    value = envelope(fresh.perfdb("import", *arguments, "--json"))
    assert value["command"] == f"import {arguments[0]}"


def test_retract(evidence: Evidence) -> None:
    evidence.git("config", "user.name", "Ada Author")
    evidence.git("config", "user.email", "ada@example.org")
    record = envelope(evidence.perfdb("resolve", *GEMM, "--json"))["data"]["estimate"][
        "provenance"
    ]["record_ids"][0]
    head = evidence.git("rev-parse", "HEAD")
    written = evidence.perfdb("retract", record[:8] + "#0", "--reason", "clock was throttled")
    assert written.status == 0, written.err
    assert evidence.git("rev-parse", "HEAD") == head
    assert evidence.git("status", "--short") == "?? evidence/retractions/"
    assert evidence.perfdb("resolve", *GEMM).out.startswith("2.872 ms")
    assert "measured" not in evidence.perfdb("resolve", *GEMM, "--worktree").out.splitlines()[0]
    twice = evidence.perfdb("retract", record, "--reason", "again")
    assert (twice.status, twice.out) == (2, "")
    other = evidence.perfdb("retract", record[:8] + "#1", "--reason", "as well", "--commit")
    assert other.status == 0, other.err
    assert evidence.git("rev-parse", "HEAD~1") == head
    assert "as well" in evidence.git("log", "-1", "--format=%B")
    assert evidence.perfdb("retract", "ffff", "--reason", "x").status == 2
    assert evidence.perfdb("retract", record[:8]).status == 2


def test_writing_needs_a_work_tree(evidence: Evidence, inputs: tuple[str, str]) -> None:
    bare = evidence.path.parent / "bare"
    evidence.git("clone", "--quiet", "--bare", ".", str(bare))
    mapping, table = inputs
    for arguments in (
        ("import", "table", "--mapping", mapping, table),
        ("retract", "ffff", "--reason", "x"),
        ("check", "--worktree"),
    ):
        result = evidence.perfdb(*arguments, "--repo", str(bare))
        assert (result.status, result.out) == (2, "")
        assert "bare repository" in result.err

"""`perfdb simulate` end to end, and what `list`, `show` and `check` say of its documents."""

from __future__ import annotations

import csv
import itertools
import json
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections import defaultdict
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from perfdb_git.checks.registry import run_checks
from perfdb_git.database import PerformanceDatabase
from perfdb_git.errors import InvalidInputError
from perfdb_git.model.pipeline import Arrivals
from perfdb_git.storage.profile_history import ProfileHistory
from perfdb_git.storage.sources import WorktreeSource
from tests.cli.evidence import GEMM, ROOT, Evidence, Result, envelope

GOLDEN = ROOT / "tests" / "simulation" / "golden"
SHIPPED = ("profiles/cnuas-analytic-v0.json", "pipelines/submit-nic-gpu.json")
RUN = ("simulate", "submit-nic-gpu", "--profile", "cnuas-analytic-v0")
SMALL = ("simulate", "small", "--profile", "small")
QUERY = {
    "operation": "gemm",
    "device": "a100_80g",
    "dtype": "float16",
    "m": 128,
    "n": 10240,
    "k": 8192,
}
ANALYTIC = {
    "fixed_latency_ns": 0,
    "instruction_rate_mips": 1000,
    "lanes": 1,
    "resource_mode": "overlap",
    "evidence": "analytic",
    "notes": "Made for a test.",
}


@pytest.fixture
def shipped(evidence: Evidence) -> Evidence:
    """The evidence of the other tests with the shipped profile and pipeline, committed."""
    for path in SHIPPED:
        evidence.write(path, (ROOT / path).read_bytes())
    evidence.commit("profile and pipeline")
    return evidence


def put(evidence: Evidence, path: str, value: object) -> None:
    evidence.write(path, json.dumps(value, indent=1).encode())


def put_small(
    evidence: Evidence,
    stages: list[dict[str, Any]] | None = None,
    *,
    jobs: dict[str, Any] | None = None,
    **changes: Any,
) -> None:
    """Write a profile with one component A, and a pipeline on it, without ``schema`` lines."""
    components = {"A": {**ANALYTIC, **changes}}
    put(
        evidence,
        "profiles/small.json",
        {"name": "small", "version": "1", "components": components},
    )
    work: dict[str, Any] = {"name": "s", "component": "A", "work": {"instructions": 5}}
    stages = [work] if stages is None else stages
    put(evidence, "pipelines/small.json", {"stages": stages, "jobs": jobs or {}})


def data_of(result: Result) -> dict[str, Any]:
    value = envelope(result)
    assert (result.status, value["status"], result.err) == (0, "ok", ""), value["messages"]
    assert value["command"] == "simulate"
    data = value["data"]
    assert isinstance(data, dict)
    return data


def failure(evidence: Evidence, *arguments: str) -> tuple[int, str, str]:
    """Return exit status, code and texts of an error."""
    result = evidence.perfdb(*arguments, "--json")
    value = envelope(result)
    assert (value["status"], value["data"], result.err) == ("error", None, "")
    texts = " ".join(message["text"] for message in value["messages"])
    return result.status, value["messages"][0]["code"], texts


# --- one run ---


def test_the_report_is_one_readable_screen(shipped: Evidence) -> None:
    result = shipped.perfdb(*RUN)
    assert (result.status, result.err) == (0, "")
    lines = result.out.splitlines()
    assert lines[0] == "21.38 µs   makespan of 8 jobs (21,376,256 ps)"
    assert len(lines) <= 40
    assert all(len(line) <= 100 for line in lines)
    for expected in (
        "throughput   374,247 jobs/s",
        "p50 11.38 µs, p95 21.38 µs, p99 21.38 µs, max 21.38 µs",
        "guest-cpu-icount-shift0; at most 400,000 jobs/s (an upper bound, not a forecast)",
        "guest-cpu-icount-shift0 93.6 % (8 visits)",
        "submit #0..#7 > receive #7 > kernel #7",
        "analytic (the weakest class of what was used); uncertainty unknown",
        "1 ps; no service was rounded",
        "cnuas-analytic-v0 v0 (profiles/cnuas-analytic-v0.json, sha256 ",
        "submit-nic-gpu v0 (pipelines/submit-nic-gpu.json, sha256 ",
        shipped.git("rev-parse", "HEAD"),
        "1000 of 1000 mips (100 %)",
        "100 of 100 gbps (100 %), 12.21 of 148.8 mpps\n",
    ):
        assert expected in result.out
    assert "\x1b" not in result.out


def test_the_guide_shows_what_the_command_prints(shipped: Evidence) -> None:
    guide = (ROOT / "docs" / "profiles-and-pipelines.md").read_text()
    (section,) = re.findall(r"\n## Command\n(.*?)\n## ", guide, re.DOTALL)
    command, output = re.findall(r"```(?:sh|console)\n(.*?)```", section, re.DOTALL)
    words = command.replace("\\\n", " ").split()
    commit = re.compile(r"[0-9a-f]{40}")
    printed = shipped.perfdb(*words[1:]).out
    assert commit.sub("", printed) == commit.sub("", output)


def test_the_data_for_programs(shipped: Evidence) -> None:
    data = data_of(shipped.perfdb(*RUN, "--json"))
    assert data["makespan_ps"] == 8 * 2_500_000 + 327_680 + 1_048_576
    latency = data["latency_ps"]
    assert [latency[key] for key in ("p50", "p95", "p99", "max")] == [
        *(3_876_256 + 2_500_000 * 3, 21_376_256, 21_376_256, 21_376_256)
    ]
    names = ("guest-cpu-icount-shift0", "cnuasnic", "cnuasgpu-compute")
    assert [(use["name"], use["lanes"], use["visits"]) for use in data["components"]] == [
        (name, 1, 8) for name in names
    ]
    busy = (20_000_000, 2_621_440, 8_388_608)
    assert [use["busy_ps"] for use in data["components"]] == list(busy)
    assert [use["wait_ps"] for use in data["components"]] == [70_000_000, 0, 0]
    for use, time in zip(data["components"], busy, strict=True):
        assert use["utilisation"] == pytest.approx(time / data["makespan_ps"])
    path = data["critical_path"]
    assert path[0] == {
        **{"job": 0, "stage": "submit", "component": names[0], "lane": 0},
        **{"start_ps": 0, "finish_ps": 2_500_000},
    }
    spent = sum(step["finish_ps"] - step["start_ps"] for step in path)
    assert spent + data["path_arrival_ps"] == data["makespan_ps"]
    assert (data["bottleneck"], data["evidence_class"]) == (names[0], "analytic")
    assert data["capacity"] == {
        **{"kind": "upper-bound", "component": names[0], "jobs_per_s": 400_000.0}
    }
    assert data["uncertainty_pct"] is None
    assert data["snapshot"] == {"commit": shipped.git("rev-parse", "HEAD")}
    for key, path_ in zip(("profile", "pipeline"), SHIPPED, strict=True):
        digest = subprocess.run(
            ["sha256sum", path_], cwd=shipped.path, capture_output=True, text=True, check=True
        ).stdout.split()[0]
        stem = Path(path_).stem
        assert data[key] == {"name": stem, "version": "v0", "path": path_, "sha256": digest}
    assert (data["policy"], data["marks"], data["warnings"]) == (None, [], [])
    assert (data["sweep"], data["sensitivity"], data["files"]) == (None, None, [])
    assert data["arrivals"]["kind"] == "batch"


def visits_of(evidence: Evidence, *arguments: str) -> list[list[Any]]:
    """Return job, stage, lane, start and finish in ns of all visits, from a CSV file."""
    target = evidence.path.parent / "visits.csv"
    assert evidence.perfdb(*arguments, "--events", str(target)).status == 0
    with target.open(newline="") as stream:
        return [
            [
                *(int(row["job"]), row["stage"], int(row["lane"])),
                *(Fraction(int(row[key]), 1000) for key in ("start_ps", "finish_ps")),
            ]
            for row in csv.DictReader(stream)
        ]


@pytest.mark.parametrize("name", ["e1", "e2", "e3"])
def test_hand_checked_schedules(evidence: Evidence, name: str) -> None:
    example = json.loads((GOLDEN / f"{name}.json").read_text())
    put(evidence, "profiles/golden.json", example["profile"])
    put(evidence, "pipelines/golden.json", example["pipeline"])
    evidence.commit(name)
    arguments = ("simulate", "golden", "--profile", "golden")
    expected = example["expected"]
    assert visits_of(evidence, *arguments) == expected["visits_ns"]
    data = data_of(evidence.perfdb(*arguments, "--json"))
    assert data["makespan_ps"] == expected["makespan_ns"] * 1000
    assert data["pipeline"]["name"] == "golden"
    assert data["pipeline"]["version"] is None


def test_jobs_and_arrivals_of_the_command_line(evidence: Evidence) -> None:
    put_small(evidence)
    evidence.commit("small")
    for arguments, makespan, kind in (
        (("--jobs", "3"), 15, "batch"),
        (("--jobs", "3", "--arrivals", "interval:7ns"), 19, "interval"),
        (("--arrivals", "list:0,1ns,100"), 105, "list"),
        (("--jobs", "4", "--arrivals", "closed-loop:2"), 20, "closed-loop"),
    ):
        data = data_of(evidence.perfdb(*SMALL, *arguments, "--json"))
        assert data["makespan_ps"] == makespan * 1000
        assert data["arrivals"]["kind"] == kind
    text = evidence.perfdb(*SMALL, "--jobs", "3", "--arrivals", "closed-loop:2").out
    assert "closed loop of 2; 3 visits, event engine" in text


def test_an_older_commit_gives_the_older_profile(shipped: Evidence) -> None:
    first = shipped.git("rev-parse", "HEAD")
    before = data_of(shipped.perfdb(*RUN, "--json"))
    text = (ROOT / SHIPPED[0]).read_text()
    faster = text.replace('"instruction_rate_mips": 1000', '"instruction_rate_mips": 2000', 1)
    shipped.write(SHIPPED[0], faster.replace('"v0"', '"v1"', 1).encode())
    assert data_of(shipped.perfdb(*RUN, "--json")) == before
    uncommitted = data_of(shipped.perfdb(*RUN, "--worktree", "--json"))
    assert uncommitted["makespan_ps"] == 11_376_256
    assert (uncommitted["marks"], uncommitted["snapshot"]) == (["uncommitted"], {"commit": None})
    shipped.commit("faster")
    after = data_of(shipped.perfdb(*RUN, "--json"))
    assert (after["makespan_ps"], after["profile"]["version"]) == (11_376_256, "v1")
    assert data_of(shipped.perfdb(*RUN, "--at", first, "--json")) == before
    bare = shipped.path.parent / "bare"
    shipped.git("clone", "--quiet", "--bare", ".", str(bare))
    again = shipped.perfdb(*RUN, "--at", first, "--repo", str(bare), "--json")
    assert data_of(again) == before


def test_documents_by_path_and_in_yaml(shipped: Evidence) -> None:
    expected = data_of(shipped.perfdb(*RUN, "--json"))["makespan_ps"]
    value = json.loads((ROOT / SHIPPED[1]).read_text())
    shipped.write("elsewhere/mine.yaml", json.dumps(value).encode())
    shipped.commit("a pipeline elsewhere")
    arguments = ("simulate", "elsewhere/mine.yaml", "--profile", SHIPPED[0], "--json")
    assert data_of(shipped.perfdb(*arguments))["makespan_ps"] == expected
    (shipped.path / SHIPPED[1]).rename(shipped.path / "pipelines/submit-nic-gpu.yaml")
    assert data_of(shipped.perfdb(*RUN, "--worktree", "--json"))["makespan_ps"] == expected
    shipped.write(SHIPPED[1], b"{}")
    status, code, _ = failure(shipped, *RUN, "--worktree")
    assert (status, code) == (3, "name-stands-twice")


def test_the_warning_about_fixed_latency(evidence: Evidence) -> None:
    link = {"fixed_latency_ns": 50, "bandwidth_gbps": 100, "packet_rate_mpps": 148.8}
    stages = [{"name": "wire", "component": "A", "work": {"bytes": 64, "packets": 1}}]
    put_small(evidence, stages, **link)
    result = evidence.perfdb(*SMALL, "--worktree")
    assert "warning      stage 'wire' on component 'A': fixed latency holds the lane" in result.out
    assert "17.63 of 148.8 mpps (11.8 %)" in result.out
    data = data_of(evidence.perfdb(*SMALL, "--worktree", "--json"))
    assert data["makespan_ps"] == 56_720
    assert len(data["warnings"]) == 1
    assert data["grid_error"]["worst_relative"] > 0


# --- files ---


def test_files(shipped: Evidence) -> None:
    folder = shipped.path.parent
    names = {kind: folder / f"out.{kind}" for kind in ("trace", "svg", "events")}
    names["events"].write_text("older\n")
    names["events"].chmod(0o640)
    options = [part for kind, path in names.items() for part in (f"--{kind}", str(path))]
    result = shipped.perfdb(*RUN, *options)
    assert (result.status, result.err) == (0, "")
    assert f"written {names['trace']} (trace: 24 visits of 8 jobs)" in " ".join(result.out.split())
    assert names["events"].stat().st_mode & 0o777 == 0o640
    assert sorted(path.name for path in folder.iterdir()) == [
        *("cache", "evidence", "out.events", "out.svg", "out.trace")
    ]
    events = json.loads(names["trace"].read_text())["traceEvents"]
    by_lane: dict[tuple[int, int], list[tuple[float, float]]] = defaultdict(list)
    for event in events:
        if event["ph"] == "X":
            by_lane[event["pid"], event["tid"]].append((event["ts"], event["dur"]))
    assert {lane: len(slices) for lane, slices in by_lane.items()} == {
        **{(0, 0): 8, (1, 0): 8, (2, 0): 8}
    }
    for slices in by_lane.values():
        for (start, duration), (after, _) in itertools.pairwise(sorted(slices)):
            assert round(1000 * start) + round(1000 * duration) <= round(1000 * after)
    root = ElementTree.fromstring(names["svg"].read_text())
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert names["svg"].read_text() == (ROOT / "docs/images/submit-nic-gpu.svg").read_text()
    rows = names["events"].read_text().splitlines()
    assert rows[0] == "job,stage,component,lane,ready_ps,start_ps,finish_ps,wait_ps"
    assert len(rows) == 25
    data = data_of(shipped.perfdb(*RUN, *options[:2], "--json"))
    assert data["files"] == [
        {"kind": "trace", "path": str(names["trace"]), "jobs": 8, "visits": 24}
    ]


@pytest.mark.skipif(shutil.which("chromium") is None, reason="chromium is not installed")
def test_a_browser_draws_the_chart(shipped: Evidence) -> None:
    folder = shipped.path.parent
    assert shipped.perfdb(*RUN, "--svg", str(folder / "chart.svg")).status == 0
    picture = folder / "chart.png"
    command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--window-size=960,200"]
    command += [f"--user-data-dir={folder / 'browser'}", f"--screenshot={picture}"]
    command.append((folder / "chart.svg").as_uri())
    subprocess.run(command, check=True, capture_output=True, timeout=50)
    assert picture.read_bytes().startswith(b"\x89PNG")
    # A page that failed to parse is almost white; the chart has hundreds of bars and letters.
    assert picture.stat().st_size > 5_000


def test_parquet(shipped: Evidence) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    target = shipped.path.parent / "visits.parquet"
    assert shipped.perfdb(*RUN, "--events", str(target)).status == 0
    table = parquet.read_table(target)
    assert table.num_rows == 24
    assert max(table["finish_ps"].to_pylist()) == 21_376_256


def test_files_that_cannot_be_written(shipped: Evidence) -> None:
    folder = shipped.path.parent
    kept = folder / "kept.json"
    kept.write_text("older\n")
    missing = str(folder / "no" / "t.json")
    assert failure(shipped, *RUN, "--trace", missing)[:2] == (2, "not-writable")
    same = ("--trace", str(kept), "--events", str(kept))
    assert failure(shipped, *RUN, *same)[:2] == (2, "conflicting-options")
    # A run that fails leaves the file as it was.
    assert failure(shipped, *RUN, "--jobs", "1" + "0" * 20, "--trace", str(kept))[0] == 2
    assert kept.read_text() == "older\n"
    link = folder / "link.json"
    link.symlink_to(kept)
    assert shipped.perfdb(*RUN, "--trace", str(link)).status == 0
    assert link.is_symlink()
    assert kept.read_text().startswith('{"displayTimeUnit"')
    assert shipped.perfdb(*RUN, "--events", "/dev/null").status == 0
    assert not Path("/dev/null").is_file()
    if Path("/dev/full").exists():
        assert failure(shipped, *RUN, "--events", "/dev/full")[:2] == (2, "not-writable")


def test_a_large_run_says_what_its_files_hold(evidence: Evidence) -> None:
    put_small(evidence)
    chart = evidence.path.parent / "chart.svg"
    arguments = (*SMALL, "--worktree", "--jobs", "2000000", "--svg", str(chart))
    result = evidence.perfdb(*arguments)
    assert result.status == 0
    assert "note: " in result.err
    assert "holds the first 4,000 of 2,000,000 jobs" in result.err
    assert "path         not kept: the run has too many visits" in result.out
    ElementTree.fromstring(chart.read_text())


# --- sweeps and sensitivities ---


def test_a_sweep_and_sensitivities(shipped: Evidence) -> None:
    sweep = "guest-cpu-icount-shift0.instruction_rate_mips=1000,2000,4000"
    options = ("--sweep", sweep, "--sensitivity")
    data = data_of(shipped.perfdb(*RUN, *options, "--json"))
    table = data["sweep"]
    assert (table["component"], table["field"]) == tuple(sweep.partition("=")[0].split("."))
    assert [(row["value"], row["makespan_ps"]) for row in table["rows"]] == [
        *(("1000", 21_376_256), ("2000", 11_376_256), ("4000", 9_341_288))
    ]
    assert table["rows"][2]["bottleneck"] == "cnuasgpu-compute"
    row = data["sensitivity"][0]
    assert (row["slower_ps"], row["faster_ps"]) == (200_000, -200_000)
    assert row["component"] == "guest-cpu-icount-shift0"
    text = shipped.perfdb(*RUN, *options).out
    assert "sweep of guest-cpu-icount-shift0" in text
    assert "2000  11.38 µs  -46.8 %" in text
    assert "+200,000 ps" in text
    assert failure(shipped, *RUN, "--sweep", "cnuasnic.notes=a")[:2] == (2, "sweep")
    assert failure(shipped, *RUN, "--sweep", "nic.lanes=2")[:2] == (2, "unknown-component")
    twice = ("--sweep", "cnuasnic.lanes=2", "--sweep", "cnuasnic.lanes=3")
    assert failure(shipped, *RUN, *twice)[:2] == (2, "conflicting-options")


def test_a_faster_component_may_end_later(evidence: Evidence) -> None:
    example = json.loads((GOLDEN / "e9.json").read_text())
    put(evidence, "profiles/e9.json", example["profile"])
    put(evidence, "pipelines/e9.json", example["pipeline"])
    arguments = ("simulate", "e9", "--profile", "e9", "--worktree", "--sensitivity", "--json")
    data = data_of(evidence.perfdb(*arguments))
    assert data["makespan_ps"] == 11_000
    assert {row["component"] for row in data["sensitivity"]} == {"A", "B"}


# --- stages with a query ---


def query_stage(**changes: Any) -> dict[str, Any]:
    return {"name": "matmul", "component": "A", "query": {**QUERY, **changes}}


def test_a_query_is_answered_by_measured_evidence(evidence: Evidence) -> None:
    put_small(evidence, [query_stage()], jobs={"count": 2})
    commit = evidence.commit("a pipeline that asks")
    resolved = envelope(evidence.perfdb("resolve", *GEMM, "--json"))["data"]
    metric = resolved["estimate"]["metrics"]["latency"]
    data = data_of(evidence.perfdb(*SMALL, "--json"))
    service = Fraction(metric["value"]) * 10**12
    assert data["makespan_ps"] == 2 * round(service) == 2 * 2_872_000_000
    assert data["evidence_class"] == "measured"
    answer = data["stages"][0]["answer"]
    assert answer["service_ns"] == pytest.approx(metric["value"] * 1e9)
    bounds = metric["uncertainty"]
    assert answer["lower_ns"] == pytest.approx(bounds["lower"] * 1e9)
    assert answer["upper_ns"] == pytest.approx(bounds["upper"] * 1e9)
    half = (bounds["upper"] - bounds["lower"]) / 2 / metric["value"]
    assert data["uncertainty_pct"] == pytest.approx(100 * half)
    said = answer["provenance"]
    assert said["record_ids"] == resolved["estimate"]["provenance"]["record_ids"]
    assert (said["commit"], said["method"], said["validity"]) == (commit, "measured", "exact")
    assert said["query_digest"] == resolved["query_digest"]
    assert said["interval"]["level"] == bounds["level"]
    assert data["policy"] == resolved["policy"]
    text = evidence.perfdb(*SMALL).out
    assert "answers      matmul: 2.872 ms measured by recorded" in text
    assert "[2.700, 3.055] ms" in text
    assert "policy       default" in text


def test_a_query_keeps_its_answer_at_each_commit(evidence: Evidence) -> None:
    put_small(evidence, [query_stage()])
    first = evidence.commit("a pipeline that asks")
    before = data_of(evidence.perfdb(*SMALL, "--json"))
    (record,) = before["stages"][0]["answer"]["provenance"]["record_ids"]
    evidence.retract(record)
    evidence.add_gemm("late", [(128, 10240, 8192, 7.0, 0.1, 20)])
    evidence.commit("other evidence")
    assert data_of(evidence.perfdb(*SMALL, "--json"))["makespan_ps"] == 7_000_000_000
    assert data_of(evidence.perfdb(*SMALL, "--at", first, "--json")) == before


def test_a_model_makes_the_run_analytic(evidence: Evidence) -> None:
    measured = query_stage()
    put_small(evidence, [measured, {**query_stage(m=100), "name": "other"}])
    data = data_of(evidence.perfdb(*SMALL, "--worktree", "--json"))
    assert [stage["answer"]["evidence"] for stage in data["stages"]] == ["measured", "analytic"]
    assert (data["evidence_class"], data["uncertainty_pct"]) == ("analytic", None)


def test_a_query_without_an_answer(evidence: Evidence) -> None:
    policy = (evidence.path / "evidence/policies/default.yaml").read_text()
    strict = policy.replace("name: default", "name: measured")
    strict = re.sub(r"tiers: \[.*\]", "tiers: [recorded-measured]", strict)
    evidence.write("evidence/policies/measured.yaml", strict.encode())
    put_small(evidence, [query_stage(m=100)])
    commit = evidence.commit("a question without an answer")
    status, code, text = failure(evidence, *SMALL, "--policy", "measured")
    assert (status, code) == (4, "no-admissible-evidence")
    for expected in ("stage 'matmul'", "operation=gemm", "m=100", commit, "perfdb resolve"):
        assert expected in text
    assert failure(evidence, *SMALL, "--policy", "no")[:2] == (3, "unknown-policy")


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"device": "a100"}, "'a100' is"),
        ({"lenght": 4}, "unknown dimension 'lenght'"),
        ({"operation": "gem"}, "unknown operation 'gem'; did you mean gemm?"),
        ({"m": 0}, "m: must be positive"),
        ({"participants": 8, "heads": 4}, "heads"),
    ],
)
def test_a_query_that_cannot_be_asked(
    evidence: Evidence, changes: dict[str, Any], expected: str
) -> None:
    put_small(evidence, [query_stage(**changes)])
    result = evidence.perfdb(*SMALL, "--worktree")
    assert (result.status, result.out) == (3, "")
    assert "pipelines/small.json at /stages/0/query" in result.err
    assert expected in result.err
    (finding,) = run_checks(WorktreeSource(evidence.path), select=["bad-stage-query"])
    assert expected in finding.message


# --- errors ---


def test_a_missing_rate_names_all_three(evidence: Evidence) -> None:
    stages = [{"name": "copy", "component": "A", "work": {"bytes": 8}}]
    put_small(evidence, stages)
    status, code, text = failure(evidence, *SMALL, "--worktree")
    assert (status, code) == (3, "missing-rate")
    assert "stage 'copy' on component 'A' asks for bytes, but" in text
    assert "bandwidth_gbps" in text


BIG = '"instructions": 1e300'


@pytest.mark.parametrize(
    ("old", "new", "status", "code"),
    [
        ('"instructions": 5', '"instructions": NaN', 3, "number-not-finite"),
        ('"instructions": 5', '"instructions": 1e999', 3, "number-not-finite"),
        ('"instructions": 5', '"instructions": -1', 3, "schema-violation"),
        ('"instructions": 5', BIG, 3, "time-overflow"),
        ('"component": "A"', '"component": "B"', 3, "unknown-component"),
        ('"jobs": {}', '"jobs": {"count": 0}', 3, "schema-violation"),
    ],
)
def test_pipelines_that_cannot_run(
    evidence: Evidence, old: str, new: str, status: int, code: str
) -> None:
    put_small(evidence)
    path = evidence.path / "pipelines/small.json"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    assert failure(evidence, *SMALL, "--worktree")[:2] == (status, code)


def test_empty_and_enormous_pipelines(evidence: Evidence) -> None:
    put_small(evidence, [])
    status, _, text = failure(evidence, *SMALL, "--worktree")
    assert status == 3
    assert "/stages" in text
    stage = '{"name":"s","component":"A","work":{}}'
    # A million stages: tests/simulation/test_documents.py.
    stages = ",".join([stage] * 50_000)
    evidence.write("pipelines/small.json", f'{{"stages":[{stages}]}}'.encode())
    status, code, _ = failure(evidence, *SMALL, "--worktree")
    assert (status, code) == (3, "too-many-items")


def test_names_that_are_not_there(shipped: Evidence) -> None:
    status, code, text = failure(shipped, "simulate", "submit", "--profile", "cnuas-analytic-v0")
    assert (status, code) == (3, "unknown-pipeline")
    assert "it has: submit-nic-gpu" in text
    status, code, text = failure(shipped, *RUN[:3], "cnuas-analytic-v1")
    assert (status, code) == (3, "unknown-timing-profile")
    assert "did you mean cnuas-analytic-v0?" in text
    snapshot = PerformanceDatabase.open(shipped.path, cache_directory=shipped.cache).at()
    for name in ("/etc/passwd", "../x.json", "pipelines/nothing.json", "x.json", "a b", ""):
        with pytest.raises(InvalidInputError):
            snapshot.pipeline(name)
    text = shipped.perfdb("simulate", "submit-nic-gpu")
    assert (text.status, text.out) == (2, "")
    assert "Missing option '--profile'" in text.err
    assert failure(shipped, *RUN, "--arrivals", "sometimes")[:2] == (2, "arrivals")


def test_a_resolution_imports_nothing_of_it(shipped: Evidence) -> None:
    script = (
        "import sys; from perfdb_git.cli.main import main; main(sys.argv[1:]); "
        "print([m for m in sys.modules if 'simulation' in m or 'timing' in m], file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, "resolve", *GEMM],
        cwd=shipped.path,
        env=shipped.environment(),
        capture_output=True,
        text=True,
        timeout=50,
    )
    assert (done.returncode, done.stderr.strip()) == (0, "[]")


def test_hostile_names_stay_text(evidence: Evidence) -> None:
    name = "\x1b[2J\u202eforged\nline</text><script>"
    put_small(evidence, [{"name": name, "component": "A", "work": {}}])
    chart = evidence.path.parent / "chart.svg"
    result = evidence.perfdb(*SMALL, "--worktree", "--svg", str(chart), "--sensitivity")
    assert result.status == 0
    for text in (result.out, chart.read_text()):
        assert "\x1b" not in text
        assert "\u202e" not in text
        assert "<script" not in text or text is result.out
    assert "forged\\x0aline" in result.out


# --- the library, list, show ---


def test_the_library(shipped: Evidence) -> None:
    database = PerformanceDatabase.open(shipped.path, cache_directory=shipped.cache)
    snapshot = database.at("main")
    assert "cnuasnic" in snapshot.timing_profile("cnuas-analytic-v0").value.components
    assert snapshot.pipeline("submit-nic-gpu").value.jobs.number == 8
    run = snapshot.simulate("submit-nic-gpu", "cnuas-analytic-v0", jobs=2)
    assert run.summary.makespan_ps == 2 * 2_500_000 + 1_376_256
    loop = Arrivals(kind="closed-loop", window=1)
    run = snapshot.simulate("submit-nic-gpu", "cnuas-analytic-v0", jobs=2, arrivals=loop)
    assert run.summary.makespan_ps == 2 * 3_876_256
    with pytest.raises(InvalidInputError, match="it has: submit-nic-gpu"):
        snapshot.simulate("nothing", "cnuas-analytic-v0")


def test_list_and_show(shipped: Evidence) -> None:
    text = shipped.perfdb("list", "--what", "pipelines").out
    assert "submit-nic-gpu  v0            3     8  batch" in text
    assert text.splitlines()[-1].startswith("1 pipeline at ")
    (entry,) = envelope(shipped.perfdb("list", "--what", "timing-profiles", "--json"))["data"][
        "entries"
    ]
    assert (entry["name"], entry["evidence"]) == ("cnuas-analytic-v0", ["analytic"])
    assert "cnuasnic" in entry["components"]
    none = shipped.perfdb("list", "--what", "timing-profiles", "--at", "HEAD~1")
    assert none.out.startswith("no timing profiles at ")
    text = shipped.perfdb("show", "cnuas-analytic-v0").out
    assert text.startswith("timing-profile cnuas-analytic-v0\n  path         profiles/cnuas-")
    data = envelope(shipped.perfdb("show", "submit-nic-gpu", "--json"))["data"]
    assert data["kind"] == "pipeline"
    assert data["document"] == json.loads((ROOT / SHIPPED[1]).read_text())
    assert shipped.perfdb("show", "submit-nic-gpu", "--kind", "timing-profile").status == 2


# --- check ---


def changed_profiles(evidence: Evidence, revision: str | None = "HEAD") -> list[str]:
    """Return the documents that have changed under their version; None reads the work tree."""
    database = PerformanceDatabase.open(evidence.path, cache_directory=evidence.cache)
    head = database.at(revision or "HEAD").commit
    assert head is not None
    snapshot = database.worktree() if revision is None else database.at(revision)
    findings = run_checks(
        snapshot.evidence.source,
        select=["changed-profile"],
        history=ProfileHistory(database.store, head),
    )
    assert {finding.severity for finding in findings} <= {"error"}
    return [finding.document for finding in findings]


def test_a_changed_profile_needs_a_new_version(evidence: Evidence) -> None:
    put_small(evidence)
    evidence.commit("version 1")
    path = evidence.path / "profiles/small.json"
    original = json.loads(path.read_text())
    assert changed_profiles(evidence) == []
    # Other bytes and defaults written out say the same.
    same = json.loads(path.read_text())
    same["schema"] = "perfdb/timing-profile/v1"
    same["components"]["A"]["calibration_scale"] = 1.0
    path.write_text(json.dumps(same))
    assert changed_profiles(evidence, None) == []
    changed = json.loads(path.read_text())
    changed["components"]["A"]["lanes"] = 2
    path.write_text(json.dumps(changed))
    assert changed_profiles(evidence, None) == ["profiles/small.json"]
    uncommitted = evidence.perfdb("check", "--worktree")
    assert uncommitted.status == 1
    assert "changed-profile" in uncommitted.out
    assert changed_profiles(evidence) == []
    evidence.commit("changed under the same version")
    assert changed_profiles(evidence) == ["profiles/small.json"]
    assert changed_profiles(evidence, "HEAD~1") == []
    text = evidence.perfdb("check")
    assert text.status == 1
    assert "'small' version 1 is 2 here and 1 at commit" in text.out
    assert "/components/A/lanes" in text.out
    # Moved, and renamed without a new version.
    path.rename(evidence.path / "profiles/other.json")
    evidence.commit("moved")
    assert changed_profiles(evidence) == ["profiles/other.json"]
    changed["version"] = "2"
    put(evidence, "profiles/other.json", changed)
    evidence.commit("a new version")
    assert changed_profiles(evidence) == []
    put(evidence, "profiles/small.json", original)
    assert changed_profiles(evidence, None) == ["profiles/small.json"]


def test_a_system_profile_keeps_its_content_too(evidence: Evidence) -> None:
    (path,) = (evidence.path / "profiles/systems").glob("a100-80g-calculon.json")
    value = json.loads(path.read_text())
    path.rename(path.with_name("moved.json"))
    assert changed_profiles(evidence, None) == []
    value["description"] = "Another one."
    path.write_text(json.dumps(value))
    # The first of two files differs from what it was, and the other from the first.
    assert changed_profiles(evidence, None) == [
        *("profiles/systems/a100-80g-calculon.json", "profiles/systems/moved.json")
    ]


def test_history_that_is_cut_is_noted(evidence: Evidence) -> None:
    put_small(evidence)
    evidence.commit("version 1")
    put_small(evidence, lanes=2)
    evidence.commit("changed")
    shallow = evidence.path.parent / "shallow"
    evidence.git("clone", "--quiet", "--depth", "1", f"file://{evidence.path}", str(shallow))
    result = evidence.perfdb("check", "--repo", str(shallow), "--json")
    value = envelope(result)
    assert [(item["code"], item["severity"]) for item in value["data"]["findings"]] == [
        ("history-incomplete", "note")
    ]
    assert result.status == 0


def test_check_judges_profiles_and_pipelines(shipped: Evidence) -> None:
    assert shipped.perfdb("check").out.startswith("no findings at ")
    put_small(shipped, notes="  ")
    put(shipped, "pipelines/calibrated.json", {"stages": [{"name": "s", "component": "A"}]})
    component = {**ANALYTIC, "evidence": "calibrated"}
    value = {"name": "cal", "version": 1, "components": {"A": component}}
    put(shipped, "profiles/cal.json", value)
    shipped.write("profiles/cal.yaml", json.dumps({**value, "version": 2}).encode())
    result = shipped.perfdb("check", "--worktree", "--json")
    assert result.status == 1
    found = {
        (finding["document"], finding["code"]) for finding in envelope(result)["data"]["findings"]
    }
    assert ("pipelines/calibrated.json", "unsound-pipeline") in found
    documents = {document for document, _ in found}
    assert documents == {
        *("pipelines/calibrated.json", "profiles/small.json"),
        *("profiles/cal.json", "profiles/cal.yaml"),
    }

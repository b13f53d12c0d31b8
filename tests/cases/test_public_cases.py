"""Faults from public bug reports, end to end: imported, compared and asked for by commands."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.cli.evidence import Evidence, Result, envelope, make_evidence

FILES = Path(__file__).parent / "files"
DEVICE = "--set=device=a100"


@pytest.fixture
def evidence(tmp_path: Path) -> Evidence:
    made = make_evidence(tmp_path / "evidence", tmp_path / "cache")
    made.commit("start")
    return made


def take(evidence: Evidence, name: str, session: str) -> None:
    facts = (DEVICE, f"--set=session={session}")
    done = evidence.perfdb("import", "auto", *facts, str(FILES / name))
    assert done.status == 0, done.err


def pairs(evidence: Evidence, *options: str) -> list[dict[str, Any]]:
    evidence.commit("both")
    done = evidence.perfdb("compare", "session=base", "session=new", *options, "--json")
    assert done.status == 0, done.err
    found: list[dict[str, Any]] = envelope(done)["data"]["pairs"]
    return found


def test_a_unit_that_changed_is_no_speed_up_and_one_run_is_no_verdict(evidence: Evidence) -> None:
    for session in ("base", "new"):
        take(evidence, f"encode_{session}.json", session)
    (pair,) = pairs(evidence, "--metric", "latency")
    assert pair["base"]["value"] == pytest.approx(9.9e-7)
    assert pair["new"]["value"] == pytest.approx(1.1e-6)
    assert pair["ratio"]["value"] == pytest.approx(1.111111, abs=1e-6)
    assert pair["verdict"] == "cannot-tell"


def test_a_rate_that_falls_is_worse_as_is_its_time_that_grows(evidence: Evidence) -> None:
    for session in ("base", "new"):
        take(evidence, f"tokens_{session}.json", session)
    found = {pair["metric"]: pair for pair in pairs(evidence)}
    assert found["throughput"]["ratio"]["value"] == pytest.approx(0.8, rel=1e-3)
    assert found["latency"]["ratio"]["value"] == pytest.approx(1.25, rel=1e-3)
    assert {pair["verdict"] for pair in found.values()} == {"worse"}


def test_a_run_whose_samples_were_all_discarded_is_no_evidence_and_no_zero(
    evidence: Evidence,
) -> None:
    file = str(FILES / "nvbench_all_discarded.json")
    for tool in ("auto", "nvbench"):
        done = evidence.perfdb("import", tool, DEVICE, file)
        assert done.status == 4
        assert "no evidence in it" in done.err
        assert "copy N=65536 was skipped: GPU throttled on every trial" in done.err
    (message,) = envelope(evidence.perfdb("import", "auto", DEVICE, file, "--json"))["messages"]
    assert message["code"] == "no-points"
    assert evidence.git("status", "--short") == ""


HEADER = """
schema: perfdb/mapping/v1
name: table
version: 1
description: Numbers of a benchmark without an importer of its own.
kind: measured
format: csv
source: {tool: bench, license: Apache-2.0}
session: table
environment: {device: a100_80g, device_count: null, form_factor: null, driver: null,
  firmware: null, runtimes: {}, kernel: null, operating_system: null, processor: null,
  clock_policy: null, power_policy: null, topology: null, notes: []}
protocol: {warmup: null, repetitions: null, synchronization: null, timer_resolution: null,
  clock_state: null, power_state: null, measurement_error: null}
"""
CURVE = f"""{HEADER}
dimensions: {{device: {{value: a100_80g}}, participants: {{column: ranks}},
  dtype: {{value: float32}}}}
ignored_columns: [operation]
operations:
  - operation: all_reduce
    dimensions: {{message_bytes: {{column: bytes}}}}
    metrics:
      - {{column: time_us, metric: latency, statistic: median, unit: us}}
"""


NAMED = f"""{HEADER}
dimensions: {{device: {{value: a100_80g}}}}
SOURCES
operations:
  - operation: benchmark
    dimensions: {{benchmark: {{column: name}}}}
    metrics:
      - {{column: mean_ns, metric: latency, statistic: mean, unit: ns}}
      - {{column: stddev_ns, metric: latency, statistic: std, unit: ns}}
      - {{column: runs, metric: latency, statistic: count, unit: "1"}}
"""


def take_table(evidence: Evidence, mapping: str, table: Path) -> Result:
    path = evidence.path.parent / "mapping.yaml"
    path.write_text(mapping)
    return evidence.perfdb("import", "table", "--mapping", str(path), str(table))


CLOCKED = f"""{HEADER}
dimensions: {{device: {{value: a100_80g}}, benchmark: {{value: copy}}}}
source_columns: [iter, throttle_reasons]
operations:
  - operation: benchmark
    dimensions: {{}}
    metrics:
      - {{column: time_us, metric: latency, statistic: sample, unit: us}}
      - {{column: sm_clock_mhz, metric: sm_clock, statistic: sample, unit: MHz}}
      - {{column: power_w, metric: power, statistic: sample, unit: W}}
"""


def test_a_run_under_a_falling_clock_is_kept_and_answers_only_when_asked_to(
    evidence: Evidence,
) -> None:
    done = take_table(evidence, CLOCKED, FILES / "throttled.csv")
    assert (done.status, "40 new records" in done.out) == (0, True), done.err
    assert "throttled from sample 20 on: clock 1965 to 1600 MHz" in done.err
    evidence.commit("throttled")
    asked = ("resolve", "operation=benchmark", "device=a100", "benchmark=copy", "--json")
    refused = evidence.perfdb(*asked)
    data = envelope(refused)["data"]
    assert (refused.status, data["estimate"], data["code"]) == (4, None, "throttled")
    assert data["alternatives"][0]["status"] == "rejected"
    admitted = evidence.perfdb(*asked, "--accept-throttled")
    data = envelope(admitted)["data"]
    assert (admitted.status, data["marks"]) == (0, ["external-policy"])
    assert len(data["estimate"]["provenance"]["record_ids"]) == 40
    assert any("throttled from sample 20 on" in note for note in notes(data))


def notes(data: dict[str, Any]) -> list[str]:
    found: list[str] = data["estimate"]["diagnostics"]["notes"]
    return found


def test_two_summaries_of_one_name_are_refused_unless_a_column_tells_them_apart(
    evidence: Evidence,
) -> None:
    table = FILES / "duplicate_names.csv"
    done = take_table(evidence, NAMED.replace("SOURCES", ""), table)
    assert done.status == 3
    assert "line 2: column 'name': 'map (+1)' stands at line 3 too" in done.err
    assert "line 3: column 'name': 'map (+1)' stands at line 2 too" in done.err
    assert evidence.git("status", "--short") == ""
    keyed = evidence.path.parent / "keyed.csv"
    lines = table.read_text().splitlines()
    keyed.write_text("".join(f"{line},{number}\n" for number, line in enumerate(lines)))
    keyed.write_text(keyed.read_text().replace("runs,0", "runs,suite"))
    done = take_table(evidence, NAMED.replace("SOURCES", "source_columns: [suite]"), keyed)
    assert done.status == 0, done.err


SHORT = """
schema: perfdb/calibration-spec/v1
name: short-curve
description: All-reduce of eight ranks, a curve over eleven sizes.
family: network-efficiency
response: latency
operation: all_reduce
device: a100_80g
inputs: [message_bytes]
level: 0.8
seed: 0
parts:
  - split:
      name: two-sizes
      description: Two inner sizes are held out.
      records: {device: a100_80g, operations: [all_reduce], where: {"@session": [table]}}
      key: {columns: [message_bytes], form: named, separator: ","}
      bucket:
        seed: "SEED"
        parts: [{columns: [message_bytes], form: named, separator: ","}]
        hex_digits: 16
        held_out: {at_least: 0, below: 0.2}
    slice_by: [participants]
    forms: [affine, log-log-curve]
"""
ASKED = ("resolve", "operation=all_reduce", "device=a100", "dtype=fp32")


def ask(evidence: Evidence, size: int, ranks: int, *options: str) -> tuple[int, dict[str, Any]]:
    point = (f"message_bytes={size}", f"participants={ranks}")
    result = evidence.perfdb(*ASKED, *point, *options, "--json")
    return result.status, envelope(result)["data"]


def calibrated(data: dict[str, Any]) -> dict[str, Any]:
    (found,) = (item for item in data["alternatives"] if item["provider"] == "calibrated")
    return dict(found)


def promote_short_curve(evidence: Evidence, octaves: int = 1) -> None:
    """Fit the curve and let the default policy name the revision."""
    (evidence.path.parent / "short.yaml").write_text(SHORT.replace("SEED", "21"))
    done = evidence.perfdb("calibrate", "fit", str(evidence.path.parent / "short.yaml"), "--json")
    assert done.status == 0, done.err
    revision = re.search(r"calibrations/network-efficiency/([0-9a-f]{64})", done.out)
    assert revision is not None
    path = evidence.path / "evidence/policies/default.yaml"
    policy, _, _ = path.read_text().partition("\ncalibrations:")
    choice = f"response: latency, operation: all_reduce, device: a100_80g, revision: {revision[1]}"
    policy = re.sub(r"octaves: 1\n", f"octaves: {octaves}\n", policy)
    path.write_text(f"{policy}\ncalibrations:\n  - {{{choice}}}\n")
    evidence.commit("promote")


@pytest.mark.parametrize("other", ["Map (+1)", "map  (+1)", "map (+1) "])
def test_names_that_differ_in_case_or_space_are_one_name(evidence: Evidence, other: str) -> None:
    table = evidence.path.parent / "t.csv"
    text = (FILES / "duplicate_names.csv").read_text()
    table.write_text(text.replace("map (+1)", other, 1))
    done = take_table(evidence, NAMED.replace("SOURCES", ""), table)
    assert done.status == 3
    assert f"line 3: column 'name': 'map (+1)' stands at line 2 (as {other!r}) too" in done.err
    assert evidence.git("status", "--short") == ""


def test_a_short_curve_answers_between_its_sizes_and_says_how_far_others_are(
    evidence: Evidence,
) -> None:
    assert take_table(evidence, CURVE, FILES / "curve.csv").status == 0
    evidence.commit("curve")
    promote_short_curve(evidence)
    status, data = ask(evidence, 65536, 8)
    exact = data["estimate"]
    assert (status, exact["method"], exact["validity"]["kind"]) == (0, "measured", "exact")
    assert exact["metrics"]["latency"]["value"] == pytest.approx(13.31e-6)
    status, data = ask(evidence, 3000, 8)
    between = data["estimate"]
    assert (status, between["validity"]["kind"]) == (0, "interpolated")
    assert 12.03e-6 <= between["metrics"]["latency"]["value"] <= 12.09e-6
    assert between["validity"]["domain"] == {"message_bytes": {"minimum": 1024, "maximum": 1048576}}
    interval = between["metrics"]["latency"]["uncertainty"]
    assert (interval["level"], interval["sample_count"]) == (0.8, 7)
    assert interval["lower"] < between["metrics"]["latency"]["value"] < interval["upper"]
    # Six octaves, and seven: a message may have no bytes, so that it counts as one more.
    for size, octaves in ((67108864, "6.00"), (8, "6.83")):
        status, data = ask(evidence, size, 8, "--method", "measured", "--method", "calibrated")
        assert (status, data["estimate"]) == (4, None), size
        lost = calibrated(data)
        assert (lost["status"], lost["code"]) == ("rejected", "too-far")
        assert f"{octaves} octaves outside the evidence" in lost["reason"]
    status, data = ask(evidence, 65536, 16, "--method", "measured", "--method", "calibrated")
    assert (status, data["estimate"]) == (4, None)
    assert calibrated(data)["latency"] is None


def test_an_opt_in_states_how_many_octaves_it_goes_beyond(evidence: Evidence) -> None:
    assert take_table(evidence, CURVE, FILES / "curve.csv").status == 0
    evidence.commit("curve")
    promote_short_curve(evidence, octaves=6)
    status, data = ask(evidence, 67108864, 8)
    validity = data["estimate"]["validity"]
    assert (status, validity["kind"]) == (0, "extrapolated")
    assert validity["distance_octaves"] == pytest.approx(6, abs=1e-4)
    assert calibrated(ask(evidence, 8, 8)[1])["code"] == "too-far"


def test_sizes_and_ranks_that_were_not_measured_are_refused(evidence: Evidence) -> None:
    done = take_table(evidence, CURVE, FILES / "curve.csv")
    assert done.status == 0, done.err
    evidence.commit("curve")
    status, data = ask(evidence, 65536, 8)
    assert status == 0
    assert data["estimate"]["method"] == "measured"
    assert data["estimate"]["metrics"]["latency"]["value"] == pytest.approx(13.31e-6)
    # Without a fitted curve nothing is put between two sizes, and never the value of other ranks:
    # what answers all the same is the model of the machine, and says so.
    for size, ranks in ((3000, 8), (67108864, 8), (8, 8), (65536, 16)):
        status, data = ask(evidence, size, ranks, "--method", "measured")
        assert (status, data["estimate"]) == (4, None), (size, ranks)
    status, data = ask(evidence, 65536, 16)
    assert (status, data["estimate"]["method"]) == (0, "analytical")

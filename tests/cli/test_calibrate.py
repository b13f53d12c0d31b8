"""`perfdb calibrate`: fit, commit, report and check, over a real repository."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from perfdb_git.formats.canonical import canonical_document
from perfdb_git.formats.digests import sha256_hex
from tests.cli.evidence import Evidence, envelope

SPEC = """\
schema: perfdb/calibration-spec/v1
name: small-gemm
description: A curve over m for each (n, k).
family: operation-size-efficiency
response: latency
operation: gemm
device: a100_80g
inputs: [m]
parts:
  - split:
      name: small-shapes20
      description: A fifth of the shapes.
      records: {device: a100_80g, operations: [gemm]}
      key: {columns: [m, "n", k]}
      bucket: {seed: "7", hex_digits: 8, held_out: {at_least: 0, below: 0.2}}
    slice_by: ["n", k]
    forms: [affine, log-log-curve]
"""
SPEC_PATH = "evidence/calibrations/specs/small-gemm.yaml"


@pytest.fixture
def measured(evidence: Evidence) -> Evidence:
    """Two lines of sixty sizes, the spec, and the one record set that all tests have, retracted."""
    for place, n in enumerate((64, 128)):
        rows = [
            (m, n, 64, round(0.1 * m**0.7 * (1 + ((7 * m + place) % 11) / 500), 6), 0.01, 20)
            for m in range(8, 488, 8)
        ]
        evidence.add_gemm(f"line-{n}", rows)
    # The two rows of the template are another shape, with too few sizes for a curve.
    evidence.write(SPEC_PATH, SPEC.replace("[gemm]}", "[gemm], terms: {k: [64]}}").encode())
    evidence.commit("measure")
    return evidence


@pytest.fixture
def fitted(measured: Evidence) -> tuple[Evidence, str]:
    result = measured.perfdb("calibrate", "fit", "small-gemm", "--commit", "--json", **GIT)
    assert result.status == 0, result.err
    return measured, envelope(result)["data"]["revision"]


GIT: dict[str, str] = {}


@pytest.fixture(autouse=True)
def identity(evidence: Evidence) -> None:
    evidence.git("config", "user.name", "Ada Author")
    evidence.git("config", "user.email", "ada@example.org")


def revision_file(evidence: Evidence, sha256: str) -> Path:
    return evidence.path / f"evidence/calibrations/operation-size-efficiency/{sha256}.json"


def test_fit_commit_report_check(fitted: tuple[Evidence, str]) -> None:
    evidence, sha256 = fitted
    assert evidence.git("status", "--porcelain") == ""
    report = evidence.perfdb("calibrate", "report", sha256[:8])
    assert report.status == 0, report.err
    assert "log-log-curve" in report.out
    assert "size_decade" in report.out
    assert "rows missed most" in report.out
    check = evidence.perfdb("calibrate", "check")
    assert (check.status, check.out.startswith("no findings")) == (0, True), check.out
    whole = evidence.perfdb("check", "--ignore", "schema-copies")
    assert whole.status == 0, whole.out


def test_dry_run_writes_nothing_and_names_the_policy_line(measured: Evidence) -> None:
    result = measured.perfdb("calibrate", "fit", SPEC_PATH, "--dry-run")
    assert result.status == 0, result.err
    assert "- {response: latency, operation: gemm, device: a100_80g, revision: " in result.out
    assert "chosen" in result.out
    assert measured.git("status", "--porcelain") == ""


def test_the_same_fit_writes_the_same_file(fitted: tuple[Evidence, str]) -> None:
    evidence, sha256 = fitted
    again = envelope(evidence.perfdb("calibrate", "fit", "small-gemm", "--json"))["data"]
    assert again["revision"] == sha256
    assert again["written"] == []


def test_reports_as_json_markdown_and_side_by_side(fitted: tuple[Evidence, str]) -> None:
    evidence, sha256 = fitted
    data = envelope(evidence.perfdb("calibrate", "report", sha256, "--json"))["data"]
    worst = data["revisions"][0]["worst"]
    sizes = [abs(row["error_pct"]) for row in worst]
    assert sizes == sorted(sizes, reverse=True)
    assert all("#" in row["record"] for row in worst)
    text = evidence.perfdb("calibrate", "report", sha256, "--markdown").out
    assert text.startswith("### ")
    assert "| held-out rows | n | MAPE |" in text
    both = evidence.perfdb("calibrate", "report", sha256, sha256)
    assert both.status == 0
    assert "two revisions" in both.out


def tampered(evidence: Evidence, sha256: str, change: Any) -> None:
    """Replace a revision by a changed one under the digest of its new bytes."""
    path = revision_file(evidence, sha256)
    value = json.loads(path.read_text())
    change(value)
    content = canonical_document(value)
    path.unlink()
    path.with_name(f"{sha256_hex(content)}.json").write_bytes(content)
    evidence.commit("tamper")


def better_figure(value: dict[str, Any]) -> None:
    value["held_out_report"]["overall"]["mape_pct"] *= 1 - 1e-6


def other_parameter(value: dict[str, Any]) -> None:
    numbers = value["slices"][0]["inside"]["interval"]["parameters"]["numbers"]
    numbers["width"] *= 3


def other_training(value: dict[str, Any]) -> None:
    value["slices"][0]["training"]["digest"] = "0" * 64


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (better_figure, "held-out-error"),
        (other_parameter, "held-out-error"),
        (other_training, "training-digest"),
    ],
)
def test_a_tampered_revision_is_found(fitted: tuple[Evidence, str], change: Any, code: str) -> None:
    evidence, sha256 = fitted
    tampered(evidence, sha256, change)
    result = evidence.perfdb("calibrate", "check", "--json")
    assert result.status == 1, result.out
    assert {item["code"] for item in envelope(result)["data"]["findings"]} == {code}


def test_a_tampered_split_is_found(fitted: tuple[Evidence, str]) -> None:
    evidence, sha256 = fitted
    old = next((evidence.path / "evidence/splits").iterdir())
    value = json.loads(old.read_text())
    value["membership"]["held_out_digest"] = "0" * 64
    content = canonical_document(value)
    digest = sha256_hex(content)
    old.unlink()
    old.with_name(f"small-shapes20-{digest[:12]}.json").write_bytes(content)

    def follow(calibration: dict[str, Any]) -> None:
        for item in calibration["slices"]:
            item["split"] = digest

    tampered(evidence, sha256, follow)
    result = evidence.perfdb("calibrate", "check")
    assert result.status == 1
    assert "split-not-reproduced" in result.out


def test_wrong_requests(measured: Evidence) -> None:
    assert measured.perfdb("calibrate", "fit", "unheard").status == 3
    assert measured.perfdb("calibrate", "fit", "nowhere/spec.yaml").status == 2
    assert measured.perfdb("calibrate", "report", "00").status == 3
    both = measured.perfdb("calibrate", "fit", "small-gemm", "--dry-run", "--commit")
    assert both.status == 2

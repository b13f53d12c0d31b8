"""Figures worked out again by `perfdb check`, and gates, over real repositories."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from perfdb_git.calibration.documents import document_file
from perfdb_git.calibration.splits import build_split
from perfdb_git.database import PerformanceDatabase
from perfdb_git.formats.canonical import canonical_document, canonical_record_set
from perfdb_git.formats.digests import sha256_hex
from perfdb_git.formats.strict_json import read_json
from perfdb_git.model.splits import (
    BucketRange,
    BucketRule,
    KeyText,
    RecordSelection,
    SplitRecipe,
)
from perfdb_git.storage.layout import record_set_path
from tests.cli.evidence import Evidence, envelope

SPEC = """\
schema: perfdb/calibration-spec/v1
name: line
description: A curve over m.
family: operation-size-efficiency
response: latency
operation: gemm
device: a100_80g
inputs: [m]
parts:
  - split:
      name: line20
      description: A fifth of the sizes.
      records: {device: a100_80g, operations: [gemm], terms: {k: [64]}}
      key: {columns: [m, "n", k]}
      bucket: {seed: "7", hex_digits: 8, held_out: {at_least: 0, below: 0.2}}
    slice_by: ["n", k]
    forms: [affine, log-log-curve]
"""
GATES = "evidence/policies/gates.yaml"
POLICY = "evidence/policies/default.yaml"
REVISIONS = "evidence/calibrations/operation-size-efficiency"


@pytest.fixture(scope="module")
def fitted_template(template: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """One line of sixty sizes with its fitted revision, committed."""
    folder = tmp_path_factory.mktemp("fitted")
    for name in ("evidence", "cache"):
        shutil.copytree(template / name, folder / name)
    made = Evidence(folder / "evidence", folder / "cache", clock=1_700_000_060)
    rows = [
        (m, 64, 64, round(0.1 * m**0.7 * (1 + ((7 * m) % 11) / 500), 6), 0.01, 20)
        for m in range(8, 488, 8)
    ]
    made.add_gemm("line", rows)
    made.write("evidence/calibrations/specs/line.yaml", SPEC.encode())
    made.commit("measure")
    result = made.perfdb("calibrate", "fit", "line", "--json")
    assert result.status == 0, result.err
    made.commit("fit")
    return folder, envelope(result)["data"]["revision"]


@pytest.fixture
def fitted(fitted_template: tuple[Path, str], tmp_path: Path) -> tuple[Evidence, str]:
    folder, sha256 = fitted_template
    for name in ("evidence", "cache"):
        shutil.copytree(folder / name, tmp_path / f"fitted-{name}")
    made = Evidence(tmp_path / "fitted-evidence", tmp_path / "fitted-cache", clock=1_700_009_999)
    return made, sha256


def tampered(evidence: Evidence, sha256: str, **changes: Any) -> str:
    """Replace values of the revision at JSON pointers, under the digest of its new bytes."""
    path = evidence.path / REVISIONS / f"{sha256}.json"
    value = json.loads(path.read_text())
    for pointer, new in changes.items():
        *parents, last = pointer.split("/")
        node = value
        for part in parents:
            node = node[int(part) if part.isdigit() else part]
        node[last] = new
    content = canonical_document(value)
    path.unlink()
    path.with_name(f"{sha256_hex(content)}.json").write_bytes(content)
    return sha256_hex(content)


def stated(evidence: Evidence, sha256: str) -> Any:
    return json.loads((evidence.path / REVISIONS / f"{sha256}.json").read_text())


def codes(evidence: Evidence, *arguments: str) -> list[str]:
    result = evidence.perfdb("check", "--json", *arguments)
    findings = envelope(result)["data"]["findings"]
    has_error = any(item["severity"] == "error" for item in findings)
    assert result.status == (1 if has_error else 0)
    return [item["code"] for item in findings]


def verdicts(evidence: Evidence) -> list[Path]:
    return sorted(evidence.cache.glob("verdicts/v1/*/*.passed"))


def test_what_passed_is_remembered_and_forgotten(fitted: tuple[Evidence, str]) -> None:
    evidence, _ = fitted
    assert codes(evidence) == []
    (verdict,) = verdicts(evidence)
    # Another record set and a retraction change nothing that the revision follows from.
    evidence.add_gemm("later", [(9, 9, 9, 1.0, 0.1, 20)])
    evidence.commit("later")
    assert codes(evidence) == [] and verdicts(evidence) == [verdict]
    # A verdict that is damaged is no verdict: it is worked out again, and found right again.
    verdict.write_bytes(b"yes\n")
    assert codes(evidence) == []
    assert verdict.read_bytes() != b"yes\n"
    # Other words in the vocabulary may change what a record means.
    vocabulary = evidence.path / "evidence/vocabulary.yaml"
    vocabulary.write_bytes(vocabulary.read_bytes() + b"# reviewed\n")
    assert codes(evidence, "--worktree") == []
    assert len(verdicts(evidence)) == 2
    status = envelope(evidence.perfdb("index", "status", "--json"))["data"]
    assert status["cache"]["verdicts"] == 2
    assert evidence.perfdb("index", "clear").status == 0
    assert verdicts(evidence) == []


def test_a_hand_edited_parameter_is_found(fitted: tuple[Evidence, str]) -> None:
    evidence, sha256 = fitted
    assert codes(evidence) == []
    value = stated(evidence, sha256)
    width = value["slices"][0]["inside"]["interval"]["parameters"]["numbers"]["width"]
    where = "slices/0/inside/interval/parameters/numbers/width"
    tampered(evidence, sha256, **{where: width * 3})
    evidence.commit("tamper")
    assert set(codes(evidence)) == {"held-out-error"}
    assert codes(evidence, "--ignore", "calibration-figures") == []
    again = evidence.perfdb("calibrate", "check")
    assert again.status == 1 and "held-out-error" in again.out


def test_a_leaked_row_is_found(fitted: tuple[Evidence, str]) -> None:
    """A second session of the same points falls on the other side of a split by session."""
    evidence, sha256 = fitted
    rows = [(m, 64, 64, 0.1, 0.01, 20) for m in range(8, 488, 8)]
    evidence.add_gemm("again", rows)
    evidence.commit("measure again")
    recipe = SplitRecipe(
        name="by-session",
        description="Leaks.",
        records=RecordSelection(
            device="a100_80g", operations=("gemm",), terms={"k": (64,), "n": (64,)}
        ),
        key=KeyText(columns=("m", "@session")),
        bucket=BucketRule(seed="1", hex_digits=8, held_out=BucketRange(at_least=0, below=0.2)),
    )
    snapshot = PerformanceDatabase.open(evidence.path, cache_directory=evidence.cache).at()
    split, _ = build_split(snapshot.evidence, recipe)
    path, digest, content = document_file(split)
    evidence.write(path, content)
    tampered(evidence, sha256, **{"slices/0/split": digest})
    evidence.commit("leak")
    found = codes(evidence)
    assert "leak" in found
    assert set(found) <= {"leak", "training-digest", "held-out-error"}


def test_other_training_records_and_a_split_by_hand_are_found(
    fitted: tuple[Evidence, str],
) -> None:
    evidence, sha256 = fitted
    sha256 = tampered(evidence, sha256, **{"slices/0/training/digest": "0" * 64})
    evidence.commit("tamper")
    assert codes(evidence) == ["training-digest"]
    (old,) = (evidence.path / "evidence/splits").iterdir()
    value = json.loads(old.read_text())
    value["membership"]["held_out_digest"] = "0" * 64
    content = canonical_document(value)
    old.unlink()
    old.with_name(f"line20-{sha256_hex(content)[:12]}.json").write_bytes(content)
    tampered(evidence, sha256, **{"slices/0/split": sha256_hex(content)})
    evidence.commit("tamper")
    assert codes(evidence) == ["split-not-reproduced"]


def test_a_revision_without_its_records_is_named(fitted: tuple[Evidence, str]) -> None:
    evidence, _ = fitted
    (path,) = evidence.path.glob("evidence/records/*/*/line-*.json")
    path.unlink()
    found = codes(evidence, "--worktree", "--select", "calibration-figures")
    assert found == ["figure-not-worked-out"]


def promote(evidence: Evidence, sha256: str) -> None:
    choice = f"{{response: latency, operation: gemm, device: a100_80g, revision: {sha256}}}"
    path = evidence.path / POLICY
    path.write_bytes(path.read_bytes() + f"\ncalibrations:\n  - {choice}\n".encode())


def set_gates(evidence: Evidence, inside: Mapping[str, float]) -> None:
    value = {
        "schema": "perfdb/gates/v1",
        "description": "Small.",
        "defaults": {"inside": dict(inside)},
    }
    evidence.write(GATES, json.dumps(value).encode())


def test_gates_judge_what_is_promoted(fitted: tuple[Evidence, str]) -> None:
    evidence, sha256 = fitted
    error = stated(evidence, sha256)["held_out_report"]["interpolated"]["mape_pct"]
    set_gates(evidence, {"max_mape_pct": error * 0.99})
    evidence.commit("gates")
    assert codes(evidence) == []
    assert evidence.perfdb("calibrate", "check").status == 0
    promote(evidence, sha256)
    evidence.commit("promote")
    assert codes(evidence) == ["gate-exceeded"]
    assert codes(evidence, "--ignore", "gates") == []
    again = evidence.perfdb("calibrate", "check")
    assert again.status == 1
    assert "mape_pct is" in again.out and "[gate-exceeded]" in again.out
    set_gates(evidence, {"max_mape_pct": error * 1.01})
    evidence.commit("an owner's gate")
    assert codes(evidence) == []


def test_gates_are_listed_and_shown(fitted: tuple[Evidence, str]) -> None:
    evidence, _ = fitted
    assert evidence.perfdb("list", "--what", "gates").out.startswith("no gates at ")
    assert evidence.perfdb("show", "gates").status == 2
    set_gates(evidence, {"max_mape_pct": 7})
    evidence.commit("gates")
    listed = evidence.perfdb("list", "--what", "gates")
    assert "inside.max_mape_pct 7" in listed.out
    assert "1 gate at " in listed.out
    (entry,) = envelope(evidence.perfdb("list", "--what", "gates", "--json"))["data"]["entries"]
    assert (entry["operation"], entry["limits"]["inside"]["max_mape_pct"]) == (None, 7)
    assert evidence.perfdb("show", "gates").out.startswith("gates gates\n  path         " + GATES)
    assert "gates" not in evidence.perfdb("list", "--what", "policies").out
    asked = ("operation=gemm", "device=a100", "dtype=fp16", "m=128", "n=10240", "k=8192")
    assert evidence.perfdb("resolve", *asked, "--policy", "gates").status == 3


def test_a_calibrated_profile_without_its_revision_is_found(evidence: Evidence) -> None:
    component = {
        "fixed_latency_ns": 100,
        "lanes": 1,
        "resource_mode": "overlap",
        "evidence": "calibrated",
        "target": "a100_80g",
        "notes": "by hand",
    }
    profile = {"schema": "perfdb/timing-profile/v1", "name": "node", "version": "1"}
    without = {name: value for name, value in component.items() if name != "target"}
    for stated, code in (
        (component, "calibrated-without-revision"),
        (without, "calibrated-without-target"),
    ):
        value = {**profile, "components": {"link": stated}}
        evidence.write("profiles/node.json", canonical_document(value))
        for command in (("check",), ("calibrate", "check")):
            result = evidence.perfdb(*command, "--worktree")
            assert result.status == 1 and f"[{code}]" in " ".join(result.out.split())


# --- validations ---


@pytest.fixture
def validated(evidence: Evidence) -> tuple[Evidence, Path]:
    """Eight sizes, measured and simulated a tenth too slow, and the validation."""
    evidence.git("config", "user.name", "Ada Author")
    evidence.git("config", "user.email", "ada@example.org")
    sizes = [8 * 2**power for power in range(8)]
    measured = evidence.add_gemm("line", [(m, 64, 64, m / 100, 0.01, 20) for m in sizes])
    (path,) = evidence.path.glob(f"evidence/records/*/*/*-{measured[:12]}.json")
    header: Any = read_json(path.read_bytes(), document="line")
    header.pop("rows")
    header |= {"kind": "simulated", "session": "sim"}
    header["source"] |= {"tool": "roofsim", "revision": "r7"}
    rows = [[m, 64, 64, 1.1 * m / 100, 0.0, 1, i] for i, m in enumerate(sizes)]
    content = canonical_record_set(header, rows)
    evidence.write(record_set_path("a100_80g", "gemm", "sim", sha256_hex(content)), content)
    evidence.commit("simulate")
    done = evidence.perfdb(
        *("validate", "roofsim@r7", "--target", "a100", "--against", measured[:8]),
        *("--limit", "12"),
    )
    assert done.status == 0, done.err
    evidence.commit("validate")
    (found,) = (evidence.path / "evidence/validations").iterdir()
    return evidence, found


def rewritten(path: Path, value: Any) -> Path:
    content = canonical_document(value)
    path.unlink()
    new = path.with_name(f"{sha256_hex(content)}.json")
    new.write_bytes(content)
    return new


def test_a_validations_error_is_worked_out_from_its_pairs(
    validated: tuple[Evidence, Path],
) -> None:
    evidence, path = validated
    assert codes(evidence) == []
    value = json.loads(path.read_text())
    value["held_out_report"]["overall"]["mape_pct"] = 1.0
    path = rewritten(path, value)
    evidence.commit("tamper")
    assert codes(evidence) == ["held-out-error"]
    # A pair of two points says nothing of the simulator.
    value["pairs"][0]["simulated"], value["pairs"][1]["simulated"] = (
        value["pairs"][1]["simulated"],
        value["pairs"][0]["simulated"],
    )
    path = rewritten(path, value)
    result = evidence.perfdb("check", "--worktree", "--json")
    (finding,) = envelope(result)["data"]["findings"]
    assert (finding["code"], finding["pointer"]) == ("validation-pair", "/pairs/0")
    value["simulator"]["revision"] = "r8"
    rewritten(path, value)
    text = evidence.perfdb("check", "--worktree").out
    assert "roofsim@r7" in text and "[validation-pair]" in text


def test_a_gate_on_validations(validated: tuple[Evidence, Path]) -> None:
    evidence, _ = validated
    for limit, expected in ((9.5, ["gate-exceeded"]), (10.5, [])):
        value = {
            "schema": "perfdb/gates/v1",
            "description": "Small.",
            "defaults": {"max_validation_mape_pct": limit},
        }
        evidence.write(GATES, json.dumps(value).encode())
        assert codes(evidence, "--worktree") == expected

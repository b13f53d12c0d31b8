"""Calibrations trained on an oracle's rows are left aside; those of other models may answer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from perfdb_git.calibration.documents import document_file
from perfdb_git.calibration.fit import fit_calibration
from perfdb_git.formats.codec import decode
from perfdb_git.formats.schemas import SchemaStore
from perfdb_git.model.calibration import CalibrationSpec
from perfdb_git.plans.oracle_comparison import OracleComparison, OracleGates, compare_with_oracle
from perfdb_git.storage.append import write_new_files
from tests.cli.evidence import Evidence
from tests.plans.oracle_evidence import (
    LLAMA,
    NORM,
    commit_step,
    import_mlp,
    milliseconds,
    mlp_csv,
)
from tests.plans.plan_evidence import edit, plan, put_plan, query, snapshot

TOKENS = tuple(range(1, 49))
RMS = {**NORM, "norm_kind": "rms"}


def spec(session: str) -> CalibrationSpec:
    """Fit norms by the bytes they read: no shape, no kind."""
    key = {"columns": ["tokens", "hidden_size"], "form": "named", "separator": ","}
    value = {
        "schema": "perfdb/calibration-spec/v1",
        "name": "norm-launch",
        "description": "Norms by bytes.",
        "family": "launch-overhead",
        "response": "latency",
        "operation": "norm",
        "device": "a100_80g",
        "inputs": ["bytes_read"],
        "level": 0.9,
        "seed": 0,
        "parts": [
            {
                "split": {
                    "name": "norm-shapes",
                    "description": "A fifth of the sizes.",
                    "records": {
                        "device": "a100_80g",
                        "operations": ["norm"],
                        "where": {"@session": [session]},
                    },
                    "key": key,
                    "bucket": {
                        "seed": "1",
                        "parts": [key],
                        "hex_digits": 16,
                        "held_out": {"at_least": 0, "below": 0.2},
                    },
                },
                "slice_by": [],
                "forms": ["affine"],
            }
        ],
    }
    SchemaStore().validate(value, document="spec", expected_kind="calibration-spec")
    return decode(CalibrationSpec, value, document="spec")


def promote(evidence: Evidence, model: str) -> str:
    """Fit the norms of one model, and let the default policy name the revision."""
    fitted = fit_calibration(snapshot(evidence).evidence, spec(f"vidur-7d47513-a100-{model}"))
    documents = [document_file(document) for document in fitted.documents]
    write_new_files(evidence.path, {path: content for path, _, content in documents})
    sha256 = documents[-1][1]
    choice = {
        "response": "latency",
        "operation": "norm",
        "device": "a100_80g",
        "revision": sha256,
    }
    edit(
        evidence,
        "evidence/policies/default.yaml",
        "system_profiles:",
        f"calibrations: [{json.dumps(choice)}]\n\nsystem_profiles:",
    )
    evidence.commit("a calibration")
    return sha256


@pytest.fixture
def both(evidence: Evidence, tmp_path: Path) -> Path:
    """Two models are evidence; the path of the oracle, the table of one."""
    import_mlp(evidence, tmp_path / "a", mlp_csv(TOKENS, LLAMA), model="Llama-2-7b-hf")
    oracle = import_mlp(evidence, tmp_path / "b", mlp_csv(TOKENS))
    put_plan(evidence, plan(query("norm", NORM)))
    evidence.commit("two models and a plan")
    return oracle


def compared(evidence: Evidence, oracle: Path) -> OracleComparison:
    return compare_with_oracle(snapshot(evidence), "step", [oracle], gates=OracleGates())


def test_calibration_trained_on_the_oracle_is_excluded(evidence: Evidence, both: Path) -> None:
    sha256 = promote(evidence, "phi-2")
    found = compared(evidence, both)
    assert [item.sha256 for item in found.isolation.calibrations] == [sha256]
    assert {item.sha256 for item in found.isolation.record_sets}.issuperset(
        found.isolation.calibrations[0].record_sets
    )
    assert [item.method for item in found.components] == ["analytical"]


def test_excluded_calibration_is_named_among_the_alternatives(
    evidence: Evidence, both: Path
) -> None:
    promote(evidence, "phi-2")
    without = snapshot(evidence).without(compared(evidence, both).isolation.exclusion())
    answer = without.resolve(without.query(NORM))
    codes = {item.provider: item.code for item in answer.alternatives}
    assert codes["calibrated"] == "excluded"
    whole = snapshot(evidence)
    revisions = [side.provider_revisions(side.policy())["calibrated"] for side in (whole, without)]
    assert revisions[0] != revisions[1]


def test_calibration_of_another_model_answers_by_bytes(evidence: Evidence, both: Path) -> None:
    sha256 = promote(evidence, "Llama-2-7b-hf")
    found = compared(evidence, both)
    (norm,) = found.components
    assert found.isolation.calibrations == ()
    assert (norm.method, norm.calibration) == ("calibrated", sha256)
    # Both models' norms take 8 us * (1 + tokens / 64), and 8 rows of 2,560 are 5 of 4,096.
    assert norm.estimate_s == pytest.approx(milliseconds("input_layernorm", 5) / 1000, rel=0.02)
    assert norm.measured_s == pytest.approx(milliseconds("input_layernorm", 8) / 1000)


def test_kinds_that_move_the_same_bytes_take_the_same_time(evidence: Evidence, both: Path) -> None:
    promote(evidence, "Llama-2-7b-hf")
    side = snapshot(evidence).without(compared(evidence, both).isolation.exclusion())
    layer, rms = (side.resolve(side.query(values)) for values in (NORM, RMS))
    assert layer.estimate is not None
    assert rms.estimate is not None
    values = [answer.estimate.metrics["latency"].value for answer in (layer, rms)]  # type: ignore[union-attr]
    # One more vector of parameters is read by the layer norm.
    assert values[0] == pytest.approx(values[1], rel=0.05)
    assert values[0] > values[1]


def test_work_without_a_dimension_is_refused(evidence: Evidence, both: Path) -> None:
    promote(evidence, "Llama-2-7b-hf")
    side = snapshot(evidence)
    partial = {name: value for name, value in NORM.items() if name != "hidden_size"}
    answer = side.resolve(side.query({**partial, "tokens": 500}))
    codes = {item.provider: (item.code, item.reason) for item in answer.alternatives}
    assert codes["calibrated"][0] == "missing-input"
    assert "hidden_size" in codes["calibrated"][1]


def test_stored_figures_of_such_a_calibration_are_worked_out_again(
    evidence: Evidence, both: Path
) -> None:
    promote(evidence, "Llama-2-7b-hf")
    done = evidence.perfdb("calibrate", "check")
    assert done.status == 0, done.out + done.err


def test_oracle_that_trained_nothing_excludes_no_calibration(
    evidence: Evidence, both: Path, tmp_path: Path
) -> None:
    promote(evidence, "phi-2")
    commit_step(evidence)
    other = tmp_path / "llama.csv"
    other.write_bytes(mlp_csv((8,), {**LLAMA, "n_embd": 2560}))
    assert compared(evidence, other).isolation.calibrations == ()

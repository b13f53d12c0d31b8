"""Answers of calibrations: inside, beyond, refused, ambiguous; and records come first."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from perfdb_git.analysis.curves import LogLogCurve
from perfdb_git.analysis.scale_offset import ScaleOffset
from perfdb_git.database import DatabaseSnapshot
from perfdb_git.formats.codec import encode
from perfdb_git.formats.schemas import SchemaStore
from perfdb_git.model.calibration import Calibration, DomainRange, TrainingRecords
from perfdb_git.model.estimate import Alternative
from perfdb_git.model.held_out import ReportGroup
from perfdb_git.model.policy import ExtrapolationLimit, Limits
from perfdb_git.model.query import EvidencePolicy
from perfdb_git.model.result import Resolution
from perfdb_git.providers.fitted_models import (
    OneWidth,
    encode_curve,
    encode_interval,
    encode_scale_offset,
)
from perfdb_git.storage.layout import calibration_path
from tests.resolution.conftest import EvidenceRepository
from tests.resolution.fitted import (
    POLICY,
    calibration,
    curve_model,
    process_model,
    promote,
    sized_model,
    slice_of,
    trees_model,
)

DEVICE = "a100_80g"
GEMM: dict[str, Any] = {
    "operation": "gemm",
    "device": DEVICE,
    "dtype": "float16",
    "m": 100,
    "n": 512,
    "k": 1024,
}


def gemm(**changes: Any) -> Calibration:
    return calibration(device=DEVICE, **changes)


def one_size(**changes: Any) -> Calibration:
    """A curve over m alone."""
    model = changes.pop("model", curve_model())
    domain = {"m": DomainRange(minimum=16, maximum=1024)}
    terms = {"dtype": "float16", "n": 512, "k": 1024}
    item = slice_of(inside=model, domain=domain, terms=terms)
    return gemm(inputs=("m",), slices=(item,), **changes)


def calibrated(answer: Resolution) -> Alternative:
    return next(item for item in answer.alternatives if item.provider == "calibrated")


def ask(snapshot: DatabaseSnapshot, **changes: Any) -> Resolution:
    return snapshot.resolve(**(GEMM | changes))


def test_between_records_the_calibration_answers(repository: EvidenceRepository) -> None:
    sha256 = repository.add([[64, 512, 1024, 0.02, 0.001], [128, 512, 1024, 0.03, 0.001]])
    training = TrainingRecords(records=300, record_sets=(sha256,), digest="0" * 64)
    (digest,) = promote(repository, gemm(slices=(slice_of(training=training),)))
    answer = ask(repository.at(), m=100)
    estimate = answer.estimate
    assert estimate is not None
    assert (estimate.method, estimate.validity.kind) == ("calibrated", "interpolated")
    assert estimate.validity.distance_octaves == pytest.approx(np.log2(128 / 100))
    assert estimate.provenance.calibration == digest
    assert estimate.provenance.record_ids == ()
    interval = estimate.metrics["latency"].uncertainty
    assert interval is not None
    assert (interval.kind, interval.level, interval.rule) == (
        "prediction",
        0.9,
        "split-conformal",
    )
    assert interval.lower < estimate.metrics["latency"].value < interval.upper
    notes = " | ".join(estimate.diagnostics.notes)
    assert "operation-size-efficiency, form boosted-trees" in notes
    assert "MAPE" in notes
    assert "300 records" in notes
    analytical = next(a for a in answer.alternatives if a.provider == "analytical")
    assert (analytical.code, analytical.latency is not None) == ("lower-tier", True)


def test_the_answer_is_that_of_the_batch(repository: EvidenceRepository) -> None:
    (digest,) = promote(repository, gemm())
    snapshot = repository.at()
    predictor = snapshot.calibration_models.predictor(digest, 0)
    assert predictor is not None
    sizes = np.array([17.0, 100.0, 900.0, 4096.0])
    columns = {"m": sizes, "n": np.full(4, 512.0), "k": np.full(4, 1024.0)}
    singles = [ask(snapshot, m=int(size)).estimate for size in sizes]
    values = [item.metrics["latency"].value for item in singles if item is not None]
    assert values == predictor.predict(columns).tolist()


def test_an_exact_record_still_wins(repository: EvidenceRepository) -> None:
    repository.add([[100, 512, 1024, 0.02, 0.001]])
    promote(repository, gemm())
    answer = ask(repository.at())
    assert answer.estimate is not None
    assert answer.estimate.method == "measured"
    lost = calibrated(answer)
    assert (lost.status, lost.code) == ("rejected", "lower-tier")
    assert lost.latency is not None


def test_beyond_the_domain_the_interval_widens(repository: EvidenceRepository) -> None:
    promote(repository, gemm(slices=(slice_of(beyond=trees_model(rate=0.5)),)))
    snapshot = repository.at()
    inside, near, far = (ask(snapshot, m=m).estimate for m in (4096, 8192, 32768))
    assert inside is not None
    assert near is not None
    assert far is not None
    assert [item.validity.kind for item in (inside, near, far)] == [
        "interpolated",
        "extrapolated",
        "extrapolated",
    ]
    assert [item.validity.distance_octaves for item in (inside, near, far)] == [0, 1, 3]
    assert _log_width(near) == pytest.approx(1.5 * _log_width(inside))
    assert _log_width(far) == pytest.approx((1 + 0.5 * 3**0.5) * _log_width(inside))


def _log_width(estimate: Any) -> float:
    interval = estimate.metrics["latency"].uncertainty
    return float(np.log(interval.upper / interval.lower) / 2)


def test_too_far_is_refused(repository: EvidenceRepository) -> None:
    promote(repository, gemm(slices=(slice_of(beyond=trees_model(rate=0.5)),)))
    lost = calibrated(ask(repository.at(), m=4096 * 9))
    assert (lost.status, lost.code) == ("rejected", "too-far")
    assert "more than 3" in lost.reason


def test_one_operation_may_go_further_along_one_dimension(repository: EvidenceRepository) -> None:
    promote(repository, gemm(slices=(slice_of(beyond=trees_model(rate=0.5)),)))
    snapshot = repository.at()

    def ask_under(*, query_limit: float | None = None, **sizes: int) -> Resolution:
        in_force = snapshot.policy()
        entry = ExtrapolationLimit(
            operation="gemm", device=DEVICE, dimensions=("m",), max_octaves=4
        )
        limits = Limits(max_extrapolation_octaves=1, extrapolation=(entry,))
        policy = replace(in_force, policy=replace(in_force.policy, limits=limits))
        own = EvidencePolicy(max_extrapolation_octaves=query_limit)
        query = replace(snapshot.query(GEMM | sizes), evidence_policy=own)
        return snapshot.resolve(query, policy=policy)

    along = ask_under(m=4096 * 8).estimate
    assert along is not None
    assert (along.method, along.validity.distance_octaves) == ("calibrated", 3)
    further = calibrated(ask_under(m=4096 * 32))
    assert (further.code, "more than 4" in further.reason) == ("too-far", True)
    for sizes in ({"n": 4096 * 8}, {"m": 4096 * 8, "n": 4096 * 2}):
        lost = calibrated(ask_under(**sizes))
        assert (lost.code, "more than 1" in lost.reason) == ("too-far", True)
    tightened = calibrated(ask_under(m=4096 * 8, query_limit=2))
    assert "more than 2" in tightened.reason


def test_without_a_model_beyond_trees_are_refused_and_curves_extended(
    repository: EvidenceRepository,
) -> None:
    promote(repository, gemm())
    lost = calibrated(ask(repository.at(), m=8192))
    assert (lost.status, lost.code) == ("unsupported", "outside-domain")
    assert "m in 16 to 4096" in lost.reason
    promote(repository, one_size())
    estimate = ask(repository.at(), m=2048).estimate
    assert estimate is not None
    assert estimate.validity.kind == "extrapolated"
    assert estimate.metrics["latency"].uncertainty is None
    assert any("no interval" in note for note in estimate.diagnostics.notes)


def test_a_gap_wider_than_the_limit_is_not_inside(repository: EvidenceRepository) -> None:
    sha256 = repository.add([[m, 512, 1024, 0.02, 0.001] for m in (16, 4096)])
    training = TrainingRecords(records=2, record_sets=(sha256,), digest="0" * 64)
    promote(repository, gemm(slices=(slice_of(training=training),)))
    lost = calibrated(ask(repository.at(), m=256))
    assert lost.code == "too-far"


def test_open_terms_are_ambiguous_or_assumed(repository: EvidenceRepository) -> None:
    slices = tuple(slice_of(terms={"dtype": name}) for name in ("float16", "bfloat16"))
    promote(repository, gemm(slices=slices, terms={"runtime": "trtllm"}))
    snapshot = repository.at()
    answer = ask(snapshot)
    assert answer.estimate is not None
    assert answer.estimate.diagnostics.assumptions == (
        "runtime = trtllm assumed: the calibration knows no other for this query",
    )
    asked = {name: value for name, value in GEMM.items() if name != "dtype"}
    answer = snapshot.resolve(**asked)
    assert answer.estimate is None
    assert answer.code == "ambiguous-context"
    lost = calibrated(answer)
    assert lost.near_misses[0].changes == {"dtype": ("bfloat16", "float16")}
    assert calibrated(ask(snapshot, runtime="vllm")).code == "no-slice"
    assert calibrated(ask(snapshot, dtype="float8")).near_misses


def test_terms_unknown_to_the_records(repository: EvidenceRepository) -> None:
    promote(repository, gemm(terms={"topology": None, "form_factor": None}))
    snapshot = repository.at()
    topology = next(iter(snapshot.vocabulary.dimensions["topology"].terms))
    lost = calibrated(ask(snapshot, topology=topology))
    assert lost.code == "no-slice"
    assert "topology is unknown to its training records" in lost.reason
    answer = ask(snapshot, form_factor="sxm")
    assert answer.estimate is not None
    assert answer.estimate.diagnostics.missing_context == ("form_factor",)


def test_a_missing_input_is_named(repository: EvidenceRepository) -> None:
    promote(repository, gemm())
    asked = {name: value for name, value in GEMM.items() if name != "k"}
    lost = calibrated(repository.at().resolve(**asked))
    assert (lost.status, lost.code) == ("unsupported", "missing-input")
    assert "reads k" in lost.reason


def test_a_curve_and_a_process_answer(repository: EvidenceRepository) -> None:
    sizes = {
        "message_bytes": DomainRange(minimum=256, maximum=2**27),
        "participants": DomainRange(minimum=2, maximum=8),
    }
    collective = gemm(
        family="network-efficiency",
        operation="all_reduce",
        inputs=tuple(sizes),
        slices=(slice_of(inside=process_model(), domain=sizes),),
    )
    promote(repository, one_size(), collective)
    snapshot = repository.at()
    curve = ask(snapshot).estimate
    assert curve is not None
    assert curve.metrics["latency"].value == pytest.approx(2e-6, rel=0.1)
    asked = {"operation": "all_reduce", "device": DEVICE, "dtype": "float16"}
    process = snapshot.resolve(**asked, message_bytes=3 * 2**20, participants=4).estimate
    assert process is not None
    assert process.method == "calibrated"
    interval = process.metrics["latency"].uncertainty
    assert interval is not None
    assert interval.rule == "scaled-conformal"


def test_a_jump_between_knots_widens_the_interval(repository: EvidenceRepository) -> None:
    curve = LogLogCurve(
        sizes=np.array([16.0, 128.0, 130.0, 1024.0]),
        values=np.array([1e-6, 2e-6, 6e-6, 9e-6]),
        lower_slope=0.0,
        upper_slope=1.0,
    )
    interval = encode_interval(OneWidth(level=0.9, width=0.05), folds="rows", residuals=9)
    promote(repository, one_size(model=encode_curve(curve, size="m", interval=interval)))
    snapshot = repository.at()
    smooth, jumping = ask(snapshot, m=64).estimate, ask(snapshot, m=129).estimate
    assert smooth is not None
    assert jumping is not None
    assert _log_width(smooth) == pytest.approx(0.05)
    interval = jumping.metrics["latency"].uncertainty
    assert interval.lower <= 2e-6 * (1 + 1e-12)
    assert interval.upper >= 6e-6 * (1 - 1e-12)
    assert interval.rule == "split-conformal-over-jump"
    assert any("jump" in note for note in jumping.diagnostics.notes)


def test_an_interval_follows_the_size_and_tells_a_jump(repository: EvidenceRepository) -> None:
    promote(repository, one_size(model=sized_model()))
    snapshot = repository.at()
    small, large, jumping, above = (ask(snapshot, m=m).estimate for m in (20, 900, 129, 2048))
    assert _log_width(small) > 10 * _log_width(large)
    found = jumping.metrics["latency"].uncertainty
    assert found.lower <= 3e-6 * (1 + 1e-12)
    assert found.upper >= 6e-6 * (1 - 1e-12)
    assert found.rule == "sized-conformal-over-jump"
    assert any("a jump lies between" in note for note in jumping.diagnostics.notes)
    assert large.metrics["latency"].uncertainty.rule == "sized-conformal"
    assert above.metrics["latency"].uncertainty.rule == "sized-conformal-widened"
    assert _log_width(above) == pytest.approx(0.325)
    below = ask(snapshot, m=8).estimate
    assert below.metrics["latency"].uncertainty is None
    assert any("no interval" in note for note in below.diagnostics.notes)


def test_what_the_policy_does_not_name_is_not_selected(repository: EvidenceRepository) -> None:
    promote(repository, gemm(), names=False)
    before = calibrated(ask(repository.at()))
    assert (before.status, before.code) == ("not-selected", "no-calibration")
    promote(repository, gemm())
    other = repository.at().resolve(**(GEMM | {"device": "h100_80g"}))
    lost = calibrated(other)
    assert (lost.status, lost.code) == ("not-selected", "no-calibration")
    assert "of gemm on h100_80g" in lost.reason


def test_an_absent_or_broken_revision_is_named(repository: EvidenceRepository) -> None:
    (digest,) = promote(repository, gemm())
    (repository.path / calibration_path("operation-size-efficiency", digest)).unlink()
    repository.commit("lose it")
    lost = calibrated(ask(repository.at()))
    assert (lost.status, lost.code) == ("unsupported", "unknown-calibration")
    promote(repository, one_size(model=replace(curve_model(), form_version=9)))
    assert calibrated(ask(repository.at())).code == "unknown-form"


def test_two_commits_give_two_answers(repository: EvidenceRepository) -> None:
    promote(repository, gemm())
    first = repository.git("rev-parse", "HEAD")
    promote(repository, one_size())
    old, new = ask(repository.at(first)), ask(repository.at())
    assert old.estimate is not None
    assert new.estimate is not None
    assert old.estimate.provenance.revision != new.estimate.provenance.revision
    assert old.estimate.provenance.calibration != new.estimate.provenance.calibration
    assert old.estimate.provenance.commit == first
    assert old.cache_key != new.cache_key
    assert encode(ask(repository.at(first)).estimate) == encode(old.estimate)


def test_the_envelope_obeys_the_schema_and_the_account_is_told(
    repository: EvidenceRepository,
) -> None:
    promote(repository, gemm(slices=(slice_of(beyond=trees_model(rate=0.5)),)))
    snapshot = repository.at()
    for size in (100, 8192):
        answer = snapshot.resolve(**(GEMM | {"m": size}), explain=True)
        assert answer.estimate is not None
        document = json.loads(json.dumps(encode(answer.estimate)))
        SchemaStore().validate(document, document="answer", expected_kind="estimate")
        account = next(e for e in answer.explanations if e.provider == "calibrated")
        assert any("boosted-trees" in step for step in account.steps)


def test_a_query_may_ask_for_the_calibration_alone(repository: EvidenceRepository) -> None:
    repository.add([[100, 512, 1024, 0.02, 0.001]])
    promote(repository, gemm())
    snapshot = repository.at()
    limits = EvidencePolicy(providers=("calibrated",))
    answer = snapshot.resolve(snapshot.query(GEMM, limits=limits))
    assert answer.estimate is not None
    assert answer.estimate.method == "calibrated"


def test_a_policy_may_refuse_open_terms_and_name_two(repository: EvidenceRepository) -> None:
    promote(repository, gemm())
    text = (repository.path / POLICY).read_text()
    strict = text.replace("query_unknown: unanimous", "query_unknown: refuse")
    repository.write(POLICY, strict.replace("level: 0.9", "level: 0.5").encode())
    repository.commit()
    asked = {name: value for name, value in GEMM.items() if name != "dtype"}
    answer = repository.at().resolve(**asked)
    assert (answer.code, calibrated(answer).code) == ("ambiguous-context", "ambiguous-context")
    estimate = ask(repository.at()).estimate
    assert estimate is not None
    assert any("calibrated at level 0.9" in note for note in estimate.diagnostics.notes)
    promote(repository, gemm(), one_size())
    assert calibrated(ask(repository.at())).code == "two-calibrations"


def test_without_a_device_or_with_another_the_revision_is_not_used(
    repository: EvidenceRepository,
) -> None:
    promote(repository, gemm())
    asked = {name: value for name, value in GEMM.items() if name != "device"}
    assert calibrated(repository.at().resolve(**asked)).code == "missing-input"
    text = (repository.path / POLICY).read_text()
    repository.write(
        POLICY, text.replace(f"device: {DEVICE}, rev", "device: h100_80g, rev").encode()
    )
    repository.commit()
    answer = repository.at().resolve(**(GEMM | {"device": "h100_80g"}))
    assert calibrated(answer).code == "calibration-mismatch"


def test_slices_that_nothing_tells_apart_are_ambiguous(repository: EvidenceRepository) -> None:
    promote(repository, gemm(slices=(slice_of(), slice_of())))
    lost = calibrated(ask(repository.at()))
    assert lost.code == "ambiguous-context"
    assert "what tells them apart" in lost.reason


def test_a_refusal_and_groups_of_the_report_are_told(repository: EvidenceRepository) -> None:
    report = calibration().held_out_report
    assert report.overall is not None
    group = ReportGroup(by="dtype", value="float16", errors=report.overall)
    promote(repository, gemm(held_out_report=replace(report, groups=(group,))))
    snapshot = repository.at()
    estimate = ask(snapshot).estimate
    assert estimate is not None
    assert any("held out, dtype = float16" in note for note in estimate.diagnostics.notes)
    answer = snapshot.resolve(**(GEMM | {"m": 8192}), explain=True)
    account = next(e for e in answer.explanations if e.provider == "calibrated")
    assert account.steps[0].startswith("outside-domain")


def test_a_line_that_turns_negative_has_no_value(repository: EvidenceRepository) -> None:
    line = ScaleOffset(alpha=1e-8, beta=-1e-6, covariance=None)
    promote(repository, one_size(model=encode_scale_offset(line, modelled="m")))
    assert calibrated(ask(repository.at(), m=32)).code == "no-value"
    assert ask(repository.at(), m=512).estimate.metrics["latency"].uncertainty is None


def test_a_line_over_a_base_extends_with_the_base(repository: EvidenceRepository) -> None:
    line = ScaleOffset(alpha=1.5, beta=1e-6, covariance=None)
    model = encode_scale_offset(line, modelled="roofline", features="gemm/1")
    promote(repository, gemm(slices=(slice_of(inside=model),)))
    estimate = ask(repository.at(), m=8192).estimate
    assert estimate is not None
    assert (estimate.method, estimate.validity.kind) == ("calibrated", "extrapolated")


def test_the_command_answers_with_a_valid_envelope(repository: EvidenceRepository) -> None:
    (digest,) = promote(repository, gemm())
    words = [f"{name}={value}" for name, value in GEMM.items()]
    done = subprocess.run(
        [sys.executable, "-m", "perfdb_git", "resolve", *words, "--json"],
        cwd=repository.path,
        env={**os.environ, "PERFDB_CACHE_DIR": str(repository.cache)},
        capture_output=True,
        text=True,
        check=True,
    )
    document = json.loads(done.stdout)
    SchemaStore().validate(document, document="stdout", expected_kind="result")
    assert digest in done.stdout

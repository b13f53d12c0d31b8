"""Records whose clock was held down: refused or admitted as the policy states, and always said."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from perfdb_git.database import DatabaseSnapshot, PolicyInForce
from perfdb_git.model.result import Resolution
from tests.resolution.conftest import EvidenceRepository

GEMM: dict[str, Any] = {
    "operation": "gemm",
    "device": "a100_80g",
    "dtype": "float16",
    "m": 128,
    "n": 256,
    "k": 512,
}
SHAPE = [128, 256, 512]
CLOCKED = (("latency", "sample", "ms"), ("sm_clock", "sample", "MHz"))
STEADY = [1965.0] * 6
FALLEN = [1965.0, 1965.0, 1800.0, 1700.0, 1650.0, 1600.0]
FAST = [1.0, 1.01, 0.99, 1.0, 1.02, 0.98]
SLOW = [1.0, 1.01, 1.1, 1.15, 1.2, 1.22]
REASONS = [{"name": "throttle_reasons", "role": "source"}]


def under(snapshot: DatabaseSnapshot, **changes: Any) -> PolicyInForce:
    in_force = snapshot.policy()
    return replace(in_force, policy=replace(in_force.policy, **changes))


def resolved(repository: EvidenceRepository, **changes: Any) -> Resolution:
    repository.commit()
    snapshot = repository.at()
    return snapshot.resolve(**GEMM, policy=under(snapshot, **changes))


def single_rows(repository: EvidenceRepository, reasons: list[str], **header: Any) -> str:
    """Write one sample a row with what the driver stated beside it."""
    columns = [
        *({"name": name, "role": "dimension", "unit": "1"} for name in ("m", "n", "k")),
        {"name": "latency", "role": "metric", "statistic": "sample", "unit": "ms"},
        *REASONS,
        {"name": "row", "role": "source"},
    ]
    rows = [[*SHAPE, 1.0 + 0.01 * place, text, place] for place, text in enumerate(reasons)]
    return repository.add(rows, columns=columns, **header)


def test_the_shipped_policy_refuses_a_clock_that_fell(repository: EvidenceRepository) -> None:
    repository.add([[*SHAPE, SLOW, FALLEN]], metrics=CLOCKED)
    answer = resolved(repository)
    assert (answer.estimate, answer.code) == (None, "throttled")
    lost = answer.alternatives[0]
    assert (lost.provider, lost.status, lost.code) == ("recorded", "rejected", "throttled")
    assert "throttled from sample 2 on: clock 1965 to 1600 MHz" in lost.reason
    assert "policy default refuses them" in lost.reason


def test_bad_evidence_is_not_hidden_unless_the_policy_goes_on(
    repository: EvidenceRepository,
) -> None:
    repository.add([[*SHAPE, SLOW, FALLEN]], metrics=CLOCKED)
    answer = resolved(repository, on_ambiguity="next-tier")
    assert answer.estimate is not None
    assert answer.estimate.method == "analytical"
    lost = answer.alternatives[0]
    assert (lost.status, lost.code) == ("rejected", "throttled")


@pytest.mark.parametrize(
    "changes", [{"throttled": "accept"}, {"schema": "perfdb/policy/v1"}], ids=["accept", "v1"]
)
def test_a_policy_that_admits_it_says_so(
    repository: EvidenceRepository, changes: dict[str, Any]
) -> None:
    sha256 = repository.add([[*SHAPE, SLOW, FALLEN]], metrics=CLOCKED)
    estimate = resolved(repository, **changes).estimate
    assert estimate is not None
    assert estimate.provenance.record_ids == (f"{sha256}#0",)
    (note,) = estimate.diagnostics.notes
    assert "throttled from sample 2 on" in note
    assert note.endswith("answers all the same")


def test_a_steady_clock_answers_without_a_word(repository: EvidenceRepository) -> None:
    repository.add([[*SHAPE, FAST, STEADY]], metrics=CLOCKED)
    estimate = resolved(repository).estimate
    assert estimate is not None
    assert estimate.diagnostics.notes == ()


def test_sessions_with_a_steady_clock_answer_alone(repository: EvidenceRepository) -> None:
    repository.add([[*SHAPE, SLOW, FALLEN]], metrics=CLOCKED, session="hot")
    steady = repository.add([[*SHAPE, FAST, STEADY]], metrics=CLOCKED, session="cool")
    estimate = resolved(repository).estimate
    assert estimate is not None
    assert estimate.provenance.record_ids == (f"{steady}#0",)
    assert estimate.metrics["latency"].value == pytest.approx(0.001)
    (note,) = estimate.diagnostics.notes
    assert note.startswith("1 record whose clock was held down")
    assert note.endswith("left aside")


@pytest.mark.parametrize(
    ("texts", "shown"),
    [
        (["none", "none", "sw_power_cap"], "throttled from sample 2 on"),
        (["Not Active", "SW Thermal Slowdown", "Not Active"], "throttled from sample 1 on"),
        (["0x0000000000000001", "0x0000000000000004", "0x1"], "throttled from sample 1 on"),
        (["gpu_idle", "gpu_idle|hw_slowdown", "gpu_idle"], "throttled from sample 1 on"),
    ],
)
def test_reasons_beside_single_samples_hold_for_their_run(
    repository: EvidenceRepository, texts: list[str], shown: str
) -> None:
    single_rows(repository, texts)
    answer = resolved(repository)
    assert answer.code == "throttled"
    assert answer.reason.startswith("3 records")
    assert shown in answer.reason


@pytest.mark.parametrize(
    "texts",
    [
        ["none", "None", ""],
        ["gpu_idle", "Not Active", "applications_clocks_setting"],
        ["0x0000000000000001", "0x2", "0x0"],
        ["clocks_event_reason_gpu_idle", "GpuIdle", "[N/A]"],
    ],
)
def test_an_idle_device_and_set_clocks_are_no_limit(
    repository: EvidenceRepository, texts: list[str]
) -> None:
    single_rows(repository, texts)
    assert resolved(repository).estimate is not None


def test_a_reason_that_holds_for_a_whole_set(repository: EvidenceRepository) -> None:
    source = {"keys": {"clocks_event_reasons.sw_power_cap": "Active"}}
    repository.add([[*SHAPE, 1.0, 0.1]], source=source)
    answer = resolved(repository)
    assert answer.code == "throttled"
    assert "the driver stated sw_power_cap" in answer.reason


def test_limits_of_the_captured_environment(repository: EvidenceRepository) -> None:
    observed = {"accelerators": [{"clock_limits_active": ["gpu_idle", "hw_thermal_slowdown"]}]}
    repository.add([[*SHAPE, 1.0, 0.1]], observed=observed)
    answer = resolved(repository)
    assert answer.code == "throttled"
    assert "stated hw_thermal_slowdown when the environment was captured" in answer.reason


def test_samples_that_grow_without_a_clock_are_no_statement(repository: EvidenceRepository) -> None:
    repository.add([[*SHAPE, SLOW]], metrics=CLOCKED[:1])
    assert resolved(repository).estimate is not None


def test_an_override_is_marked_and_has_a_digest_of_its_own(repository: EvidenceRepository) -> None:
    repository.add([[*SHAPE, SLOW, FALLEN]], metrics=CLOCKED)
    repository.commit()
    snapshot = repository.at()
    policy = snapshot.policy()
    answer = snapshot.resolve(**GEMM, policy=policy.accepting_throttled())
    assert answer.estimate is not None
    assert answer.marks == ("external-policy",)
    assert answer.policy.digest != policy.reference.digest
    refused = snapshot.resolve(**GEMM, policy=policy)
    assert answer.cache_key != refused.cache_key
    admitting = policy.accepting_throttled()
    assert admitting.accepting_throttled() is admitting


def test_version_1_cannot_refuse_them(repository: EvidenceRepository) -> None:
    repository.commit()
    policy = repository.at().policy().policy
    assert policy.throttled == "refuse"
    assert replace(policy, schema="perfdb/policy/v1", throttled="refuse").throttled == "accept"

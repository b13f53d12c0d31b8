"""Analytical and fallback answers against hand-worked numbers."""

import json
from typing import Any

import pytest

GEMM: dict[str, Any] = {"operation": "gemm", "dtype": "float16", "m": 4096, "n": 4096, "k": 4096}


def alternative(answer: Any, provider: str) -> Any:
    return next(item for item in answer.alternatives if item.provider == provider)


@pytest.fixture
def snapshot(repository: Any) -> Any:
    repository.commit()
    return repository.at()


def test_a100_gemm_is_the_sum_of_compute_and_memory(snapshot: Any) -> None:
    """137.4 GFLOP at 312 TFLOP/s * 0.95; 100.7 MB at 2048 GB/s * 0.90 (Calculon's tables)."""
    estimate = snapshot.resolve(**GEMM, device="a100_80g").estimate
    compute = 2 * 4096**3 / (312e12 * 0.95)
    memory = 3 * 4096 * 4096 * 2 / (2048e9 * 0.90)
    assert dict(estimate.diagnostics.breakdown) == pytest.approx(
        {"compute": compute, "memory": memory}, rel=1e-12
    )
    assert estimate.metrics["latency"].value == pytest.approx(compute + memory, rel=1e-12)
    assert estimate.metrics["latency"].uncertainty is None
    assert (estimate.method, estimate.validity.kind) == ("analytical", "modelled")
    assert estimate.validity.distance_octaves is None


@pytest.mark.parametrize(
    ("m", "n", "k", "efficiency"),
    [
        (1000, 1000, 500, 0.6),  # exactly 1 GFLOP reaches the 1 GFLOP step
        (1000, 1000, 499, 0.1),
        (4000, 2000, 1000, 0.9),  # exactly 16 GFLOP
        (4000, 4000, 4000, 0.95),  # exactly 128 GFLOP
    ],
)
def test_efficiency_steps_use_greater_or_equal(
    snapshot: Any, m: int, n: int, k: int, efficiency: float
) -> None:
    shape = {**GEMM, "m": m, "n": n, "k": k}
    estimate = snapshot.resolve(**shape, device="a100_80g").estimate
    assert estimate.diagnostics.breakdown["compute"] == pytest.approx(
        2 * m * n * k / (312e12 * efficiency), rel=1e-12
    )


@pytest.mark.parametrize(
    ("m", "n", "k", "efficiency"),
    [
        (1000, 1000, 250, 0.35),  # 0.5 GFLOP, half way from 0.1 at nothing to 0.6 at 1 GFLOP
        (1000, 1000, 2000, 0.75),  # 4 GFLOP, two octaves of the four from 0.6 to 0.9 at 16 GFLOP
        (4000, 2000, 1000, 0.9),  # exactly 16 GFLOP
        (8000, 4000, 4000, 0.95),  # beyond the last row, at 128 GFLOP
    ],
)
def test_interpolated_tables_are_another_profile(
    repository: Any, m: int, n: int, k: int, efficiency: float
) -> None:
    repository.commit()
    before = repository.at()
    path = "profiles/systems/a100-80g-calculon.json"
    profile = json.loads((repository.path / path).read_text())
    profile |= {"schema": "perfdb/system-profile/v2", "version": "2"}
    profile["table_reading"] = "interpolated"
    repository.write(path, json.dumps(profile).encode())
    repository.commit()
    shape = {**GEMM, "m": m, "n": n, "k": k, "device": "a100_80g"}
    steps, lines = before.resolve(**shape).estimate, repository.at().resolve(**shape).estimate
    assert lines.diagnostics.breakdown["compute"] == pytest.approx(
        2 * m * n * k / (312e12 * efficiency), rel=1e-12
    )
    assert lines.provenance.revision != steps.provenance.revision
    assert any("interpolated" in text for text in lines.diagnostics.assumptions)
    assert not any("interpolated" in text for text in steps.diagnostics.assumptions)


def test_h200_peak_rates_are_a_bound_and_take_the_maximum(snapshot: Any) -> None:
    estimate = snapshot.resolve(**{**GEMM, "dtype": "bfloat16"}, device="h200_141g").estimate
    assert estimate.validity.kind == "bound"
    assert estimate.metrics["latency"].value == pytest.approx(2 * 4096**3 / 989e12, rel=1e-12)
    assert any("lower bound" in text for text in estimate.diagnostics.assumptions)


def test_a_dtype_without_a_rate_is_refused_by_name(snapshot: Any) -> None:
    answer = snapshot.resolve(**{**GEMM, "dtype": "float32"}, device="a100_80g")
    assert answer.estimate is None
    refused = alternative(answer, "analytical")
    assert refused.code == "no-rate"
    assert "no matrix rate for float32, only for float16" in refused.reason


def test_missing_shape_is_named(snapshot: Any) -> None:
    answer = snapshot.resolve(operation="gemm", dtype="float16", m=8, device="a100_80g")
    assert alternative(answer, "analytical").reason == "the work needs n, k"


def test_a_device_without_a_profile_is_named(repository: Any) -> None:
    policy = (repository.path / "evidence/policies/default.yaml").read_text()
    text = policy.replace("  a100_80g: a100-80g-calculon\n", "")
    repository.write("evidence/policies/default.yaml", text.encode())
    repository.commit()
    answer = repository.at().resolve(**GEMM, device="a100_80g")
    assert alternative(answer, "analytical").code == "no-profile"


def test_a_policy_that_names_an_absent_profile_says_so(repository: Any) -> None:
    policy = (repository.path / "evidence/policies/default.yaml").read_text()
    text = policy.replace("a100-80g-calculon", "nowhere")
    repository.write("evidence/policies/default.yaml", text.encode())
    repository.commit()
    answer = repository.at().resolve(**GEMM, device="a100_80g")
    assert alternative(answer, "analytical").code == "profile-unreadable"


ALL_REDUCE: dict[str, Any] = {"operation": "all_reduce", "device": "a100_80g"}


def test_all_reduce_on_nvlink_by_hand(snapshot: Any) -> None:
    """Latency 10 us + bytes * 2 (1 - 1/8) / (300 GB/s * 0.65)."""
    size = 2**26
    estimate = snapshot.resolve(
        **ALL_REDUCE, message_bytes=size, participants=8, participants_per_node=8
    ).estimate
    expected = 1e-5 + size * 2 * (7 / 8) / (300e9 * 0.65)
    assert estimate.metrics["latency"].value == pytest.approx(expected, rel=1e-12)
    assert "network tier nvlink" in estimate.diagnostics.assumptions


def test_ranks_on_several_nodes_use_the_outer_tier(snapshot: Any) -> None:
    size = 2**26
    for participants, per_node in ((8, 4), (16, 8), (16, None)):
        extra = {} if per_node is None else {"participants_per_node": per_node}
        estimate = snapshot.resolve(
            **ALL_REDUCE, message_bytes=size, participants=participants, **extra
        ).estimate
        assert estimate.metrics["latency"].value == pytest.approx(2e-5 + size / (25e9 * 0.9))


def test_a_zero_byte_message_still_pays_latency(snapshot: Any) -> None:
    estimate = snapshot.resolve(**ALL_REDUCE, message_bytes=0, participants=8).estimate
    assert estimate.metrics["latency"].value == 1e-5


def test_more_ranks_than_any_network_holds_are_refused(snapshot: Any) -> None:
    answer = snapshot.resolve(**ALL_REDUCE, message_bytes=1024, participants=10**6)
    assert alternative(answer, "analytical").code == "no-network"


def test_ranks_that_leave_part_of_a_full_network_over_are_refused(snapshot: Any) -> None:
    refused, halves = (
        snapshot.resolve(**ALL_REDUCE, message_bytes=1024, participants=count) for count in (3, 4)
    )
    found = alternative(refused, "analytical")
    assert found.code == "network-not-filled"
    assert "3 participants do not divide its 8" in found.reason
    assert halves.estimate is not None


def test_a_collective_that_the_profile_does_not_list_is_refused(snapshot: Any) -> None:
    asked = {**ALL_REDUCE, "operation": "all_to_all"}
    answer = snapshot.resolve(**asked, message_bytes=1024, participants=8)
    assert "has no all_to_all" in alternative(answer, "analytical").reason


def test_unknown_network_latency_makes_a_bound(snapshot: Any) -> None:
    asked = {**ALL_REDUCE, "device": "h200_141g"}
    estimate = snapshot.resolve(**asked, message_bytes=2**20, participants=8).estimate
    assert estimate.validity.kind == "bound"
    assert any(
        "latency of network nvlink is unknown" in text for text in estimate.diagnostics.assumptions
    )


def test_an_engine_without_rates_is_bounded_by_memory(snapshot: Any) -> None:
    estimate = snapshot.resolve(
        operation="elementwise",
        elementwise_kind="add",
        elements=2**24,
        dtype="bfloat16",
        device="h200_141g",
    ).estimate
    assert estimate.metrics["latency"].value == pytest.approx(3 * 2 * 2**24 / 4800e9)
    assert estimate.validity.kind == "bound"


def test_fallback_is_an_explicit_declared_bound(repository: Any) -> None:
    path = repository.path / "profiles/systems/a100-80g-calculon.json"
    profile = json.loads(path.read_text())
    profile["fallback"] = {
        "latency_s": 0.001,
        "tops": 1.0,
        "memory_gbyte_per_s": 10.0,
        "network_gbyte_per_s": None,
        "source": "a test's own conservative figure",
    }
    path.write_text(json.dumps(profile))
    repository.commit()
    answer = repository.at().resolve(**{**GEMM, "dtype": "float32"}, device="a100_80g")
    estimate = answer.estimate
    assert (estimate.method, estimate.validity.kind) == ("fallback", "bound")
    expected = 0.001 + 2 * 4096**3 / 1e12 + 3 * 4096**2 * 4 / 10e9
    assert estimate.metrics["latency"].value == pytest.approx(expected, rel=1e-12)
    collective = repository.at().resolve(
        **{**ALL_REDUCE, "operation": "all_to_all"}, message_bytes=1, participants=2
    )
    assert alternative(collective, "fallback").code == "no-bound"
    policy = (repository.path / "evidence/policies/default.yaml").read_text()
    text = policy.replace("fallback_allowed: true", "fallback_allowed: false")
    repository.write("evidence/policies/default.yaml", text.encode())
    repository.commit()
    answer = repository.at().resolve(**{**GEMM, "dtype": "float32"}, device="a100_80g")
    assert answer.estimate is None
    assert alternative(answer, "fallback").code == "fallback-not-allowed"


def test_every_loser_has_a_reason_and_factors_are_never_mixed(repository: Any) -> None:
    repository.add([[4096, 4096, 4096, 7.0, 0.1]])
    repository.commit()
    answer = repository.at().resolve(**GEMM, device="a100_80g")
    assert answer.estimate.metrics["latency"].value == 0.007
    assert {item.provider for item in answer.alternatives} == {
        "recorded-simulated",
        "calibrated",
        "analytical",
        "fallback",
    }
    assert all(item.reason for item in answer.alternatives)
    model = alternative(answer, "analytical")
    assert (model.status, model.code) == ("rejected", "lower-tier")
    assert model.latency == pytest.approx(
        2 * 4096**3 / (312e12 * 0.95) + 3 * 4096**2 * 2 / (2048e9 * 0.9)
    )


def test_provider_revisions_and_cache_keys_follow_what_they_read(repository: Any) -> None:
    repository.commit()
    before = repository.at().resolve(**GEMM, device="a100_80g")
    path = repository.path / "profiles/systems/a100-80g-calculon.json"
    path.write_text(path.read_text().replace('"peak_tops": 312', '"peak_tops": 311'))
    repository.commit()
    after = repository.at().resolve(**GEMM, device="a100_80g")
    assert before.query_digest == after.query_digest
    assert before.cache_key != after.cache_key
    assert before.estimate.provenance.revision != after.estimate.provenance.revision
    repository.write("notes.txt", b"nothing that answers depend on")
    repository.commit()
    assert repository.at().resolve(**GEMM, device="a100_80g").cache_key == after.cache_key

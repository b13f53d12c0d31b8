"""Exact matches: unknowns, pooling, conflicts, intervals, misses."""

import math
import statistics
from typing import Any

import pytest
from scipy import stats

from perfdb_git.errors import UsageError
from perfdb_git.model.query import EvidencePolicy

GEMM: dict[str, Any] = {
    "operation": "gemm",
    "device": "a100_80g",
    "dtype": "float16",
    "m": 128,
    "n": 256,
    "k": 512,
}


def test_one_record_is_answered_with_its_proof(repository: Any) -> None:
    sha256 = repository.add([[64, 256, 512, 0.5, 0.01], [128, 256, 512, 1.0, 0.05]])
    commit = repository.commit()
    answer = repository.at().resolve(**GEMM)
    estimate = answer.estimate
    assert answer.snapshot.commit == commit
    assert estimate.method == "measured"
    assert estimate.provenance.record_ids == (f"{sha256}#1",)
    assert estimate.provenance.commit == commit
    assert estimate.provenance.source_revisions == ("bench@r1",)
    assert (estimate.validity.kind, estimate.validity.distance_octaves) == ("exact", 0)
    latency = estimate.metrics["latency"]
    assert (latency.value, latency.unit) == (0.001, "s")
    deviation = 0.05 * math.sqrt(20 / 19)
    reach = stats.t.ppf(0.95, 19) * math.sqrt(math.log1p(deviation**2) * (1 + 1 / 20))
    assert latency.uncertainty.rule == "log-normal-from-median-std"
    assert latency.uncertainty.kind == "prediction"
    assert latency.uncertainty.upper == pytest.approx(0.001 * math.exp(reach))
    assert latency.uncertainty.sample_count == 20


def test_raw_samples_beat_the_summary(repository: Any) -> None:
    samples = [1.0, 1.1, 0.9, 1.3, 1.05]
    metrics = (("latency", "sample", "ms"), ("latency", "mean", "ms"))
    repository.add([[128, 256, 512, samples, 9.9]], metrics=metrics)
    repository.commit()
    latency = repository.at().resolve(**GEMM).estimate.metrics["latency"]
    assert latency.value == pytest.approx(0.00105)
    assert latency.uncertainty.rule == "order-statistics"
    assert latency.uncertainty.level == pytest.approx(4 / 6)
    assert (latency.uncertainty.lower, latency.uncertainty.upper) == (0.0009, 0.0013)


def test_samples_of_several_processes_say_where_their_spread_lies(repository: Any) -> None:
    runs = [[10.0, 10.1, 10.2], [10.6, 10.5, 10.7], [9.8, 9.9, 10.0], [10.3, 10.4, 10.2]]
    metrics = (("latency", "sample", "ms"),)
    repository.add([[128, 256, 512, run] for run in runs], metrics=metrics)
    repository.commit()
    estimate = repository.at().resolve(**GEMM).estimate
    (note,) = estimate.diagnostics.notes
    assert note == (
        "latency: its interval takes the samples of 4 records for independent; the spread between "
        "records is 2.87% and within them 0.98%"
    )
    repository.add([[64, 256, 512, runs[0]]], metrics=metrics)
    repository.commit()
    alone = repository.at().resolve(**(GEMM | {"m": 64})).estimate
    assert alone.diagnostics.notes == ()


def test_a_mean_alone_has_no_spread_and_says_so(repository: Any) -> None:
    repository.add([[128, 256, 512, 1.0]], metrics=(("latency", "mean", "ms"),))
    repository.commit()
    estimate = repository.at().resolve(**GEMM).estimate
    assert estimate.metrics["latency"].uncertainty is None
    assert any("spread-unknown" in text for text in estimate.diagnostics.assumptions)
    assert any("recorded mean" in text for text in estimate.diagnostics.assumptions)


def test_repeats_of_one_session_are_pooled(repository: Any) -> None:
    repository.add(
        [[128, 256, 512, value] for value in (1.0, 1.1, 1.3)],
        metrics=(("latency", "mean", "ms"),),
        protocol={"timer_resolution": None},
    )
    repository.commit()
    estimate = repository.at().resolve(**GEMM).estimate
    latency = estimate.metrics["latency"]
    assert latency.value == 0.0011
    assert len(estimate.provenance.record_ids) == 3
    assert latency.uncertainty.rule == "log-normal-over-repeats"
    spread = statistics.stdev(math.log(value) for value in (1.0, 1.1, 1.3))
    reach = stats.t.ppf(0.95, 2) * spread * math.sqrt(4 / 3)
    assert latency.uncertainty.lower == pytest.approx(0.0011 * math.exp(-reach))


def test_sessions_are_pooled_by_their_medians_not_by_their_rows(repository: Any) -> None:
    repository.add([[128, 256, 512, 1.0, 0.0]] * 9, session="many")
    repository.add([[128, 256, 512, 1.1, 0.0]], session="single")
    repository.commit()
    estimate = repository.at().resolve(**GEMM).estimate
    assert estimate.metrics["latency"].value == pytest.approx(0.00105)
    assert estimate.metrics["latency"].uncertainty.rule == "log-normal-over-sessions"
    assert estimate.diagnostics.conflicts == ()


def test_disagreeing_sessions_are_a_conflict_that_is_shown(repository: Any) -> None:
    repository.add([[128, 256, 512, 58.8, 0.1]], session="wheel-1")
    repository.add([[128, 256, 512, 11.3, 0.1]], session="wheel-2")
    repository.commit()
    estimate = repository.at().resolve(**GEMM).estimate
    (conflict,) = estimate.diagnostics.conflicts
    assert "420%" in conflict
    assert "wheel-1" in conflict
    assert "wheel-2" in conflict


def test_a_policy_may_refuse_conflicts_and_then_nothing_answers(repository: Any) -> None:
    text = (repository.path / "evidence/policies/default.yaml").read_text()
    repository.write(
        "evidence/policies/default.yaml", text.replace("action: show", "action: refuse").encode()
    )
    repository.add([[128, 256, 512, 58.8, 0.1]], session="wheel-1")
    repository.add([[128, 256, 512, 11.3, 0.1]], session="wheel-2")
    repository.commit()
    answer = repository.at().resolve(**GEMM)
    assert (answer.estimate, answer.code) == (None, "conflict")
    blocked = {item.provider: item.code for item in answer.alternatives}
    assert blocked["analytical"] == "blocked"


def test_an_unstated_dimension_with_one_recorded_value_is_an_assumption(repository: Any) -> None:
    repository.add([[128, 256, 512, 1.0, 0.0]], context={"runtime": "trtllm"})
    repository.commit()
    estimate = repository.at().resolve(**GEMM).estimate
    assert "runtime = trtllm, as every matching record has it" in estimate.diagnostics.assumptions


def test_an_unstated_dimension_with_two_recorded_values_stops(repository: Any) -> None:
    for runtime in ("trtllm", "vllm"):
        repository.add([[128, 256, 512, 1.0, 0.0]], context={"runtime": runtime}, session=runtime)
    repository.commit()
    answer = repository.at().resolve(**GEMM)
    assert (answer.estimate, answer.code) == (None, "ambiguous-context")
    assert "runtime = trtllm or vllm" in answer.reason
    decided = repository.at().resolve(**GEMM, runtime="vllm")
    assert decided.estimate.metrics["latency"].value == 0.001


def test_ambiguity_can_fall_through_when_the_policy_says_so(repository: Any) -> None:
    text = (repository.path / "evidence/policies/default.yaml").read_text()
    text = text.replace("on_ambiguity: stop", "on_ambiguity: next-tier")
    repository.write("evidence/policies/default.yaml", text.encode())
    for runtime in ("trtllm", "vllm"):
        repository.add([[128, 256, 512, 1.0, 0.0]], context={"runtime": runtime}, session=runtime)
    repository.commit()
    answer = repository.at().resolve(**GEMM)
    assert answer.estimate.method == "analytical"
    recorded = next(item for item in answer.alternatives if item.provider == "recorded")
    assert (recorded.status, recorded.code) == ("rejected", "ambiguous-context")


def test_the_refuse_rule_wants_every_recorded_dimension_stated(repository: Any) -> None:
    text = (repository.path / "evidence/policies/default.yaml").read_text()
    text = text.replace("query_unknown: unanimous", "query_unknown: refuse")
    repository.write("evidence/policies/default.yaml", text.encode())
    repository.add([[128, 256, 512, 1.0, 0.0]], context={"runtime": "trtllm"})
    repository.commit()
    assert repository.at().resolve(**GEMM).code == "ambiguous-context"
    assert repository.at().resolve(**GEMM, runtime="trtllm").code == "resolved"


def test_a_material_dimension_must_be_known_by_the_record(repository: Any) -> None:
    repository.add([[128, 256, 512, 1.0, 0.0]])
    repository.commit()
    answer = repository.at().resolve(**GEMM, runtime="trtllm")
    recorded = next(item for item in answer.alternatives if item.provider == "recorded")
    assert recorded.code == "no-record"
    assert recorded.near_misses[0].changes == {"runtime": ()}


def test_an_immaterial_dimension_is_accepted_with_a_note(repository: Any) -> None:
    repository.add([[128, 256, 512, 1.0, 0.0]])
    repository.commit()
    diagnostics = repository.at().resolve(**GEMM, form_factor="sxm").estimate.diagnostics
    assert diagnostics.missing_context == ("form_factor",)
    assert any("form_factor = sxm is not stated" in text for text in diagnostics.assumptions)


def test_null_in_a_column_is_unknown_and_never_zero(repository: Any) -> None:
    dimensions = ("batch_size", "query_heads", "kv_heads", "head_size", "kv_cache_length")
    repository.add(
        [[1, 8, 8, 64, 0, 1.0, 0.0], [1, 8, 8, 64, None, 9.0, 0.0]],
        dimensions=dimensions,
        context={"operation": "attention_decode"},
    )
    repository.commit()
    shape = dict.fromkeys(("query_heads", "kv_heads"), 8) | {"batch_size": 1, "head_size": 64}
    asked = {"operation": "attention_decode", "device": "a100_80g", **shape}
    answer = repository.at().resolve(**asked, dtype="float16", kv_cache_length=0)
    assert answer.estimate.metrics["latency"].value == 0.001
    assert len(answer.estimate.provenance.record_ids) == 1


def test_a_null_metric_is_no_observation(repository: Any) -> None:
    repository.add([[128, 256, 512, None, None], [128, 256, 512, 1.0, 0.0]])
    repository.commit()
    estimate = repository.at().resolve(**GEMM).estimate
    assert estimate.metrics["latency"].value == 0.001


def test_a_miss_names_the_nearest_contexts(repository: Any) -> None:
    repository.add([[96, 256, 512, 1.0, 0.0], [4096, 256, 512, 9.0, 0.0]])
    repository.commit()
    answer = repository.at().resolve(**{**GEMM, "dtype": "bfloat16"})
    recorded = next(item for item in answer.alternatives if item.provider == "recorded")
    nearest = recorded.near_misses[0]
    assert nearest.changes == {"dtype": ("float16",), "m": (96,)}
    answer = repository.at().resolve(**GEMM)
    recorded = next(item for item in answer.alternatives if item.provider == "recorded")
    assert recorded.near_misses[0].changes == {"m": (96,)}
    assert recorded.near_misses[0].distance_octaves == pytest.approx(math.log2(128 / 96))


def test_an_open_device_is_decided_like_any_dimension(repository: Any) -> None:
    repository.add([[128, 256, 512, 1.0, 0.0]])
    repository.commit()
    asked = {name: value for name, value in GEMM.items() if name != "device"}
    assumptions = repository.at().resolve(**asked).estimate.diagnostics.assumptions
    assert "device = a100_80g, as every matching record has it" in assumptions
    repository.add([[128, 256, 512, 0.5, 0.0]], context={"device": "h100_80g"}, session="s2")
    repository.commit()
    assert repository.at().resolve(**asked).code == "ambiguous-context"


def test_new_evidence_never_leaks_backward_and_retractions_apply_from_their_commit(
    repository: Any,
) -> None:
    first = repository.add([[128, 256, 512, 1.0, 0.0]])
    one = repository.commit()
    second = repository.add([[128, 256, 512, 3.0, 0.0]], session="s2")
    two = repository.commit()
    repository.retract(f"{second}#0")
    three = repository.commit()
    repository.retract(first)
    four = repository.commit()

    def ids(commit: str) -> Any:
        estimate = repository.at(commit).resolve(**GEMM).estimate
        return estimate.method, estimate.provenance.record_ids

    assert ids(one) == ("measured", (f"{first}#0",))
    assert set(ids(two)[1]) == {f"{first}#0", f"{second}#0"}
    assert ids(three) == ("measured", (f"{first}#0",))
    assert ids(four) == ("analytical", ())


def test_simulated_records_need_a_validation(repository: Any) -> None:
    repository.add([[128, 256, 512, 1.0, 0.0]], kind="simulated")
    repository.commit()
    answer = repository.at().resolve(**GEMM)
    assert answer.estimate.method == "analytical"
    simulated = next(i for i in answer.alternatives if i.provider == "recorded-simulated")
    assert simulated.code == "not-validated"


def test_an_unknown_protocol_is_graded_and_may_be_refused(repository: Any) -> None:
    unknown = {
        "warmup": None,
        "repetitions": None,
        "synchronization": None,
        "timer_resolution": None,
    }
    repository.add([[128, 256, 512, 1.0, 0.0]], protocol=unknown)
    repository.commit()
    estimate = repository.at().resolve(**GEMM).estimate
    assert estimate.diagnostics.protocol == "protocol-unknown"
    text = (repository.path / "evidence/policies/default.yaml").read_text()
    text = text.replace("protocol_unknown: accept", "protocol_unknown: refuse")
    repository.write("evidence/policies/default.yaml", text.encode())
    repository.commit()
    answer = repository.at().resolve(**GEMM)
    recorded = next(item for item in answer.alternatives if item.provider == "recorded")
    assert (answer.estimate.method, recorded.code) == ("analytical", "protocol-unknown")


def test_extensions_travel_from_record_to_estimate(repository: Any) -> None:
    name = "perfdb/extension/collective-tuning/v1"
    value = {"algorithm": "ring", "protocol": "ll128", "channels": 8, "chunk_bytes": None}
    rows = [[4096, 8, 0.02, 0.001]]
    context = {"operation": "all_reduce"}
    dimensions = ("message_bytes", "participants")
    repository.add(rows, dimensions=dimensions, context=context, extensions={name: value})
    repository.commit()
    asked = {"operation": "all_reduce", "device": "a100_80g", "dtype": "float16"}
    sized = {**asked, "message_bytes": 4096, "participants": 8}
    assert dict(repository.at().resolve(**sized).estimate.extensions) == {name: value}
    repository.add(
        rows,
        dimensions=dimensions,
        context=context,
        session="s2",
        extensions={name: {**value, "algorithm": "tree"}},
    )
    repository.commit()
    estimate = repository.at().resolve(**sized).estimate
    assert dict(estimate.extensions) == {}
    assert estimate.diagnostics.notes == (f"extension {name} differs between records",)


def test_limits_of_the_query_decide_over_admission(repository: Any) -> None:
    repository.add([[128, 256, 512, 1.0, 0.3]], source={"measured_at": "2025-06-01T00:00:00+00:00"})
    repository.commit()
    snapshot = repository.at()

    def outcome(**limits: Any) -> tuple[str, str]:
        answer = snapshot.resolve(snapshot.query(GEMM, limits=EvidencePolicy(**limits)))
        recorded = [item for item in answer.alternatives if item.provider == "recorded"]
        method = answer.estimate.method if answer.estimate else answer.code
        return method, recorded[0].code if recorded else ""

    assert outcome() == ("measured", "")
    assert outcome(max_relative_uncertainty=0.1) == ("no-admissible-evidence", "too-uncertain")
    assert outcome(max_age_days=30) == ("measured", "")
    assert outcome(max_age_days=3) == ("no-admissible-evidence", "too-old")
    assert outcome(methods=("analytical",)) == ("analytical", "method-not-admitted")
    assert outcome(providers=("analytical",)) == ("analytical", "provider-not-admitted")
    with pytest.raises(UsageError, match="unknown provider 'oracle'"):
        outcome(providers=("oracle",))


def test_an_unknown_age_fails_a_limit_on_age(repository: Any) -> None:
    repository.add([[128, 256, 512, 1.0, 0.0]])
    repository.commit()
    snapshot = repository.at()
    answer = snapshot.resolve(snapshot.query(GEMM, limits=EvidencePolicy(max_age_days=1e6)))
    codes = {item.provider: item.code for item in answer.alternatives}
    assert (answer.estimate, codes["recorded"]) == (None, "age-unknown")

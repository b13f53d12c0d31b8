"""Simulated records answer only with a validation of their simulator, for their target."""

from dataclasses import replace
from typing import Any

import pytest

from perfdb_git.calibration.documents import write_documents
from perfdb_git.calibration.validating import (
    DEFAULT_LIMIT,
    ValidationRequest,
    validate_simulator,
)
from perfdb_git.errors import NoEvidenceError, UsageError
from perfdb_git.model.validation import ErrorLimit, Simulator, Validation, ValidationTarget

SIZES = (64, 128, 192, 256, 320, 384, 448, 512)
ASKED: dict[str, Any] = {
    "operation": "gemm",
    "device": "a100_80g",
    "dtype": "float16",
    "m": 4096,
    "n": 256,
    "k": 512,
}
SIMULATOR = {"tool": "roofsim", "revision": "r7"}


def add_simulated(repository: Any, **changes: Any) -> str:
    """Every size 5 % slower than it was measured, and one size that was not measured."""
    rows = [[m, 256, 512, 1.05 * m / 64, 0.0] for m in (*SIZES, 4096)]
    settings = {"kind": "simulated", "source": SIMULATOR, "session": "sim", **changes}
    sha256: str = repository.add(rows, **settings)
    return sha256


@pytest.fixture
def compared(repository: Any) -> Validation:
    """Measured and simulated records, committed, with their comparison; nothing else written."""
    repository.add([[m, 256, 512, m / 64, 0.0] for m in SIZES])
    add_simulated(repository)
    repository.commit()
    return validate_simulator(repository.at().evidence, request())


def request(**changes: Any) -> ValidationRequest:
    settings = {"simulated": "roofsim@r7", "measured": "bench@r1", "device": "a100_80g", **changes}
    return ValidationRequest(**settings)


def answer(repository: Any, *validations: Validation, **asked: Any) -> Any:
    if validations:
        write_documents(repository.path, *validations)
    repository.commit()
    return repository.at().resolve(**{**ASKED, **asked})


def refusal(found: Any) -> str:
    assert found.estimate.method == "analytical"
    (lost,) = (item for item in found.alternatives if item.provider == "recorded-simulated")
    assert (lost.status, lost.code) == ("unsupported", "not-validated")
    reason: str = lost.reason
    return reason


def test_the_comparison_says_what_was_compared(compared: Validation) -> None:
    assert compared.simulator == Simulator(name="roofsim", revision="r7")
    assert compared.target == ValidationTarget(
        device="a100_80g", component=None, capability_revision=None
    )
    assert len(compared.pairs) == len(SIZES)
    errors = compared.held_out_report.overall
    assert errors is not None
    assert (errors.mape_pct, errors.bias_pct) == pytest.approx((5, 5))
    assert compared.is_within_limit


def test_a_validated_simulator_answers_and_names_its_validation(
    repository: Any, compared: Validation
) -> None:
    found = answer(repository, compared)
    assert (found.estimate.method, found.estimate.provenance.provider) == (
        "simulated",
        "recorded-simulated",
    )
    assert found.estimate.metrics["latency"].value == pytest.approx(1.05e-3 * 64)
    (note,) = found.estimate.diagnostics.notes
    assert "roofsim@r7" in note
    assert "mape_pct 5 over 8 pairs, within its limit 10" in note


def test_a_measurement_beats_a_validated_simulator(repository: Any, compared: Validation) -> None:
    found = answer(repository, compared, m=64)
    assert found.estimate.method == "measured"
    (lost,) = (item for item in found.alternatives if item.provider == "recorded-simulated")
    assert lost.code == "lower-tier"


def test_without_a_validation_no_simulator_answers(repository: Any, compared: Validation) -> None:
    assert "there is no validation document of roofsim" in refusal(answer(repository))


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"device": "h100_80g"}, "gemm on h100_80g, not gemm on a100_80g"),
        ({"component": "npu0"}, "gemm on a100_80g, component npu0, not gemm on a100_80g"),
        ({"capability_revision": "c2"}, "capability revision c2, not gemm on a100_80g"),
    ],
)
def test_a_validation_of_another_target_admits_nothing(
    repository: Any, compared: Validation, changes: dict[str, str], text: str
) -> None:
    other = replace(compared, target=replace(compared.target, **changes))
    assert text in refusal(answer(repository, other))


def test_a_validation_of_the_device_does_not_reach_another_component(
    repository: Any, compared: Validation
) -> None:
    add_simulated(repository, session="part", context={"component": "npu0"})
    repository.retract(compared.pairs[0].simulated.partition("#")[0])
    reason = refusal(answer(repository, compared))
    assert "not gemm on a100_80g, component npu0" in reason


def test_a_validation_of_another_revision_admits_nothing(
    repository: Any, compared: Validation
) -> None:
    other = replace(compared, simulator=replace(compared.simulator, revision="r6"))
    assert "another revision is validated: roofsim@r6, not roofsim@r7" in refusal(
        answer(repository, other)
    )


def test_a_validation_over_its_limit_admits_nothing(repository: Any, compared: Validation) -> None:
    strict = replace(compared, limit=ErrorLimit(statistic="p95_pct", value=4.0))
    assert "p95_pct 5 over 8 pairs, over its limit 4" in refusal(answer(repository, strict))


def test_a_validation_over_its_limit_is_shown_beside_one_within(
    repository: Any, compared: Validation
) -> None:
    strict = replace(compared, limit=ErrorLimit(statistic="p95_pct", value=4.0))
    notes = answer(repository, compared, strict).estimate.diagnostics.notes
    assert sorted(note.rpartition(", ")[2] for note in notes) == [
        "over its limit 4",
        "within its limit 10",
    ]


def test_only_validated_metrics_are_answered(repository: Any, compared: Validation) -> None:
    other = replace(
        compared,
        response="energy",
        held_out_report=replace(compared.held_out_report, response="energy"),
    )
    found = answer(repository, other)
    (lost,) = (item for item in found.alternatives if item.provider == "recorded-simulated")
    assert lost.code == "no-value"


def test_a_new_validation_changes_the_revision_of_the_simulated_tier_alone(
    repository: Any, compared: Validation
) -> None:
    keys = {answer(repository).cache_key, answer(repository, compared).cache_key}
    assert len(keys) == 2
    measured = answer(repository, m=64).estimate.provenance.revision
    assert measured.startswith("recorded/1+")


def test_too_few_points_are_no_comparison(repository: Any, compared: Validation) -> None:
    with pytest.raises(NoEvidenceError, match="pairs at 8 points, fewer than 9"):
        validate_simulator(repository.at().evidence, request(min_points=9))


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"device": "h100_80g"}, "wrong-device"),
        ({"simulated": "bench@r1"}, "unknown-source"),
        ({"measured": "roofsim@r7"}, "unknown-source"),
        ({"simulated": "0000"}, "unknown-id"),
        ({"operation": "all_reduce"}, "unknown-source"),
    ],
)
def test_a_wrong_request_is_refused(
    repository: Any, compared: Validation, changes: dict[str, Any], code: str
) -> None:
    with pytest.raises(UsageError) as caught:
        validate_simulator(repository.at().evidence, request(**changes))
    assert caught.value.code == code


def test_a_material_dimension_that_one_side_alone_knows_makes_no_pair(
    repository: Any, compared: Validation
) -> None:
    add_simulated(
        repository, session="vllm", source={"tool": "s", "revision": "r1"}, context=RUNTIME
    )
    repository.commit()
    with pytest.raises(NoEvidenceError) as caught:
        validate_simulator(repository.at().evidence, request(simulated="s@r1"))
    assert caught.value.code == "too-few-pairs"


def test_a_simulator_of_unknown_revision_cannot_be_validated(repository: Any) -> None:
    repository.add([[m, 256, 512, m / 64, 0.0] for m in SIZES])
    sha256 = add_simulated(repository, source={"tool": "roofsim", "revision": None})
    repository.commit()
    with pytest.raises(UsageError) as caught:
        validate_simulator(repository.at().evidence, request(simulated=sha256[:8]))
    assert caught.value.code == "unknown-revision"
    assert "do not state the revision" in refusal(answer(repository))


RUNTIME = {"runtime": "vllm"}


def test_the_default_limit_is_ten_percent_on_average() -> None:
    assert (DEFAULT_LIMIT.statistic, DEFAULT_LIMIT.value) == ("mape_pct", 10)

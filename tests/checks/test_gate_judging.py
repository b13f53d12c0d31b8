"""Gates as pure functions: each limit at its edge, and what makes one looser."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from perfdb_git.checks.checked_snapshot import CheckedSnapshot
from perfdb_git.checks.gate_checks import judge_gates_of_change
from perfdb_git.checks.gate_judging import JudgedRevision, gate_findings, loosened
from perfdb_git.model.gates import ErrorLimits, GateLimits, Gates, SeriesGates
from tests.calibration.revisions import calibration, report
from tests.checks.calibration_breaks import add, revision
from tests.checks.gate_breaks import gates as evidence_gates
from tests.checks.gate_breaks import promote

GEMM = ("latency", "gemm", "a100_80g")


def gates(*series: SeriesGates, **defaults: Any) -> Gates:
    return Gates(
        schema="perfdb/gates/v1",
        description="Small.",
        defaults=GateLimits(**defaults),
        series=series,
    )


def of_gemm(**limits: Any) -> SeriesGates:
    response, operation, device = GEMM
    return SeriesGates(
        response=response, operation=operation, device=device, limits=GateLimits(**limits)
    )


def judged(*, promoted: bool = True, **changes: Any) -> JudgedRevision:
    """Errors of 10, 0 and 20 %, the last one extrapolated; two of three intervals cover."""
    figures = report(
        measured=np.array([1.0, 2.0, 5.0]),
        predicted=np.array([1.1, 2.0, 6.0]),
        lower=np.array([0.9, 1.9, 5.5]),
        upper=np.array([1.3, 2.1, 6.5]),
        level=0.9,
        extrapolated=np.array([False, False, True]),
    )
    revision = calibration(held_out_report=figures, **changes)
    return JudgedRevision(path="revision.json", calibration=revision, promoted=promoted)


def pointers(found: Gates, **changes: Any) -> list[str]:
    findings = list(gate_findings(found, [judged(**changes)]))
    assert {item.code for item in findings} <= {"gate-exceeded"}
    return [(item.pointer or "").removeprefix("/held_out_report/") for item in findings]


@pytest.mark.parametrize(
    ("name", "reached", "missed", "pointer"),
    [
        ("max_mape_pct", 5.01, 4.99, "mape_pct"),
        ("max_p95_pct", 10.01, 9.0, "p95_pct"),
        ("max_median_half_width_pct", 11.6, 11.0, "median_half_width_pct"),
        ("min_coverage", 1.0, None, "coverage"),
        ("max_coverage", 1.0, 0.97, "coverage"),
    ],
)
def test_each_limit_at_its_edge(
    name: str, reached: float, missed: float | None, pointer: str
) -> None:
    assert pointers(gates(inside=ErrorLimits(**{name: reached}))) == []
    if missed is not None:
        missing = gates(inside=ErrorLimits(**{name: missed}))
        assert pointers(missing) == [f"interpolated/{pointer}"]


def test_what_lies_beyond_is_judged_apart_and_from_a_count_on() -> None:
    limits = ErrorLimits(max_mape_pct=19.9, min_coverage=0.5)
    expected = ["extrapolated/mape_pct", "extrapolated/coverage"]
    assert pointers(gates(beyond=limits)) == expected
    assert pointers(gates(beyond=limits, beyond_judged_from=1)) == expected
    assert pointers(gates(beyond=limits, beyond_judged_from=2)) == []


def test_a_series_overrides_single_defaults() -> None:
    strict = gates(inside=ErrorLimits(max_mape_pct=1, max_p95_pct=1))
    assert pointers(strict) == ["interpolated/mape_pct", "interpolated/p95_pct"]
    lenient = replace(strict, series=(of_gemm(inside=ErrorLimits(max_mape_pct=6)),))
    assert pointers(lenient) == ["interpolated/p95_pct"]
    assert pointers(lenient, operation="norm") == ["interpolated/mape_pct", "interpolated/p95_pct"]


def test_slices_that_share_their_records_count_them_once() -> None:
    shared = calibration().slices[0]
    both = (shared, replace(shared, terms={"dtype": "float32"}))
    assert pointers(gates(min_training_records=9), slices=both) == []
    assert pointers(gates(min_training_records=10), slices=both) == ["/slices"]


def test_no_interval_passes_no_gate_of_coverage() -> None:
    plain = JudgedRevision(path="r", calibration=calibration(), promoted=True)
    found = list(gate_findings(gates(inside=ErrorLimits(min_coverage=0.0)), [plain]))
    assert [item.pointer for item in found] == ["/held_out_report/overall/coverage"]
    assert "no interval" in found[0].message


def test_what_no_policy_names_gets_one_note() -> None:
    strict = gates(inside=ErrorLimits(max_mape_pct=1, max_p95_pct=1))
    (note,) = gate_findings(strict, [judged(promoted=False)])
    assert (note.code, note.severity) == ("gate-not-met", "note")
    assert "mape_pct" in note.message and "p95_pct" in note.message


BASE = gates(
    of_gemm(inside=ErrorLimits(max_mape_pct=2)),
    inside=ErrorLimits(max_mape_pct=10, min_coverage=0.88, max_coverage=0.97),
    min_held_out_records=50,
    max_refused_share=0.05,
)


def with_defaults(**changes: Any) -> Gates:
    return replace(BASE, defaults=replace(BASE.defaults, **changes))


LOOSER: dict[str, tuple[Gates | None, list[tuple[str, str]]]] = {
    "larger error": (
        with_defaults(inside=replace(BASE.defaults.inside, max_mape_pct=11)),
        [("/defaults", "inside.max_mape_pct by default was 10 and is 11")],
    ),
    "smaller coverage": (
        with_defaults(inside=replace(BASE.defaults.inside, min_coverage=0.8)),
        [("/defaults", "inside.min_coverage by default was 0.88 and is 0.8")],
    ),
    "fewer records": (
        with_defaults(min_held_out_records=None),
        [("/defaults", "min_held_out_records by default was 50 and is dropped")],
    ),
    "judged from more": (
        with_defaults(beyond_judged_from=9),
        [("/defaults", "beyond_judged_from by default was 1 and is 9")],
    ),
    "series of its own": (
        replace(BASE, series=(of_gemm(inside=ErrorLimits(max_mape_pct=3)),)),
        [
            (
                "/series/0/limits",
                "inside.max_mape_pct for latency gemm a100_80g was 2 and is 3",
            )
        ],
    ),
    "series left out": (
        replace(BASE, series=()),
        [("/defaults", "inside.max_mape_pct for latency gemm a100_80g was 2 and is 10")],
    ),
    "new series": (
        replace(
            BASE,
            series=(*BASE.series, replace(of_gemm(max_refused_share=0.5), operation="norm")),
        ),
        [("/series/1/limits", "max_refused_share for latency norm a100_80g was 0.05 and is 0.5")],
    ),
    "removed": (None, [("", "the gates are removed")]),
}


@pytest.mark.parametrize("name", LOOSER)
def test_a_looser_gate_is_found(name: str) -> None:
    head, expected = LOOSER[name]
    found = [(item.pointer or "", item.message) for item in loosened(BASE, head)]
    assert found == expected
    assert {item.code for item in loosened(BASE, head)} == {"loosened-gate"}


@pytest.mark.parametrize(
    "head",
    [
        BASE,
        with_defaults(inside=replace(BASE.defaults.inside, max_mape_pct=9, min_coverage=0.9)),
        with_defaults(min_held_out_records=60, max_validation_mape_pct=5),
        replace(BASE, series=(of_gemm(inside=ErrorLimits(max_mape_pct=1.5)),)),
        replace(BASE, series=tuple(reversed(BASE.series)), description="Other words."),
    ],
)
def test_a_tighter_gate_is_none(head: Gates) -> None:
    assert list(loosened(BASE, head)) == []
    assert list(loosened(None, head)) == []


def test_gates_of_the_merge_base_judge_a_change(evidence: Any, repository: Any) -> None:
    evidence_gates(evidence, inside={"max_mape_pct": 4.9})
    base = CheckedSnapshot(repository.source(repository.commit(evidence.files)))
    path = add(evidence, revision(evidence))
    promote(evidence, path)
    evidence_gates(evidence, inside={"max_mape_pct": 50})
    head = CheckedSnapshot(repository.source(repository.commit(evidence.files)))
    found = [(item.code, item.document) for item in judge_gates_of_change(base, head)]
    assert found == [("loosened-gate", "evidence/policies/gates.yaml"), ("gate-exceeded", path)]
    # Where the base had none, those that the change brings judge.
    del evidence.files["evidence/policies/gates.yaml"]
    bare = CheckedSnapshot(repository.source(repository.commit(evidence.files)))
    assert list(judge_gates_of_change(bare, head)) == []
    removed = [item.message for item in judge_gates_of_change(head, bare)]
    assert removed == ["the gates are removed"]

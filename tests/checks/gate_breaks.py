"""Ways to break the gates and the calibrated profiles of a clean repository."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from perfdb_git.formats.canonical import canonical_document
from perfdb_git.model.calibration import BaseModel
from tests.calibration.revisions import SHA, report
from tests.checks.calibration_breaks import Expected, add, judged, one, revision

GATES = "evidence/policies/gates.yaml"
PROFILE = "profiles/node.json"

GATE_BREAKS: dict[str, Callable[[Any], Expected]] = {}


def breaks(function: Callable[[Any], Expected]) -> Callable[[Any], Expected]:
    GATE_BREAKS[function.__name__] = function
    return function


def gates(e: Any, *series: dict[str, Any], **defaults: Any) -> None:
    value = {
        "schema": "perfdb/gates/v1",
        "description": "Small.",
        "defaults": defaults,
        "series": list(series),
    }
    e.files[GATES] = json.dumps(value).encode()  # JSON is YAML too


def series(**limits: Any) -> dict[str, Any]:
    standard = {"response": "latency", "operation": "gemm", "device": "a100_80g"}
    return {**standard, "limits": limits}


def promote(e: Any, path: str) -> None:
    choice = {"response": "latency", "operation": "gemm", "device": "a100_80g"}
    e.policy["calibrations"] = [{**choice, "revision": e.sha(path)}]
    e.keep()


def profile(e: Any, revision_path: str | None, **changes: Any) -> str:
    component = {
        "fixed_latency_ns": 100,
        "bandwidth_gbps": 80,
        "lanes": 1,
        "resource_mode": "overlap",
        "evidence": "calibrated",
        "target": "a100_80g",
        "calibration_scale": 1.25,
        "calibration_offset_ns": 300,
        "notes": "fitted",
    }
    if revision_path is not None:
        component["calibration"] = e.sha(revision_path)
    component |= changes
    kept = {name: value for name, value in component.items() if value is not None}
    value = {
        "schema": "perfdb/timing-profile/v1",
        "name": "node",
        "version": "1",
        "components": {"link": kept},
    }
    e.files[PROFILE] = canonical_document(value)
    return PROFILE


def scale_offset(e: Any, **changes: Any) -> str:
    base = BaseModel(
        kind="timing-profile",
        name="node-v0",
        component="link",
        numbers={"scale": 1.25, "offset_s": 3e-7},
    )
    return add(e, revision(e, **{"base": base, **changes}))


def clean_gates(e: Any) -> None:
    """Add gates that pass, a promoted revision and a calibrated profile."""
    inside = {"max_mape_pct": 5.1, "max_p95_pct": 10.1}
    gates(e, series(min_held_out_records=2), inside=inside, min_training_records=2)
    path = scale_offset(e)
    profile(e, path)
    promote(e, path)


@breaks
def promoted_revision_over_a_gate(e: Any) -> Expected:
    """Errors are 10 and 0 %, one of three records has no answer, there are no intervals."""
    gates(
        e,
        series(inside={"max_mape_pct": 4.9, "min_coverage": 0.88}),
        inside={"max_mape_pct": 50},
        min_held_out_records=3,
        min_training_records=3,
        max_refused_share=0.3,
    )
    path = add(e, revision(e))
    promote(e, path)
    pointers = ("held_out", "overall/coverage", "overall/mape_pct", "refused")
    return [
        *(("gate-exceeded", path, f"/held_out_report/{name}", None) for name in pointers),
        ("gate-exceeded", path, "/slices", None),
    ]


@breaks
def validation_over_a_gate(e: Any) -> Expected:
    gates(e, max_validation_mape_pct=4.9)
    return one("gate-exceeded", add(e, judged(e)), "/held_out_report/overall/mape_pct")


@breaks
def gates_stated_twice(e: Any) -> Expected:
    gates(e, series(max_disagreement=0.1), series(max_disagreement=0.2))
    return one("two-gates", GATES, "/series/1")


@breaks
def gate_that_nothing_passes(e: Any) -> Expected:
    gates(e, series(inside={"min_coverage": 0.98}), inside={"max_coverage": 0.97})
    return one("gate-that-nothing-passes", GATES, "/series/0/limits/inside")


@breaks
def gates_for_unknown_names(e: Any) -> Expected:
    gates(e, {**series(), "operation": "gemv", "device": "a100"})
    return [
        ("unknown-operation", GATES, "/series/0/operation", None),
        ("unknown-term", GATES, "/series/0/device", None),
    ]


@breaks
def policy_called_gates(e: Any) -> Expected:
    e.files[GATES] = json.dumps({**e.policy, "name": "gates"}).encode()
    return one("schema-violation", GATES, "/schema")


@breaks
def calibrated_by_nothing(e: Any) -> Expected:
    return one("calibrated-without-revision", profile(e, None), "/components/link")


@breaks
def calibrated_for_nothing(e: Any) -> Expected:
    path = profile(e, None, target=None)
    return [
        ("calibrated-without-target", path, "/components/link", None),
        ("schema-violation", path, "/components/link", None),
    ]


@breaks
def calibrated_by_an_unknown_revision(e: Any) -> Expected:
    path = profile(e, None, calibration=SHA)
    return one("unknown-calibration", path, "/components/link/calibration")


@breaks
def calibrated_by_an_unjudged_revision(e: Any) -> Expected:
    import numpy as np

    unanswered = report(predicted=np.full(3, np.nan))
    path = scale_offset(e, held_out_report=unanswered)
    profile(e, path)
    return one("calibrated-without-report", PROFILE, "/components/link/calibration")


@breaks
def calibrated_for_another_device(e: Any) -> Expected:
    profile(e, scale_offset(e), target="h100_80g")
    return one("calibration-of-another", PROFILE, "/components/link/calibration")


@breaks
def calibrated_with_an_edited_scale(e: Any) -> Expected:
    profile(e, scale_offset(e), calibration_scale=1.0, calibration_offset_ns=0)
    return one("calibration-of-another", PROFILE, "/components/link/calibration") * 2


@breaks
def calibrated_by_a_model_of_another_component(e: Any) -> Expected:
    clean = scale_offset(e)
    base = replace(revision(e), base=None)
    other = add(e, base)
    del e.files[clean]
    profile(e, other)
    return one("calibration-of-another", PROFILE, "/components/link/calibration")

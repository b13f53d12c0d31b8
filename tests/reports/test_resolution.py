"""The screens of outcomes that are hard to provoke, and the limits on every screen."""

from __future__ import annotations

from dataclasses import replace

from perfdb_git.model.estimate import (
    Alternative,
    CostEstimate,
    Diagnostics,
    MetricEstimate,
    NearMiss,
    Provenance,
    Validity,
)
from perfdb_git.model.query import CostQuery, Deployment, Workload
from perfdb_git.model.result import PolicyReference, Resolution, SnapshotReference
from perfdb_git.reports.resolution import record_sets_of, resolution_lines
from perfdb_git.reports.screen import WIDTH, print_lines

SHA = "0123456789abcdef" * 4
ESTIMATE = CostEstimate(
    metrics={
        "energy": MetricEstimate(value=0.25, unit="J", uncertainty=None),
        "latency": MetricEstimate(value=0.001, unit="s", uncertainty=None),
    },
    method="measured",
    stochastic=None,
    validity=Validity(kind="exact", distance_octaves=0),
    provenance=Provenance(
        provider="recorded",
        revision="recorded/1+abc",
        record_ids=tuple(f"{SHA}#{row}" for row in range(17)),
        source_revisions=("bench@1",),
        calibration=None,
        commit="a" * 40,
    ),
    diagnostics=Diagnostics(
        assumptions=tuple(f"assumption {number} " + "word " * 30 for number in range(9)),
        conflicts=("latency: 2 sessions disagree",),
        missing_context=("runtime",),
        protocol="partial",
        breakdown={"compute": 0.001, "memory": 0.0005},
    ),
)
RESOLUTION = Resolution(
    query=CostQuery(
        workload=Workload(operation="gemm", shape={"m": 128}),
        deployment=Deployment(device="a100_80g"),
    ),
    query_digest="sha256:" + SHA,
    cache_key="sha256:" + SHA,
    snapshot=SnapshotReference(commit="a" * 40),
    policy=PolicyReference(name="default", digest="sha256:" + SHA, origin="external-policy"),
    estimate=ESTIMATE,
    alternatives=(
        Alternative(
            provider="analytical",
            status="rejected",
            code="lower-tier",
            reason="recorded answers at a higher tier",
            latency=0.0002,
        ),
    ),
    code="resolved",
    reason="17 records match",
    marks=("uncommitted", "external-policy"),
)


def screen(resolution: Resolution, sessions: dict[str, str] | None = None) -> str:
    return print_lines(resolution_lines(resolution, sessions=sessions), colour=False)


def test_an_answer_keeps_to_one_screen() -> None:
    text = screen(RESOLUTION, {SHA: "evil\x1b[2J\nsession"})
    lines = text.splitlines()
    assert lines[0] == "1.000 ms   latency, measured, exact"
    assert all(len(line) <= WIDTH for line in lines)
    assert len(lines) <= 40
    assert "0123456789ab#4  evil\\x1b[2J\\x0asession" in text
    for expected in (
        "energy       250.0 mJ",
        "and 12 more",
        "and 4 more",
        "compute 1.000 ms, memory 500.0 µs",
        "conflict     latency: 2 sessions disagree",
        "not stated   runtime",
        "marked       uncommitted, external-policy",
        "a" * 40,
        "analytical           200.0 µs  lower-tier: recorded answers",
    ):
        assert expected in text
    assert "\x1b" not in text
    assert record_sets_of(RESOLUTION) == (SHA,)


def refused(code: str, near: NearMiss) -> Resolution:
    alternative = Alternative(
        provider="recorded",
        status="rejected",
        code=code,
        reason="because",
        latency=None,
        near_misses=(near,),
    )
    return replace(
        RESOLUTION, estimate=None, alternatives=(alternative,), code=code, reason="because"
    )


def test_an_ambiguity_offers_the_values_that_decide_it() -> None:
    near = NearMiss(
        changes={"runtime": ("trtllm", "my runtime"), "participants": (2, 4)},
        distance_octaves=0,
        records=3,
    )
    lines = screen(refused("ambiguous-context", near)).splitlines()
    words = [line.strip() for line in lines]
    assert "runtime=trtllm   'runtime=my runtime'" in words
    assert "participants=2   participants=4" in words
    assert "recorded                    -  ambiguous-context: as above" in words


def test_a_miss_says_what_to_change() -> None:
    near = NearMiss(
        changes={"m": (256,), "implementation": (), "k": (64,)}, distance_octaves=1.0, records=2
    )
    text = screen(refused("no-admissible-evidence", near))
    assert "m=256 instead of 128, leave out implementation, k=64" in text
    assert "(1.00 octaves away, 2 records)" in text
    other = NearMiss(changes={"device": ("h100_80g",)}, distance_octaves=None, records=1)
    assert "device=h100_80g instead of a100_80g  (another context, 1 record)" in screen(
        refused("no-admissible-evidence", other)
    )

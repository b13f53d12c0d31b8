"""The lines of an inference estimate whose parts all state an interval."""

from __future__ import annotations

from perfdb_git.plans.resolving import resolve_plan
from perfdb_git.reports.inference import inference_lines, inference_report
from tests.cli.conftest import evidence, template
from tests.cli.evidence import Evidence
from tests.plans.plan_evidence import MEASURED, commit_plan, snapshot
from tests.workloads.transformers import LLAMA_2_70B, setting

__all__ = ["evidence", "template"]


def test_both_intervals_say_what_they_assume(evidence: Evidence) -> None:
    commit_plan(evidence, MEASURED)
    report = inference_report(
        resolve_plan(snapshot(evidence), "step"),
        model=LLAMA_2_70B,
        model_digest="sha256:0",
        setting=setting("decode", 1, 1),
        written=None,
    )
    lines = [line.text for line in inference_lines(report, explain=False)]
    text = " ".join(" ".join(lines).split())
    assert "13.72 ms total evidence measured" in text
    assert report.result.uncertainty == report.coverage.comonotone
    assert "(prediction, 90 %, comonotone-sum), all parts slow or fast together" in text
    assert (
        "(prediction, 90 %, independent-queries-root-sum-square), errors of different queries "
        "independent" in text
    )
    assert "unknown" not in text
    assert "coverage 2 tasks: measured 2 (100 % of the time)" in text
    # The label stands once, before the first of the two.
    assert sum(line.startswith("  interval ") for line in lines) == 1

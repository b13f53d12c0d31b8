"""The guide's plan is a plan, and the shipped ones can be asked."""

from __future__ import annotations

import re
from pathlib import Path

from perfdb_git.database import PerformanceDatabase
from perfdb_git.formats.codec import decode
from perfdb_git.formats.schemas import SchemaStore
from perfdb_git.formats.strict_yaml import read_yaml
from perfdb_git.model.plan import Plan
from perfdb_git.operations.stage_queries import query_faults
from perfdb_git.plans.compare import Reason
from perfdb_git.plans.tracked import plan_names, tracked_queries

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs/plans.md").read_text(encoding="utf-8")


def test_the_plan_of_the_guide_can_be_asked(tmp_path: Path) -> None:
    text = re.findall(r"^```yaml\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL)[0]
    value = read_yaml(text.encode(), document="guide")
    SchemaStore().validate(value, document="guide", expected_kind="plan")
    plan = decode(Plan, value, document="guide")
    vocabulary = PerformanceDatabase.open(ROOT, cache_directory=tmp_path).worktree().vocabulary
    for query in plan.queries:
        assert list(query_faults(query.query, vocabulary)) == []


def test_the_guide_names_every_reason() -> None:
    for reason in Reason.__args__:  # type: ignore[attr-defined]
        assert f"`{reason}`" in GUIDE


def test_shipped_plans_can_be_asked(tmp_path: Path) -> None:
    snapshot = PerformanceDatabase.open(ROOT, cache_directory=tmp_path).worktree()
    plans = set(plan_names(snapshot))
    tracked = [query for name in plans for query in tracked_queries(snapshot, name)]
    llama = {"llama-2-70b-decode-64-a100", "llama-2-70b-decode-100-a100"}
    phi = {"phi-2-decode-33-a100", "phi-2-decode-129-a100", "phi-2-prefill-128-a100"}
    assert plans == llama | phi
    # Eighty layers, with two norms, two additions and two all-reduces in each; one of Phi-2's.
    assert {query.multiplicity for query in tracked if query.plan in llama} == {80, 160}
    assert {query.multiplicity for query in tracked if query.plan in phi} == {1}

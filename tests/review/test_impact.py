"""Answers that differ, how much, and why: every kind of reason, each from a real change."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from perfdb_git.calibration.documents import write_documents
from perfdb_git.calibration.validating import ValidationRequest, validate_simulator
from perfdb_git.model.query import CostQuery
from perfdb_git.review.changes import ChangeReviewer
from perfdb_git.review.tracked import TrackedQuery
from tests.resolution.conftest import GIT_ENVIRONMENT
from tests.review.conftest import (
    A100_GEMM,
    ASKED,
    POLICY,
    ROWS,
    VOCABULARY,
    Changes,
    kinds,
    queries_of,
)

NEW = {"m": 384}
"""Between the records: answered by models."""


def test_new_records_change_a_value(changes: Changes) -> None:
    sha256 = changes.add([[128, 10240, 8192, 2.2, 0.02]], session="s2")
    found = changes.change()
    assert found.before.main is not None and found.after.main is not None
    assert (found.before.main.value, found.after.main.value) == pytest.approx((2e-3, 2.1e-3))
    assert found.log_ratio == pytest.approx(0.04879, abs=1e-5)
    assert found.changed == ("value", "interval")
    (reason,) = found.reasons
    assert reason.kind == "new-records"
    assert [sha256[:12] in path for path in reason.documents] == [True]


def test_new_records_win_over_a_model(changes: Changes) -> None:
    changes.add([[384, 10240, 8192, 6.0, 0.02]], session="s2")
    found = changes.change(**NEW)
    assert (found.before.method, found.after.method) == ("analytical", "measured")
    assert set(found.changed) == {"value", "interval", "method", "validity", "source"}
    assert kinds(found) == ["new-records"]


def test_records_removed(changes: Changes) -> None:
    changes.git("rm", "-q", "-r", "evidence/records")
    found = changes.change()
    assert (found.before.method, found.after.method) == ("measured", "analytical")
    assert kinds(found) == ["removed-records"]
    assert len(found.reasons[0].documents) == 1


def test_a_retraction(changes: Changes) -> None:
    changes.retract(f"{changes.first}#0")
    found = changes.change()
    assert found.after.method == "analytical"
    assert kinds(found) == ["retraction"]


def test_a_rule_of_the_policy(changes: Changes) -> None:
    changes.add([[128, 10240, 8192, 3.0, 0.02]], session="s2")
    changes.base = changes.commit()
    changes.edit(POLICY, (r"action: show", "action: refuse"))
    found = changes.change()
    assert found.changed == ("answer",)
    assert (found.after.code, found.log_ratio) == ("conflict", None)
    (reason,) = found.reasons
    assert (reason.kind, reason.text) == ("policy", "rules of the policy changed: conflict")


def test_a_policy_that_comes(changes: Changes) -> None:
    text = (changes.path / POLICY).read_text().replace("name: default", "name: other")
    changes.write("evidence/policies/other.yaml", text.encode())
    changes.commit()
    (found,) = changes.review(ASKED, policy="other").impact.changes
    assert (found.before.code, found.changed) == ("unknown-policy", ("answer",))
    assert [reason.text for reason in found.reasons] == ["the policy came"]


def test_a_calibration_is_promoted(changes: Changes) -> None:
    changes.bring_calibration()
    changes.base = changes.commit()
    changes.promote()
    found = changes.change(**NEW)
    assert (found.before.method, found.after.method) == ("analytical", "calibrated")
    assert found.after.calibration == A100_GEMM
    (reason,) = found.reasons
    assert (reason.kind, reason.text) == ("calibration", f"calibration {A100_GEMM[:12]} promoted")


def test_a_calibration_without_its_file(changes: Changes) -> None:
    changes.promote()
    changes.base = changes.commit()
    changes.bring_calibration()
    found = changes.change(**NEW)
    assert kinds(found) == ["calibration"]
    assert "came or went" in found.reasons[0].text


def test_a_system_profile(changes: Changes) -> None:
    profile = json.loads((changes.path / "profiles/systems/a100-80g-calculon.json").read_text())
    profile["name"] = "mine"
    profile["engines"]["matrix"]["float16"]["peak_tops"] = 100
    changes.write("profiles/systems/mine.json", json.dumps(profile).encode())
    changes.edit(POLICY, (r"a100_80g: a100-80g-calculon", "a100_80g: mine"))
    found = changes.change(**NEW)
    (reason,) = found.reasons
    assert reason.kind == "profile"
    assert reason.text == "system profile mine in place of a100-80g-calculon"


def test_the_vocabulary(changes: Changes) -> None:
    changes.edit(VOCABULARY, (r"^  concurrency:\n", "  concurrency:\n    material: true\n"))
    found = changes.change(concurrency=1)
    assert (found.before.method, found.after.method) == ("measured", "analytical")
    (reason,) = found.reasons
    assert (reason.kind, reason.text) == ("vocabulary", "the vocabulary's concurrency changed")


def test_an_alias_changes_no_canonical_answer(changes: Changes) -> None:
    changes.edit(VOCABULARY, (r"float32: \[fp32", "float32: [fp32x, fp32"))
    changes.commit()
    review = changes.review(ASKED, queries=20)
    assert review.impact.changes == ()
    assert [item.place for item in review.settings] == ["dimensions/dtype/terms/float32"]


def test_a_term_that_was_not_known(changes: Changes) -> None:
    changes.edit(VOCABULARY, (r"^      float32: ", "      float12: []\n      float32: "))
    changes.add([[128, 10240, 8192, 1.0, 0.02]], session="s2", context={"dtype": "float12"})
    found = changes.change(dtype="float12")
    assert (found.before.code, found.after.method) == ("bad-value", "measured")


def test_ages(changes: Changes, monkeypatch: pytest.MonkeyPatch) -> None:
    changes.git("rm", "-q", "-r", "evidence/records")
    changes.add(ROWS, session="old", source={"measured_at": "2025-06-01T00:00:00Z"})
    changes.edit(POLICY, (r"^limits:\n", "limits:\n  max_age_days: 30\n"))
    changes.base = changes.commit()
    monkeypatch.setitem(GIT_ENVIRONMENT, "GIT_COMMITTER_DATE", "1760000000 +0000")
    found = changes.change()
    assert (found.before.method, found.after.code) == ("measured", "no-admissible-evidence")
    assert kinds(found) == ["age"]


def validate(changes: Changes) -> None:
    request = ValidationRequest(
        simulated="roofsim@r7", measured="bench@r1", device="a100_80g", min_points=3
    )
    write_documents(changes.path, validate_simulator(changes.at().evidence, request))


def add_simulated(changes: Changes) -> None:
    rows = [[m, 10240, 8192, 2.06 * m / 128, 0.0] for m in (128, 256, 384, 512)]
    source = {"tool": "roofsim", "revision": "r7"}
    changes.add(rows, session="sim", kind="simulated", source=source)


def test_a_validation(changes: Changes) -> None:
    add_simulated(changes)
    changes.base = changes.commit()
    validate(changes)
    found = changes.change(**NEW)
    assert (found.before.method, found.after.method) == ("analytical", "simulated")
    assert kinds(found) == ["validation"]


def test_only_together_do_two_parts_change_an_answer(changes: Changes) -> None:
    add_simulated(changes)
    changes.commit()
    validate(changes)
    found = changes.change(**NEW)
    assert kinds(found) == ["new-records", "validation"]


def test_of_two_parts_only_the_effective_one_is_named(changes: Changes) -> None:
    changes.add([[128, 10240, 8192, 2.2, 0.02]], session="s2")
    changes.add([[9, 9, 9, 2.2, 0.02]], session="sim", kind="simulated")
    changes.edit(POLICY, (r"on_ambiguity: stop", "on_ambiguity: next-tier"))
    changes.retract(f"{changes.first}#2")
    changes.bring_calibration()
    changes.promote()
    found = changes.change()
    assert kinds(found) == ["new-records"]


def test_both_of_two_effective_parts_are_named(changes: Changes) -> None:
    changes.add([[128, 10240, 8192, 2.2, 0.02]], session="s2")
    changes.edit(POLICY, (r"level: 0.9", "level: 0.5"))
    found = changes.change()
    assert kinds(found) == ["new-records", "policy"]


def test_the_order_of_changes(changes: Changes) -> None:
    rows = [[128, 10240, 8192, 2.2, 0.02], [256, 10240, 8192, 8.0, 0.02], [512, 1, 1, 1.0, 0.02]]
    changes.add(rows, session="s2")
    changes.edit(POLICY, (r"tiers: .*", "tiers: [recorded-measured]"))
    changes.commit()
    asked = [{**ASKED, "m": m} for m in (128, 256, 384)]
    fresh = {**ASKED, "m": 512, "n": 1, "k": 1, "concurrency": 7}
    found = changes.review(*asked, fresh).impact
    assert [change.query["m"] for change in found.changes] == [384, 512, 256, 128]
    lost = found.changes[0]
    assert (lost.changed, lost.after.code) == (("answer",), "no-admissible-evidence")
    assert (found.asked, found.from_plans) == (4, 4)


def test_the_sample_covers_points_edges_and_neighbours(changes: Changes) -> None:
    changes.add([[m, 10240, 8192, 3.0 * m / 128, 0.02] for m in (128, 1024, 2048)], session="s2")
    changes.commit()
    review = changes.review(queries=60)
    sizes = {query["m"] for query in queries_of(review)}
    # Points that came change; 256 and 512 were there and stay as they are.
    assert sizes == {128, 1024, 2048}
    assert review.impact.asked > len(sizes)
    assert {change.origin for change in review.impact.changes} == {"sample"}


def test_the_bound_holds(changes: Changes) -> None:
    changes.add([[m, 10240, 8192, 0.02 * m, 0.02] for m in range(100, 400)], session="s2")
    changes.add([[m, 8, 8, 0.02 * m, 0.02] for m in range(9)[1:]], context={"device": "h100_80g"})
    changes.commit()
    for bound in (0, 1, 7, 200):
        assert changes.review(queries=bound).impact.asked <= bound
    assert changes.review(queries=200).impact.asked > 100
    few = changes.review(queries=2).impact
    assert {change.query["device"] for change in few.changes} == {"a100_80g", "h100_80g"}
    assert changes.review(ASKED, queries=7).impact.asked == 7


def test_a_damaged_index_changes_no_review(changes: Changes) -> None:
    changes.add([[128, 10240, 8192, 2.2, 0.02]], session="s2")
    changes.commit()
    expected = changes.review(ASKED, queries=20)
    for path in Path(changes.cache).rglob("*.segment"):
        content = bytearray(path.read_bytes())
        content[-40] ^= 1
        path.write_bytes(content)
    assert changes.review(ASKED, queries=20) == expected


def test_a_wrong_row_in_the_index_is_found(changes: Changes) -> None:
    # A segment of other content under the name of this one: sound, and not what Git says.
    changes.add([[128, 10240, 8192, 2.2, 0.02]], session="s2")
    changes.commit()
    expected = changes.review(ASKED)
    segments = sorted(Path(changes.cache).rglob("*.segment"))
    contents: list[Any] = [path.read_bytes() for path in segments]
    for path, content in zip(segments, reversed(contents), strict=True):
        path.write_bytes(content)
    assert changes.review(ASKED) == expected


@dataclass(frozen=True)
class PlanItem:
    plan: str
    name: str
    query: CostQuery
    policy: str | None


def test_queries_of_plans_are_asked_under_their_own_policy(changes: Changes) -> None:
    text = (changes.path / POLICY).read_text().replace("name: default", "name: narrow")
    changes.write("evidence/policies/narrow.yaml", text.encode())
    changes.base = changes.commit()
    changes.edit("evidence/policies/narrow.yaml", (r"level: 0.9", "level: 0.5"))
    changes.commit()
    reviewer = ChangeReviewer(changes.database(), changes.base, "HEAD")
    query = reviewer.head.query(ASKED)
    items = [PlanItem("p", "first", query, None), PlanItem("p", "second", query, "narrow")]
    review = reviewer.review([TrackedQuery.from_plan(item) for item in items], queries=0)
    (found,) = review.impact.changes
    assert (found.name, found.origin, found.changed) == ("p/second", "plan", ("interval",))
    assert kinds(found) == ["policy"]

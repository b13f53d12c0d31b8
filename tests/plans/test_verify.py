"""A lock asked again at its own commit."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from perfdb_git.errors import InvalidInputError, RepositoryUnavailableError
from perfdb_git.formats.canonical import canonical_document
from perfdb_git.plans.lock import lock_bytes
from perfdb_git.plans.verify import Verification
from perfdb_git.storage.plan_documents import lock_digest, read_plan_lock
from tests.cli.evidence import Evidence
from tests.plans.plan_evidence import commit_plan, edit, forged, lock_of, verification


def first(value: dict[str, Any]) -> dict[str, Any]:
    answer: dict[str, Any] = value["queries"][0]["answer"]
    return answer


def scale(place: int, factor: float) -> Callable[[dict[str, Any]], None]:
    def change(value: dict[str, Any]) -> None:
        value["queries"][place]["answer"]["value"] *= factor

    return change


def differing(found: Verification) -> dict[str, list[str]]:
    return {
        query.name: [item.field for item in query.differences]
        for query in found.queries
        if query.verdict != "equal"
    }


def test_a_lock_verifies_whatever_was_added_since(evidence: Evidence) -> None:
    commit_plan(evidence)
    lock = lock_of(evidence)
    evidence.add_gemm("two", [(128, 10240, 8192, 9.9, 0.1, 20)])
    evidence.commit("new records")
    found = verification(evidence, lock)
    assert (found.verdict, found.fingerprint, found.result) == ("equal", (), ())
    assert {query.verdict for query in found.queries} == {"equal"}
    assert found.largest_difference == 0.0


def test_a_lock_under_a_policy_of_version_1_verifies_after_the_policy_moved(
    evidence: Evidence,
) -> None:
    default = "evidence/policies/default.yaml"
    edit(evidence, default, "perfdb/policy/v2", "perfdb/policy/v1")
    edit(evidence, default, "\nthrottled: refuse", "")
    text = (evidence.path / default).read_text()
    kept, _, rest = text.partition("  extrapolation:\n")
    after = rest.partition("\n\n")[2]
    evidence.write(default, f"{kept}\n{after}".encode())
    commit_plan(evidence)
    lock = lock_of(evidence)
    edit(evidence, default, "perfdb/policy/v1", "perfdb/policy/v2")
    evidence.commit("version 2")
    found = verification(evidence, lock)
    assert (found.verdict, found.fingerprint, found.result) == ("equal", (), ())
    assert lock_of(evidence).policy.digest != lock.policy.digest


CHANGES: dict[str, tuple[Callable[[dict[str, Any]], Any], dict[str, list[str]]]] = {
    "measured value": (scale(0, 1 + 1e-13), {"small": ["answer/value"]}),
    "calculated value": (scale(2, 1 + 1e-9), {"unmeasured": ["answer/value"]}),
    "record": (
        lambda value: first(value).update(record_ids=["0" * 64 + "#1"]),
        {"small": ["answer/record_ids"]},
    ),
    "method": (
        lambda value: first(value).update(method="analytical"),
        {"small": ["answer/method"]},
    ),
    "code": (
        lambda value: value["queries"][0].update(code="other"),
        {"small": ["code"]},
    ),
    "answer gone": (
        lambda value: value["queries"][0].update(code="no-answer", answer=None),
        {"small": ["code"]},
    ),
    "multiplicity": (
        lambda value: value["queries"][0].update(multiplicity=4),
        {"small": ["multiplicity"]},
    ),
    "bound": (
        lambda value: first(value)["uncertainty"].update(lower=0.001),
        {"small": ["answer/uncertainty/lower"]},
    ),
    "conflicts": (
        lambda value: first(value)["diagnostics"].update(conflicts=1),
        {"small": ["answer/diagnostics/conflicts"]},
    ),
    "evidence read": (
        lambda value: first(value).update(
            provider_revision=first(value)["provider_revision"].partition("+")[0] + "+0"
        ),
        {"small": ["answer/provider_revision"]},
    ),
    "name": (lambda value: value["queries"][0].update(name="tiny"), {"tiny": ["name"]}),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_lock_that_says_something_else_differs(evidence: Evidence, name: str) -> None:
    change, expected = CHANGES[name]
    commit_plan(evidence)
    found = verification(evidence, forged(lock_of(evidence), change))
    assert found.verdict == "differs"
    assert differing(found) == expected


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (lambda value: value["trees"].update(evidence="0" * 40), "trees/evidence"),
        (lambda value: value["trees"].pop("pipelines"), "trees/pipelines"),
        (lambda value: value.update(vocabulary="sha256:" + "0" * 64), "vocabulary"),
        (lambda value: value["policy"].update(digest="sha256:" + "0" * 64), "policy"),
        (lambda value: value["plan"].update(description="Another."), "plan"),
        (lambda value: value["queries"].pop(), "queries/unmeasured"),
    ],
)
def test_a_lock_of_another_fingerprint_differs(
    evidence: Evidence, change: Callable[[dict[str, Any]], Any], field: str
) -> None:
    commit_plan(evidence)
    found = verification(evidence, forged(lock_of(evidence), change))
    assert found.verdict == "differs"
    assert field in [item.field for item in found.fingerprint]


def test_a_composed_number_that_differs_is_found(evidence: Evidence) -> None:
    commit_plan(evidence)
    lock = forged(lock_of(evidence), lambda value: value["result"].update(value=1.0))
    found = verification(evidence, lock)
    assert (found.verdict, differing(found)) == ("differs", {})
    assert [item.field for item in found.result or ()] == ["value"]


def test_last_bits_of_a_calculated_value_may_differ(evidence: Evidence) -> None:
    commit_plan(evidence)
    lock = forged(lock_of(evidence), scale(2, 1 + 5e-13))
    found = verification(evidence, lock)
    assert found.verdict == "equal"
    assert 4e-13 < found.largest_difference < 6e-13


@pytest.mark.parametrize("revision", ["recorded/99+abc", "oracle/1+abc"])
def test_an_unknown_provider_revision_is_unavailable(evidence: Evidence, revision: str) -> None:
    commit_plan(evidence)
    lock = forged(lock_of(evidence), lambda value: first(value).update(provider_revision=revision))
    found = verification(evidence, lock)
    assert (found.verdict, found.result) == ("unavailable", None)
    verdicts = {query.name: query.verdict for query in found.queries}
    assert verdicts == {"small": "unavailable", "large": "equal", "unmeasured": "equal"}
    assert found.queries[0].code == "unknown-provider-revision"


def test_another_winner_under_other_provider_revisions_is_unavailable(evidence: Evidence) -> None:
    """A version that this perfdb lacks may have had no answer where this one's has."""

    def change(value: dict[str, Any]) -> None:
        value["revisions"]["analytical"] = "analytical/99+abc"
        value["queries"][2].update(code="no-admissible-evidence", answer=None)

    commit_plan(evidence)
    found = verification(evidence, forged(lock_of(evidence), change))
    assert found.verdict == "unavailable"
    verdicts = {query.name: query.verdict for query in found.queries}
    assert verdicts == {"small": "equal", "large": "equal", "unmeasured": "unavailable"}
    assert "analytical/99" in str(found.queries[2].reason)


def test_a_commit_that_a_shallow_clone_lacks_is_unavailable(
    evidence: Evidence, tmp_path: Path
) -> None:
    commit_plan(evidence)
    lock = lock_of(evidence)
    evidence.commit("one more")
    clone = tmp_path / "clone"
    evidence.git("clone", "--quiet", "--depth", "1", f"file://{evidence.path}", str(clone))
    with pytest.raises(RepositoryUnavailableError, match=lock.commit) as caught:
        verification(evidence, lock, clone)
    assert "--unshallow" in str(caught.value.remedy)


def test_a_pruned_commit_is_unavailable(evidence: Evidence) -> None:
    evidence.git("checkout", "--quiet", "-b", "draft")
    commit_plan(evidence)
    lock = lock_of(evidence)
    evidence.git("checkout", "--quiet", "main")
    evidence.git("branch", "--quiet", "-D", "draft")
    evidence.git("reflog", "expire", "--expire=now", "--all")
    evidence.git("gc", "--quiet", "--prune=now")
    with pytest.raises(RepositoryUnavailableError, match=lock.commit):
        verification(evidence, lock)


def test_a_missing_blob_makes_its_queries_unavailable(evidence: Evidence) -> None:
    commit = commit_plan(evidence)
    lock = lock_of(evidence)
    path = next(
        line
        for line in evidence.git("ls-tree", "-r", "--name-only", commit).splitlines()
        if line.startswith("evidence/records/")
    )
    blob = evidence.git("rev-parse", f"{commit}:{path}")
    (evidence.path / ".git/objects" / blob[:2] / blob[2:]).unlink()
    found = verification(evidence, lock)
    verdicts = {query.name: query.verdict for query in found.queries}
    assert verdicts == {"small": "unavailable", "large": "unavailable", "unmeasured": "equal"}
    assert found.queries[0].code == "object-missing"
    assert found.verdict == "unavailable"


# --- locks that are no locks ---


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        (b'"small"', b'"tiny"', "lock-digest"),
        (b'"multiplicity": 3', b'"multiplicity": 30', "lock-digest"),
        (b"perfdb/plan-lock/v1", b"perfdb/plan-lock/v9", "unknown-version"),
        (b"perfdb/plan-lock/v1", b"perfdb/plan/v1", "wrong-kind"),
        (b'"digest": "sha256:', b'"digest": "md5:', "schema-violation"),
    ],
)
def test_an_edited_lock_is_refused(evidence: Evidence, old: bytes, new: bytes, code: str) -> None:
    commit_plan(evidence)
    content = lock_bytes(lock_of(evidence))
    assert old in content
    with pytest.raises(InvalidInputError) as caught:
        read_plan_lock(content.replace(old, new), document="lock")
    assert caught.value.code == code


def test_a_lock_whose_plan_was_changed_is_refused(evidence: Evidence) -> None:
    """Even where the lock's own digest was written anew."""
    commit_plan(evidence)
    value = json.loads(lock_bytes(lock_of(evidence)))
    value["plan"]["description"] = "Another."
    value["digest"] = lock_digest(value)
    with pytest.raises(InvalidInputError, match="the plan in it has"):
        read_plan_lock(canonical_document(value), document="lock")

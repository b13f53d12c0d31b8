"""``perfdb plan``: show, lock, verify and diff, as a user runs them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.evidence import Evidence, envelope
from tests.plans.plan_evidence import (
    LOCK,
    MEASURED,
    SMALL,
    UNKNOWN,
    commit_plan,
    forged_bytes,
    plan,
    put_plan,
    query,
)


@pytest.fixture
def locked(evidence: Evidence) -> Evidence:
    """A commit with a plan, and its lock beside it, not committed."""
    commit_plan(evidence)
    assert evidence.perfdb("plan", "lock", "step").status == 0
    return evidence


# --- show ---


def test_show_prints_every_answer_and_the_total(evidence: Evidence) -> None:
    commit = commit_plan(evidence, MEASURED)
    result = evidence.perfdb("plan", "show", "step")
    assert (result.status, result.err) == (0, "")
    lines = result.out.splitlines()
    assert lines[0] == "step"
    small = next(line.split() for line in lines if line.startswith("small "))
    assert small[:4] == ["small", "3", "2.872", "ms"]
    assert small[-4:] == ["62.8", "%", "measured", "bench@7d47513"]
    assert "13.72 ms   total" in lines
    assert f"  commit       {commit}" in lines


def test_show_names_what_is_missing(evidence: Evidence) -> None:
    commit_plan(evidence, plan(query("small", SMALL), query("odd", UNKNOWN)))
    result = evidence.perfdb("plan", "show", "step")
    assert result.status == 4
    assert "no total" in result.out
    assert "odd          no answer (no-admissible-evidence)" in result.out
    printed = evidence.perfdb("plan", "show", "step", "--json")
    data = envelope(printed)["data"]
    assert (printed.status, data["missing"], data["result"]["value"]) == (4, ["odd"], None)


def test_show_reads_the_work_tree_only_when_asked(evidence: Evidence) -> None:
    put_plan(evidence, MEASURED)
    result = evidence.perfdb("plan", "show", "step")
    assert result.status == 3
    assert "has no such plan" in result.err
    assert evidence.perfdb("plan", "show", "step", "--worktree").status == 0


# --- lock ---


def test_lock_writes_the_lock_beside_the_plan(evidence: Evidence) -> None:
    commit_plan(evidence)
    result = evidence.perfdb("plan", "lock", "step", "--json")
    data = envelope(result)["data"]
    lock = json.loads((evidence.path / LOCK).read_text(encoding="utf-8"))
    assert (result.status, data["path"], data["lock"]) == (0, LOCK, lock)
    assert evidence.perfdb("plan", "lock", "step").out.startswith(f"{LOCK}   unchanged")
    printed = evidence.perfdb("plan", "lock", "step", "--output", "-")
    assert printed.out.encode() == (evidence.path / LOCK).read_bytes()
    assert evidence.perfdb("check", "--worktree").status == 0


def test_a_lock_does_not_depend_on_the_environment(locked: Evidence, tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    result = locked.perfdb(
        "plan",
        "lock",
        "step",
        "--output",
        str(other),
        LC_ALL="C",
        TZ="Pacific/Kiritimati",
        OMP_NUM_THREADS="2",
        OPENBLAS_NUM_THREADS="2",
        PYTHONHASHSEED="7",
    )
    assert result.status == 0
    assert other.read_bytes() == (locked.path / LOCK).read_bytes()


def test_a_plan_without_an_answer_is_not_locked(evidence: Evidence) -> None:
    odd = {**UNKNOWN, "m": 32}
    commit_plan(evidence, plan(query("small", SMALL), query("odd", UNKNOWN), query("odder", odd)))
    result = evidence.perfdb("plan", "lock", "step")
    assert result.status == 4
    assert "odd (no-admissible-evidence), odder (no-admissible-evidence)" in result.err
    assert not (evidence.path / LOCK).exists()


@pytest.mark.parametrize("option", [("--worktree",), ("--policy-file", "policy.yaml")])
def test_a_lock_refuses_what_cannot_be_asked_again(
    evidence: Evidence, option: tuple[str, ...]
) -> None:
    result = evidence.perfdb("plan", "lock", "step", *option)
    assert result.status == 2
    assert f"{option[0]} has no place in a lock" in result.err


def test_a_bare_repository_needs_a_file_for_the_lock(evidence: Evidence, tmp_path: Path) -> None:
    commit_plan(evidence)
    bare = tmp_path / "bare.git"
    evidence.git("clone", "--quiet", "--bare", str(evidence.path), str(bare))
    assert evidence.perfdb("plan", "lock", "step", "--repo", str(bare)).status == 2
    lock = str(tmp_path / "lock.json")
    assert (
        evidence.perfdb("plan", "lock", "step", "--repo", str(bare), "--output", lock).status == 0
    )
    assert evidence.perfdb("plan", "verify", lock, "--repo", str(bare)).status == 0


# --- verify ---


def test_verify_looks_at_the_locked_commit_alone(locked: Evidence) -> None:
    locked.add_gemm("two", [(128, 10240, 8192, 9.9, 0.1, 20)])
    locked.commit("new records, and the lock")
    result = locked.perfdb("plan", "verify", "step")
    assert (result.status, result.err) == (0, "")
    assert result.out.splitlines()[0] == "step   equal"
    assert "0.0e+00 relative, of calculated values" in result.out


def test_verify_says_what_differs(locked: Evidence) -> None:
    lock = locked.path / LOCK
    lock.write_bytes(
        forged_bytes(
            lock.read_bytes(),
            lambda value: value["queries"][0]["answer"].update(value=0.003),
        )
    )
    result = locked.perfdb("plan", "verify", LOCK)
    assert result.status == 1
    assert "small   differs" in result.out
    assert "answer/value: 0.003 locked" in result.out
    printed = locked.perfdb("plan", "verify", LOCK, "--json")
    assert envelope(printed)["data"]["verdict"] == "differs"


def test_verify_says_what_is_no_longer_available(locked: Evidence, tmp_path: Path) -> None:
    lock = locked.path / LOCK
    lock.write_bytes(
        forged_bytes(
            lock.read_bytes(),
            lambda value: value["queries"][0]["answer"].update(provider_revision="recorded/99+0"),
        )
    )
    result = locked.perfdb("plan", "verify", LOCK, "--json")
    document = envelope(result)
    assert result.status == 5
    assert document["data"]["verdict"] == "unavailable"
    assert document["messages"][0]["code"] == "unknown-provider-revision"
    clone = tmp_path / "clone"
    locked.commit("one more")
    locked.git("clone", "--quiet", "--depth", "1", f"file://{locked.path}", str(clone))
    shallow = locked.perfdb("plan", "verify", str(lock), "--repo", str(clone))
    assert shallow.status == 5
    assert "git fetch --unshallow" in shallow.err


def test_an_edited_lock_is_refused_by_verify_and_check(locked: Evidence) -> None:
    lock = locked.path / LOCK
    lock.write_bytes(lock.read_bytes().replace(b'"multiplicity": 3,', b'"multiplicity": 30,'))
    result = locked.perfdb("plan", "verify", LOCK)
    assert result.status == 3
    assert "the lock was edited" in result.err
    locked.commit("the edited lock")
    checked = locked.perfdb("check", "--json")
    assert checked.status == 1
    codes = [finding["code"] for finding in envelope(checked)["data"]["findings"]]
    assert "lock-digest" in codes
    assert locked.perfdb("plan", "verify", "absent.json").status == 2


# --- diff, lists ---


def test_diff_shows_what_would_change_and_changes_nothing(locked: Evidence) -> None:
    before = (locked.path / LOCK).read_bytes()
    assert locked.perfdb("plan", "diff", LOCK).status == 0
    locked.add_gemm("two", [(3000, 10240, 8192, 30.0, 0.1, 20)])
    locked.commit("new records, and the lock")
    result = locked.perfdb("plan", "diff", "step")
    assert result.status == 1
    lines = result.out.splitlines()
    assert lines[0] == "step   1 of 3 answers change"
    assert any(line.startswith("unmeasured ") and "new-records" in line for line in lines)
    assert (locked.path / LOCK).read_bytes() == before
    put_plan(locked, MEASURED)
    locked.commit("another plan")
    assert "the locked one was asked" in locked.perfdb("plan", "diff", "step").err


def test_plans_and_locks_are_listed_and_shown(locked: Evidence) -> None:
    locked.commit("the lock")
    data = envelope(locked.perfdb("list", "--what", "plans", "--json"))["data"]
    entry = data["entries"][0]
    assert (entry["name"], entry["queries"], entry["locked"]) == ("step", 3, True)
    assert locked.perfdb("list", "--what", "plans").out.splitlines()[-1].startswith("1 plan at")
    assert envelope(locked.perfdb("show", "step", "--json"))["data"]["kind"] == "plan"
    lock = envelope(locked.perfdb("show", "step", "--kind", "plan-lock", "--json"))["data"]
    assert lock["document"]["plan"]["name"] == "step"
    assert "it has: step" in locked.perfdb("plan", "verify", "steps").err

"""The history of an answer: which commits changed it, and who brought what it rests on."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from perfdb_git.database import PerformanceDatabase, policy_from_file
from perfdb_git.review.history import AnswerHistorian, AnswerHistory
from perfdb_git.review.origins import EvidenceOrigin, answer_origins
from perfdb_git.review.tracked import TrackedQuery
from tests.resolution.conftest import GIT_ENVIRONMENT
from tests.review.conftest import ASKED, POLICY, Changes


def history_of(
    changes: Changes, *, at: Path | None = None, limit: int | None = None, **asked: Any
) -> AnswerHistory:
    database = PerformanceDatabase.open(at or changes.path, cache_directory=changes.cache)
    snapshot = database.at()
    query = snapshot.query({**ASKED, **asked})
    tracked = TrackedQuery(name="question", origin="plan", query=query)
    assert snapshot.commit is not None
    return AnswerHistorian(database, tracked, policy="default").history(
        snapshot.commit, limit=limit
    )


def origins_of(changes: Changes, history: AnswerHistory) -> tuple[EvidenceOrigin, ...]:
    database = changes.database()
    snapshot = database.at(history.head)
    policy = snapshot.policy().policy
    return answer_origins(database.store, snapshot, history.answer, policy, "a100_80g")


def commits(history: AnswerHistory) -> list[str]:
    return [step.commit for step in history.steps]


def reasons(history: AnswerHistory) -> list[list[str]]:
    return [[reason.kind for reason in step.reasons] for step in history.steps]


def unrelated(changes: Changes, *numbers: int) -> None:
    for number in numbers:
        changes.write("README.md", f"{number}\n".encode())
        changes.commit(f"readme {number}")


def test_every_step_with_its_reason(changes: Changes) -> None:
    unrelated(changes, 1, 2)
    added = changes.add([[128, 10240, 8192, 2.2, 0.02]], session="s2")
    second = changes.commit("a second session")
    changes.add([[8, 8, 8, 2.2, 0.02]], session="elsewhere", context={"device": "h100_80g"})
    changes.commit("another device")
    unrelated(changes, 3)
    changes.retract(changes.first)
    third = changes.commit("the first one was wrong")
    changes.edit(POLICY, (r"level: 0.9", "level: 0.5"))
    fourth = changes.commit("narrower intervals")
    found = history_of(changes)
    assert commits(found) == [fourth, third, second, changes.base]
    assert reasons(found) == [["policy"], ["retraction"], ["new-records"], []]
    values = [step.after.main.value for step in found.steps if step.after.main is not None]
    assert values == pytest.approx([2.2e-3, 2.2e-3, 2.1e-3, 2e-3])
    assert found.steps[0].changed == ("interval",)
    first = found.steps[-1]
    assert (first.before, first.summary, first.author) == (None, "base", "Ada Author")
    assert [item.kind for item in found.steps[2].documents] == ["record-set"]
    assert found.answer.record_ids == (f"{added}#0",)
    # Eight commits and the base; asked where the evidence of this series or its rules differ.
    assert (found.commits, found.evaluated, found.ends) == (8, 4, "root")


def test_a_limit(changes: Changes) -> None:
    for number in range(3):
        changes.add([[128, 10240, 8192, 3.0 + number, 0.02]], session=f"t{number}")
        changes.commit()
    found = history_of(changes, limit=2)
    assert (len(found.steps), found.ends) == (2, "limit")
    assert commits(found) == commits(history_of(changes))[:2]


def test_a_merge_is_one_step_and_its_sources_are_in_the_branch(
    changes: Changes, monkeypatch: pytest.MonkeyPatch
) -> None:
    changes.git("checkout", "-q", "-b", "topic")
    changes.add([[128, 10240, 8192, 2.2, 0.02]], session="s2")
    monkeypatch.setitem(GIT_ENVIRONMENT, "GIT_AUTHOR_NAME", "Bea Branch <bea>")
    monkeypatch.setitem(GIT_ENVIRONMENT, "GIT_AUTHOR_EMAIL", "bea@example.org")
    branch = changes.commit("measured again")
    unrelated(changes, 1)
    changes.git("checkout", "-q", "main")
    monkeypatch.setitem(GIT_ENVIRONMENT, "GIT_AUTHOR_NAME", "Max Maintainer")
    changes.write("docs.md", b"x\n")
    changes.commit("documentation")
    changes.git("merge", "-q", "--no-ff", "-m", "Merge topic", "topic")
    merge = changes.git("rev-parse", "HEAD")
    found = history_of(changes)
    assert commits(found) == [merge, changes.base]
    assert found.steps[0].is_merge
    assert found.commits == 3
    origins = {origin.session: origin for origin in origins_of(changes, found)}
    assert origins["s2"].commit == branch
    # Git itself leaves the brackets out of a name.
    assert origins["s2"].author == "Bea Branch bea"
    assert origins["s2"].summary == "measured again"
    assert origins["s1"].commit == changes.base
    assert [len(origin.record_ids) for origin in origins.values()] == [1, 1]


def test_sources_of_models(changes: Changes) -> None:
    found = history_of(changes, m=384)
    (profile,) = origins_of(changes, found)
    assert (profile.kind, profile.commit) == ("system-profile", changes.base)
    changes.bring_calibration()
    brought = changes.commit("learn")
    changes.promote()
    changes.commit("promote")
    found = history_of(changes, m=384)
    assert reasons(found) == [["calibration"], []]
    (calibration,) = origins_of(changes, found)
    assert (calibration.kind, calibration.commit) == ("calibration", brought)


def clone(changes: Changes, target: Path, *options: str) -> Path:
    command = ["git", "clone", "-q", *options, f"file://{changes.path}", str(target)]
    subprocess.run(command, check=True, env=GIT_ENVIRONMENT, capture_output=True)
    return target


def test_a_shallow_clone_ends_early(changes: Changes, tmp_path: Path) -> None:
    changes.add([[128, 10240, 8192, 2.2, 0.02]], session="s2")
    changes.commit()
    changes.add([[128, 10240, 8192, 2.4, 0.02]], session="s3")
    last = changes.commit()
    shallow = clone(changes, tmp_path / "shallow", "--depth", "2")
    found = history_of(changes, at=shallow)
    assert (commits(found), found.ends, found.commits) == ([last], "shallow", 2)
    database = PerformanceDatabase.open(shallow, cache_directory=changes.cache)
    snapshot = database.at()
    policy = snapshot.policy().policy
    origins = answer_origins(database.store, snapshot, found.answer, policy, "a100_80g")
    assert {o.session: o.commit for o in origins} == {"s1": None, "s2": None, "s3": last}


def test_a_bare_repository(changes: Changes, tmp_path: Path) -> None:
    bare = clone(changes, tmp_path / "bare.git", "--bare")
    assert history_of(changes, at=bare) == history_of(changes)


def test_broken_evidence_on_the_way(changes: Changes) -> None:
    changes.write("evidence/records/a100_80g/gemm/broken.json", b"{]")
    broken = changes.commit("broken")
    (changes.path / "evidence/records/a100_80g/gemm/broken.json").unlink()
    repaired = changes.commit("repaired")
    found = history_of(changes)
    assert commits(found) == [repaired, broken, changes.base]
    assert found.steps[1].after.reason.startswith("the evidence of the commit is invalid")
    assert reasons(found) == [[], [], []]


def test_before_the_evidence_there_was_no_answer(changes: Changes) -> None:
    changes.git("checkout", "-q", "--orphan", "new")
    changes.git("rm", "-r", "-q", "--cached", ".")
    changes.git("commit", "-q", "--allow-empty", "-m", "nothing")
    full = changes.commit("all of it")
    found = history_of(changes)
    assert commits(found) == [full]
    (step,) = found.steps
    assert step.before is not None
    assert (step.before.code, step.changed) == ("no-vocabulary", ("answer",))


def test_an_answer_that_comes_and_goes(changes: Changes) -> None:
    asked = {"device": "h100_80g", "dtype": "int8", "m": 7}
    assert history_of(changes, **asked).steps == ()
    changes.add([[7, 10240, 8192, 2.2, 0.02]], session="h", context={**asked_context(asked)})
    came = changes.commit()
    changes.git("rm", "-q", "-r", "evidence/records/h100_80g")
    went = changes.commit()
    found = history_of(changes, **asked)
    assert commits(found) == [went, came]
    assert reasons(found) == [["removed-records"], ["new-records"]]
    assert not found.answer.is_resolved


def asked_context(asked: dict[str, Any]) -> dict[str, Any]:
    return {name: asked[name] for name in ("device", "dtype")}


def test_ages_are_judged_at_every_commit(changes: Changes, monkeypatch: pytest.MonkeyPatch) -> None:
    changes.git("rm", "-q", "-r", "evidence/records")
    measured = {"measured_at": "2025-06-01T00:00:00Z"}
    changes.add([[128, 10240, 8192, 2.2, 0.02]], session="old", source=measured)
    changes.edit(POLICY, (r"^limits:\n", "limits:\n  max_age_days: 30\n"))
    changes.commit()
    monkeypatch.setitem(GIT_ENVIRONMENT, "GIT_COMMITTER_DATE", "1760000000 +0000")
    changes.write("README.md", b"later\n")
    later = changes.commit()
    database = changes.database()
    query = database.at().query(ASKED)
    tracked = TrackedQuery(name="question", origin="plan", query=query)
    historian = AnswerHistorian(database, tracked, policy="default", ages_matter=True)
    found = historian.history(later)
    assert found.steps[0].commit == later
    assert reasons(found)[0] == ["age"]
    assert found.evaluated == found.commits == 3


def test_an_external_policy_is_the_same_everywhere(changes: Changes, tmp_path: Path) -> None:
    changes.edit(POLICY, (r"level: 0.9", "level: 0.5"))
    changes.commit()
    changes.edit(POLICY, (r"level: 0.5", "level: 0.8"))
    changes.commit()
    database = changes.database()
    outside = tmp_path / "mine.yaml"
    outside.write_bytes((changes.path / POLICY).read_bytes())
    snapshot = database.at()
    policy = policy_from_file(outside).policy
    tracked = TrackedQuery(name="question", origin="plan", query=snapshot.query(ASKED))
    assert snapshot.commit is not None
    found = AnswerHistorian(database, tracked, policy="mine", external={"mine": policy}).history(
        snapshot.commit
    )
    assert commits(found) == [changes.base]
    assert len(history_of(changes).steps) == 3

"""Workflows and hooks that `perfdb init` writes: linted, and every step of them run."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from perfdb_git.storage.repository_templates import (
    COMMENT_WORKFLOW,
    REVIEW_WORKFLOW,
    template_files,
)
from tests.cli.evidence import ROOT, Evidence
from tests.workflows.forge import BOT, Forge, Job

ROW = (128, 10240, 8192, 2.872, 0.1, 20)
MARK = "<!-- perfdb evidence review -->"
WORKFLOWS = sorted((ROOT / ".github/workflows").iterdir())


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Evidence:
    """What `perfdb init` makes, committed."""
    folder = tmp_path_factory.mktemp("made")
    evidence = Evidence(folder / "evidence", folder / "cache")
    result = evidence.perfdb("init", "evidence", at=folder)
    assert result.status == 0, result.err
    evidence.commit("start")
    return evidence


@pytest.fixture
def repository(made: Evidence, tmp_path: Path) -> Evidence:
    shutil.copytree(made.path, tmp_path / "evidence")
    copy = Evidence(tmp_path / "evidence", made.cache, clock=1_700_000_060)
    copy.add_gemm("one", [ROW])
    copy.commit("one session")
    return copy


@pytest.fixture
def forge(repository: Evidence, tmp_path: Path) -> Iterator[Forge]:
    repository.git("clone", "--quiet", "--bare", ".", str(tmp_path / "origin.git"))
    repository.git("remote", "add", "origin", str(tmp_path / "origin.git"))
    with Forge(tmp_path / "forge", tmp_path / "origin.git") as running:
        yield running


def workflow(repository: Evidence, path: str) -> dict[str, Any]:
    value: dict[str, Any] = yaml.safe_load((repository.path / path).read_text())
    return value


def run_steps(stated: dict[str, Any]) -> set[str]:
    return {
        f"{name}/{number}"
        for name, job in stated["jobs"].items()
        for number, step in enumerate(job["steps"])
        if "run" in step
    }


def propose(repository: Evidence, forge: Forge) -> dict[str, Any]:
    """Push what is uncommitted as pull request 7, and return the event."""
    base = repository.git("rev-parse", "HEAD")
    head = repository.commit("propose")
    repository.git("push", "--quiet", "origin", f"{head}:refs/pull/7/head")
    forge.heads["7"] = head
    pull_request = {"number": 7, "base": {"sha": base}, "head": {"sha": head}}
    return {
        "event_name": "pull_request",
        "event": {"pull_request": pull_request},
        "base_ref": "main",
        "sha": "0" * 40,  # the forge's own merge commit, which nothing here may read
    }


def commented(repository: Evidence, forge: Forge, head: str) -> Job:
    run = {"event": "pull_request", "head_sha": head, "id": 1}
    event = {"event_name": "workflow_run", "event": {"workflow_run": run}}
    return forge.run(workflow(repository, COMMENT_WORKFLOW), "comment", event)


def review(repository: Evidence, forge: Forge, event: dict[str, Any]) -> Job:
    shutil.rmtree(forge.artifacts, ignore_errors=True)
    return forge.run(workflow(repository, REVIEW_WORKFLOW), "review", event)


# --- what they do ---


def test_a_sound_change_passes_and_gets_one_comment(repository: Evidence, forge: Forge) -> None:
    repository.add_gemm("two", [(256, 10240, 8192, 5.1, 0.2, 20)])
    event = propose(repository, forge)
    job = review(repository, forge, event)
    assert job.passed, job.steps[-1].out
    assert job.executed == {
        step for step in run_steps(workflow(repository, REVIEW_WORKFLOW)) if "review/" in step
    }
    # The work tree is the base's: the proposal is there as Git objects only.
    assert not list(job.workspace.glob("evidence/records/*/*/two-*"))
    artifact = forge.artifacts / "evidence-review"
    written = {"comment.md", "findings.sarif", "number", "review.html"}
    assert {path.name for path in artifact.iterdir()} == written
    assert "gemm" in (artifact / "comment.md").read_text()
    head = forge.heads["7"]
    for _ in range(2):
        done = commented(repository, forge, head)
        assert done.passed, done.steps[-1].out
    (comment,) = forge.comments
    assert comment["body"] == f"{MARK}\n{(artifact / 'comment.md').read_text()}"
    assert [method for method, _ in forge.requests if method != "GET"] == ["POST", "PATCH"]


def test_a_bad_change_fails_and_is_still_explained(repository: Evidence, forge: Forge) -> None:
    (path,) = repository.path.glob("evidence/records/*/*/one-*.json")
    path.write_bytes(path.read_bytes().replace(b"2.872", b"1.872"))
    job = review(repository, forge, propose(repository, forge))
    assert not job.passed
    failed = job.step("Check the change")
    assert failed.status == 1
    assert "::error file=evidence/records/a100_80g/gemm/one-" in failed.out
    assert job.step("Write the findings and the effect on answers").status == 0
    assert (forge.artifacts / "evidence-review/findings.sarif").stat().st_size > 0


def test_all_evidence_is_checked_after_a_merge(repository: Evidence, forge: Forge) -> None:
    stated = workflow(repository, REVIEW_WORKFLOW)
    event = {"event_name": "push", "event": {}, "sha": repository.git("rev-parse", "HEAD")}
    job = forge.run(stated, "snapshot", event)
    assert job.passed, job.steps[-1].out
    assert job.executed == {step for step in run_steps(stated) if "snapshot/" in step}
    (path,) = repository.path.glob("evidence/records/*/*/one-*.json")
    path.write_bytes(path.read_bytes().replace(b"2.872", b"-2.872"))
    event["sha"] = repository.commit("break")
    repository.git("push", "--quiet", "origin", "HEAD:main")
    failed = forge.run(stated, "snapshot", event).step("Check all evidence")
    assert failed.status == 1 and "negative-metric" in failed.out


def artifact(forge: Forge, number: str, text: str) -> None:
    folder = forge.artifacts / "evidence-review"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "number").write_text(f"{number}\n")
    (folder / "comment.md").write_text(text)


def test_the_comment_is_updated_in_place(repository: Evidence, forge: Forge) -> None:
    head = forge.heads["7"] = repository.git("rev-parse", "HEAD")
    stranger = {"id": 1, "user": {"login": "mallory"}, "body": f"{MARK}\nmine"}
    other = {"id": 2, "user": {"login": BOT}, "body": "another workflow's"}
    forge.comments += [dict(stranger), dict(other)]
    for text in ("first", "second ü"):
        artifact(forge, "7", text)
        job = commented(repository, forge, head)
        assert job.passed, job.steps[-1].out
        assert job.executed == run_steps(workflow(repository, COMMENT_WORKFLOW))
    assert forge.comments[:2] == [stranger, other]
    (comment,) = forge.comments[2:]
    assert comment["body"] == f"{MARK}\nsecond ü"


def test_a_long_comment_is_cut(repository: Evidence, forge: Forge) -> None:
    head = forge.heads["7"] = repository.git("rev-parse", "HEAD")
    artifact(forge, "7", "ü" * 50_000)
    assert commented(repository, forge, head).passed
    body = forge.comments[0]["body"]
    assert 59_990 < len(body.encode()) <= 60_000
    assert body.endswith("ü")


@pytest.mark.parametrize("number", ["8", "7/../8", "", "7\n8", "-1"])
def test_an_artifact_names_only_its_own_pull_request(
    repository: Evidence, forge: Forge, number: str
) -> None:
    """The artifact comes from a run that the proposal could change."""
    forge.heads |= {"7": "1" * 40, "8": "2" * 40}
    artifact(forge, number, "spam")
    job = commented(repository, forge, "1" * 40)
    assert not job.passed
    assert forge.comments == []


# --- how they are written ---


def test_this_repository_uses_the_same_workflows() -> None:
    """The checker of a pull request here is the base's own package."""
    files = template_files(".")
    for path in (REVIEW_WORKFLOW, COMMENT_WORKFLOW):
        assert (ROOT / path).read_bytes() == files[path]


def test_init_writes_them(made: Evidence) -> None:
    for path, content in template_files().items():
        assert (made.path / path).read_bytes() == content
    assert b"@PERFDB@" not in b"".join(template_files().values())


def lint(*command: str) -> None:
    tool = Path(sys.executable).with_name(command[0])
    done = subprocess.run([tool, *command[1:]], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_workflows_are_valid(made: Evidence) -> None:
    files = [*WORKFLOWS, *sorted((made.path / ".github/workflows").iterdir())]
    lint("check-jsonschema", "--builtin-schema", "vendor.github-workflows", *map(str, files))


def test_workflows_are_safe(made: Evidence) -> None:
    """No template injection, no broad permission, no kept credential, no action by tag."""
    for folder in (ROOT, made.path):
        lint("zizmor", "--offline", "--no-progress", "--quiet", str(folder / ".github/workflows"))


def test_the_linter_of_safety_finds_something(tmp_path: Path) -> None:
    text = (ROOT / REVIEW_WORKFLOW).read_text()
    bad = text.replace(
        'pip install "$PERFDB"', "pip install ${{ github.event.pull_request.title }}"
    )
    assert bad != text
    path = tmp_path / "bad.yml"
    path.write_text(bad)
    with pytest.raises(AssertionError, match="template-injection"):
        lint("zizmor", "--offline", "--no-progress", "--quiet", str(path))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_pinned_by_commit_and_say_their_version(path: Path) -> None:
    lines = [line for line in path.read_text().splitlines() if "uses:" in line]
    pinned = re.compile(r"\s*(- )?uses: [\w./-]+@[0-9a-f]{40} # v[0-9]+\.[0-9]+\.[0-9]+")
    assert lines and all(pinned.fullmatch(line) for line in lines)


def test_only_the_comment_may_write(made: Evidence) -> None:
    for path in (REVIEW_WORKFLOW, COMMENT_WORKFLOW):
        stated = workflow(made, path)
        assert stated["permissions"] == {}
        for name, job in stated["jobs"].items():
            may_write = {key for key, level in job["permissions"].items() if level == "write"}
            assert may_write == ({"pull-requests"} if name == "comment" else set())


def hooks(path: Path) -> list[dict[str, Any]]:
    value = yaml.safe_load(path.read_text())
    return value if isinstance(value, list) else value["repos"][0]["hooks"]


@pytest.mark.parametrize("place", ["offered", "written"])
def test_hooks_run(place: str, repository: Evidence) -> None:
    """Hooks that this project offers, and the one that a new repository has."""
    offered = ROOT / ".pre-commit-hooks.yaml"
    path = offered if place == "offered" else repository.path / ".pre-commit-config.yaml"
    (record,) = repository.path.glob("evidence/records/*/*/one-*.json")
    sound = record.read_bytes()
    for hook in hooks(path):
        assert {"id", "name", "entry", "language", "files"} <= hook.keys()
        assert re.search(hook["files"], "evidence/records/a100_80g/gemm/one.json")
        assert hook["pass_filenames"] is False
        command, *arguments = shlex.split(hook["entry"])
        assert command == "perfdb"
        assert repository.perfdb(*arguments).status == 0
        if hook["id"] == "perfdb-check":
            record.write_bytes(sound.replace(b"2.872", b"-2.872"))
            assert repository.perfdb(*arguments).status == 1
            record.write_bytes(sound)

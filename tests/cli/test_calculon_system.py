"""`perfdb import calculon-system` and `perfdb export calculon-system`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.evidence import ROOT, Evidence, envelope

SYSTEMS = ROOT / "tests/workloads/systems"


@pytest.fixture
def repository(new_evidence: Callable[[], Evidence]) -> Evidence:
    made = new_evidence()
    made.commit("start")
    made.git("config", "user.name", "Ada Author")
    made.git("config", "user.email", "ada@example.org")
    return made


def add(repository: Evidence, *options: str, file: str = "a100_80e.json") -> None:
    result = repository.perfdb(
        "import", "calculon-system", str(SYSTEMS / file), "--device", "a100", *options
    )
    assert result.status == 0, result.err


def test_a_file_comes_back_as_it_was(repository: Evidence) -> None:
    add(repository, "--link-class", "nvlink", "--link-class", "infiniband", "--commit")
    assert repository.git("status", "--short") == ""
    assert repository.perfdb("check").status == 0
    exported = repository.perfdb("export", "calculon-system", "a100_80e")
    assert exported.status == 0, exported.err
    assert json.loads(exported.out) == json.loads((SYSTEMS / "a100_80e.json").read_text())
    data = envelope(repository.perfdb("export", "calculon-system", "a100_80e", "--json"))["data"]
    assert data["system"] == json.loads(exported.out)
    assert data["commit"] == repository.git("rev-parse", "HEAD")


def test_without_commit_only_the_work_tree_has_it(repository: Evidence) -> None:
    add(repository, "--name", "big", "--source-revision", "caa4b11", "--license", "Apache-2.0")
    assert repository.git("status", "--short") == "?? profiles/systems/big.json"
    profile = json.loads((repository.path / "profiles/systems/big.json").read_text())
    assert profile["device"] == "a100_80g"
    assert profile["sources"] == [
        {
            "pointer": "",
            "source": "Calculon system file a100_80e.json, revision caa4b11",
            "license": "Apache-2.0",
        }
    ]
    assert repository.perfdb("export", "calculon-system", "big").status == 3
    assert repository.perfdb("export", "calculon-system", "big", "--worktree").status == 0


def test_another_file_of_that_name_is_not_replaced(repository: Evidence) -> None:
    add(repository, "--name", "mine")
    before = (repository.path / "profiles/systems/mine.json").read_bytes()
    result = repository.perfdb(
        "import", "calculon-system", str(SYSTEMS / "a100_80g.json"), "--device", "a100",
        "--name", "mine",
    )  # fmt: skip
    assert result.status == 3
    assert (repository.path / "profiles/systems/mine.json").read_bytes() == before
    # The same content again is no news.
    add(repository, "--name", "mine")


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (("missing.json", "--device", "a100"), 2, "missing.json cannot be read"),
        ((str(SYSTEMS / "a100_80e.json"), "--device", "tpu9"), 2, "tpu9"),
        ((str(SYSTEMS / "a100_80e.json"), "--device", "a100", "--name", "A B"), 3, "/name"),
    ],
)
def test_a_wrong_import_writes_nothing(
    repository: Evidence, arguments: tuple[str, ...], status: int, words: str
) -> None:
    result = repository.perfdb("import", "calculon-system", *arguments)
    assert (result.status, words in result.err) == (status, True), result.err
    assert repository.git("status", "--short") == ""


def test_a_profile_with_unknowns_has_no_such_file(repository: Evidence) -> None:
    result = repository.perfdb("export", "calculon-system", "h200-141g-datasheet")
    assert result.status == 3
    assert "h200-141g-datasheet at /engines" in result.err


def test_a_broken_file_names_the_place(repository: Evidence, tmp_path: Path) -> None:
    value = json.loads((SYSTEMS / "a100_80e.json").read_text())
    value["mem1"]["MB_efficiency"].reverse()
    broken = tmp_path / "broken.json"
    broken.write_text(json.dumps(value))
    result = repository.perfdb("import", "calculon-system", str(broken), "--device", "a100")
    assert result.status == 3
    assert "broken.json at /mem1/MB_efficiency: the thresholds do not descend" in result.err

"""Writing retractions: what they name exists, and is not retracted yet."""

import json
from pathlib import Path
from typing import Any

import pytest

from perfdb_git.errors import UsageError
from perfdb_git.storage.retractions import build_retraction
from perfdb_git.storage.snapshot import EvidenceSnapshot


@pytest.fixture
def snapshot(evidence: Any, repository: Any, tmp_path: Path) -> EvidenceSnapshot:
    source = repository.source(repository.commit(evidence.files))
    return EvidenceSnapshot(source, cache_directory=tmp_path / "cache")


def test_retraction_of_a_row_by_prefix(
    snapshot: EvidenceSnapshot, evidence: Any, repository: Any
) -> None:
    sha = evidence.sha(evidence.path)
    path, content = build_retraction(
        snapshot,
        f"{sha[:12]}#2",
        " clocks were throttled\n",
        replacement=f"{sha[:8]}#1",
        retracted_on="2024-05-06",
    )
    assert json.loads(content) == {
        "schema": "perfdb/retraction/v1",
        "target": f"{sha}#2",
        "reason": "clocks were throttled",
        "replacement": f"{sha}#1",
        "retracted_on": "2024-05-06",
    }
    evidence.files[path] = content
    assert repository.check(repository.commit(evidence.files)) == ()


def test_retraction_of_a_whole_set_with_a_retracted_row(
    snapshot: EvidenceSnapshot, evidence: Any
) -> None:
    sha = evidence.sha(evidence.other)
    path, content = build_retraction(snapshot, sha, "all wrong")
    assert json.loads(content)["target"] == sha
    assert json.loads(content)["replacement"] is None
    assert path.startswith("evidence/retractions/")


@pytest.mark.parametrize(
    ("target", "options", "code"),
    [
        ("{set}", {"reason": " \n"}, "empty-reason"),
        ("ffffffffffffffff", {}, "unknown-id"),
        ("{set}#3", {}, "row-out-of-range"),
        ("{set}#01", {}, "bad-id"),
        ("{set}#", {}, "bad-id"),
        ("{set}#-1", {}, "bad-id"),
        ("{other}#0", {}, "already-retracted"),
        ("{set}", {"replacement": "{set}#0"}, "replaced-by-itself"),
        ("{set}#0", {"replacement": "{set}#0"}, "replaced-by-itself"),
        ("{set}", {"replacement": "{other}#0"}, "replacement-retracted"),
        ("{set}", {"replacement": "{other}#9"}, "row-out-of-range"),
        ("{set}", {"retracted_on": "2024-02-30"}, "bad-date"),
        ("{set}", {"retracted_on": "20240203"}, "bad-date"),
    ],
)
def test_refused_retraction(
    target: str, options: dict[str, str], code: str, snapshot: EvidenceSnapshot, evidence: Any
) -> None:
    names = {"set": evidence.sha(evidence.path), "other": evidence.sha(evidence.other)}
    filled = {key: text.format(**names) for key, text in options.items()}
    with pytest.raises(UsageError) as caught:
        build_retraction(snapshot, target.format(**names), filled.pop("reason", "wrong"), **filled)
    assert caught.value.code == code


def test_row_of_a_retracted_set(evidence: Any, repository: Any, tmp_path: Path) -> None:
    sha = evidence.sha(evidence.path)
    evidence.add_retraction(sha)
    source = repository.source(repository.commit(evidence.files))
    snapshot = EvidenceSnapshot(source, cache_directory=tmp_path / "cache")
    with pytest.raises(UsageError) as caught:
        build_retraction(snapshot, f"{sha}#0", "wrong")
    assert caught.value.code == "already-retracted"

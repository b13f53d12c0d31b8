"""A worker opens the commit that it is told, from its own clone and shared index files."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from perfdb_git.database import PerformanceDatabase
from perfdb_git.distribution.shared_segments import SharedSegments, index_names
from perfdb_git.distribution.snapshot_addresses import SnapshotAddress
from perfdb_git.errors import ClusterUnavailableError, UsageError
from perfdb_git.model.result import Resolution
from tests.cli.evidence import Evidence, make_evidence

pytest.importorskip("fsspec")

ASKED = {"operation": "gemm", "device": "a100_80g", "dtype": "float16", "n": 10240, "k": 8192}


@pytest.fixture
def evidence(tmp_path: Path) -> Evidence:
    made = make_evidence(tmp_path / "evidence", tmp_path / "cache")
    made.add_gemm("one", [(128, 10240, 8192, 2.872, 0.1, 20)])
    made.add_gemm("two", [(256, 10240, 8192, 5.1, 0.2, 20)])
    made.commit("two sessions")
    return made


@pytest.fixture
def shared(evidence: Evidence, tmp_path: Path) -> Path:
    """A folder with every index file of the snapshot."""
    store = SharedSegments(str(tmp_path / "shared"), evidence.cache)
    database = PerformanceDatabase.open(evidence.path, segment_store=store)
    assert store.publish(database.at().evidence) == 4
    assert store.publish(database.at().evidence) == 0
    return tmp_path / "shared"


def asked(path: Path, store: SharedSegments) -> tuple[Resolution, int]:
    """The answer of a machine with that store, and how many segments it had to make."""
    snapshot = PerformanceDatabase.open(path, jobs=1, segment_store=store).at()
    answer = snapshot.resolve(m=128, **ASKED)
    return answer, snapshot.evidence.index.segments_built


def test_index_files_come_from_the_shared_place(
    evidence: Evidence, shared: Path, tmp_path: Path
) -> None:
    store = SharedSegments(shared.as_uri(), tmp_path / "other")
    answer, built = asked(evidence.path, store)
    assert (built, store.warnings) == (0, ())
    # The catalogue, the folder's, and the two segments of the series.
    assert store.fetched == 4
    alone, built = asked(evidence.path, SharedSegments(str(tmp_path / "empty"), tmp_path / "third"))
    assert built == 2
    assert answer == alone
    # The next process of this machine has them in its cache directory.
    again = SharedSegments(str(tmp_path / "empty"), tmp_path / "other")
    assert asked(evidence.path, again) == (alone, 0)


def test_a_damaged_shared_file_is_made_from_the_clone(
    evidence: Evidence, shared: Path, tmp_path: Path
) -> None:
    expected, _ = asked(evidence.path, SharedSegments(str(shared), evidence.cache))
    for file in shared.rglob("*.*"):
        if file.is_file():
            content = bytearray(file.read_bytes())
            content[len(content) // 2] ^= 255
            file.write_bytes(content)
    answer, built = asked(evidence.path, SharedSegments(str(shared), tmp_path / "other"))
    assert (answer, built) == (expected, 2)


def test_a_place_that_fails_is_told_and_changes_nothing(evidence: Evidence, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    store = SharedSegments(str(tmp_path / "file"), tmp_path / "other")
    answer, built = asked(evidence.path, store)
    assert (answer.estimate is not None, built) == (True, 2)
    snapshot = PerformanceDatabase.open(evidence.path, segment_store=store).at()
    store.publish(snapshot.evidence)
    assert [message.code for message in store.warnings] == ["segments-unavailable"]


def test_a_new_commit_adds_only_its_own_files(
    evidence: Evidence, shared: Path, tmp_path: Path
) -> None:
    before = {file for file in shared.rglob("*") if file.is_file()}
    evidence.add_gemm("three", [(512, 10240, 8192, 9.5, 0.2, 20)])
    evidence.commit("a third session")
    store = SharedSegments(str(shared), evidence.cache)
    snapshot = PerformanceDatabase.open(evidence.path, segment_store=store).at()
    assert store.publish(snapshot.evidence) == 3
    after = {file for file in shared.rglob("*") if file.is_file()}
    assert before < after
    assert {str(file.relative_to(shared)) for file in after} > set(index_names(snapshot.evidence))


@pytest.mark.parametrize("url", ["nosuchkind://somewhere", "github://"])
def test_a_url_that_cannot_be_used_is_refused(url: str) -> None:
    with pytest.raises(UsageError) as raised:
        SharedSegments(url)
    assert raised.value.code == "bad-url"


def test_a_url_is_cloned_once_and_fetched_for_a_new_commit(
    evidence: Evidence, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PERFDB_CACHE_DIR", str(tmp_path / "worker"))
    url = evidence.path.as_uri()
    first = evidence.git("rev-parse", "HEAD")
    snapshot = SnapshotAddress(repository=url, commit=first).open()
    assert snapshot.resolve(m=128, **ASKED).estimate is not None
    second = evidence.commit("nothing new")
    assert SnapshotAddress(repository=url, commit=second).open().commit == second
    # What is there already needs no repository.
    shutil.move(evidence.path, tmp_path / "moved")
    assert SnapshotAddress(repository=url, commit=first).open().commit == first
    with pytest.raises(ClusterUnavailableError) as raised:
        SnapshotAddress(repository=url, commit="0" * 40).open()
    assert raised.value.code == "clone-failed"
    assert len(list((tmp_path / "worker/clones").iterdir())) == 1


def test_what_a_worker_lacks_is_said_without_the_url(
    evidence: Evidence, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PERFDB_CACHE_DIR", str(tmp_path / "worker"))
    cases = {
        str(evidence.path): "worker-lacks-commit",
        evidence.path.as_uri(): "worker-lacks-commit",
        str(tmp_path / "nothing"): "worker-without-repository",
        (tmp_path / "secret").as_uri(): "clone-failed",
    }
    for repository, code in cases.items():
        with pytest.raises(ClusterUnavailableError) as raised:
            SnapshotAddress(repository=repository, commit="0" * 40).open()
        assert raised.value.code == code
        assert "secret" not in str(raised.value)

"""One snapshot read from several places: work trees, clones, bare repositories, plain files."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from perfdb_git.errors import InvalidInputError, RepositoryUnavailableError
from perfdb_git.storage.git import GitStore
from perfdb_git.storage.snapshot import EvidenceSnapshot
from perfdb_git.storage.sources import GitSource, WorktreeSource
from tests.storage.evidence_fixtures import (
    everything,
    evidence_files,
    header,
    record_set,
    rows,
    snapshot_of,
)


@pytest.fixture
def evidence(new_repository: Callable[..., Any]) -> Any:
    made = new_repository()
    made.commit("evidence", evidence_files())
    made.git("gc", "--quiet")
    return made


def test_every_place_and_every_cache_give_equal_data(evidence: Any, tmp_path: Path) -> None:
    evidence.git("clone", "--quiet", "--bare", ".", str(tmp_path / "bare.git"))
    evidence.git("clone", "--quiet", ".", str(tmp_path / "clone"))
    evidence.git("worktree", "add", "--quiet", "--detach", str(tmp_path / "linked"))
    shared = tmp_path / "shared"
    wanted = everything(snapshot_of(evidence.path, shared))
    places = ("bare.git", "clone", "linked", "linked/evidence/records", "repository/profiles")
    for number, place in enumerate(places):
        for cache in (shared, tmp_path / f"own-{number}"):
            snapshot = snapshot_of(tmp_path / place, cache)
            assert everything(snapshot) == wanted
            assert snapshot.index.segments_built == (0 if cache is shared else 4)


def test_an_older_commit_gives_its_own_data(evidence: Any, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    old = everything(snapshot_of(evidence.path, cache))
    path, content = record_set(header(device="b200", session="later"), rows(3))
    evidence.commit("later", {path: content})
    assert path in everything(snapshot_of(evidence.path, cache))
    again = snapshot_of(evidence.path, cache, "HEAD~1")
    assert everything(again) == old
    assert "b200" not in {key.device for key in again.series_keys()}
    assert again.committer_time is not None
    assert again.committer_time < (snapshot_of(evidence.path, cache).committer_time or 0)


def test_a_work_tree_is_read_as_git_would_store_it(evidence: Any, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    script = evidence.path / "evidence/vocabulary.yaml"
    script.chmod(0o755)
    evidence.git("commit", "--quiet", "-am", "executable")
    (evidence.path / "evidence" / "empty" / "folder").mkdir(parents=True)
    committed = snapshot_of(evidence.path, cache)
    wanted = everything(committed)
    files = EvidenceSnapshot(WorktreeSource(evidence.path), cache_directory=cache)
    assert files.tree_ids() == committed.tree_ids()
    assert files.tree_ids()["schemas"] is None
    assert (files.commit, files.committer_time) == (None, None)
    assert everything(files) == wanted
    assert files.index.segments_built == 0
    store = GitStore.open(evidence.path)
    git = GitSource(store, store.resolve_revision("HEAD").commit)
    for folder in ("evidence", "evidence/records/a100", "profiles", "nowhere"):
        assert WorktreeSource(evidence.path).files(folder) == git.files(folder)
        assert WorktreeSource(evidence.path).object_id(folder) == git.object_id(folder)


def test_a_work_tree_shows_what_is_not_committed(evidence: Any, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    old = everything(snapshot_of(evidence.path, cache))
    path, content = record_set(header(session="draft"), rows(3))
    evidence.write(path, content)
    files = EvidenceSnapshot(WorktreeSource(evidence.path), cache_directory=cache)
    assert everything(files).keys() - old.keys() == {path}
    assert files.index.segments_built == 1
    assert everything(snapshot_of(evidence.path, cache)) == old


def test_a_work_tree_that_changes_is_refused(evidence: Any, tmp_path: Path) -> None:
    source = WorktreeSource(evidence.path)
    file = source.files("evidence/records")[0]
    assert source.read(file)
    (evidence.path / file.path).write_bytes(b"{}")
    with pytest.raises(RepositoryUnavailableError) as caught:
        source.read(file)
    assert caught.value.code == "worktree-changed"
    (evidence.path / file.path).unlink()
    with pytest.raises(RepositoryUnavailableError):
        source.read(file)
    with pytest.raises(RepositoryUnavailableError):
        WorktreeSource(tmp_path / "nowhere")


@pytest.mark.parametrize("place", ["evidence/records/link.json", "evidence/records/folder"])
def test_links_in_a_work_tree_are_refused(evidence: Any, place: str, tmp_path: Path) -> None:
    (tmp_path / "target").mkdir()
    (evidence.path / place).symlink_to(tmp_path / "target")
    with pytest.raises(InvalidInputError) as caught:
        WorktreeSource(evidence.path).files("evidence")
    assert caught.value.code == "symlink"


def test_a_linked_evidence_folder_is_refused(evidence: Any, tmp_path: Path) -> None:
    (evidence.path / "evidence").rename(tmp_path / "moved")
    (evidence.path / "evidence").symlink_to(tmp_path / "moved")
    for path in ("evidence/records", "evidence/vocabulary.yaml"):
        with pytest.raises(InvalidInputError) as caught:
            WorktreeSource(evidence.path).object_id(path)
        assert caught.value.code == "symlink"


@pytest.mark.parametrize("name", ["two words.json", "caf\u00e9.json", "-dash.json"])
def test_odd_names_in_a_work_tree_are_refused(evidence: Any, name: str) -> None:
    (evidence.path / "evidence" / "records" / name).write_bytes(b"{}")
    with pytest.raises(InvalidInputError) as caught:
        WorktreeSource(evidence.path).files("evidence")
    assert caught.value.code == "odd-name"


def test_equal_files_at_two_paths_count_once(evidence: Any, tmp_path: Path) -> None:
    path, content = record_set(header(session="copied"), rows(3))
    evidence.commit("twice", {path: content, "evidence/records/zzz/copy.json": content})
    found = everything(snapshot_of(evidence.path, tmp_path / "cache"))
    assert path in found
    assert "evidence/records/zzz/copy.json" not in found


def test_series_come_from_the_header_not_from_the_path(evidence: Any, tmp_path: Path) -> None:
    _, content = record_set(header(device="b200", operation="softmax"), rows(3))
    evidence.commit("misplaced", {"evidence/records/a100/gemm/misplaced.json": content})
    snapshot = snapshot_of(evidence.path, tmp_path / "cache")
    assert ("b200", "softmax") in {(key.device, key.operation) for key in snapshot.series_keys()}


def test_no_records_at_all(new_repository: Callable[..., Any], tmp_path: Path) -> None:
    made = new_repository()
    made.commit("nothing", {"README.md": b"hello\n"})
    snapshot = snapshot_of(made.path, tmp_path / "cache")
    assert snapshot.series_keys() == ()
    assert snapshot.retractions() == ()
    with pytest.raises(RepositoryUnavailableError, match="perfdb init") as caught:
        snapshot.vocabulary()
    assert caught.value.code == "no-vocabulary"
    assert snapshot.source.files("README.md/x") == ()

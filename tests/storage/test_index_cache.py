"""The cache may be empty, old, damaged, shared or unwritable: the data are the same."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from perfdb_git.errors import InvalidInputError, RepositoryUnavailableError
from perfdb_git.storage.cache_directory import (
    CACHE_VARIABLE,
    CacheDirectory,
    default_cache_directory,
)
from perfdb_git.storage.segment_store import INDEX_FORMAT
from tests.storage.evidence_fixtures import (
    everything,
    evidence_files,
    header,
    record_set,
    retraction,
    rows,
    snapshot_of,
)

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def evidence(new_repository: Callable[..., Any]) -> Any:
    made = new_repository()
    made.commit("evidence", evidence_files())
    return made


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def cached(cache: Path, kind: str) -> list[Path]:
    return sorted(path for path in cache.rglob(f"*.{kind}"))


def test_a_warm_cache_builds_nothing(evidence: Any, cache: Path) -> None:
    first = snapshot_of(evidence.path, cache)
    wanted = everything(first)
    assert first.index.segments_built == 4
    assert len(cached(cache, "segment")) == 4
    second = snapshot_of(evidence.path, cache)
    assert everything(second) == wanted
    assert second.index.segments_built == 0
    assert [path.name for path in cache.rglob(".*")] == []


def test_a_new_commit_builds_only_its_new_blobs(evidence: Any, cache: Path) -> None:
    everything(snapshot_of(evidence.path, cache))
    path, content = record_set(header(session="new"), rows(5, seed=99))
    evidence.commit("more", {path: content})
    later = snapshot_of(evidence.path, cache)
    found = everything(later)
    assert later.index.segments_built == 1
    assert path in found
    assert path not in everything(snapshot_of(evidence.path, cache, "HEAD~1"))


@pytest.mark.parametrize("place", [0, 9, 13, 17, 25, 60, -1, 0.3, 0.5, 0.8, 0.95])
@pytest.mark.parametrize("kind", ["segment", "directory", "catalogue"])
def test_a_flipped_byte_costs_time_only(
    evidence: Any, cache: Path, kind: str, place: float
) -> None:
    wanted = everything(snapshot_of(evidence.path, cache))
    for path in cached(cache, kind):
        content = bytearray(path.read_bytes())
        content[int(place * len(content)) if isinstance(place, float) else place] ^= 0x41
        path.unlink()
        path.write_bytes(content)
    assert everything(snapshot_of(evidence.path, cache)) == wanted
    assert everything(snapshot_of(evidence.path, cache)) == wanted


@pytest.mark.parametrize("content", [b"", b"x", b"garbage" * 1000, None])
@pytest.mark.parametrize("kind", ["segment", "directory", "catalogue", "json"])
def test_garbage_costs_time_only(
    evidence: Any, cache: Path, kind: str, content: bytes | None
) -> None:
    first = snapshot_of(evidence.path, cache)
    wanted = everything(first), first.vocabulary(), first.policy("default")
    assert cached(cache, kind)
    for path in cached(cache, kind):
        kept = path.read_bytes()
        path.unlink()
        path.write_bytes(kept[: len(kept) // 2] if content is None else content)
    second = snapshot_of(evidence.path, cache)
    assert (everything(second), second.vocabulary(), second.policy("default")) == wanted


def test_each_column_is_checked(evidence: Any, cache: Path) -> None:
    wanted = everything(snapshot_of(evidence.path, cache))
    path = cached(cache, "segment")[0]
    good = path.read_bytes()
    # The last 64-byte unit of each of the four columns of 20 numbers (160 bytes, 192 aligned).
    for column in range(4):
        content = bytearray(good)
        content[len(good) - 192 * (4 - column) + 80] ^= 1
        path.unlink()
        path.write_bytes(content)
        snapshot = snapshot_of(evidence.path, cache)
        assert everything(snapshot) == wanted
        assert snapshot.index.segments_built == 1
        assert path.read_bytes() == good


def test_deleted_files_are_made_again(evidence: Any, cache: Path) -> None:
    wanted = everything(snapshot_of(evidence.path, cache))
    directories, catalogues = cached(cache, "directory"), cached(cache, "catalogue")
    for path in [cached(cache, "segment")[1], *directories, *catalogues]:
        path.unlink()
        assert everything(snapshot_of(evidence.path, cache)) == wanted
    shutil.rmtree(cache)
    assert everything(snapshot_of(evidence.path, cache)) == wanted


def test_damage_found_by_an_open_snapshot_is_repaired(evidence: Any, cache: Path) -> None:
    wanted = everything(snapshot_of(evidence.path, cache))
    snapshot = snapshot_of(evidence.path, cache)
    views = [view for key in snapshot.series_keys() for view in snapshot.record_sets(key)]
    shutil.rmtree(cache / "index" / f"v{INDEX_FORMAT}" / "segments")
    assert all(view.dimension("m") is not None for view in views)
    assert everything(snapshot) == wanted


@pytest.mark.parametrize("as_file", [True, False])
def test_without_a_writable_cache_it_works_in_memory(
    evidence: Any, cache: Path, tmp_path: Path, as_file: bool
) -> None:
    wanted = everything(snapshot_of(evidence.path, tmp_path / "other"))
    if as_file:
        cache.write_bytes(b"a file stands where the directory should be")
    else:
        # Permissions do not bind the superuser, a file system without files does.
        cache = Path("/proc/perfdb-cache")
    snapshot = snapshot_of(evidence.path, cache)
    assert everything(snapshot) == wanted
    assert snapshot.vocabulary().name == "small"
    assert [warning.code for warning in snapshot.warnings] == ["cache-not-writable"]
    assert CACHE_VARIABLE in snapshot.warnings[0].text
    assert everything(snapshot) == wanted


def test_a_damaged_cache_that_cannot_be_written_is_passed_over(
    evidence: Any, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = everything(snapshot_of(evidence.path, cache))
    for kind in ("segment", "directory", "catalogue"):
        for path in cached(cache, kind):
            path.write_bytes(path.read_bytes()[:-1])

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "unlink", refuse)
    monkeypatch.setattr(CacheDirectory, "_write", refuse)
    snapshot = snapshot_of(evidence.path, cache)
    assert everything(snapshot) == wanted
    assert [warning.code for warning in snapshot.warnings] == ["cache-not-writable"]


def test_the_cache_directory_comes_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "mine"))
    assert default_cache_directory() == tmp_path / "mine"
    monkeypatch.delenv(CACHE_VARIABLE)
    assert default_cache_directory().name == "perfdb"


def test_progress_names_every_record_set(evidence: Any, cache: Path) -> None:
    seen: list[tuple[int, int, str]] = []
    snapshot = snapshot_of(evidence.path, cache, progress=lambda *step: seen.append(step))
    assert seen == []
    snapshot.series_keys()
    assert [step[:2] for step in seen] == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert len({label for _, _, label in seen}) == 4


def test_two_processes_build_at_once(
    new_repository: Callable[..., Any], cache: Path, tmp_path: Path
) -> None:
    made = new_repository()
    made.commit("evidence", evidence_files(sets=30, rows_each=200))
    script = (
        "import sys; from pathlib import Path\n"
        "from tests.storage.evidence_fixtures import everything, snapshot_of\n"
        "sys.stdin.readline()\n"
        "s = snapshot_of(Path(sys.argv[1]), Path(sys.argv[2]))\n"
        "print(len(everything(s)), s.index.segments_built)\n"
    )
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", script, str(made.path), str(cache)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
            env={"PYTHONPATH": str(ROOT), "HOME": str(tmp_path)},
            text=True,
        )
        for _ in range(3)
    ]
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write("go\n")
        worker.stdin.flush()
    outputs = [worker.communicate(timeout=60)[0].split() for worker in workers]
    assert [worker.returncode for worker in workers] == [0, 0, 0]
    assert [count for count, _ in outputs] == ["31"] * 3
    assert len(cached(cache, "segment")) == 30
    assert [path.name for path in cache.rglob(".*")] == []
    after = snapshot_of(made.path, cache)
    everything(after)
    assert after.index.segments_built == 0


def test_an_invalid_record_set_is_an_error_and_is_not_cached(evidence: Any, cache: Path) -> None:
    bad = b'{"schema": "perfdb/record-set/v1", "rows": [}'
    evidence.commit("bad", {"evidence/records/a100/gemm/bad.json": bad})
    for _ in range(2):
        with pytest.raises(InvalidInputError, match=r"records/a100/gemm/bad\.json"):
            everything(snapshot_of(evidence.path, cache))
    assert len(everything(snapshot_of(evidence.path, cache, "HEAD~1"))) == 5


def test_a_missing_blob_is_named(evidence: Any, cache: Path) -> None:
    path, content = record_set(header(session="lost"), rows(5))
    evidence.commit("more", {path: content})
    everything(snapshot_of(evidence.path, cache))
    blob = evidence.git("rev-parse", f"HEAD:{path}")
    evidence.loose(blob).unlink()
    # The index knows the numbers, and still they are not reported without their Git object.
    with pytest.raises(RepositoryUnavailableError) as caught:
        everything(snapshot_of(evidence.path, cache))
    assert caught.value.code == "object-missing"
    assert path in str(caught.value)


def test_a_retraction_needs_no_new_segment(evidence: Any, cache: Path) -> None:
    before = everything(snapshot_of(evidence.path, cache))
    path, (_, sha256, *_rest) = next(item for item in before.items() if item[0] != "digest")
    evidence.commit("retract", dict([retraction(f"{sha256}#3")]))
    snapshot = snapshot_of(evidence.path, cache)
    after = everything(snapshot)
    assert snapshot.index.segments_built == 0
    assert after["digest"] != before["digest"]
    assert [row for row, live in enumerate(after[path][6]) if not live] == [3]
    assert everything(snapshot_of(evidence.path, cache, "HEAD~1")) == before

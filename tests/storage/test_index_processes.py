"""Several processes build one index: equal results, and no harm by those that are killed."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from perfdb_git.errors import InvalidInputError
from perfdb_git.storage import segment_workers
from perfdb_git.storage.cache_collection import collect
from perfdb_git.storage.cache_files import own_files
from perfdb_git.storage.cache_leases import live_leases
from tests.storage.evidence_fixtures import everything, evidence_files, snapshot_of

ROOT = Path(__file__).resolve().parents[2]
SETS = 40


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from tests.storage.conftest import GitRepository

    made = GitRepository(tmp_path_factory.mktemp("repository"))
    made.git("init", "--quiet")
    made.commit("evidence", evidence_files(sets=SETS, rows_each=1000))
    return made.path


@pytest.fixture(scope="module")
def one_process(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a cache directory that one process filled."""
    cache = tmp_path_factory.mktemp("serial")
    snapshot_of(repository, cache, jobs=1).index.build()
    return cache


def contents(cache: Path) -> dict[str, bytes]:
    return {
        file.path.relative_to(cache).as_posix(): file.path.read_bytes()
        for file in own_files(cache)
        if file.writer is None
    }


def builder(repository: Path, cache: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "perfdb_git", "index", "build", "--jobs", "2"]
    return subprocess.Popen(
        [*command, "--repo", str(repository)],
        cwd=ROOT,
        env={**os.environ, "PERFDB_CACHE_DIR": str(cache), "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def children(process: int) -> list[int]:
    tasks = Path(f"/proc/{process}/task").glob("*/children")
    return [int(child) for task in tasks for child in task.read_text().split()]


@pytest.fixture
def own_workers() -> Callable[[], list[int]]:
    """Return the children of this process that a test has started: others may have some too."""
    before = set(children(os.getpid()))
    return lambda: [child for child in children(os.getpid()) if child not in before]


def wait_for(cache: Path, segments: int) -> None:
    for _ in range(2000):
        if sum(1 for _ in cache.rglob("*.segment*")) >= segments:
            return
        time.sleep(0.005)
    raise AssertionError("no builder made anything")


def wait_for_orphans(cache: Path) -> None:
    """Wait until this process is the only one that uses a cache directory."""
    for _ in range(2000):
        if len(live_leases(cache)) == 1:
            return
        time.sleep(0.005)
    raise AssertionError("a worker outlives its parent")


def test_processes_make_the_very_same_files(
    repository: Path, one_process: Path, tmp_path: Path
) -> None:
    seen: list[tuple[int, int]] = []
    snapshot = snapshot_of(
        repository, tmp_path, jobs=2, progress=lambda done, of, _: seen.append((done, of))
    )
    snapshot.index.build()
    assert contents(tmp_path) == contents(one_process)
    assert snapshot.index.segments_built == SETS
    assert seen == [(done, SETS) for done in range(1, SETS + 1)]


def test_the_segments_are_made_by_other_processes(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **_more: object) -> bytes:
        raise AssertionError("made here")

    monkeypatch.setattr("perfdb_git.storage.index_build.build_segment", refuse)
    snapshot = snapshot_of(repository, tmp_path, jobs=2)
    snapshot.index.build()
    assert snapshot.index.coverage().is_complete


def test_a_work_tree_is_built_in_processes_too(
    repository: Path, one_process: Path, tmp_path: Path
) -> None:
    from perfdb_git.storage.snapshot import EvidenceSnapshot
    from perfdb_git.storage.sources import WorktreeSource

    EvidenceSnapshot(WorktreeSource(repository), cache_directory=tmp_path, jobs=2).index.build()
    assert contents(tmp_path) == contents(one_process)


def test_little_work_stays_in_one_process(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[object] = []
    monkeypatch.setattr(segment_workers, "_Worker", lambda *given: started.append(given))
    monkeypatch.setattr(segment_workers, "usable_cpus", lambda: 2)
    assert sum(path.stat().st_size for path in repository.rglob("*.json")) < (
        segment_workers.FEWEST_BYTES
    )
    snapshot = snapshot_of(repository, tmp_path)
    snapshot.index.build()
    assert not started
    assert snapshot.index.segments_built == SETS


def test_what_a_dead_worker_leaves_is_made_here(
    repository: Path, one_process: Path, tmp_path: Path, own_workers: Callable[[], list[int]]
) -> None:
    def kill_workers(done: int, _of: int, _path: str) -> None:
        if done == 1:
            for child in own_workers():
                os.kill(child, signal.SIGKILL)

    snapshot_of(repository, tmp_path, jobs=2, progress=kill_workers).index.build()
    collect(tmp_path, None)
    assert contents(tmp_path) == contents(one_process)


def test_no_worker_can_start(
    repository: Path, one_process: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "no-interpreter"))
    snapshot_of(repository, tmp_path / "cache", jobs=2).index.build()
    assert contents(tmp_path / "cache") == contents(one_process)


def test_without_a_writable_cache_no_worker_is_started(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[object] = []
    monkeypatch.setattr(segment_workers, "_Worker", lambda *given: started.append(given))
    snapshot = snapshot_of(repository, Path("/proc/perfdb-cache"), jobs=2)
    snapshot.index.build()
    assert not started
    assert sum(item.record_sets for item in snapshot.series()) == SETS
    assert [warning.code for warning in snapshot.warnings] == ["cache-not-writable"]


def test_an_invalid_record_set_is_named_by_whoever_asked(
    new_repository: Callable[..., Any], tmp_path: Path
) -> None:
    made = new_repository()
    bad = {"evidence/records/a100/gemm/bad.json": b'{"schema": "perfdb/record-set/v1", "rows": [}'}
    made.commit("evidence", {**evidence_files(sets=6), **bad})
    with pytest.raises(InvalidInputError, match=r"records/a100/gemm/bad\.json"):
        snapshot_of(made.path, tmp_path, jobs=2).index.build()
    assert len(list(tmp_path.rglob("*.segment"))) == 6


@pytest.fixture
def builders(repository: Path, tmp_path: Path) -> Iterator[list[subprocess.Popen[str]]]:
    running = [builder(repository, tmp_path / "cache") for _ in range(4)]
    yield running
    for process in running:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def test_killed_builders_leave_nothing_broken(
    builders: list[subprocess.Popen[str]], repository: Path, one_process: Path, tmp_path: Path
) -> None:
    """Of four builders one is killed with its workers, one without, and one loses a worker."""
    cache = tmp_path / "cache"
    whole, parent, robbed, left_alone = builders
    wait_for(cache, 2)
    os.killpg(whole.pid, signal.SIGKILL)
    os.kill(parent.pid, signal.SIGKILL)
    for child in children(robbed.pid)[:1]:
        os.kill(child, signal.SIGKILL)
    for process in (robbed, left_alone):
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors
    snapshot = snapshot_of(repository, cache)
    assert everything(snapshot) == everything(snapshot_of(repository, one_process))
    assert snapshot.index.segments_built == 0
    wait_for_orphans(cache)
    collect(cache, None)
    assert not list(cache.rglob("*/.*"))
    assert contents(cache) == contents(one_process)


def test_killed_at_any_moment(repository: Path, one_process: Path, tmp_path: Path) -> None:
    for segments in (0, 1, 5, 20, 35):
        process = builder(repository, tmp_path)
        wait_for(tmp_path, segments)
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        wanted = contents(one_process)
        assert all(wanted[name] == content for name, content in contents(tmp_path).items())
    snapshot_of(repository, tmp_path).index.build()
    collect(tmp_path, None)
    assert not list(tmp_path.rglob("*/.*"))
    assert contents(tmp_path) == contents(one_process)
    assert snapshot_of(repository, tmp_path).index.verify().faults == ()


def test_workers_end_and_leave_nothing(
    repository: Path, tmp_path: Path, own_workers: Callable[[], list[int]]
) -> None:
    snapshot_of(repository, tmp_path, jobs=2).index.build()
    assert own_workers() == []
    assert [path.parent.name for path in tmp_path.rglob("*.lease")] == ["leases"]
    assert not list(tmp_path.rglob("*/.*"))


def test_an_interrupt_stops_the_workers(
    repository: Path, tmp_path: Path, own_workers: Callable[[], list[int]]
) -> None:
    def interrupt(_done: int, _of: int, _path: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        snapshot_of(repository, tmp_path, jobs=2, progress=interrupt).index.build()
    assert own_workers() == []


def test_workers_import_nothing_from_the_folder_they_are_started_in(
    repository: Path, tmp_path: Path
) -> None:
    trap = "import pathlib; pathlib.Path(__file__).with_name('sprung').touch()\n"
    for name in ("json", "numpy", "perfdb_git"):
        (tmp_path / f"{name}.py").write_text(trap)
    command = [sys.executable, "-P", "-m", "perfdb_git", "index", "build", "--jobs", "2"]
    environment = {**os.environ, "PERFDB_CACHE_DIR": str(tmp_path / "cache")}
    subprocess.run(
        [*command, "--repo", str(repository)],
        cwd=tmp_path,
        env={**environment, "PYTHONPATH": str(ROOT)},
        check=True,
        capture_output=True,
    )
    assert len(list(tmp_path.rglob("*.segment"))) == SETS
    assert not (tmp_path / "sprung").exists()


def test_usable_cpus_follow_affinity_and_quota(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3, 4, 5}, raising=False)
    quota = tmp_path / "cpu.max"
    monkeypatch.setattr(segment_workers, "_QUOTA", quota)
    assert segment_workers.usable_cpus() == 6
    for text, usable in (("max 100000", 6), ("250000 100000", 2), ("50000 100000", 1)):
        quota.write_text(text + "\n")
        assert segment_workers.usable_cpus() == usable

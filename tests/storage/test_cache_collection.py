"""Collecting: litter and old formats go, above the limit the unused goes, what is in use stays."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from perfdb_git.errors import UsageError
from perfdb_git.storage.cache_collection import clear_cache, collect
from perfdb_git.storage.cache_directory import CacheDirectory
from perfdb_git.storage.cache_files import cache_usage
from perfdb_git.storage.cache_leases import live_leases
from perfdb_git.storage.cache_limit import DEFAULT_LIMIT, LIMIT_VARIABLE, cache_limit, parse_size
from perfdb_git.storage.segment_store import segment_name
from tests.storage.evidence_fixtures import everything, evidence_files, snapshot_of

ROOT = Path(__file__).resolve().parents[2]
YEAR = 365 * 86_400.0

WRITER = """
import sys
from pathlib import Path
from perfdb_git.storage.cache_directory import CacheDirectory
root, name = Path(sys.argv[1]), sys.argv[2]
def stop(self, target):
    print("half-way", flush=True)
    sys.stdin.readline()
    raise SystemExit
Path.replace = stop
CacheDirectory(root).store(name, b"never renamed")
"""
READER = """
import sys
from pathlib import Path
from perfdb_git.storage.cache_directory import CacheDirectory
buffer = CacheDirectory(Path(sys.argv[1])).load(sys.argv[2])
print(len(buffer), flush=True)
sys.stdin.readline()
print(bytes(buffer) == b"x" * 1000, flush=True)
"""


@contextmanager
def process(script: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Run a script up to its first line of output."""
    running = subprocess.Popen(
        [sys.executable, "-c", script, *arguments],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert running.stdout is not None
    assert running.stdout.readline()
    try:
        yield running
    finally:
        running.kill()
        running.communicate()


def put(root: Path, number: int, size: int, *, age: float = YEAR) -> Path:
    """Write an index file that was used last so long ago, as a process that has ended would."""
    path = root / segment_name(f"{number:040x}")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x" * size)
    then = time.time() - age
    os.utime(path, (then, then))
    return path


def test_what_was_unused_for_longest_goes_first(tmp_path: Path) -> None:
    paths = [put(tmp_path, number, 1000, age=YEAR - number) for number in range(10)]
    done = collect(tmp_path, 4500)
    assert [path.exists() for path in paths] == [False] * 6 + [True] * 4
    assert (done.evicted, done.freed, done.size, done.limit) == (6, 6000, 4000, 4500)
    assert collect(tmp_path, 4500).evicted == 0
    assert collect(tmp_path, None).evicted == 0
    assert collect(tmp_path, 0).evicted == 4


def test_use_makes_a_file_young(tmp_path: Path) -> None:
    old, older = put(tmp_path, 1, 1000), put(tmp_path, 2, 1000, age=2 * YEAR)
    script = (
        "import sys; from pathlib import Path\n"
        "from perfdb_git.storage.cache_directory import CacheDirectory\n"
        "CacheDirectory(Path(sys.argv[1])).load(sys.argv[2]); print('read')\n"
    )
    name = older.relative_to(tmp_path).as_posix()
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path), name], cwd=ROOT, capture_output=True
    )
    assert done.stdout == b"read\n"
    assert collect(tmp_path, 1500).evicted == 1
    assert older.exists()
    assert not old.exists()


def test_what_a_running_process_uses_stays(tmp_path: Path) -> None:
    used, idle = put(tmp_path, 1, 1000, age=2 * YEAR), put(tmp_path, 2, 1000)
    with process(READER, str(tmp_path), used.relative_to(tmp_path).as_posix()) as reader:
        done = collect(tmp_path, 0)
        assert (done.evicted, done.in_use) == (1, 1000)
        assert used.exists()
        assert not idle.exists()
        clear_cache(tmp_path)  # removes even that, and the reader does not notice
        assert not used.exists()
        assert reader.communicate("go\n")[0] == "True\n"
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_dead_process_uses_nothing(tmp_path: Path) -> None:
    used = put(tmp_path, 1, 1000, age=2 * YEAR)
    with process(READER, str(tmp_path), used.relative_to(tmp_path).as_posix()) as reader:
        assert len(live_leases(tmp_path)) == 1
        reader.send_signal(signal.SIGKILL)
        reader.wait()
        assert live_leases(tmp_path) == []
        assert collect(tmp_path, 0).evicted == 1
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_half_written_files_of_the_dead_are_litter(tmp_path: Path) -> None:
    name = segment_name("a" * 40)
    with (
        process(WRITER, str(tmp_path), name) as living,
        process(WRITER, str(tmp_path), name) as dead,
    ):
        assert len(list(tmp_path.rglob("*/.*.segment.*"))) == 2
        dead.send_signal(signal.SIGKILL)
        dead.wait()
        assert cache_usage(tmp_path).unfinished == 2
        assert collect(tmp_path, 0).unfinished == 1
        assert len(list(tmp_path.rglob("*/.*.segment.*"))) == 1
        living.send_signal(signal.SIGKILL)
        living.wait()
        assert collect(tmp_path, None).unfinished == 1
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_older_formats_and_foreign_files(tmp_path: Path) -> None:
    blob = "b" * 40
    kept = [put(tmp_path, 1, 10), tmp_path / "index/v2/segments/bb/notes.txt"]
    kept += [tmp_path / "mine.segment", tmp_path / "documents/letter.json"]
    kept.append(tmp_path / f"index/v99/segments/bb/{blob}.segment")
    gone = [
        tmp_path / f"index/v1/segments/bb/{blob}.segment",
        tmp_path / f"index/v1/catalogues/{'c' * 64}.catalogue",
    ]
    for path in (*kept[1:], *gone):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"something")
    assert collect(tmp_path, None).outdated == 2
    assert all(path.exists() for path in kept)
    assert not any(path.exists() for path in gone)
    assert not (tmp_path / "index/v1").exists()


def test_an_evicted_index_is_made_again(
    new_repository: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = new_repository()
    made.commit("evidence", evidence_files())
    cache = tmp_path / "cache"
    wanted = everything(snapshot_of(made.path, cache))
    snapshot = snapshot_of(made.path, cache)
    views = [view for key in snapshot.series_keys() for view in snapshot.record_sets(key)]
    monkeypatch.setattr("perfdb_git.storage.cache_collection.live_leases", lambda _: [])
    assert collect(cache, 0).evicted > 4
    assert all(view.dimension("m") is not None for view in views)
    assert everything(snapshot) == wanted
    assert everything(snapshot_of(made.path, cache)) == wanted


def test_builds_keep_the_limit(
    new_repository: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = new_repository()
    made.commit("evidence", evidence_files())
    idle = put(tmp_path, 1, 5000)
    monkeypatch.setenv(LIMIT_VARIABLE, "100 B")
    wanted = snapshot_of(made.path, tmp_path).series()
    assert not idle.exists()
    # Its own files are above the limit, and in use.
    assert cache_usage(tmp_path).segments == 4
    late = put(tmp_path, 2, 5000)
    made.commit("a word", {"README.md": b"words"})
    assert snapshot_of(made.path, tmp_path).series() == wanted
    assert late.exists()


def test_a_folder_that_vanishes_while_it_is_written_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = CacheDirectory(tmp_path)
    name = segment_name("d" * 40)
    replace = Path.replace

    def clear_first(self: Path, target: Path) -> Path:
        monkeypatch.setattr(Path, "replace", replace)
        clear_cache(tmp_path)
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", clear_first)
    cache.store(name, b"content")
    assert (tmp_path / name).read_bytes() == b"content"
    assert cache.warnings == ()


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0", 0),
        ("500MB", 500_000_000),
        ("4GiB", 4 * 1024**3),
        ("1.5 kB", 1500),
        ("2KiB", 2048),
        ("none", None),
    ],
)
def test_sizes(text: str, size: int | None) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "much", "-1", "4 Gib", "1e9", "5 B B", "None"])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(UsageError, match="is no size"):
        parse_size(text)


def test_the_limit_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(LIMIT_VARIABLE, raising=False)
    assert cache_limit() == DEFAULT_LIMIT
    monkeypatch.setenv(LIMIT_VARIABLE, "10 MB")
    assert cache_limit() == 10_000_000
    monkeypatch.setenv(LIMIT_VARIABLE, "none")
    assert cache_limit() is None


def test_a_process_holds_few_leases_open(tmp_path: Path) -> None:
    opened = Path("/proc/self/fd")
    before = sum(1 for _ in opened.iterdir())
    for number in range(100):
        CacheDirectory(tmp_path / str(number)).store(segment_name("a" * 40), b"content")
    assert sum(1 for _ in opened.iterdir()) - before <= 16
    assert live_leases(tmp_path / "0") == []
    assert len(live_leases(tmp_path / "99")) == 1

"""Adding files: all of them or none, and never over another one."""

import errno
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from perfdb_git.errors import InvalidInputError, RepositoryUnavailableError
from perfdb_git.storage import append
from perfdb_git.storage.append import NewFiles, write_new_files

FILES = {
    "evidence/records/a100/gemm/one.json": b"one\n",
    "evidence/records/h100/gemm/two.json": b"two\n",
    "evidence/manifests/three.json": b"three\n",
}


def state(root: Path) -> dict[str, bytes | None]:
    return {
        str(path.relative_to(root)): path.read_bytes() if path.is_file() else None
        for path in sorted(root.rglob("*"))
    }


def test_files_are_written_with_their_directories(tmp_path: Path) -> None:
    assert write_new_files(tmp_path, FILES) == tuple(sorted(FILES))
    assert {p: c for p, c in state(tmp_path).items() if c is not None} == FILES
    assert (tmp_path / "evidence/manifests/three.json").stat().st_mode & 0o777 == 0o644


def test_a_file_with_equal_bytes_is_left_alone(tmp_path: Path) -> None:
    write_new_files(tmp_path, FILES)
    before = (tmp_path / "evidence/manifests/three.json").stat()
    assert write_new_files(tmp_path, {**FILES, "evidence/four.json": b"4"}) == (
        "evidence/four.json",
    )
    after = (tmp_path / "evidence/manifests/three.json").stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


def test_a_file_with_other_bytes_is_an_error_and_nothing_is_written(tmp_path: Path) -> None:
    write_new_files(tmp_path, {"evidence/records/h100/gemm/two.json": b"older\n"})
    before = state(tmp_path)
    with pytest.raises(InvalidInputError) as caught:
        write_new_files(tmp_path, FILES)
    assert caught.value.code == "file-exists"
    assert state(tmp_path) == before


def test_files_that_come_one_by_one_appear_together(tmp_path: Path) -> None:
    write_new_files(tmp_path, {"evidence/manifests/three.json": b"three\n"})
    with NewFiles(tmp_path) as files:
        added = [files.add(path, content) for path, content in FILES.items()]
        assert added == [True, True, False]
        assert not files.add("evidence/records/a100/gemm/one.json", b"one\n")
        assert not (tmp_path / "evidence/records/a100/gemm/one.json").exists()
        assert files.publish() == tuple(sorted(FILES)[1:])
    assert {p: c for p, c in state(tmp_path).items() if c is not None} == FILES


def test_files_that_are_not_published_leave_nothing(tmp_path: Path) -> None:
    with pytest.raises(KeyError), NewFiles(tmp_path) as files:
        for path, content in FILES.items():
            files.add(path, content)
        raise KeyError
    assert state(tmp_path) == {}


@pytest.mark.parametrize("failing", [0, 1, 2])
@pytest.mark.parametrize("call", ["hardlink_to", "mkdir", "fsync"])
def test_a_failure_in_the_middle_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, failing: int
) -> None:
    calls = []
    owner = os if call == "fsync" else Path
    real = getattr(owner, call)

    def fail_once(*arguments: object, **options: object) -> object:
        calls.append(arguments)
        if len(calls) == failing + 1:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(*arguments, **options)

    monkeypatch.setattr(owner, call, fail_once)
    with pytest.raises(RepositoryUnavailableError) as caught:
        write_new_files(tmp_path, FILES)
    assert caught.value.code == "write-failed"
    assert "No space left" in str(caught.value)
    assert state(tmp_path) == {}


def test_an_interruption_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(append._Group, "publish", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_new_files(tmp_path, FILES)
    assert state(tmp_path) == {}


def test_a_file_that_appears_meanwhile_is_not_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = append._Group.publish

    def publish(self: append._Group, path: str) -> None:
        if path.endswith("two.json"):
            (tmp_path / path).write_bytes(b"somebody else's\n")
        real(self, path)

    monkeypatch.setattr(append._Group, "publish", publish)
    with pytest.raises(InvalidInputError) as caught:
        write_new_files(tmp_path, FILES)
    assert caught.value.code == "file-exists"
    assert {p: c for p, c in state(tmp_path).items() if c is not None} == {
        "evidence/records/h100/gemm/two.json": b"somebody else's\n"
    }


def test_without_hard_links_nothing_is_overwritten_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(Path, "hardlink_to", refuse)
    assert write_new_files(tmp_path, FILES) == tuple(sorted(FILES))
    assert {p: c for p, c in state(tmp_path).items() if c is not None} == FILES
    with pytest.raises(InvalidInputError):
        write_new_files(tmp_path, {"evidence/manifests/three.json": b"other"})


@pytest.mark.parametrize(
    "path", ["../out.json", "/etc/passwd", "evidence/../x", ".git/config", "a//b", "", "a b"]
)
def test_odd_names_are_refused(tmp_path: Path, path: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        write_new_files(tmp_path / "root", {path: b"x"})
    assert caught.value.code == "odd-name"


def test_links_are_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    root = tmp_path / "root"
    root.mkdir()
    (root / "evidence").symlink_to(outside)
    with pytest.raises(InvalidInputError) as caught:
        write_new_files(root, FILES)
    assert caught.value.code == "symlink"
    assert state(outside) == {}


def test_a_file_where_a_directory_should_be(tmp_path: Path) -> None:
    (tmp_path / "evidence").write_bytes(b"a file")
    with pytest.raises(InvalidInputError) as caught:
        write_new_files(tmp_path, FILES)
    assert caught.value.code == "path-conflict"


def test_two_writers_of_the_same_files(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: write_new_files(tmp_path, FILES), range(8)))
    assert {p: c for p, c in state(tmp_path).items() if c is not None} == FILES

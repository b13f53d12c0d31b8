"""Real repositories built by the git command, with nothing of the machine's own settings."""

import hashlib
import os
import subprocess
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pygit2
import pytest

ENVIRONMENT = {
    **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_AUTHOR_NAME": "Ada Author",
    "GIT_AUTHOR_EMAIL": "ada@example.org",
    "GIT_COMMITTER_NAME": "Carl Committer",
    "GIT_COMMITTER_EMAIL": "carl@example.org",
}


class GitRepository:
    """A repository on disk, driven by the git command."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.clock = 1_700_000_000

    @property
    def git_directory(self) -> Path:
        inside = self.path / ".git"
        return inside if inside.exists() else self.path

    def run(self, *arguments: str, data: bytes = b"") -> bytes:
        dates = {"GIT_AUTHOR_DATE": f"{self.clock} +0000"}
        dates["GIT_COMMITTER_DATE"] = dates["GIT_AUTHOR_DATE"]
        command = ["git", "-c", "init.defaultBranch=main", *arguments]
        done = subprocess.run(
            command, cwd=self.path, input=data, env=ENVIRONMENT | dates, capture_output=True
        )
        assert done.returncode == 0, (command, done.stderr)
        return done.stdout

    def git(self, *arguments: str, data: bytes = b"") -> str:
        return self.run(*arguments, data=data).decode().strip()

    def write(self, path: str, content: bytes) -> None:
        target = self.path / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)

    def commit(self, message: str, files: dict[str, bytes] | None = None) -> str:
        """Commit files through the work tree, one minute after the commit before."""
        self.clock += 60
        for path, content in (files or {}).items():
            self.write(path, content)
        if files:
            self.git("add", "--", *files)
        self.git("commit", "--quiet", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")

    def blob(self, content: bytes) -> str:
        return self.git("hash-object", "-w", "--stdin", data=content)

    def tree(self, *entries: tuple[bytes, bytes, str]) -> str:
        """Write a tree of exactly these entries, however wrong they are."""
        raw = b"".join(mode + b" " + name + b"\0" + bytes.fromhex(i) for mode, name, i in entries)
        return self.git("hash-object", "-t", "tree", "--literally", "-w", "--stdin", data=raw)

    def commit_tree(self, tree: str, *parents: str) -> str:
        self.clock += 60
        options = [word for parent in parents for word in ("-p", parent)]
        return self.git("commit-tree", tree, *options, "-m", "built by hand")

    def loose(self, object_id: str) -> Path:
        return self.git_directory / "objects" / object_id[:2] / object_id[2:]

    def write_loose(self, kind: bytes, content: bytes) -> str:
        raw = kind + b" %d\0" % len(content) + content
        object_id = hashlib.sha1(raw).hexdigest()
        target = self.loose(object_id)
        target.parent.mkdir(exist_ok=True)
        target.write_bytes(zlib.compress(raw))
        return object_id


@pytest.fixture(autouse=True)
def _no_user_settings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Point libgit2 at an empty home, so that no setting of this machine has a part."""
    home = tmp_path_factory.mktemp("home")
    levels = (pygit2.enums.ConfigLevel.GLOBAL, pygit2.enums.ConfigLevel.XDG)
    levels += (pygit2.enums.ConfigLevel.SYSTEM,)
    before = [pygit2.settings.search_path[level] for level in levels]
    for level in levels:
        pygit2.settings.search_path[level] = str(home)
    yield home
    for level, value in zip(levels, before, strict=True):
        pygit2.settings.search_path[level] = value


@pytest.fixture
def git_home(_no_user_settings: Path) -> Path:
    """The folder whose ``.gitconfig`` libgit2 reads."""
    return _no_user_settings


@pytest.fixture
def new_repository(tmp_path: Path) -> Callable[..., GitRepository]:
    def make(name: str = "repository", *options: str) -> GitRepository:
        path = tmp_path / name
        path.mkdir()
        repository = GitRepository(path)
        repository.git("init", "--quiet", *options)
        return repository

    return make


@pytest.fixture
def repository(new_repository: Callable[..., GitRepository]) -> GitRepository:
    """One commit with one evidence file."""
    made = new_repository()
    made.commit("first", {"evidence/records/a100/gemm/one.json": b"{}\n", "README.md": b"hello\n"})
    return made

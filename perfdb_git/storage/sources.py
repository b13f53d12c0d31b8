"""Where a snapshot's files come from: the objects of a commit, or the files of a work tree.

Both name content by Git's object ids, so everything derived from the same bytes is shared.
"""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path
from typing import NamedTuple, Protocol

from perfdb_git.errors import InvalidInputError, RepositoryUnavailableError
from perfdb_git.storage.git import DEFAULT_LIMITS, GitStore, ReadLimits
from perfdb_git.storage.raw_objects import RawEntry, accept_entry, check_path, join, write_tree

_FILE, _EXECUTABLE, _SYMLINK, _DIRECTORY = b"100644", b"100755", b"120000", b"40000"
_OTHER = b"0"


class SourceFile(NamedTuple):
    """A regular file: its path in the repository, the id of its content, and its mode."""

    path: str
    id: str
    mode: int = 0o100644


class SourceEntry(NamedTuple):
    """What stands in a directory: its path in the repository, its id, and whether it is one too."""

    path: str
    id: str
    is_directory: bool


class SourceAddress(NamedTuple):
    """What another process opens the same files by: a repository with a commit, or a work tree."""

    path: str
    commit: str | None


class ObjectSource(Protocol):
    """The files of one snapshot."""

    @property
    def commit(self) -> str | None:
        """Full commit id, or ``None`` for uncommitted files."""

    @property
    def committer_time(self) -> int | None:
        """Committer time in seconds since 1970; ``None`` when uncommitted."""

    def object_id(self, path: str) -> str | None:
        """Return the id of the file or directory at `path`, or None where there is none."""

    def files(self, path: str) -> tuple[SourceFile, ...]:
        """Return every file below the directory `path` in Git's order; none where it is absent."""

    def read(self, file: SourceFile) -> bytes:
        """Return a file's content, checked against its id."""


class SnapshotSource(ObjectSource, Protocol):
    """The files of one snapshot that an index can be made of."""

    @property
    def address(self) -> SourceAddress:
        """Where `open_source` finds the same files."""

    def entries(self, path: str) -> tuple[SourceEntry, ...]:
        """Return what stands in the directory `path` itself; nothing where it is absent."""

    def size(self, file: SourceFile) -> int:
        """Return a file's size in bytes without reading its content."""


def open_source(address: SourceAddress) -> SnapshotSource:
    """Open the files of a snapshot anew.

    Raises
    ------
    RepositoryUnavailableError
        Where they cannot be read.
    """
    if address.commit is None:
        return WorktreeSource(Path(address.path))
    return GitSource(GitStore.open(address.path), address.commit)


class GitSource:
    """The files of one commit.

    Parameters
    ----------
    store : GitStore
        The repository.
    commit : str
        Full commit id.
    limits : ReadLimits
        Bounds of walks and reads.

    Raises
    ------
    RepositoryUnavailableError
        What `GitStore.read_commit` raises.
    """

    def __init__(
        self, store: GitStore, commit: str, *, limits: ReadLimits = DEFAULT_LIMITS
    ) -> None:
        self._store = store
        self._commit = store.read_commit(commit)
        self._limits = limits
        self._ids: dict[str, str | None] = {}

    @property
    def address(self) -> SourceAddress:
        """Where `open_source` finds the same files."""
        where = self._store.work_tree or self._store.git_directory
        return SourceAddress(str(where), self.commit)

    @property
    def commit(self) -> str:
        """Full commit id."""
        return self._commit.id

    @property
    def committer_time(self) -> int:
        """Committer time in seconds since 1970."""
        return self._commit.committer_time

    def object_id(self, path: str) -> str | None:
        """Return the id of the file or directory at `path`, or None where there is none."""
        if path not in self._ids:
            self._ids[path] = self._store.lookup(self._commit.tree, path, limits=self._limits)
        return self._ids[path]

    def entries(self, path: str) -> tuple[SourceEntry, ...]:
        """Return what stands in the directory `path` itself; nothing where it is absent."""
        tree = self.object_id(path)
        if tree is None:
            return ()
        found = [
            SourceEntry(join(path, entry.name), entry.id, entry.kind == "tree")
            for entry in self._store.read_tree(tree, limits=self._limits, path=path)
        ]
        self._ids.update((entry.path, entry.id) for entry in found)
        return tuple(found)

    def files(self, path: str) -> tuple[SourceFile, ...]:
        """Return every file below the directory `path` in Git's order; none where it is absent."""
        tree = self.object_id(path)
        if tree is None:
            return ()
        walk = self._store.walk(tree, limits=self._limits, prefix=path)
        return tuple([SourceFile(file.path, file.id, file.mode) for file in walk])

    def size(self, file: SourceFile) -> int:
        """Return a file's size in bytes without reading its content."""
        return self._store.blob_size(file.id, path=file.path)

    def read(self, file: SourceFile) -> bytes:
        """Return a file's content, whose hash Git has verified."""
        return self._store.read_blob(file.id, limits=self._limits, path=file.path)


class WorktreeSource:
    """The files of a work tree as they are now, committed or not.

    Each file is hashed once, so what one instance returns is one state of it; a file that changes
    afterwards is refused when it is read.

    Parameters
    ----------
    root : Path
        The folder that holds ``evidence``.
    limits : ReadLimits
        Bounds of walks and reads.

    Raises
    ------
    RepositoryUnavailableError
        'no-work-tree' where `root` is no directory.
    """

    commit: None = None
    committer_time: None = None

    def __init__(self, root: Path, *, limits: ReadLimits = DEFAULT_LIMITS) -> None:
        if not root.is_dir():
            raise RepositoryUnavailableError(
                f"{root} is not a directory",
                code="no-work-tree",
                remedy="name the folder of a checked-out evidence repository",
            )
        self._root = root
        self._limits = limits
        self._entries = 0
        self._ids: dict[str, str | None] = {}
        self._files: dict[str, tuple[SourceFile, ...]] = {}

    @property
    def address(self) -> SourceAddress:
        """Where `open_source` finds the same files, until one of them changes."""
        return SourceAddress(str(self._root.resolve()), None)

    def object_id(self, path: str) -> str | None:
        """Return the id of the file or directory at `path`, or None where there is none.

        An empty directory is absent, as in Git.
        """
        if path not in self._ids:
            entry = self._locate(path)
            self._ids[path] = None if entry is None else self._id(entry, path)
        return self._ids[path]

    def entries(self, path: str) -> tuple[SourceEntry, ...]:
        """Return what stands in the directory `path` itself; nothing where it is absent."""
        found: dict[str, SourceEntry] = {}
        for file in self.files(path):
            name, inner, _ = file.path[len(path) + 1 :].partition("/")
            here = join(path, name)
            identity = self._ids[here] if inner else file.id
            if identity is not None:
                found[here] = SourceEntry(here, identity, bool(inner))
        return tuple(found.values())

    def files(self, path: str) -> tuple[SourceFile, ...]:
        """Return every file below the directory `path` in Git's order; none where it is absent."""
        self.object_id(path)
        return self._files.get(path, ())

    def size(self, file: SourceFile) -> int:
        """Return a file's size in bytes as it is now."""
        return (self._root / file.path).stat().st_size

    def read(self, file: SourceFile) -> bytes:
        """Return a file's content.

        Raises
        ------
        RepositoryUnavailableError
            'worktree-changed' where it is not the content that was found first.
        """
        try:
            content = self._content(file.path)
        except FileNotFoundError:
            content = None
        if content is None or _object_id(b"blob", content) != file.id:
            raise RepositoryUnavailableError(
                f"{file.path} changed while it was being read",
                code="worktree-changed",
                remedy="run the command again once nothing writes to the work tree",
            )
        return content

    def _locate(self, path: str) -> bytes | None:
        """Return the mode of what stands at `path`; a link on the way is refused."""
        mode = _DIRECTORY
        here = ""
        for name in check_path(path):
            if mode != _DIRECTORY:
                return None
            here = join(here, name)
            try:
                mode = _mode((self._root / here).lstat())
            except FileNotFoundError:
                return None
            accept_entry((mode, name.encode("ascii"), bytes(20)), here.rpartition("/")[0])
        return mode

    def _id(self, mode: bytes, path: str) -> str | None:
        if mode != _DIRECTORY:
            return _object_id(b"blob", self._content(path))
        return self._directory(path, 0)

    def _directory(self, path: str, depth: int) -> str | None:
        if depth > self._limits.max_depth:
            raise _over_limit(path, f"more than {self._limits.max_depth} levels", "too-deep")
        if path in self._files:
            return self._ids[path]
        entries: list[RawEntry] = []
        below: dict[bytes, tuple[SourceFile, ...]] = {}
        for name, mode in self._scan(path):
            accepted = accept_entry((mode, name, bytes(20)), path)
            here = join(path, accepted.name)
            if accepted.kind == "tree":
                child = self._directory(here, depth + 1)
                self._ids[here] = child
                if child is not None:
                    below[name] = self._files[here]
            else:
                child = _object_id(b"blob", self._content(here))
                below[name] = (SourceFile(here, child, accepted.mode),)
            if child is not None:
                entries.append((mode, name, bytes.fromhex(child)))
        tree = _object_id(b"tree", write_tree(entries)) if entries else None
        ordered = sorted(entries, key=lambda e: e[1] + b"/" if e[0] == _DIRECTORY else e[1])
        self._files[path] = tuple([file for _, name, _ in ordered for file in below[name]])
        self._ids[path] = tree
        return tree

    def _scan(self, path: str) -> list[tuple[bytes, bytes]]:
        with os.scandir(self._root / path) as entries:
            found = [
                (os.fsencode(entry.name), _mode(entry.stat(follow_symlinks=False)))
                for entry in entries
            ]
        self._entries += len(found)
        if self._entries > self._limits.max_entries:
            raise _over_limit(path, f"over {self._limits.max_entries} entries", "too-many-entries")
        return found

    def _content(self, path: str) -> bytes:
        with (self._root / path).open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size > self._limits.max_blob_bytes:
                raise _over_limit(path, f"{size} bytes", "blob-too-large")
            return file.read()


def _mode(status: os.stat_result) -> bytes:
    if stat.S_ISLNK(status.st_mode):
        return _SYMLINK
    if stat.S_ISDIR(status.st_mode):
        return _DIRECTORY
    if stat.S_ISREG(status.st_mode):
        return _EXECUTABLE if status.st_mode & stat.S_IXUSR else _FILE
    return _OTHER


def _object_id(kind: bytes, content: bytes) -> str:
    digest = hashlib.sha1(b"%b %d\0" % (kind, len(content)), usedforsecurity=False)
    digest.update(content)
    return digest.hexdigest()


def _over_limit(path: str, found: str, code: str) -> InvalidInputError:
    return InvalidInputError(
        f"has {found}", code=code, document=path or "/", remedy="split it, or raise the limit"
    )

"""Adding files to a work tree: all of them or none, and never over another file."""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from perfdb_git.errors import InvalidInputError, RepositoryUnavailableError
from perfdb_git.storage.raw_objects import check_path

_NO_HARD_LINKS = frozenset(
    {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}
)
_FILE_MODE = 0o644


def write_new_files(root: Path, files: Mapping[str, bytes]) -> tuple[str, ...]:
    """Write files below `root`; on any failure nothing new remains.

    A file that is there already with the same bytes is left alone. All contents are on disk under
    temporary names before the first of them gets its own name.

    Parameters
    ----------
    root : Path
        The folder that holds ``evidence``.
    files : mapping of str to bytes
        Repository path to content.

    Returns
    -------
    tuple of str
        The paths that were written, sorted.

    Raises
    ------
    InvalidInputError
        'file-exists' where a path holds other bytes; 'odd-name', 'symlink' or 'path-conflict'
        where it cannot be a file of an evidence repository.
    RepositoryUnavailableError
        'write-failed': the disk is full, read-only, or alike.
    """
    with NewFiles(root) as group:
        for path in sorted(files):
            group.add(path, files[path])
        return group.publish()


class NewFiles:
    """Files that are written as they come and appear together, for more than fits into memory.

    A context manager: leaving it before `publish` has returned removes everything new.

    Parameters
    ----------
    root : Path
        The folder that holds ``evidence``.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._group = _Group(root)
        self._new: dict[str, None] = {}

    def __enter__(self) -> NewFiles:
        return self

    def __exit__(self, *_: object) -> None:
        self._group.close()

    def add(self, path: str, content: bytes) -> bool:
        """Put a file on disk under a temporary name, and tell whether it is new.

        A file that is there already with the same bytes is left alone.

        Parameters
        ----------
        path : str
            Path below the root, given once or with the same content again.
        content : bytes
            What it holds.

        Raises
        ------
        InvalidInputError, RepositoryUnavailableError
            See `write_new_files`.
        """
        if path in self._new:
            return False
        with self._failures():
            if not self._group.is_new(path, content):
                return False
            self._group.prepare(path, content)
        self._new[path] = None
        return True

    def publish(self) -> tuple[str, ...]:
        """Give every added file its own name, and return the paths that were written, sorted.

        Raises
        ------
        InvalidInputError, RepositoryUnavailableError
            See `write_new_files`.
        """
        paths = sorted(self._new)
        with self._failures():
            for path in paths:
                self._group.publish(path)
        self._group.keep()
        return tuple(paths)

    @contextmanager
    def _failures(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise RepositoryUnavailableError(
                f"nothing was written to {self._root}: {error.strerror or error} "
                f"({error.filename})",
                code="write-failed",
                remedy="make room, or check the permissions, and run the command again",
            ) from error


class _Group:
    """The files of one call, with what has to be undone if it fails."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._temporary: dict[str, Path] = {}
        self._published: list[Path] = []
        self._directories: list[Path] = []
        self._kept = False

    def is_new(self, path: str, content: bytes) -> bool:
        """Tell whether a file has to be written; refuse one that would replace another."""
        target = self._root
        for name in check_path(path):
            target /= name
            _refuse_link(target, path)
        try:
            present = target.read_bytes()
        except FileNotFoundError:
            return True
        except (NotADirectoryError, IsADirectoryError):
            raise InvalidInputError(
                "a file and a directory cannot share a name",
                code="path-conflict",
                document=path,
                remedy="move what stands there",
            ) from None
        if present != content:
            raise _other_bytes(path)
        return False

    def prepare(self, path: str, content: bytes) -> None:
        """Put the content on disk under a temporary name."""
        target = self._root / path
        self._make_directories(target.parent)
        descriptor, name = tempfile.mkstemp(prefix=".new-", dir=target.parent)
        self._temporary[path] = Path(name)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
            os.fchmod(file.fileno(), _FILE_MODE)

    def publish(self, path: str) -> None:
        """Give the file its own name, which nobody else may have taken since."""
        target = self._root / path
        temporary = self._temporary[path]
        try:
            try:
                # A link never replaces anything, a rename would.
                target.hardlink_to(temporary)
            except OSError as error:
                if error.errno not in _NO_HARD_LINKS:
                    raise
                target.open("xb").close()
                self._published.append(target)
                temporary.replace(target)
                return
        except FileExistsError:
            # Another process may have added the very same file meanwhile.
            if not target.is_file() or target.read_bytes() != temporary.read_bytes():
                raise _other_bytes(path) from None
            return
        self._published.append(target)

    def keep(self) -> None:
        """Accept what was written."""
        self._kept = True
        for directory in {target.parent for target in self._published}:
            _synchronize(directory)

    def close(self) -> None:
        """Remove the temporary files, and everything new unless it was kept."""
        for temporary in self._temporary.values():
            with suppress(OSError):
                temporary.unlink()
        if self._kept:
            return
        for target in self._published:
            with suppress(OSError):
                target.unlink()
        for directory in reversed(self._directories):
            with suppress(OSError):
                directory.rmdir()

    def _make_directories(self, directory: Path) -> None:
        missing = []
        while not directory.is_dir():
            missing.append(directory)
            directory = directory.parent
        for path in reversed(missing):
            with suppress(FileExistsError):
                path.mkdir()
                self._directories.append(path)


def _refuse_link(target: Path, path: str) -> None:
    try:
        linked = stat.S_ISLNK(target.lstat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return
    if linked:
        raise InvalidInputError(
            "a symbolic link stands on the way",
            code="symlink",
            document=path,
            remedy="replace the link by the directory or file itself",
        )


def _other_bytes(path: str) -> InvalidInputError:
    return InvalidInputError(
        "the file exists with other content, and evidence is never overwritten",
        code="file-exists",
        document=path,
        remedy="keep the present file; a correction is a new file and a retraction",
    )


def _synchronize(directory: Path) -> None:
    """Ask that the new names themselves survive a crash, where the system can."""
    with suppress(OSError):
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

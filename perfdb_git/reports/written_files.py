"""Files that a command is asked to write: whole or not at all, over what was there before."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from perfdb_git.errors import UsageError

_NEW_FILE_MODE = 0o666


def require_writable(path: Path) -> None:
    """Refuse a file that cannot be written, before the work for it is done.

    Raises
    ------
    UsageError
        'not-writable'.
    """
    folder = path.resolve().parent
    if path.is_dir():
        raise _not_writable(path, "it is a folder")
    if not folder.is_dir():
        raise _not_writable(path, f"there is no folder {folder}")
    if not os.access(folder, os.W_OK) and _is_ordinary(path):
        raise _not_writable(path, f"the folder {folder} cannot be written")


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give the path of a new file that takes the place of `path` once all is well.

    On an error `path` stays as it was. A pipe or device is written itself: there is nothing whole
    about it that could be kept.

    Parameters
    ----------
    path : Path
        A file, a link to one, or a name that is free.

    Raises
    ------
    UsageError
        'not-writable'.
    """
    try:
        if _is_ordinary(path):
            with _temporary(path.resolve()) as temporary:
                yield temporary
        else:
            yield path
    except OSError as error:
        raise _not_writable(path, error.strerror or str(error)) from error


@contextmanager
def _temporary(target: Path) -> Iterator[Path]:
    descriptor, name = tempfile.mkstemp(prefix=f".{target.name[:50]}.", dir=target.parent)
    os.close(descriptor)
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(_mode(target))
        temporary.replace(target)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise


def _is_ordinary(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except OSError:
        return True


def _mode(target: Path) -> int:
    """Return the mode that writing the file in place would have left."""
    try:
        return stat.S_IMODE(target.stat().st_mode)
    except FileNotFoundError:
        mask = os.umask(0)
        os.umask(mask)
        return _NEW_FILE_MODE & ~mask


def _not_writable(path: Path, reason: str) -> UsageError:
    return UsageError(f"{path} cannot be written: {reason}", code="not-writable")

"""Who uses a cache directory: one locked file for each running process.

The operating system drops the lock when the process ends, however it ends, so a lease that can be
locked by somebody else is a dead one. Temporary files carry the name of their writer's lease, which
tells litter from a file that is being written.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

try:
    import fcntl
except ImportError:  # not on every system: nothing is known to be in use there
    fcntl = None  # type: ignore[assignment]

LEASES = "leases"
UNKNOWN_WRITER = "0" * 16
"""In the names of temporary files whose writer could not take a lease."""

_SUFFIX = ".lease"
_MOST_DIRECTORIES = 16
"""Of more than these a process gives up the first: each lease is an open file."""


class LiveLease(NamedTuple):
    """A process that runs: what its temporary files carry, and since when it has used the cache."""

    name: str
    since: float


class _HeldLease(NamedTuple):
    """A lease of this process, or of the one that it was forked from."""

    name: str
    path: Path
    descriptor: int
    process: int

    def release(self) -> None:
        # A forked child ends too, and its parent goes on.
        if self.process == os.getpid():
            with suppress(OSError):
                self.path.unlink()
            os.close(self.descriptor)


_held: dict[Path, _HeldLease | None] = {}


def take_lease(root: Path) -> str:
    """Return the name of this process's lease on a cache directory, taking it the first time.

    Where none can be taken (a directory that cannot be written, a file system without locks) the
    name is `UNKNOWN_WRITER`.
    """
    if root not in _held:
        try:
            _held[root] = _new_lease(root / LEASES)
        except OSError:
            _held[root] = None
        if len(_held) > _MOST_DIRECTORIES:
            _release(next(iter(_held)))
    lease = _held[root]
    return UNKNOWN_WRITER if lease is None else lease.name


def _new_lease(folder: Path) -> _HeldLease | None:
    if fcntl is None:
        return None
    folder.mkdir(parents=True, exist_ok=True)
    while True:
        name = os.urandom(8).hex()
        path = folder / f"{name}{_SUFFIX}"
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        except OSError:
            os.close(descriptor)
            path.unlink()
            raise
        # Whoever collects may have taken the file for a dead one before it was locked.
        if path.exists():
            return _HeldLease(name, path, descriptor, os.getpid())
        os.close(descriptor)


def _release(root: Path) -> None:
    lease = _held.pop(root)
    if lease is not None:
        lease.release()


@atexit.register
def _release_all() -> None:
    for root in list(_held):
        _release(root)


def live_leases(root: Path) -> list[LiveLease]:
    """Return the leases of running processes, and remove those of dead ones."""
    found = []
    for path in sorted((root / LEASES).glob(f"*{_SUFFIX}")):
        with suppress(OSError):
            since = path.stat().st_mtime
            with _is_dead(path) as dead:
                if dead:
                    path.unlink()
                else:
                    found.append(LiveLease(path.name.removesuffix(_SUFFIX), since))
    return found


@contextmanager
def _is_dead(path: Path) -> Iterator[bool]:
    """Tell whether nobody holds a lease; while the answer is used, nobody can."""
    if fcntl is None:
        yield False
        return
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield False
        else:
            yield True
    finally:
        os.close(descriptor)

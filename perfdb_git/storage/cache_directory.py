"""The cache directory: files that can be made again, written whole or not at all.

Two processes may write the same file at once: each writes a temporary file of its own and renames
it, and both hold the same bytes. A directory that cannot be written makes the process slower, never
wrong: what it would have stored stays in memory. The time of a file's last change stands for the
time of its last use.
"""

from __future__ import annotations

import mmap
import os
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import IO

from perfdb_git.model.result import Message
from perfdb_git.storage.block_file import Buffer
from perfdb_git.storage.cache_leases import UNKNOWN_WRITER, take_lease

CACHE_VARIABLE = "PERFDB_CACHE_DIR"

USE_RESOLUTION = 3600.0
"""Seconds: a file's time of last use is written down anew when it is older than this."""


def default_cache_directory() -> Path:
    """Return ``$PERFDB_CACHE_DIR``, else the platform's cache directory of the user."""
    stated = os.environ.get(CACHE_VARIABLE)
    if stated:
        return Path(stated)
    import platformdirs

    return Path(platformdirs.user_cache_dir("perfdb"))


class CacheDirectory:
    """Files by name below one directory.

    Parameters
    ----------
    root : Path or None
        The directory, made when first written to; None takes `default_cache_directory`.
    """

    def __init__(self, root: Path | None = None) -> None:
        self.root = default_cache_directory() if root is None else root
        self._memory: dict[str, bytes] = {}
        self._discarded: set[str] = set()
        self._warning: Message | None = None

    @property
    def warnings(self) -> tuple[Message, ...]:
        """What the user should know: empty, or that the directory cannot be written."""
        return () if self._warning is None else (self._warning,)

    @property
    def local_root(self) -> Path | None:
        """The directory, which other processes may fill too; None where it cannot be written."""
        # Who cannot write a lease could write no segment either.
        writable = self._warning is None and take_lease(self.root) != UNKNOWN_WRITER
        return self.root if writable else None

    def has(self, name: str) -> bool:
        """Tell whether there is a file of that name; it may be damaged."""
        return name in self._memory or (
            name not in self._discarded and (self.root / name).is_file()
        )

    def load(self, name: str) -> Buffer | None:
        """Return a file's content, mapped into memory where possible; None where it is absent."""
        kept = self._memory.get(name)
        if kept is not None or name in self._discarded:
            return kept
        try:
            with (self.root / name).open("rb") as file:
                if self._note_use(file).st_size == 0:
                    return b""  # an empty file cannot be mapped
                return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except OSError:
            return None

    def read(self, name: str) -> bytes | None:
        """Return a small file's content; None where it is absent."""
        kept = self._memory.get(name)
        if kept is not None or name in self._discarded:
            return kept
        try:
            with (self.root / name).open("rb") as file:
                self._note_use(file)
                return file.read()
        except OSError:
            return None

    def store(self, name: str, content: bytes) -> None:
        """Write a file whole, or keep it in memory where that fails."""
        if self._warning is None:
            try:
                self._write(name, content)
            except OSError as error:
                self._warning = Message(
                    level="warning",
                    code="cache-not-writable",
                    text=(
                        f"the cache directory {self.root} cannot be written "
                        f"({error.strerror or error}), so this command works without one; "
                        f"set {CACHE_VARIABLE} to a writable directory"
                    ),
                )
            else:
                self._memory.pop(name, None)
                self._discarded.discard(name)
                return
        self._memory[name] = content

    def discard(self, name: str) -> None:
        """Remove a file; one that cannot be removed is not read again."""
        self._memory.pop(name, None)
        self._discarded.add(name)
        with suppress(OSError):
            (self.root / name).unlink()

    def _write(self, name: str, content: bytes) -> None:
        try:
            self._write_once(name, content)
        except FileNotFoundError:
            # Whoever clears the directory may remove a folder between its making and its use.
            self._write_once(name, content)

    def _write_once(self, name: str, content: bytes) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        prefix = f".{path.name}.{take_lease(self.root)}."
        descriptor, temporary = tempfile.mkstemp(prefix=prefix, dir=path.parent)
        try:
            with os.fdopen(descriptor, "wb") as file:
                # Not flushed to the disk: if the machine crashes, a reader finds the file damaged.
                file.write(content)
            Path(temporary).replace(path)
        except BaseException:
            with suppress(OSError):
                Path(temporary).unlink()
            raise

    def _note_use(self, file: IO[bytes]) -> os.stat_result:
        """Write down that a file is in use, which keeps it from being collected."""
        take_lease(self.root)
        status = os.fstat(file.fileno())
        if time.time() - status.st_mtime > USE_RESOLUTION:
            with suppress(OSError):
                os.utime(file.fileno())
        return status

"""Clearing a cache directory of litter and, above its limit, of what was unused for longest.

Deleting a derived file costs time only, so nothing here has to be exact; what a running process has
used since it started is kept all the same. Two collectors at once delete what the other has not.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from perfdb_git.storage.cache_directory import USE_RESOLUTION
from perfdb_git.storage.cache_files import (
    CacheFile,
    CacheUsage,
    cache_usage,
    own_files,
    remove_empty_folders,
)
from perfdb_git.storage.cache_leases import live_leases

_STAMP = "collected"
_COLLECT_EVERY = 86_400.0
_MUCH = 256
_UNNAMED_WRITER_LIVES = 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Collected:
    """What was removed from a cache directory, and what is left.

    Attributes
    ----------
    outdated : int
        Files of formats that no reader of this version uses.
    unfinished : int
        Temporary files of processes that have ended.
    evicted : int
        Files that were unused for longest, removed to keep the limit.
    freed : int
        Bytes of all of them.
    size : int
        Bytes that are left.
    limit : int or None
        The limit in bytes; None for none.
    in_use : int
        Bytes that running processes have used, and that are kept above any limit.
    """

    outdated: int
    unfinished: int
    evicted: int
    freed: int
    size: int
    limit: int | None
    in_use: int


def collect(root: Path, limit: int | None) -> Collected:
    """Remove litter, outdated formats and, above the limit, the files unused for longest.

    Parameters
    ----------
    root : Path
        The cache directory.
    limit : int or None
        How many bytes may stay; None for no limit.
    """
    leases = live_leases(root)
    files = list(own_files(root))
    running = {lease.name for lease in leases}
    unfinished = [file for file in files if _is_litter(file, running)]
    outdated = [file for file in files if file.is_outdated and file.writer is None]
    gone = {file.path for file in (*unfinished, *outdated)}
    kept = [file for file in files if file.path not in gone]
    used_since = min((lease.since for lease in leases), default=float("inf")) - USE_RESOLUTION
    idle = [file for file in kept if file.writer is None and file.used < used_since]
    size = sum(file.size for file in kept)
    evicted = _unused_for_longest(idle, 0 if limit is None else size - limit)
    removed = [*unfinished, *outdated, *evicted]
    for file in removed:
        with suppress(OSError):
            file.path.unlink()
    remove_empty_folders(root)
    return Collected(
        outdated=len(outdated),
        unfinished=len(unfinished),
        evicted=len(evicted),
        freed=sum(file.size for file in removed),
        size=size - sum(file.size for file in evicted),
        limit=limit,
        in_use=sum(file.size for file in kept) - sum(file.size for file in idle),
    )


def collect_if_due(root: Path, limit: int | None, *, added: int) -> None:
    """Collect after much was added, and once a day by whoever happens to add something.

    Parameters
    ----------
    root : Path
        The cache directory.
    limit : int or None
        As in `collect`.
    added : int
        How many files were added.
    """
    stamp = root / _STAMP
    with suppress(OSError):
        collected = stamp.stat().st_mtime if stamp.exists() else 0.0
        if added < _MUCH and time.time() - collected < _COLLECT_EVERY:
            return
        stamp.touch()
        collect(root, limit)


def clear_cache(root: Path) -> CacheUsage:
    """Remove every derived file and the folders that become empty; return what there was."""
    usage = cache_usage(root)
    for file in own_files(root):
        with suppress(OSError):
            file.path.unlink()
    live_leases(root)  # removes those of processes that have ended
    with suppress(OSError):
        (root / _STAMP).unlink()
    remove_empty_folders(root)
    return usage


def _is_litter(file: CacheFile, running: set[str]) -> bool:
    if file.writer is None or file.writer in running:
        return False
    # Who could take no lease is not known to have ended, so its file has to be old.
    named = file.writer.strip("0") != ""
    return named or time.time() - file.used > _UNNAMED_WRITER_LIVES


def _unused_for_longest(files: Sequence[CacheFile], excess: int) -> list[CacheFile]:
    """Return the files to remove so that `excess` bytes become free, if they have as many."""
    found: list[CacheFile] = []
    for file in sorted(files, key=lambda file: file.used):
        if excess <= 0:
            break
        found.append(file)
        excess -= file.size
    return found

"""The derived files below a cache directory, told from files that are not perfdb's."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from perfdb_git.storage.cache_leases import LEASES
from perfdb_git.storage.segment_store import INDEX_FOLDER, INDEX_FORMAT

_WRITER = r"(?:\.(?P<writer>[0-9a-f]{16})\.)?[^/]*"
_OWN_FILES = tuple(
    re.compile(pattern + _WRITER)
    for pattern in (
        r"index/v(?P<format>[0-9]+)/(?P<kind>segments)/[0-9a-f]{2}/\.?[0-9a-f]{40}\.segment",
        r"index/v(?P<format>[0-9]+)/(?P<kind>directories)/[0-9a-f]{2}/"
        r"\.?(?:[0-9a-f]{40}|[0-9a-f]{64})\.directory",
        r"index/v(?P<format>[0-9]+)/(?P<kind>catalogues)/(?:[0-9a-f]{2}/)?"
        r"\.?[0-9a-f]{64}\.catalogue",
        r"(?P<kind>documents)/v(?P<format>[0-9]+)/[0-9a-f]{2}/\.?[0-9a-f]{64}\.json",
        r"(?P<kind>verdicts)/v(?P<format>[0-9]+)/[0-9a-f]{2}/\.?[0-9a-f]{64}\.passed",
    )
)
"""Somebody may point the variable at a home folder: only what looks exactly like this is ours."""


_FOLDERS = (INDEX_FOLDER, "documents", "verdicts")


class CacheFile(NamedTuple):
    """One derived file.

    Attributes
    ----------
    path : Path
        Where it is.
    kind : str
        ``segments``, ``directories``, ``catalogues``, ``documents`` or ``verdicts``.
    size : int
        In bytes.
    used : float
        When it was last used, in seconds since 1970, to `USE_RESOLUTION`.
    is_outdated : bool
        Whether it belongs to a format that this version does not read any more.
    writer : str or None
        For a temporary file the lease of its writer, empty where it names none; else None.
    """

    path: Path
    kind: str
    size: int
    used: float
    is_outdated: bool
    writer: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheUsage:
    """The derived files below one cache directory; ``unfinished`` are temporary ones."""

    root: str
    segments: int
    directories: int
    catalogues: int
    documents: int
    verdicts: int
    unfinished: int
    size: int


def own_files(root: Path) -> Iterator[CacheFile]:
    """Yield every derived file, temporary ones too."""
    for folder in _FOLDERS:
        for parent, _, names in os.walk(root / folder):
            prefix = Path(parent).relative_to(root).as_posix()
            for name in names:
                file = _own_file(Path(parent, name), f"{prefix}/{name}")
                if file is not None:
                    yield file


def _own_file(path: Path, relative: str) -> CacheFile | None:
    match = next((m for m in (own.fullmatch(relative) for own in _OWN_FILES) if m), None)
    if match is None:
        return None
    with suppress(OSError):  # another process may have removed it
        status = path.stat()
        in_index = relative.startswith(f"{INDEX_FOLDER}/")
        return CacheFile(
            path=path,
            kind=match["kind"],
            size=status.st_size,
            used=status.st_mtime,
            is_outdated=in_index and int(match["format"]) < INDEX_FORMAT,
            writer=(match["writer"] or "") if path.name.startswith(".") else None,
        )
    return None


def cache_usage(root: Path) -> CacheUsage:
    """Count the derived files."""
    files = list(own_files(root))
    counts = Counter("unfinished" if file.writer is not None else file.kind for file in files)
    kinds = ("segments", "directories", "catalogues", "documents", "verdicts", "unfinished")
    return CacheUsage(
        root=str(root),
        size=sum(file.size for file in files),
        **{kind: counts[kind] for kind in kinds},
    )


def remove_empty_folders(root: Path) -> None:
    """Remove the folders of derived files that hold nothing any more."""
    for folder in (*_FOLDERS, LEASES):
        for parent, _, _ in os.walk(root / folder, topdown=False):
            with suppress(OSError):
                Path(parent).rmdir()

"""What the cache directory holds, and clearing it without touching a file that is not perfdb's."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_OWN_FILES = re.compile(
    r"index/v[0-9]+/segments/[0-9a-f]{2}/\.?[0-9a-f]{40}\.segment[^/]*"
    r"|index/v[0-9]+/catalogues/\.?[0-9a-f]{64}\.catalogue[^/]*"
    r"|documents/v[0-9]+/[0-9a-f]{2}/\.?[0-9a-f]{64}\.json[^/]*"
    r"|verdicts/v[0-9]+/[0-9a-f]{2}/\.?[0-9a-f]{64}\.passed[^/]*"
)
"""Derived files and their temporary forms; somebody may point the variable at a home folder."""

_FOLDERS = ("index", "documents", "verdicts")


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheUsage:
    """The derived files below one cache directory."""

    root: str
    segments: int
    catalogues: int
    documents: int
    verdicts: int
    size: int


def _own_files(root: Path) -> Iterator[tuple[str, Path]]:
    for folder in _FOLDERS:
        for parent, _, names in os.walk(root / folder):
            for name in names:
                path = Path(parent, name)
                relative = path.relative_to(root).as_posix()
                if _OWN_FILES.fullmatch(relative) is not None:
                    yield relative, path


def cache_usage(root: Path) -> CacheUsage:
    """Count the derived files."""
    counts = {"segments": 0, "catalogues": 0, "documents": 0, "verdicts": 0}
    size = 0
    for relative, path in _own_files(root):
        parts = relative.split("/")
        counts[parts[2] if parts[0] == "index" else parts[0]] += 1
        with suppress(OSError):
            size += path.stat().st_size
    return CacheUsage(root=str(root), size=size, **counts)


def has_catalogue(root: Path, digest: str) -> bool:
    """Tell whether the records with that digest are indexed."""
    pattern = f"v*/catalogues/{digest}.catalogue"
    return next((root / "index").glob(pattern), None) is not None


def clear_cache(root: Path) -> CacheUsage:
    """Remove the derived files and the folders that become empty; return what there was."""
    usage = cache_usage(root)
    for _, path in _own_files(root):
        with suppress(OSError):
            path.unlink()
    for folder in _FOLDERS:
        for parent, _, _ in os.walk(root / folder, topdown=False):
            with suppress(OSError):
                Path(parent).rmdir()
    return usage

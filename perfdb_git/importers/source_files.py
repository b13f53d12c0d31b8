"""The files of an import: their content, and the names that record sets give them."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

from perfdb_git.errors import InvalidInputError, UsageError
from perfdb_git.importers.tables import MAX_FILE_BYTES


def whole_path(path: Path) -> Path:
    """Return the absolute path without following links, as path patterns are matched on it."""
    return Path(os.path.normpath(path.absolute()))


def source_names(files: Sequence[Path], source_root: Path | None) -> list[str]:
    """Return what each file is called in the record sets: never an absolute path.

    Parameters
    ----------
    files : sequence of Path
        The files of the import.
    source_root : Path or None
        Folder that names start from; None gives base names.

    Raises
    ------
    UsageError
        'no-files', 'repeated-file', 'outside-source-root' or 'odd-name'.
    """
    if not files:
        raise UsageError("there is no file to import", code="no-files", remedy="name a file")
    names: list[str] = []
    seen: set[Path] = set()
    for path in files:
        resolved = path.resolve()
        if resolved in seen:
            raise UsageError(f"{path} is given twice", code="repeated-file")
        seen.add(resolved)
        names.append(_source_name(path, source_root))
    return names


def _source_name(path: Path, root: Path | None) -> str:
    name = path.name
    if root is not None:
        # Without resolving links: the name is what upstream calls the file.
        relative = Path(os.path.relpath(path, root))
        if relative.parts[0] == "..":
            raise UsageError(
                f"{path} is not below the source root {root}",
                code="outside-source-root",
                remedy="name the folder that upstream paths start from",
            )
        name = relative.as_posix()
    if not name.isprintable():
        raise UsageError(f"{name!r} is no printable file name", code="odd-name")
    return name


def file_bytes(path: Path, name: str) -> bytes:
    """Return the content of a file.

    Raises
    ------
    UsageError
        'unreadable-file'.
    InvalidInputError
        'file-too-large'.
    """
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise InvalidInputError(
                f"has more than {MAX_FILE_BYTES} bytes",
                code="file-too-large",
                document=name,
                remedy="split it",
            )
        return path.read_bytes()
    except OSError as error:
        raise UsageError(
            f"{path} cannot be read: {error.strerror}",
            code="unreadable-file",
            remedy="name an existing file",
        ) from error


def git_blob(data: bytes) -> str:
    """Return the id that Git gives a file of this content."""
    digest = hashlib.sha1(b"blob %d\0" % len(data), usedforsecurity=False)
    digest.update(data)
    return digest.hexdigest()

"""The folders that record sets lie in, one index file each."""

from __future__ import annotations

from perfdb_git.errors import InvalidInputError
from perfdb_git.formats.digests import sha256_hex
from perfdb_git.storage import layout
from perfdb_git.storage.catalogue import Folder
from perfdb_git.storage.sources import SnapshotSource, SourceFile
from perfdb_git.storage.trees import DEFAULT_LIMITS

_TREE_ID_DIGITS = 40
_LEVELS = 2
"""Below the records, a folder for each device and in it one for each operation."""


def record_folders(source: SnapshotSource) -> tuple[Folder, ...]:
    """Return the folders of each device and operation, sorted by path.

    Files that lie above them make a folder of their own, named by a digest of what they are: the
    tree they lie in changes with everything below it.

    Raises
    ------
    InvalidInputError
        'too-many-entries'.
    """
    found: list[Folder] = []
    above = [layout.RECORDS]
    for level in range(_LEVELS):
        below = []
        for path in above:
            entries = source.entries(path)
            inner = [entry for entry in entries if entry.is_directory]
            below += [entry.path for entry in inner]
            if level == _LEVELS - 1:
                found += [Folder(entry.path, entry.id) for entry in inner]
            loose = _loose_files(source, path)
            if loose:
                text = "".join(f"{file.path[len(path) + 1 :]} {file.id}\n" for file in loose)
                found.append(Folder(path, sha256_hex(text.encode("utf-8"))))
            require_countable(len(below) + len(found))
        above = below
    return tuple(sorted(found))


def files_of(source: SnapshotSource, folder: Folder) -> tuple[SourceFile, ...]:
    """Return the record-set files of a folder."""
    if len(folder.identity) != _TREE_ID_DIGITS:
        return _loose_files(source, folder.path)
    files = source.files(folder.path)
    return tuple([file for file in files if file.path.endswith(layout.JSON_SUFFIX)])


def require_countable(count: int) -> None:
    """Refuse evidence that expands to more files than any walk may meet.

    Raises
    ------
    InvalidInputError
        'too-many-entries'.
    """
    if count > DEFAULT_LIMITS.max_entries:
        raise InvalidInputError(
            f"the records expand to more than {DEFAULT_LIMITS.max_entries} files",
            code="too-many-entries",
            document=layout.RECORDS,
            remedy="remove repeated directories",
        )


def _loose_files(source: SnapshotSource, path: str) -> tuple[SourceFile, ...]:
    return tuple(
        [
            SourceFile(entry.path, entry.id)
            for entry in source.entries(path)
            if not entry.is_directory and entry.path.endswith(layout.JSON_SUFFIX)
        ]
    )

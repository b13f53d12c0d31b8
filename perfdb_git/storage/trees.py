"""Strict walks over evidence folders, and the differences between two of them.

Names, modes and order are judged from the raw bytes (`raw_objects`); nothing is ever joined to a
path of the file system, and every walk is bounded (`ReadLimits`).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from perfdb_git.errors import InvalidInputError
from perfdb_git.storage.raw_objects import (
    TreeEntry,
    check_path,
    join,
    parse_tree,
    refused_mode,
    strict_entries,
)

_BYTES_PER_ENTRY = 256
"""Mode, separators, id and the longest allowed name fit in this."""

_REMEMBERED_ENTRIES = 65_536
"""About 20 MB; enough for every directory of a snapshot laid out as the project's folders are."""

_LOOKUP_MODES = frozenset({b"100644", b"100755", b"40000"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadLimits:
    """Bounds on what one walk or one read may cost.

    Attributes
    ----------
    max_blob_bytes : int
        Largest file.
    max_total_bytes : int
        Largest sum of files in one `read_blobs`.
    max_entries : int
        Files and directories of one walk, counted by path: a tree used twice counts twice.
    max_depth : int
        Directories below the walk's root.
    max_directory_entries : int
        Entries of one directory.
    """

    max_blob_bytes: int = 64 * 1024 * 1024
    max_total_bytes: int = 8 * 1024 * 1024 * 1024
    max_entries: int = 2_000_000
    max_depth: int = 12
    max_directory_entries: int = 100_000


DEFAULT_LIMITS = ReadLimits()


class TreeFile(NamedTuple):
    """A regular file: its path from the walk's root, its mode and its blob."""

    path: str
    mode: int
    id: str


class Change(NamedTuple):
    """A path whose content or mode differs; None stands for an absent file."""

    path: str
    old: TreeFile | None
    new: TreeFile | None


class TreeSource(Protocol):
    """Where raw tree objects come from."""

    def read(self, object_id: str, kind: str, *, maximum: int, what: str) -> bytes:
        """Return the verified content of an object."""
        ...


class _Budget:
    """Counts the entries of one walk against its limits."""

    def __init__(self, limits: ReadLimits) -> None:
        self.limits = limits
        self.entries = 0

    def spend(self, count: int, path: str, depth: int) -> None:
        self.entries += count
        if self.entries > self.limits.max_entries:
            raise InvalidInputError(
                f"the directories expand to more than {self.limits.max_entries} entries",
                code="too-many-entries",
                document=path or "/",
                remedy="remove repeated directories, or raise max_entries",
            )
        if depth > self.limits.max_depth:
            raise InvalidInputError(
                f"directories are nested more than {self.limits.max_depth} deep",
                code="too-deep",
                document=path,
                remedy="use fewer levels, or raise max_depth",
            )


class TreeReader:
    """Reads trees, remembering those already judged."""

    def __init__(self, source: TreeSource) -> None:
        self._source = source
        self._strict: dict[str, tuple[TreeEntry, ...]] = {}
        self._remembered = 0

    def entries(self, tree_id: str, path: str, limits: ReadLimits) -> tuple[TreeEntry, ...]:
        """Return the entries of a tree in which every name and mode is allowed."""
        entries = self._strict.get(tree_id)
        if entries is None:
            entries = strict_entries(self._raw(tree_id, path, limits), path)
            self._remember(tree_id, entries)
        if len(entries) > limits.max_directory_entries:
            raise InvalidInputError(
                f"the directory has {len(entries)} entries, "
                f"above the limit of {limits.max_directory_entries}",
                code="directory-too-large",
                document=path or "/",
                remedy="spread the files over more directories",
            )
        return entries

    def lookup(self, tree_id: str, path: str, limits: ReadLimits) -> str | None:
        """Return the id at `path`, whatever the names of its siblings."""
        names = check_path(path)
        for depth, name in enumerate(names):
            here = "/".join(names[:depth])
            wanted = name.encode("ascii")
            raw = self._raw(tree_id, here, limits)
            found = [entry for entry in parse_tree(raw, here) if entry[1] == wanted]
            if not found:
                return None
            if len(found) > 1:
                raise InvalidInputError(
                    "the name stands twice in its directory",
                    code="duplicate-name",
                    document=join(here, name),
                    remedy="keep one of the two and recommit the directory with git itself",
                )
            mode, _, object_id = found[0]
            if mode not in _LOOKUP_MODES:
                raise refused_mode(mode, join(here, name))
            if mode != b"40000" and depth + 1 < len(names):
                return None
            tree_id = object_id.hex()
        return tree_id

    def walk(self, tree_id: str, prefix: str, budget: _Budget, depth: int) -> Iterator[TreeFile]:
        """Yield every file below a tree in Git's order."""
        entries = self.entries(tree_id, prefix, budget.limits)
        budget.spend(len(entries), prefix, depth)
        head = f"{prefix}/" if prefix else ""
        for name, mode, kind, object_id in entries:
            if kind == "blob":
                yield TreeFile(head + name, mode, object_id)
            else:
                yield from self.walk(object_id, head + name, budget, depth + 1)

    def changes(
        self, old: str | None, new: str | None, prefix: str, budget: _Budget, depth: int
    ) -> Iterator[Change]:
        """Yield the differing files of two trees; equal subtrees are never read."""
        if old == new:
            return
        before = self._by_name(old, prefix, budget, depth)
        after = self._by_name(new, prefix, budget, depth)
        for name in sorted(before.keys() | after.keys()):
            left, right = before.get(name), after.get(name)
            if left == right:
                continue
            path = join(prefix, name)
            old_file, old_tree = _split(left, path)
            new_file, new_tree = _split(right, path)
            if old_file or new_file:
                yield Change(path, old_file, new_file)
            if old_tree or new_tree:
                yield from self.changes(old_tree, new_tree, path, budget, depth + 1)

    def _by_name(
        self, tree_id: str | None, prefix: str, budget: _Budget, depth: int
    ) -> Mapping[str, TreeEntry]:
        if tree_id is None:
            return {}
        entries = self.entries(tree_id, prefix, budget.limits)
        budget.spend(len(entries), prefix, depth)
        return {entry.name: entry for entry in entries}

    def _raw(self, tree_id: str, path: str, limits: ReadLimits) -> bytes:
        maximum = _BYTES_PER_ENTRY * limits.max_directory_entries
        return self._source.read(tree_id, "tree", maximum=maximum, what=f"directory {path or '/'}")

    def _remember(self, tree_id: str, entries: tuple[TreeEntry, ...]) -> None:
        self._remembered += len(entries) + 1
        if self._remembered > _REMEMBERED_ENTRIES:
            self._strict.clear()
            self._remembered = len(entries) + 1
        self._strict[tree_id] = entries


def start(limits: ReadLimits) -> _Budget:
    """Return a fresh budget for one walk."""
    return _Budget(limits)


def find_twins(paths: Iterable[str]) -> tuple[tuple[str, ...], ...]:
    """Return groups of paths that some systems cannot tell apart.

    Directories are compared too: ``a/x`` and ``A/y`` share no file, yet cannot both be checked
    out where letter case does not count.

    Parameters
    ----------
    paths : iterable of str
        Repository paths.

    Returns
    -------
    tuple of tuple of str
        Each group sorted; equal once case and Unicode normal form are ignored.
    """
    spellings: dict[str, set[str]] = {}
    seen: set[str] = set()
    for path in paths:
        # Walk up until a directory that was already entered: linear in the number of paths.
        while path and path not in seen:
            seen.add(path)
            spellings.setdefault(_folded(path), set()).add(path)
            path = path.rpartition("/")[0]
    groups = [tuple(sorted(group)) for group in spellings.values() if len(group) > 1]
    return tuple(sorted(groups))


def _folded(path: str) -> str:
    if path.isascii():
        return path.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", path).casefold())


def _split(entry: TreeEntry | None, path: str) -> tuple[TreeFile | None, str | None]:
    if entry is None:
        return None, None
    if entry.kind == "tree":
        return None, entry.id
    return TreeFile(path, entry.mode, entry.id), None

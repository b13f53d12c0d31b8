"""Parsers of Git's raw object bytes: commits, tags and trees, without any help from libgit2.

libgit2 obeys ``info/grafts`` when it lists parents, shows odd modes as ordinary ones and accepts
duplicate or unsorted names. Evidence must mean the same everywhere, so the bytes are judged here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from perfdb_git.errors import InvalidInputError, RepositoryUnavailableError

EntryKind: TypeAlias = Literal["blob", "tree"]
RawEntry: TypeAlias = tuple[bytes, bytes, bytes]
"""Mode, name and 20-byte object id as they stand in the tree."""

MAX_NAME_LENGTH = 200
NAME_REMEDY = (
    f"use 1 to {MAX_NAME_LENGTH} ASCII letters, digits and . _ - + = @, not starting with -, "
    "and none of '.', '..', '.git'"
)

_OBJECT_ID = re.compile(r"[0-9a-f]{40}")
_NAME = re.compile(rb"[A-Za-z0-9._+=@][A-Za-z0-9._+=@-]{0,%d}" % (MAX_NAME_LENGTH - 1))
_RESERVED_NAMES = frozenset({b".", b"..", b".git"})
_ENTRY = re.compile(rb"([0-7]{1,7}) ([^\0]+)\0(.{20})", re.DOTALL)
_COMMIT = re.compile(
    rb"tree ([0-9a-f]{40})\n((?:parent [0-9a-f]{40}\n)*)"
    rb"author ([^\n]*)\ncommitter [^\n]*> (-?[0-9]{1,18}) [+-][0-9]{1,7}\n"
)
_PARENT_LINE_LENGTH = len("parent \n") + 40
_TAG = re.compile(rb"object ([0-9a-f]{40})\ntype (commit|tree|blob|tag)\n")

_KINDS: dict[bytes, EntryKind] = {b"100644": "blob", b"100755": "blob", b"40000": "tree"}
_REFUSED_MODES = {
    b"120000": ("symlink", "is a symbolic link", "commit the file itself instead of a link"),
    b"160000": ("submodule", "is a submodule", "commit the files instead of a submodule"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """One commit as its own bytes describe it.

    Attributes
    ----------
    id, tree : str
        40 hexadecimal digits.
    parents : tuple of str
        The parents named in the commit; grafts and replace refs have no part in it.
    committer_time : int
        Seconds since 1970-01-01 UTC.
    author : str
        Name and address.
    author_time : int or None
        Seconds since 1970-01-01 UTC; None where the line is malformed.
    summary : str
        First line of the message.
    """

    id: str
    tree: str
    parents: tuple[str, ...]
    committer_time: int
    author: str
    author_time: int | None
    summary: str


class TreeEntry(NamedTuple):
    """One accepted entry of a tree: a regular file or a directory with a portable name."""

    name: str
    mode: int
    kind: EntryKind
    id: str


def is_object_id(text: str) -> bool:
    """Tell whether `text` is a full object id: 40 lower-case hexadecimal digits."""
    return _OBJECT_ID.fullmatch(text) is not None


def printable(name: bytes) -> str:
    """Return `name` as one line of printable ASCII, other bytes escaped."""
    text = name.decode("ascii", "backslashreplace")
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text)


def join(directory: str, name: str) -> str:
    """Join a repository path and one name."""
    return f"{directory}/{name}" if directory else name


def parse_commit(commit_id: str, raw: bytes) -> Commit:
    """Parse the raw bytes of a commit.

    Raises
    ------
    RepositoryUnavailableError
        'commit-malformed': tree, parents, author or committer are not where Git puts them.
    """
    match = _COMMIT.match(raw)
    if match is None:
        raise RepositoryUnavailableError(
            f"commit {commit_id} is malformed",
            code="commit-malformed",
            remedy="run 'git fsck'; a branch that does not contain this commit can still be read",
        )
    tree, parents, author, committer_time = match.groups()
    person, _, stamp = author.rpartition(b"> ")
    author_time = re.match(rb"-?[0-9]{1,18}(?= )", stamp)
    message = raw.partition(b"\n\n")[2].lstrip(b"\n")
    return Commit(
        id=commit_id,
        tree=tree.decode("ascii"),
        parents=tuple(
            parents[start + 7 : start + 47].decode("ascii")
            for start in range(0, len(parents), _PARENT_LINE_LENGTH)
        ),
        committer_time=int(committer_time),
        author=(person + b">").decode("utf-8", "replace"),
        author_time=int(author_time.group()) if author_time else None,
        summary=message.partition(b"\n")[0].decode("utf-8", "replace").rstrip(),
    )


def parse_tag(tag_id: str, raw: bytes) -> tuple[str, str]:
    """Return the id and the claimed kind of the object that an annotated tag names.

    Raises
    ------
    RepositoryUnavailableError
        'tag-malformed'.
    """
    match = _TAG.match(raw)
    if match is None:
        raise RepositoryUnavailableError(
            f"tag object {tag_id} is malformed",
            code="tag-malformed",
            remedy="name the commit itself instead of the tag",
        )
    return match.group(1).decode("ascii"), match.group(2).decode("ascii")


def parse_tree(raw: bytes, path: str) -> list[RawEntry]:
    """Split the raw bytes of a tree into entries without judging names, modes or order.

    Parameters
    ----------
    raw : bytes
        The tree object's content.
    path : str
        Where the tree stands in the repository, for messages.

    Raises
    ------
    InvalidInputError
        'tree-malformed': the bytes are not a sequence of entries.
    """
    entries: list[RawEntry] = _ENTRY.findall(raw)
    # findall skips what it cannot match, so any gap shows in the sum of the lengths.
    if sum(len(mode) + len(name) for mode, name, _ in entries) + 22 * len(entries) != len(raw):
        raise InvalidInputError(
            "the directory's tree object is malformed",
            code="tree-malformed",
            document=path or "/",
            remedy="run 'git fsck' and recommit the directory with git itself",
        )
    return entries


def accept_entry(entry: RawEntry, directory: str) -> TreeEntry:
    """Return an entry whose name and mode are allowed, else say why not.

    Raises
    ------
    InvalidInputError
        'odd-name', 'symlink', 'submodule' or 'odd-mode'.
    """
    mode, name, object_id = entry
    if _NAME.fullmatch(name) is None or name.lower() in _RESERVED_NAMES:
        raise InvalidInputError(
            "the name is not allowed in an evidence repository",
            code="odd-name",
            document=join(directory, printable(name)),
            remedy=NAME_REMEDY,
        )
    kind = _KINDS.get(mode)
    if kind is None:
        raise refused_mode(mode, join(directory, name.decode("ascii")))
    return TreeEntry(name.decode("ascii"), int(mode, 8), kind, object_id.hex())


def refused_mode(mode: bytes, path: str) -> InvalidInputError:
    """Return the error for an entry that is neither a regular file nor a directory."""
    code, reason, remedy = _REFUSED_MODES.get(
        mode,
        (
            "odd-mode",
            f"has the file mode {mode.decode('ascii')}",
            "only 100644, 100755 and directories are read; recommit the file with git itself",
        ),
    )
    return InvalidInputError(f"the entry {reason}", code=code, document=path, remedy=remedy)


def strict_entries(raw: bytes, path: str) -> tuple[TreeEntry, ...]:
    """Parse a tree and refuse everything that not every system could check out alike.

    Raises
    ------
    InvalidInputError
        'tree-malformed', 'odd-name', 'symlink', 'submodule', 'odd-mode', 'duplicate-name' or
        'unsorted-tree', naming the path.
    """
    entries = tuple([accept_entry(entry, path) for entry in parse_tree(raw, path)])
    seen: set[str] = set()
    previous = ""
    for entry in entries:
        if entry.name in seen:
            raise InvalidInputError(
                "the name stands twice in its directory",
                code="duplicate-name",
                document=join(path, entry.name),
                remedy="keep one of the two and recommit the directory with git itself",
            )
        seen.add(entry.name)
        key = entry.name + "/" if entry.kind == "tree" else entry.name
        if key <= previous:
            raise InvalidInputError(
                "the directory's tree object is not sorted",
                code="unsorted-tree",
                document=join(path, entry.name),
                remedy="recommit the directory with git itself",
            )
        previous = key
    return entries


def write_tree(entries: list[RawEntry]) -> bytes:
    """Return the tree object's bytes for `entries`, in Git's order."""
    ordered = sorted(entries, key=lambda e: e[1] + b"/" if e[0] == b"40000" else e[1])
    return b"".join(b"%b %b\0%b" % entry for entry in ordered)


def check_path(path: str) -> tuple[str, ...]:
    """Return the names in a repository path, each of them allowed.

    Raises
    ------
    InvalidInputError
        'odd-name'.
    """
    names = tuple(path.split("/"))
    for name in names:
        accept_entry((b"100644", name.encode("utf-8", "surrogateescape"), bytes(20)), "")
    return names

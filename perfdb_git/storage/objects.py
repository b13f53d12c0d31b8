"""Verified reading of Git objects: type, size and hash are checked before anyone sees a byte."""

from __future__ import annotations

from pathlib import Path

import pygit2

from perfdb_git.errors import InvalidInputError, RepositoryUnavailableError
from perfdb_git.storage.raw_objects import Commit, is_object_id, parse_commit, parse_tag

GIT_FAILURES = (pygit2.GitError, KeyError, ValueError, OSError)
"""What pygit2's calls raise; older releases use the plain built-in errors."""

MAX_HISTORY_OBJECT_BYTES = 16 * 1024 * 1024
"""Commits and tags are small; signatures and merge tags make some of them kilobytes."""

_KINDS = {1: "commit", 2: "tree", 3: "blob", 4: "tag"}
_MAX_TAG_NESTING = 16


class ObjectReader:
    """Reads objects of one repository by full id."""

    def __init__(self, repository: pygit2.Repository) -> None:
        self._repository = repository
        self._odb = repository.odb
        self._common_directory: Path | None = None

    @property
    def common_directory(self) -> Path:
        """The git directory shared by all linked work trees."""
        if self._common_directory is None:
            git_directory = Path(self._repository.path)
            pointer = git_directory / "commondir"
            if pointer.is_file():
                text = pointer.read_text(encoding="utf-8", errors="surrogateescape")
                git_directory /= text.strip()
            self._common_directory = git_directory.resolve()
        return self._common_directory

    @property
    def is_shallow(self) -> bool:
        """Whether history was cut by ``git clone --depth`` or alike."""
        # libgit2 looks in a linked work tree's own directory and misses the shared file.
        return bool(self._repository.is_shallow) or _has_content(self.common_directory / "shallow")

    @property
    def is_grafted(self) -> bool:
        """Whether ``info/grafts`` claims other parents than the commits do."""
        return _has_content(self.common_directory / "info" / "grafts")

    def kind_and_size(self, object_id: str, *, what: str) -> tuple[str, int]:
        """Return an object's kind and size from its header, without reading the content."""
        if not is_object_id(object_id):
            raise ValueError(f"not a full object id: {object_id!r}")
        try:
            kind, size = self._odb.read_header(object_id)
        except GIT_FAILURES as error:
            raise self._unreadable(error, object_id, what) from error
        return _KINDS.get(int(kind), "unknown"), size

    def blob_size(self, blob_id: str, *, what: str) -> int:
        """Return a blob's size in bytes."""
        kind, size = self.kind_and_size(blob_id, what=what)
        _require_kind(kind, "blob", blob_id, what)
        return size

    def read(self, object_id: str, kind: str, *, maximum: int, what: str) -> bytes:
        """Return an object's content after checking kind, size and hash.

        Parameters
        ----------
        object_id : str
            40 hexadecimal digits.
        kind : str
            'commit', 'tree', 'blob' or 'tag'.
        maximum : int
            Largest accepted size in bytes.
        what : str
            What the object is for, as messages name it.

        Raises
        ------
        RepositoryUnavailableError
            'object-missing', 'object-corrupt' or 'object-type-mismatch'.
        InvalidInputError
            '<kind>-too-large'.
        """
        found, size = self.kind_and_size(object_id, what=what)
        _require_kind(found, kind, object_id, what)
        if size > maximum:
            raise InvalidInputError(
                f"{kind} {object_id} has {size} bytes, above the limit of {maximum}",
                code=f"{kind}-too-large",
                document=what,
                remedy="split it into smaller files, or raise the limit",
            )
        try:
            read_kind, content = self._odb.read(object_id)
        except GIT_FAILURES as error:
            raise self._unreadable(error, object_id, what) from error
        _require_kind(_KINDS.get(int(read_kind), "unknown"), kind, object_id, what)
        return content

    def commit(self, commit_id: str) -> Commit:
        """Return a commit parsed from its own bytes."""
        return parse_commit(commit_id, self.raw_commit(commit_id))

    def raw_commit(self, commit_id: str) -> bytes:
        """Return a commit's own bytes, which its signature is over."""
        what = f"commit {commit_id}"
        return self.read(commit_id, "commit", maximum=MAX_HISTORY_OBJECT_BYTES, what=what)

    def peel(self, object_id: str, *, what: str) -> str:
        """Follow annotated tags, nested ones too, down to a commit and return its id.

        Raises
        ------
        RepositoryUnavailableError
            'not-a-commit' where the chain ends at a file or a directory.
        """
        for _ in range(_MAX_TAG_NESTING):
            kind, _size = self.kind_and_size(object_id, what=what)
            if kind == "commit":
                return object_id
            if kind != "tag":
                raise RepositoryUnavailableError(
                    f"{what} names a {kind}, not a commit",
                    code="not-a-commit",
                    remedy="name a branch, a tag of a commit, or a commit",
                )
            raw = self.read(object_id, "tag", maximum=MAX_HISTORY_OBJECT_BYTES, what=what)
            object_id, claimed = parse_tag(object_id, raw)
            _require_kind(self.kind_and_size(object_id, what=what)[0], claimed, object_id, what)
        raise RepositoryUnavailableError(
            f"{what} is a chain of more than {_MAX_TAG_NESTING} tags",
            code="not-a-commit",
            remedy="name the commit itself",
        )

    def _unreadable(
        self, error: Exception, object_id: str, what: str
    ) -> RepositoryUnavailableError:
        if isinstance(error, KeyError):
            return RepositoryUnavailableError(
                f"object {object_id} ({what}) is not present in {self.common_directory}",
                code="object-missing",
                remedy=self._missing_remedy(object_id),
            )
        return RepositoryUnavailableError(
            f"object {object_id} ({what}) in {self.common_directory} is damaged: {error}",
            code="object-corrupt",
            remedy="run 'git fsck --full', then fetch the object again from an intact clone",
        )

    def _missing_remedy(self, object_id: str) -> str:
        alternates = self.common_directory / "objects" / "info" / "alternates"
        if alternates.is_file():
            return f"the clone borrows objects: restore every directory listed in {alternates}"
        if any(entry.name.endswith(".promisor") for entry in self._repository.config):
            return (
                "this is a partial clone and reading never fetches: "
                f"run 'git fetch origin {object_id}' or clone without --filter"
            )
        if self.is_shallow:
            return "this is a shallow clone: run 'git fetch --unshallow'"
        return "fetch it from a complete clone and run 'git fsck --connectivity-only'"


def _has_content(path: Path) -> bool:
    try:
        return bool(path.read_bytes().strip())
    except FileNotFoundError:
        return False


def _require_kind(found: str, expected: str, object_id: str, what: str) -> None:
    if found != expected:
        raise RepositoryUnavailableError(
            f"object {object_id} ({what}) is a {found} where a {expected} is claimed",
            code="object-type-mismatch",
            remedy="run 'git fsck' and recommit the path with git itself",
        )

"""Commits of a few files on top of a branch, leaving everything else byte for byte as it was.

Trees are written from their raw entries: libgit2's tree builder would quietly rewrite odd modes of
neighbouring files. No hook, filter or signing program runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pygit2
from pygit2.enums import FileMode

from perfdb_git.errors import InvalidInputError, RepositoryUnavailableError, UsageError
from perfdb_git.storage.objects import GIT_FAILURES, ObjectReader
from perfdb_git.storage.raw_objects import RawEntry, check_path, parse_tree, write_tree

_TREE, _BLOB = 2, 3
_FILE_MODE = 0o100644
_FILE_MODES = (b"100644", b"100755")
_DIRECTORY_MODES = (b"40000",)
_MAX_TREE_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class _Tip:
    """Where the branch stood when the commit was prepared."""

    reference: str
    commit: str | None
    tree: str | None


class Committer:
    """Adds files to one repository's branches."""

    def __init__(self, repository: pygit2.Repository, objects: ObjectReader) -> None:
        self._repository = repository
        self._objects = objects

    def commit_files(self, files: Mapping[str, bytes], *, message: str, branch: str) -> str:
        """Commit `files` on top of `branch` and return the new commit's id.

        Raises
        ------
        UsageError, InvalidInputError, RepositoryUnavailableError
            See `GitStore.commit_files`.
        """
        _check_request(files, message)
        signature = self._identity()
        tip = self._tip(branch)
        index = self._index(tip.reference)
        contents = {path: self._repository.odb.write(_BLOB, files[path]).raw for path in files}
        tree = self._tree_with(tip.tree, {tuple(p.split("/")): b for p, b in contents.items()}, "")
        if index is not None:
            for path, blob in contents.items():
                _check_index(index, path, self._blob_at(tip.tree, path), blob.hex())
        if tree == tip.tree:
            raise UsageError(
                "nothing to commit: every file is already there with the same content",
                code="nothing-to-commit",
                remedy="leave --commit out",
            )
        commit = self._create(tip, signature, message, tree)
        if index is not None:
            _update_index(index, contents, commit)
        return commit

    def _identity(self) -> pygit2.Signature:
        try:
            return self._repository.default_signature
        except GIT_FAILURES as error:
            raise UsageError(
                "git has no identity to commit with",
                code="no-identity",
                remedy="run 'git config user.name NAME' and 'git config user.email ADDRESS'",
            ) from error

    def _tip(self, branch: str) -> _Tip:
        """Return the reference that moves, and its commit, or none on an unborn branch."""
        name = branch if branch == "HEAD" or branch.startswith("refs/heads/") else ""
        name = name or f"refs/heads/{branch}"
        try:
            reference = self._repository.lookup_reference(name)
            reference.resolve()  # refuses an endless chain of symbolic references
            while not isinstance(reference.target, pygit2.Oid):
                name = str(reference.target)
                reference = self._repository.lookup_reference(name)
        except (KeyError, ValueError) as error:
            if branch != "HEAD":
                raise UsageError(
                    f"there is no branch {branch!r} to commit to",
                    code="unknown-branch",
                    remedy="create it with 'git branch'",
                ) from error
            return _Tip(name, None, None)
        except GIT_FAILURES as error:
            raise RepositoryUnavailableError(
                f"branch '{branch}' cannot be read: {error}",
                code="reference-corrupt",
                remedy="run 'git fsck' and restore the reference",
            ) from error
        commit = self._objects.commit(str(reference.target))
        return _Tip(name, commit.id, commit.tree)

    def _index(self, reference: str) -> pygit2.Index | None:
        """Return the index to keep in step: only of a work tree that has `reference` out."""
        if self._repository.workdir is None:
            return None
        head = self._repository.lookup_reference("HEAD")
        if reference not in ("HEAD", head.target):
            return None
        try:
            index: pygit2.Index = self._repository.index
            index.read()
        except GIT_FAILURES as error:
            raise RepositoryUnavailableError(
                f"the git index cannot be read: {error}",
                code="index-unreadable",
                remedy="for a sparse index run 'git sparse-checkout reapply --no-sparse-index'",
            ) from error
        return index

    def _entries(self, tree: str, path: str) -> list[RawEntry]:
        what = f"directory {path or '/'}"
        raw = self._objects.read(tree, "tree", maximum=_MAX_TREE_BYTES, what=what)
        return parse_tree(raw, path)

    def _blob_at(self, tree: str | None, path: str) -> str | None:
        for name in path.split("/"):
            if tree is None:
                return None
            wanted = name.encode("ascii")
            found = [e for e in self._entries(tree, path) if e[1] == wanted]
            tree = found[0][2].hex() if found else None
        return tree

    def _tree_with(
        self, tree: str | None, contents: Mapping[tuple[str, ...], bytes], path: str
    ) -> str:
        """Write the tree that has `contents` added below `path`, and return its id."""
        entries = self._entries(tree, path) if tree is not None else []
        groups: dict[str, dict[tuple[str, ...], bytes]] = {}
        for names, blob in contents.items():
            groups.setdefault(names[0], {})[names[1:]] = blob
        for name, below in groups.items():
            here = f"{path}/{name}" if path else name
            same = [entry for entry in entries if entry[1] == name.encode("ascii")]
            is_file = () in below
            wanted = _FILE_MODES if is_file else _DIRECTORY_MODES
            if len(same) > 1 or any(mode not in wanted for mode, _, _ in same):
                raise InvalidInputError(
                    "something of another kind stands there",
                    code="path-conflict",
                    document=here,
                    remedy="choose another path, or move what is there",
                )
            if is_file:
                mode, object_id = (same[0][0] if same else b"100644"), below[()]
            else:
                subtree = same[0][2].hex() if same else None
                mode, object_id = b"40000", bytes.fromhex(self._tree_with(subtree, below, here))
            entries = [entry for entry in entries if entry not in same]
            entries.append((mode, name.encode("ascii"), object_id))
        return str(self._repository.odb.write(_TREE, write_tree(entries)))

    def _create(self, tip: _Tip, signature: pygit2.Signature, message: str, tree: str) -> str:
        parents: list[str | pygit2.Oid] = [] if tip.commit is None else [tip.commit]
        try:
            # libgit2 locks the reference and refuses unless the first parent is still its tip.
            commit = self._repository.create_commit(
                tip.reference, signature, signature, message, pygit2.Oid(hex=tree), parents
            )
        except GIT_FAILURES as error:
            raise RepositoryUnavailableError(
                f"the commit was not made: {tip.reference} moved or is locked ({error})",
                code="head-moved",
                remedy="run the command again",
            ) from error
        return str(commit)


def _check_request(files: Mapping[str, bytes], message: str) -> None:
    if not files or not message.strip() or "\0" in message:
        raise UsageError(
            "a commit needs files and a message", code="empty-commit", remedy="give both"
        )
    for path in files:
        names = check_path(path)
        for end in range(1, len(names)):
            if "/".join(names[:end]) in files:
                raise InvalidInputError(
                    "a file and a directory would have one name",
                    code="path-conflict",
                    document=path,
                    remedy="choose another path",
                )


def _check_index(index: pygit2.Index, path: str, committed: str | None, new: str) -> None:
    """Refuse to overwrite what the user has staged."""
    names = path.split("/")
    parents = ["/".join(names[:end]) for end in range(1, len(names))]
    if _staged(index, path) not in (committed, new) or any(p in index for p in parents):
        raise UsageError(
            f"{path} is already staged with other content",
            code="already-staged",
            remedy=f"run 'git restore --staged {path}' or commit what is staged first",
        )


def _staged(index: pygit2.Index, path: str) -> str | None:
    """Return the staged blob's id, '' for an unresolved merge conflict, None for nothing."""
    try:
        return str(index[path].id)
    except KeyError:
        return "" if path in index else None


def _update_index(index: pygit2.Index, contents: Mapping[str, bytes], commit: str) -> None:
    try:
        index.read(force=False)  # keep what another command staged meanwhile
        for path, blob in contents.items():
            mode = index[path].mode if path in index else _FILE_MODE
            # No stat data: git compares the file's content once and then remembers it.
            index.add(pygit2.IndexEntry(path, pygit2.Oid(raw=blob), FileMode(mode)))
        index.write()
    except GIT_FAILURES as error:
        raise RepositoryUnavailableError(
            f"commit {commit} was made, but the git index was not updated: {error}",
            code="index-locked",
            remedy="run 'git reset' once no other git command is running",
        ) from error

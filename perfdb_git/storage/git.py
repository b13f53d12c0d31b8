"""The evidence's object store: a Git repository, read as objects only.

Nothing here runs a program, a hook or a filter, fetches from a remote, or reads a file of the work
tree; whatever a hostile repository holds is either returned as verified bytes or refused with a
reason. This module and those it is split into (`opening`, `objects`, `revisions`, `committing`)
are the only ones that import pygit2.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pygit2

from perfdb_git.errors import InvalidInputError, RepositoryUnavailableError
from perfdb_git.storage import ancestry, trees
from perfdb_git.storage.commit_signatures import SignedCommit, split_signature
from perfdb_git.storage.committing import Committer
from perfdb_git.storage.objects import ObjectReader
from perfdb_git.storage.opening import open_repository
from perfdb_git.storage.raw_objects import Commit, TreeEntry
from perfdb_git.storage.revisions import ResolvedRevision, RevisionResolver, parent_commit
from perfdb_git.storage.trees import (
    DEFAULT_LIMITS,
    Change,
    ReadLimits,
    TreeFile,
    TreeReader,
    find_twins,
)

__all__ = [
    "DEFAULT_LIMITS",
    "Change",
    "Commit",
    "GitStore",
    "ReadLimits",
    "ResolvedRevision",
    "TreeEntry",
    "TreeFile",
    "find_twins",
]


class GitStore:
    """One Git repository, opened for reading objects and for adding files.

    Make one with `GitStore.open`.
    """

    def __init__(self, repository: pygit2.Repository) -> None:
        self._repository = repository
        self._objects = ObjectReader(repository)
        self._trees = TreeReader(self._objects)
        self._revisions = RevisionResolver(repository, self._objects)

    @classmethod
    def open(cls, path: Path | str) -> GitStore:
        """Open the repository that `path` lies in.

        Parameters
        ----------
        path : path or str
            A repository, bare or not, or any folder of a work tree, linked ones too. The
            environment's ``GIT_DIR`` has no part in it.

        Raises
        ------
        RepositoryUnavailableError
            'not-a-repository', 'unsafe-owner', 'sha256-repository', 'reftable-repository',
            'partial-clone-extension', 'unknown-extension', 'unsupported-format-version' or
            'repository-unreadable'.
        """
        return cls(open_repository(path))

    @property
    def git_directory(self) -> Path:
        """The real git directory, which a ``.git`` file may put anywhere."""
        return Path(self._repository.path).resolve()

    @property
    def work_tree(self) -> Path | None:
        """The folder with the checked-out files, or None in a bare repository."""
        work_tree = self._repository.workdir
        return None if work_tree is None else Path(work_tree)

    @property
    def is_bare(self) -> bool:
        """Whether the repository has no work tree."""
        return bool(self._repository.is_bare)

    @property
    def is_shallow(self) -> bool:
        """Whether history was cut by ``git clone --depth`` or alike."""
        return self._objects.is_shallow

    def resolve_revision(self, text: str) -> ResolvedRevision:
        """Return the commit that a revision names.

        Parameters
        ----------
        text : str
            ``HEAD``, a branch, a tag, a remote branch, ``refs/...``, 40 hexadecimal digits or an
            abbreviation of at least 7, followed by any number of ``~n``, ``^`` and ``^n``. A tag
            wins over a branch of its name and a branch over an abbreviated hash, each with a
            warning; 40 digits are always the object.

        Raises
        ------
        RepositoryUnavailableError
            'revision-refused', 'unknown-revision', 'ambiguous-revision', 'not-a-commit',
            'shallow-history', 'reference-corrupt', or what `read_commit` raises.
        """
        return self._revisions.resolve(text)

    def read_commit(self, commit: str) -> Commit:
        """Return a commit parsed from its own bytes.

        Raises
        ------
        RepositoryUnavailableError
            'object-missing', 'object-corrupt', 'object-type-mismatch' or 'commit-malformed'.
        """
        return self._objects.commit(commit)

    def first_parents(self, commit: str) -> Iterator[Commit]:
        """Yield a commit, its first parent, that one's first parent, and so on.

        Raises
        ------
        RepositoryUnavailableError
            'shallow-history' where a shallow clone's history is cut.
        """
        current = self._objects.commit(commit)
        yield current
        while current.parents:
            current = parent_commit(self._objects, current.parents[0], of=current.id)
            yield current

    def signed_commits(self, base: str, head: str) -> tuple[SignedCommit, ...]:
        """Return the commits reachable from one commit and not from another, oldest first.

        Raises
        ------
        RepositoryUnavailableError
            'shallow-history', 'grafted-history', or what `read_commit` raises.
        """
        self.require_complete_history()
        found = []
        for name in ancestry.commits_between(self._objects.commit, base, head):
            payload, signature = split_signature(self._objects.raw_commit(name))
            found.append(
                SignedCommit(
                    id=name,
                    committer_time=self._objects.commit(name).committer_time,
                    payload=payload,
                    signature=signature,
                )
            )
        return tuple(found)

    def require_complete_history(self) -> None:
        """Refuse to judge ancestry where some of it is hidden.

        Raises
        ------
        RepositoryUnavailableError
            'shallow-history' or 'grafted-history'.
        """
        if self.is_shallow:
            raise RepositoryUnavailableError(
                f"{self.git_directory} is a shallow clone, so ancestry cannot be judged",
                code="shallow-history",
                remedy="run 'git fetch --unshallow' (in CI: fetch-depth: 0)",
            )
        if self._objects.is_grafted:
            raise RepositoryUnavailableError(
                f"{self._objects.common_directory / 'info' / 'grafts'} rewrites ancestry",
                code="grafted-history",
                remedy="remove that file and run 'git fsck'",
            )

    def is_ancestor(self, ancestor: str, descendant: str) -> bool:
        """Tell whether one commit is reachable from another; a commit reaches itself.

        Raises
        ------
        RepositoryUnavailableError
            'shallow-history', 'grafted-history', or what `read_commit` raises.
        """
        self.require_complete_history()
        self._objects.commit(ancestor)
        return ancestry.is_ancestor(self._objects.commit, ancestor, (descendant,))

    def merge_bases(self, left: str, right: str) -> tuple[str, ...]:
        """Return all best common ancestors, newest first; several after criss-cross merges.

        Raises
        ------
        RepositoryUnavailableError
            'shallow-history', 'grafted-history', or what `read_commit` raises.
        """
        self.require_complete_history()
        return ancestry.merge_bases(self._objects.commit, left, right)

    def merge_base(self, left: str, right: str) -> str | None:
        """Return the newest best common ancestor, or None for unrelated histories.

        Raises
        ------
        RepositoryUnavailableError
            'shallow-history', 'grafted-history', or what `read_commit` raises.
        """
        return next(iter(self.merge_bases(left, right)), None)

    def lookup(self, tree_id: str, path: str, *, limits: ReadLimits = DEFAULT_LIMITS) -> str | None:
        """Return the id of the file or directory at `path`, or None; siblings may be anything.

        Raises
        ------
        InvalidInputError
            'symlink', 'submodule', 'odd-mode' or 'duplicate-name' on the way to `path`;
            'odd-name' where `path` itself is not allowed.
        RepositoryUnavailableError
            What `read_blob` raises.
        """
        return self._trees.lookup(tree_id, path, limits)

    def read_tree(
        self, tree_id: str, *, limits: ReadLimits = DEFAULT_LIMITS, path: str = ""
    ) -> tuple[TreeEntry, ...]:
        """Return the entries of one directory in which every name and mode is allowed.

        Parameters
        ----------
        tree_id : str
            40 hexadecimal digits.
        limits : ReadLimits
            Bounds.
        path : str
            Where the directory stands, for messages.

        Raises
        ------
        InvalidInputError
            'odd-name', 'symlink', 'submodule', 'odd-mode', 'duplicate-name', 'unsorted-tree',
            'tree-malformed', 'tree-too-large' or 'directory-too-large'.
        RepositoryUnavailableError
            What `read_blob` raises.
        """
        return self._trees.entries(tree_id, path, limits)

    def walk(
        self, tree_id: str, *, limits: ReadLimits = DEFAULT_LIMITS, prefix: str = ""
    ) -> Iterator[TreeFile]:
        """Yield every file below a directory, in Git's order.

        Parameters
        ----------
        tree_id : str
            40 hexadecimal digits.
        limits : ReadLimits
            Bounds.
        prefix : str
            Where the directory stands; paths start with it.

        Raises
        ------
        InvalidInputError
            What `read_tree` raises, and 'too-many-entries' or 'too-deep'.
        RepositoryUnavailableError
            What `read_blob` raises.
        """
        return self._trees.walk(tree_id, prefix, trees.start(limits), 0)

    def changed_paths(
        self,
        old_tree: str | None,
        new_tree: str | None,
        *,
        limits: ReadLimits = DEFAULT_LIMITS,
        prefix: str = "",
    ) -> Iterator[Change]:
        """Yield the files that differ between two directories; None is an absent directory.

        Equal subtrees are skipped unread, so the cost follows the change, not the evidence.

        Raises
        ------
        InvalidInputError, RepositoryUnavailableError
            What `walk` raises, on either side.
        """
        return self._trees.changes(old_tree, new_tree, prefix, trees.start(limits), 0)

    def blob_size(self, blob_id: str, *, path: str | None = None) -> int:
        """Return a file's size in bytes without reading its content.

        Raises
        ------
        RepositoryUnavailableError
            What `read_blob` raises.
        """
        return self._objects.blob_size(blob_id, what=path or "file")

    def read_blob(
        self, blob_id: str, *, limits: ReadLimits = DEFAULT_LIMITS, path: str | None = None
    ) -> bytes:
        """Return a file's bytes as they were committed, after checking size, type and hash.

        Parameters
        ----------
        blob_id : str
            40 hexadecimal digits.
        limits : ReadLimits
            Bounds.
        path : str or None
            Where the file stands, for messages.

        Raises
        ------
        InvalidInputError
            'blob-too-large'.
        RepositoryUnavailableError
            'object-missing', 'object-corrupt' or 'object-type-mismatch'.
        """
        maximum = limits.max_blob_bytes
        return self._objects.read(blob_id, "blob", maximum=maximum, what=path or "file")

    def read_blobs(
        self, files: Iterable[TreeFile], *, limits: ReadLimits = DEFAULT_LIMITS
    ) -> Iterator[tuple[TreeFile, bytes]]:
        """Yield files with their bytes, bounding the sum of their sizes.

        Raises
        ------
        InvalidInputError
            What `read_blob` raises, and 'too-many-bytes'.
        RepositoryUnavailableError
            What `read_blob` raises.
        """
        total = 0
        for file in files:
            content = self.read_blob(file.id, limits=limits, path=file.path)
            total += len(content)
            if total > limits.max_total_bytes:
                raise InvalidInputError(
                    f"the files read so far exceed {limits.max_total_bytes} bytes",
                    code="too-many-bytes",
                    document=file.path,
                    remedy="read fewer files at once, or raise max_total_bytes",
                )
            yield file, content

    def commit_files(
        self, files: Mapping[str, bytes], *, message: str, branch: str = "HEAD"
    ) -> str:
        """Commit `files` on top of a branch and return the new commit's id.

        Everything else in the tree stays byte for byte; files in the work tree are not touched.
        Where `branch` is checked out, the git index gets exactly these paths, so ``git status``
        is clean for them once the caller has written them to disk. Hooks and signing do not run.

        Parameters
        ----------
        files : mapping of str to bytes
            Repository path to content; present files are replaced.
        message : str
            Commit message.
        branch : str
            ``HEAD`` or a branch.

        Raises
        ------
        UsageError
            'no-identity', 'already-staged', 'nothing-to-commit', 'unknown-branch' or
            'empty-commit'.
        InvalidInputError
            'odd-name' or 'path-conflict'.
        RepositoryUnavailableError
            'head-moved', 'index-unreadable', 'index-locked', 'reference-corrupt', or what
            `read_blob` raises.
        """
        committer = Committer(self._repository, self._objects)
        return committer.commit_files(files, message=message, branch=branch)

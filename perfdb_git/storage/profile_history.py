"""What stood under ``profiles`` before: every earlier content of every profile, each once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from perfdb_git.errors import InvalidInputError
from perfdb_git.storage import layout
from perfdb_git.storage.git import GitStore


class EarlierProfile(NamedTuple):
    """A file under ``profiles`` at a commit; ``id`` is its blob."""

    path: str
    id: str
    commit: str


class ProfileHistory:
    """Profiles of a commit and of its first parents.

    Parameters
    ----------
    store : GitStore
        The repository.
    commit : str
        Full commit id, where the walk begins.
    """

    def __init__(self, store: GitStore, commit: str) -> None:
        self._store = store
        self._commit = commit

    def profiles(self) -> Iterator[EarlierProfile]:
        """Yield each content that a path had, with the newest commit that has it.

        Only directories that differ from the next commit's are read. What was never a sound tree
        holds no profile.

        Raises
        ------
        RepositoryUnavailableError
            Where history is cut or an object is missing; what was yielded before stands.
        """
        seen: set[tuple[str, str]] = set()
        trees: set[str | None] = {None}
        for commit in self._store.first_parents(self._commit):
            try:
                tree = self._store.lookup(commit.tree, layout.PROFILES)
            except InvalidInputError:
                continue
            if tree in trees:
                continue
            trees.add(tree)
            for path, blob in self._files(tree):
                if (path, blob) not in seen:
                    seen.add((path, blob))
                    yield EarlierProfile(path, blob, commit.id)

    def read(self, profile: EarlierProfile) -> bytes:
        """Return a profile's content.

        Raises
        ------
        InvalidInputError, RepositoryUnavailableError
            What `GitStore.read_blob` raises.
        """
        return self._store.read_blob(profile.id, path=profile.path)

    def _files(self, tree: str | None) -> Iterator[tuple[str, str]]:
        if tree is None:
            return
        try:
            for file in self._store.walk(tree, prefix=layout.PROFILES):
                yield file.path, file.id
        except InvalidInputError:
            # A name or mode that no snapshot accepts; the check of its own commit says so.
            return

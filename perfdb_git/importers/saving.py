"""Writing an import's files to the work tree, and committing them where that is asked for."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from perfdb_git.errors import PerfdbError, RepositoryUnavailableError
from perfdb_git.storage.append import write_new_files
from perfdb_git.storage.git import GitStore


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedFiles:
    """The files that were not there before, and the commit that holds them all."""

    written: tuple[str, ...]
    commit: str | None


def save_files(repository: Path, contents: Mapping[str, bytes], message: str | None) -> SavedFiles:
    """Write new files, all of them or none.

    Parameters
    ----------
    repository : Path
        The folder that holds ``evidence``.
    contents : mapping of str to bytes
        By path below it.
    message : str or None
        Of a commit; None leaves Git alone.

    Raises
    ------
    RepositoryUnavailableError
        The repository cannot be written.
    """
    written = tuple(write_new_files(repository, contents))
    if message is None:
        return SavedFiles(written=written, commit=None)
    # A manifest may be there uncommitted, so all the files go in, not the written ones alone.
    commit = commit_written(repository, contents, message, written=written)
    return SavedFiles(written=written, commit=commit)


def commit_written(
    repository: Path, paths: Iterable[str], message: str, *, written: Collection[str]
) -> str:
    """Commit files as they are on disk; when that fails, take back what was written.

    Parameters
    ----------
    repository : Path
        The folder that holds ``evidence``.
    paths : iterable of str
        The files, below it.
    message : str
        Of the commit.
    written : collection of str
        Those of them that were not there before.

    Returns
    -------
    str
        The commit's id.
    """
    try:
        store = GitStore.open(repository)
        files = _FilesOnDisk(repository, _prefix(store, repository), paths)
        return store.commit_files(files, message=message)
    except PerfdbError:
        for path in written:
            (repository / path).unlink(missing_ok=True)
        raise


class _FilesOnDisk(Mapping[str, bytes]):
    """Files by their path in the repository, read when they are asked for."""

    def __init__(self, folder: Path, prefix: str, paths: Iterable[str]) -> None:
        self._files = {prefix + path: folder / path for path in paths}

    def __getitem__(self, path: str) -> bytes:
        try:
            return self._files[path].read_bytes()
        except OSError as error:
            raise RepositoryUnavailableError(
                f"{path} cannot be read back: {error.strerror}", code="worktree-changed"
            ) from error

    def __iter__(self) -> Iterator[str]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)


def _prefix(store: GitStore, repository: Path) -> str:
    """Return the path of the evidence folder's parent inside the work tree."""
    top = store.work_tree
    if top is None:
        raise RepositoryUnavailableError(
            "the repository has no work tree to import into",
            code="no-work-tree",
            remedy="import in a checkout",
        )
    relative = repository.resolve().relative_to(top.resolve()).as_posix()
    return "" if relative == "." else f"{relative}/"

"""Writing an import's files to the work tree, and committing them where that is asked for."""

from __future__ import annotations

from collections.abc import Collection, Mapping
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
    return SavedFiles(written=written, commit=_committed(repository, contents, message, written))


def _committed(
    repository: Path, contents: Mapping[str, bytes], message: str, written: Collection[str]
) -> str:
    """Commit the files; when that fails, take back what was written."""
    try:
        store = GitStore.open(repository)
        prefix = _prefix(store, repository)
        # A manifest may be there uncommitted, so all the files go in, not the written ones alone.
        prefixed = {prefix + path: content for path, content in contents.items()}
        return store.commit_files(prefixed, message=message)
    except PerfdbError:
        for path in written:
            (repository / path).unlink(missing_ok=True)
        raise


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

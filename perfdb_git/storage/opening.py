"""Opening a repository: found from any folder in it, refused with a reason where unreadable."""

from __future__ import annotations

from pathlib import Path

import pygit2

from perfdb_git.errors import RepositoryUnavailableError
from perfdb_git.storage.objects import GIT_FAILURES

_CLONE_REMEDY = "clone it again without that feature, using a plain 'git clone'"
_OPENING_FAILURES = (
    (
        "not owned by current user",
        "unsafe-owner",
        "if you trust its owner: git config --global --add safe.directory '{path}'",
    ),
    (
        "unknown object format",
        "sha256-repository",
        "only SHA-1 repositories can be read: convert it, or 'git init --object-format=sha1'",
    ),
    (
        "extensions.refstorage",
        "reftable-repository",
        "run 'git refs migrate --ref-format=files', or clone with --ref-format=files",
    ),
    (
        "extensions.partialclone",
        "partial-clone-extension",
        "clone it again without --filter: reading evidence never fetches",
    ),
    ("unsupported extension", "unknown-extension", _CLONE_REMEDY),
    ("unsupported repository version", "unsupported-format-version", _CLONE_REMEDY),
)


def open_repository(path: Path | str) -> pygit2.Repository:
    """Open the repository that `path` lies in.

    Raises
    ------
    RepositoryUnavailableError
        See `GitStore.open`.
    """
    # Another library in this process may have turned it off: a hash not checked is no proof.
    pygit2.settings.enable_strict_hash_verification(True)
    try:
        found = pygit2.discover_repository(str(path))
        if found is not None:
            return pygit2.Repository(found)
    except GIT_FAILURES as error:
        raise _opening_failure(path, error) from error
    raise RepositoryUnavailableError(
        f"{path} is not in a git repository",
        code="not-a-repository",
        remedy="name a folder of the evidence repository with --repo",
    )


def _opening_failure(path: Path | str, error: Exception) -> RepositoryUnavailableError:
    text = str(error)
    for phrase, code, remedy in _OPENING_FAILURES:
        if phrase in text:
            remedy = remedy.format(path=_named_path(text, path))
            return RepositoryUnavailableError(
                f"{path} cannot be opened: {text}", code=code, remedy=remedy
            )
    return RepositoryUnavailableError(
        f"{path} cannot be opened: {text}",
        code="repository-unreadable",
        remedy="check the path and its permissions, and run 'git fsck' there",
    )


def _named_path(text: str, path: Path | str) -> str:
    """Return the path that libgit2's message quotes: the one safe.directory must name."""
    quoted = text.split("'")
    return quoted[1] if len(quoted) > 2 else str(path)

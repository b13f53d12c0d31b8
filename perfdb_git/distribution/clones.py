"""A worker's own clone of an evidence repository that it is told the URL of.

It stands in the cache directory, bare, and is fetched into when it lacks the commit asked for. The
program ``git`` does both, with the credentials that it has on the worker.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from perfdb_git.errors import ClusterUnavailableError, RepositoryUnavailableError
from perfdb_git.formats.digests import sha256_hex
from perfdb_git.storage.cache_directory import default_cache_directory
from perfdb_git.storage.git import GitStore

_URL = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*://|[^/]+@[^/]+:")
_EVERYTHING = ("+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*")


def is_url(repository: str) -> bool:
    """Tell whether a repository is named by a URL, or as ``user@host:path``."""
    return _URL.match(repository) is not None


def clone_with(url: str, commit: str) -> Path:
    """Return this machine's clone of a repository, fetched into if it lacks a commit.

    Raises
    ------
    ClusterUnavailableError
        'clone-failed' where git does not get it, or is not there.
    """
    path = default_cache_directory() / "clones" / f"{sha256_hex(url.encode('utf-8'))[:32]}.git"
    if not path.is_dir():
        _clone(url, path)
    elif not _has(path, commit):
        _git("-C", str(path), "fetch", "--quiet", "--", url, *_EVERYTHING)
    return path


def _clone(url: str, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        _git("clone", "--quiet", "--bare", "--", url, temporary)
        Path(temporary).replace(path)
    except OSError:
        # Another worker of this machine was quicker; its clone is as good.
        if not path.is_dir():
            raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _has(path: Path, commit: str) -> bool:
    try:
        GitStore.open(path).read_commit(commit)
    except RepositoryUnavailableError:
        return False
    return True


def _git(*arguments: str) -> None:
    environment = {**os.environ, "GIT_TERMINAL_PROMPT": "0"}
    try:
        done = subprocess.run(
            ["git", *arguments],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
        )
    except FileNotFoundError:
        raise _failed("has no program git") from None
    if done.returncode != 0:
        # What git says names the URL, which may hold a password.
        raise _failed(f"cannot clone or fetch the repository (git ended with {done.returncode})")


def _failed(reason: str) -> ClusterUnavailableError:
    return ClusterUnavailableError(
        f"a worker {reason}",
        code="clone-failed",
        remedy="try 'git clone' with that URL on the worker",
    )

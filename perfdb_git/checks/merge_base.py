"""The commit that a pull request started from, or why nobody can tell."""

from __future__ import annotations

from perfdb_git.errors import RepositoryUnavailableError
from perfdb_git.storage.git import GitStore

_SHORT = 12


def merge_base(store: GitStore, base: str, head: str) -> str:
    """Return the one best common ancestor of two commits.

    Parameters
    ----------
    store : GitStore
        The repository.
    base, head : str
        Full commit ids.

    Raises
    ------
    RepositoryUnavailableError
        'shallow-history' or 'grafted-history' where ancestry is hidden, 'unrelated-histories'
        where there is no common ancestor, 'several-merge-bases' where there is no best one.
    """
    found = store.merge_bases(base, head)
    if not found:
        raise RepositoryUnavailableError(
            f"commits {base[:_SHORT]} and {head[:_SHORT]} have no common ancestor: the base was "
            "rewritten (a forced push), or is another history",
            code="unrelated-histories",
            remedy="fetch the base branch again and rebase the change onto it",
        )
    if len(found) > 1:
        listed = ", ".join(name[:_SHORT] for name in found)
        raise RepositoryUnavailableError(
            f"commits {base[:_SHORT]} and {head[:_SHORT]} have {len(found)} best common ancestors "
            f"({listed}), so it is open whose gates judge",
            code="several-merge-bases",
            remedy="merge the base branch into the change once more, or rebase the change onto it",
        )
    return found[0]

"""Which commit of a history brought each record set in."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from perfdb_git.errors import RepositoryUnavailableError
from perfdb_git.storage import layout
from perfdb_git.storage.git import Commit, GitStore

_CUT_OFF = "shallow-history"


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """The first-parent commit that brought a file in; a merge brings what its branch added.

    Attributes
    ----------
    place : int
        Steps from the commit that the walk began at: a higher one is older.
    commit : str
        Full commit id.
    summary : str
        First line of its message.
    """

    place: int
    commit: str
    summary: str


def arrivals(store: GitStore, head: str, paths: Collection[str]) -> tuple[dict[str, Arrival], bool]:
    """Follow first parents until every file is accounted for.

    Parameters
    ----------
    store : GitStore
        The repository.
    head : str
        Full id of a commit that has the files.
    paths : collection of str
        Files below the folder of records.

    Returns
    -------
    found : dict of str to Arrival
        By path; without those that came before a shallow clone's history begins.
    complete : bool
        Whether none is missing.

    Raises
    ------
    RepositoryUnavailableError
        Where an object is missing; the end of a shallow clone's history is no error.
    """
    wanted = set(paths)
    found: dict[str, Arrival] = {}
    newer: Commit | None = None
    newer_tree: str | None = None
    place = -1
    try:
        for commit in store.first_parents(head):
            if not wanted:
                break
            tree = store.lookup(commit.tree, layout.RECORDS)
            if newer is not None:
                _take(
                    store,
                    (tree, newer_tree),
                    Arrival(place=place, commit=newer.id, summary=newer.summary),
                    wanted,
                    found,
                )
            newer, newer_tree, place = commit, tree, place + 1
    except RepositoryUnavailableError as error:
        if error.code != _CUT_OFF:
            raise
        return found, not wanted
    if newer is not None:
        # Where history begins, everything that is left was there.
        begin = Arrival(place=place, commit=newer.id, summary=newer.summary)
        found.update(dict.fromkeys(wanted, begin))
    return found, True


def _take(
    store: GitStore,
    trees: tuple[str | None, str | None],
    arrival: Arrival,
    wanted: set[str],
    found: dict[str, Arrival],
) -> None:
    old, new = trees
    if old == new:
        return
    for change in store.changed_paths(old, new, prefix=layout.RECORDS):
        if change.old is None and change.path in wanted:
            wanted.remove(change.path)
            found[change.path] = arrival

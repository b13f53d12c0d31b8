"""Ancestry over the parents that commits themselves name, oblivious to grafts and replace refs.

Commit dates only order the searches: wrong clocks make them slower, not wrong.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Set

from perfdb_git.storage.raw_objects import Commit

_LEFT, _RIGHT, _STALE = 1, 2, 4
_BOTH = _LEFT | _RIGHT


class _Frontier:
    """Commits still to be visited, newest first, each at most once at a time."""

    def __init__(self, read: Callable[[str], Commit]) -> None:
        self._read = read
        self._heap: list[tuple[int, str]] = []
        self._waiting: set[str] = set()
        self.commits: dict[str, Commit] = {}

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def push(self, name: str) -> None:
        if name in self._waiting:
            return
        if name not in self.commits:
            self.commits[name] = self._read(name)
        self._waiting.add(name)
        heapq.heappush(self._heap, self.order(name))

    def pop(self) -> Commit:
        name = heapq.heappop(self._heap)[1]
        self._waiting.discard(name)
        return self.commits[name]

    def order(self, name: str) -> tuple[int, str]:
        return -self.commits[name].committer_time, name


def is_ancestor(read: Callable[[str], Commit], ancestor: str, descendants: Iterable[str]) -> bool:
    """Tell whether `ancestor` is reachable from any of `descendants`; a commit reaches itself."""
    seen = set(descendants)
    frontier = _Frontier(read)
    for name in seen:
        frontier.push(name)
    while frontier and ancestor not in seen:
        for parent in frontier.pop().parents:
            if parent not in seen:
                seen.add(parent)
                frontier.push(parent)
    return ancestor in seen


def merge_bases(read: Callable[[str], Commit], left: str, right: str) -> tuple[str, ...]:
    """Return the best common ancestors of two commits, newest first.

    Parameters
    ----------
    read : callable
        Full commit id to `Commit`.
    left, right : str
        Full commit ids.

    Returns
    -------
    tuple of str
        Several after criss-cross merges, none for unrelated histories.
    """
    frontier = _Frontier(read)
    flags = {left: _LEFT}
    flags[right] = flags.get(right, 0) | _RIGHT
    undecided = set(flags)  # waiting commits that may still lead to a best common ancestor
    candidates: set[str] = set()
    for name in flags:
        frontier.push(name)
    while undecided:
        commit = frontier.pop()
        undecided.discard(commit.id)
        mark = flags[commit.id]
        if mark == _BOTH:
            candidates.add(commit.id)
            mark |= _STALE  # whatever a common ancestor reaches is a worse one
        for parent in commit.parents:
            before = flags.get(parent, 0)
            if before | mark == before:
                continue
            flags[parent] = before | mark
            frontier.push(parent)
            if mark & _STALE:
                undecided.discard(parent)
            elif not before & _STALE:
                undecided.add(parent)
    best = [name for name in candidates if not flags[name] & _STALE]
    if len(best) > 1:
        best = [b for b in best if not is_ancestor(read, b, [o for o in best if o != b])]
    return tuple(sorted(best, key=frontier.order))


def commits_between(read: Callable[[str], Commit], base: str, head: str) -> tuple[str, ...]:
    """Return the commits that `head` reaches and `base` does not, oldest first.

    All of the base's history is walked: a search that stops by dates could be misled by them to
    leave a commit out, or to name one that was merged long ago.
    """
    merged = _reachable(read, base, frozenset())
    found = _reachable(read, head, merged)
    return tuple(sorted(found, key=lambda name: (read(name).committer_time, name)))


def _reachable(read: Callable[[str], Commit], start: str, known: Set[str]) -> frozenset[str]:
    """Return what a commit reaches without passing through known commits."""
    seen = {start} - known
    waiting = list(seen)
    while waiting:
        for parent in read(waiting.pop()).parents:
            if parent not in seen and parent not in known:
                seen.add(parent)
                waiting.append(parent)
    return frozenset(seen)

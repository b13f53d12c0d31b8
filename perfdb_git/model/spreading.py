"""Independent pieces of work, done here or on several machines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, TypeVar

T = TypeVar("T")
R = TypeVar("R")


class Spread(Protocol):
    """What applies a function to items: the built-in ``map``, or the workers of a cluster.

    Results come in the order of the items. For a cluster the function is one that another process
    can import, and items and results can be sent there; it has no effect but its result, since it
    may run twice.
    """

    def __call__(self, function: Callable[[T], R], items: Iterable[T], /) -> Iterator[R]:
        """Return an iterator over the results."""

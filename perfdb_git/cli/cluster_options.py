"""``--workers`` and ``--dask``: where the pieces of long work are done."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import click

from perfdb_git.errors import UsageError
from perfdb_git.model.result import Message
from perfdb_git.model.spreading import Spread

if TYPE_CHECKING:
    # Imported where a cluster is asked for: most runs need none.
    from perfdb_git.distribution.cluster import Cluster

R = TypeVar("R")


@dataclass(frozen=True, slots=True, kw_only=True)
class Workers:
    """What was typed: neither, a number of processes, or the address of a Dask scheduler."""

    count: int | None
    address: str | None

    @property
    def are_asked_for(self) -> bool:
        """Whether the work is to be done elsewhere than in this process."""
        return self.count is not None or self.address is not None

    @contextmanager
    def open(self) -> Iterator[Place]:
        """Connect to the workers, or start them, for the time of the context.

        Raises
        ------
        MissingExtraError, ClusterUnavailableError
            As `open_cluster`.
        """
        if not self.are_asked_for:
            yield Place()
            return
        from perfdb_git.distribution.cluster import ClusterChoice, open_cluster

        with open_cluster(ClusterChoice(address=self.address, workers=self.count)) as cluster:
            yield Place(cluster)


class Place:
    """This process, or a cluster."""

    def __init__(self, cluster: Cluster | None = None) -> None:
        self.cluster = cluster

    @property
    def spread(self) -> Spread:
        """What applies a function to items there."""
        return map if self.cluster is None else self.cluster.map

    @property
    def messages(self) -> tuple[Message, ...]:
        """What the user should know of the workers."""
        return () if self.cluster is None else self.cluster.messages


def cluster_options(command: Callable[..., R]) -> Callable[..., R]:
    """Add ``--workers`` and ``--dask``, passed on as ``workers``."""

    @click.option(
        "--workers",
        "count",
        type=click.IntRange(min=1),
        metavar="N",
        help="Do the work in this many processes of their own (extra 'distributed').",
    )
    @click.option(
        "--dask",
        "address",
        metavar="ADDRESS",
        help="Do the work on the Dask cluster with this scheduler, such as tcp://HOST:8786.",
    )
    @functools.wraps(command)
    def with_workers(
        *arguments: object, count: int | None, address: str | None, **more: object
    ) -> R:
        if count is not None and address is not None:
            raise UsageError(
                "--workers and --dask exclude each other",
                code="conflicting-options",
                remedy="--workers starts processes here, --dask uses a cluster that is there",
            )
        more["workers"] = Workers(count=count, address=address)
        return command(*arguments, **more)

    return with_workers

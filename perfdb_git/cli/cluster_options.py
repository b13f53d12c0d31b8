"""``--workers`` and ``--dask``: where the pieces of long work are done."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
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
    """What was typed: neither, a number of processes, or the address of a Dask scheduler.

    ``repository`` and ``segments`` are where workers find the evidence, where they need it.
    """

    count: int | None
    address: str | None
    repository: str | None = None
    segments: str | None = None

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
        import logging

        from perfdb_git.distribution.cluster import ClusterChoice, open_cluster

        # What Dask logs names addresses, and errors say what matters.
        logging.disable(logging.CRITICAL)
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


def worker_evidence_options(command: Callable[..., R]) -> Callable[..., R]:
    """Add ``--worker-repo`` and ``--segments`` to those of `cluster_options`, which come first."""

    @click.option(
        "--worker-repo",
        "worker_repository",
        metavar="PATH|URL",
        help="Where workers have a clone, or a URL to clone from; by default the same path.",
    )
    @click.option(
        "--segments",
        metavar="URL",
        help="Share index files with the workers in this folder or object store.",
    )
    @functools.wraps(command)
    def with_evidence(
        *arguments: object,
        worker_repository: str | None,
        segments: str | None,
        workers: Workers,
        **more: object,
    ) -> R:
        if not workers.are_asked_for and (worker_repository or segments):
            raise UsageError(
                f"{'--worker-repo' if worker_repository else '--segments'} is about workers",
                code="conflicting-options",
                remedy="add --workers or --dask, or leave it out",
            )
        more["workers"] = replace(workers, repository=worker_repository, segments=segments)
        return command(*arguments, **more)

    return with_evidence


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

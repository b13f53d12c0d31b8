"""A Dask cluster as a place to work: it schedules, retries and replaces lost workers.

What is here is the order of results, a bound on what waits in memory, and errors in plain words.
Dask sends functions and values as pickles, so whoever controls a cluster can run code in this
process: connect to clusters that you trust.
"""

from __future__ import annotations

import asyncio
import functools
import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from perfdb_git.distribution.worker_facts import WorkerFacts, facts_here
from perfdb_git.errors import ClusterUnavailableError, MissingExtraError
from perfdb_git.model.result import Message

if TYPE_CHECKING:
    from distributed import Client, Future

T = TypeVar("T")
R = TypeVar("R")

_WAITING_EACH = 3
"""Tasks that wait for each thread of a worker: it never idles, and little is in memory."""

_RETRIES = 2

_LOCAL_SETTINGS = {
    "distributed.nanny.pre-spawn-environ": {
        "MALLOC_TRIM_THRESHOLD_": 64 * 2**20,
        "MALLOC_MMAP_THRESHOLD_": 32 * 2**20,
    }
}
"""By Dask's own settings a worker gives freed memory back at once; numpy then asks for it again,
and fits of trees take half their time for that."""

_CONNECT_S = 10.0
_PATIENCE_S = 30.0
"""For the first worker to come, and for another one after the last has gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterChoice:
    """Which workers to use: those of a cluster by its address, or some processes of our own."""

    address: str | None = None
    workers: int | None = None


class Cluster:
    """Workers that are there.

    Parameters
    ----------
    client : Client
        A connection of Dask.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._other_instructions = False

    @property
    def messages(self) -> tuple[Message, ...]:
        """What the user should know of the workers that were used."""
        if not self._other_instructions:
            return ()
        text = (
            "a worker's processor has other instructions than this one's, so calculated values may "
            "differ in the last bits from a run in one process"
        )
        return (Message(level="warning", code="worker-instructions", text=text),)

    def map(self, function: Callable[[T], R], items: Iterable[T], /) -> Iterator[R]:
        """Apply a function to items on the workers; see `perfdb_git.model.spreading.Spread`.

        Work begins at once, and goes on as results are taken.

        Raises
        ------
        ClusterUnavailableError
            From the iterator: 'workers-lost', 'worker-versions' or 'worker-without-perfdb'.
        PerfdbError
            What the function raises.
        """
        rest = iter(items)
        work = functools.partial(_work, facts_here(), function)
        started: deque[Future] = deque()

        def start(count: int) -> None:
            for _, item in zip(range(count), rest, strict=False):
                started.append(self._client.submit(work, item, pure=False, retries=_RETRIES))

        start(_WAITING_EACH * max(1, self._threads()))

        def results() -> Iterator[R]:
            try:
                while started:
                    result, same_instructions = self._result(started.popleft())
                    self._other_instructions |= not same_instructions
                    start(1)
                    yield result
            finally:
                if self._client.status == "running":
                    self._client.cancel(list(started))

        return results()

    def _threads(self) -> int:
        """Return how many threads all workers have now; none where the scheduler has gone."""
        try:
            return sum(self._client.nthreads().values())
        except OSError:
            return 0

    def _result(self, future: Future) -> Any:
        from distributed import KilledWorker

        try:
            self._await(future)
            return future.result()
        except CancelledError as error:
            raise _lost("its scheduler has gone") from error
        except KilledWorker as error:
            raise _lost("one piece of work ended several workers") from error
        except ModuleNotFoundError as error:
            raise ClusterUnavailableError(
                f"a worker has no module {error.name}",
                code="worker-without-perfdb",
                remedy="install the same version of perfdb-git there",
            ) from error

    def _await(self, future: Future) -> None:
        from distributed import TimeoutError as WaitTimeoutError
        from distributed import wait

        while not future.done():
            try:
                with self._client.as_current():
                    wait(future, timeout=_PATIENCE_S)
            except WaitTimeoutError:
                if not self._threads():
                    raise _lost("no worker is left") from None


def _lost(reason: str) -> ClusterUnavailableError:
    return ClusterUnavailableError(
        f"the cluster did not finish: {reason}",
        code="workers-lost",
        remedy="look at the workers' logs; most often they ran out of memory",
    )


def _work(wanted: WorkerFacts, function: Callable[[T], R], item: T) -> tuple[R, bool]:
    """Do one piece of work in a worker."""
    here = facts_here()
    wanted.require_versions(here)
    return function(item), here.instructions == wanted.instructions


@contextmanager
def open_cluster(choice: ClusterChoice) -> Iterator[Cluster]:
    """Connect to a cluster, or start one for the time of the context.

    Raises
    ------
    MissingExtraError
        Without Dask.
    ClusterUnavailableError
        'cluster-unavailable' where there is none, or no worker in it.
    """
    try:
        from distributed import Client
    except ImportError as error:
        raise MissingExtraError("distributed", "work on several processes") from error
    try:
        if choice.address is None:
            client = Client(_local_cluster(choice.workers or 1), set_as_default=False)
        else:
            # A client that finds nobody takes another minute to give up when it is thrown away.
            asyncio.run(_require_listener(choice.address))
            client = Client(choice.address, timeout=_PATIENCE_S, set_as_default=False)
            client.wait_for_workers(1, timeout=_PATIENCE_S)
    except (OSError, TimeoutError, ValueError) as error:
        # The address stays out of it: it may hold more than a name.
        raise ClusterUnavailableError(
            "there is no Dask scheduler with workers at that address",
            code="cluster-unavailable",
            remedy="start one with 'dask scheduler' and 'dask worker', or use --workers N",
        ) from error
    try:
        yield Cluster(client)
    finally:
        local = client.cluster
        client.close()
        if local is not None:
            local.close()


def _local_cluster(workers: int) -> Any:
    import dask
    from distributed import LocalCluster

    with dask.config.set(_LOCAL_SETTINGS):
        # Its processes are ours alone: no address but loopback, no dashboard.
        return LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            scheduler_kwargs={"dashboard": False, "dashboard_address": "127.0.0.1:0"},
            silence_logs=logging.CRITICAL,
        )


async def _require_listener(address: str) -> None:
    """Raise OSError where nobody answers at an address."""
    from distributed import Security
    from distributed.comm import connect

    arguments = Security().get_connection_args("client")
    comm = await connect(address, timeout=_CONNECT_S, **arguments)
    await comm.close()

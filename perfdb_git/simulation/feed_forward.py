"""The engine for pipelines in which each component serves one stage: running maxima in numpy.

With equal services d, first come first served, on c lanes, ``start[j] = max(ready[j],
start[j - c] + d)``. On each of the c interleaved chains ``start - i * d`` is a running maximum of
``ready - i * d``, exact in integers. On one lane services may differ: with their running sum
in the place of ``i * d`` the same holds (Lindley's recursion). Ready times never descend, because
jobs leave such a stage in the order in which they came.

Jobs go through all stages in blocks; all that a stage carries over is its last c finishes.

Source: Lindley, Math. Proc. Camb. Phil. Soc. 48 (1952); Ebert et al., J. Stat. Softw. 95(5), 2020
(queuecomputer) for the use along jobs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from perfdb_git.simulation.tick_model import Block, TickModel

if TYPE_CHECKING:
    from perfdb_git.simulation.arrivals import Ticks

BLOCK_JOBS = 32_768
"""Jobs of one block: its columns stay in the processor's caches."""

BLOCK_VISITS = 1 << 21
"""Visits of one block: with many stages a block has fewer jobs."""

MANY_LANES = 64
"""Above it one call along all chains beats one call for each: the chains are short."""


def is_feed_forward(model: TickModel) -> bool:
    """Whether the engine's condition holds.

    Every component serves one stage, arrivals do not depend on completions, and services differ
    between jobs on single lanes only: elsewhere a job can overtake another.
    """
    return (
        model.arrivals.window is None
        and len(set(model.routes)) == len(model.routes)
        and all(
            isinstance(service, int) or model.lanes[route] == 1
            for route, service in zip(model.routes, model.services, strict=True)
        )
    )


class FeedForwardEngine:
    """Runs a feed-forward model as often as it is asked, keeping nothing of the schedule.

    Parameters
    ----------
    model : TickModel
        One that `is_feed_forward` accepts and whose guard holds.
    block_jobs : int or None
        Jobs of one block; ``None`` takes what suits the number of stages.
    """

    name: Literal["feed-forward"] = "feed-forward"
    keeps_job_order = True

    def __init__(self, model: TickModel, *, block_jobs: int | None = None) -> None:
        self._model = model
        suited = min(BLOCK_JOBS, -(-BLOCK_VISITS // model.n_stages))
        self._block_jobs = min(block_jobs or suited, model.n_jobs)

    def blocks(self) -> Iterator[Block]:
        """Yield the schedule in job order."""
        import numpy as np

        model, size = self._model, self._block_jobs
        lanes = model.usable_lanes()
        runners = [
            _EqualServices(lanes[route], service, size)
            if isinstance(service, int)
            else _OneLane(service)
            for route, service in zip(model.routes, model.services, strict=True)
        ]
        starts = [np.empty(size, dtype=np.int64) for _ in runners]
        ready = np.empty(size, dtype=np.int64)
        for first in range(0, model.n_jobs, size):
            last = min(first + size, model.n_jobs)
            count = last - first
            arrivals = model.arrivals.block(first, last)
            current = ready[:count]
            current[:] = arrivals
            for runner, column in zip(runners, starts, strict=True):
                # Leaves the finishes in `current`: they are the next stage's ready times.
                runner.run(current, column[:count], first)
            yield Block(
                first_job=first,
                arrivals=arrivals,
                starts=tuple(column[:count] for column in starts),
                finishes=current,
            )


class _EqualServices:
    """A stage with one service time on any number of lanes."""

    def __init__(self, lanes: int, service: int, size: int) -> None:
        import numpy as np

        self._lanes = lanes
        self._service = service
        rows = -(-size // lanes)
        self._shifts = np.repeat(np.arange(rows, dtype=np.int64) * service, lanes)
        self._buffer = np.zeros(rows * lanes, dtype=np.int64)
        self._carry = np.zeros(lanes, dtype=np.int64)

    def run(self, ready: Ticks, starts: Ticks, _first: int) -> None:
        import numpy as np

        count, lanes = len(ready), self._lanes
        # A partial last row is padded by what the buffer holds: it ends its chains, so that
        # nothing depends on it.
        rows = -(-count // lanes)
        buffer = self._buffer[: rows * lanes]
        shifts = self._shifts[:count]
        np.subtract(ready, shifts, out=buffer[:count])
        chains = buffer.reshape(rows, lanes)
        np.maximum(chains[0], self._carry, out=chains[0])
        if lanes > MANY_LANES:
            np.maximum.accumulate(chains, axis=0, out=chains)
        elif rows > 1:
            for lane in range(lanes):
                chain = chains[:, lane]
                np.maximum.accumulate(chain, out=chain)
        np.add(buffer[:count], shifts, out=starts)
        np.add(starts, self._service, out=ready)
        if count >= lanes:
            self._carry[:] = ready[count - lanes :]
        else:
            self._carry[:-count] = self._carry[count:].copy()
            self._carry[-count:] = ready


class _OneLane:
    """A stage on one lane whose service times differ between jobs."""

    def __init__(self, services: Ticks) -> None:
        self._services = services
        self._free = 0

    def run(self, ready: Ticks, starts: Ticks, first: int) -> None:
        import numpy as np

        service = self._services[first : first + len(ready)]
        shifts = np.cumsum(service) - service
        np.subtract(ready, shifts, out=starts)
        starts[0] = max(int(starts[0]), self._free)
        np.maximum.accumulate(starts, out=starts)
        starts += shifts
        np.add(starts, service, out=ready)
        self._free = int(ready[-1])

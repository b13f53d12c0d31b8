"""The engine for every pipeline: one heap of ready events, in ascending (time, job, stage).

An event says "this job is ready for this stage at this tick". Handling one takes the lane with the
smallest availability stamp, so that no release event is needed, and creates at most one event of
the same job, not before the handled one: events come out sorted and the schedule is unique.

An event is one integer, ``time << bits | job * width + stage``: it compares like the tuple and
costs no allocation of one. `heappushpop` returns a job's next event at once when it is the
smallest, which most are in a lightly loaded pipeline.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from heapq import heapify, heappop, heappush, heappushpop, heapreplace
from typing import TYPE_CHECKING, Literal

from perfdb_git.simulation.feed_forward import BLOCK_JOBS
from perfdb_git.simulation.tick_model import Block, TickModel

if TYPE_CHECKING:
    from perfdb_git.simulation.arrivals import Ticks


class EventEngine:
    """Runs a model once and keeps the start of every visit (8 bytes each).

    Parameters
    ----------
    model : TickModel
        One whose guard holds.
    """

    name: Literal["event"] = "event"
    keeps_job_order = False

    def __init__(self, model: TickModel) -> None:
        import numpy as np

        self._model = model
        closed = model.arrivals.window is not None
        width = model.n_stages + closed
        arrivals = array("q", bytes(8 * model.n_jobs))
        starts = array("q", bytes(8 * model.n_jobs * width))
        if closed:
            _run_closed(model, arrivals, starts)
        else:
            arrivals = array("q", model.arrivals.block(0, model.n_jobs).tobytes())
            _run_open(model, arrivals, starts)
        self._arrivals: Ticks = np.frombuffer(arrivals, dtype=np.int64)
        self._starts: Ticks = np.frombuffer(starts, dtype=np.int64).reshape(-1, width)

    def blocks(self) -> Iterator[Block]:
        """Yield the schedule in job order."""
        model = self._model
        last_stage = model.n_stages - 1
        for first in range(0, model.n_jobs, BLOCK_JOBS):
            last = min(first + BLOCK_JOBS, model.n_jobs)
            starts = tuple(self._starts[first:last, stage] for stage in range(model.n_stages))
            service = model.services[last_stage]
            if not isinstance(service, int):
                service = service[first:last]
            yield Block(
                first_job=first,
                arrivals=self._arrivals[first:last],
                starts=starts,
                finishes=starts[last_stage] + service,
            )


def _stage_rows(model: TickModel) -> list[tuple[list[int], int, list[int] | None]]:
    """For each stage the stamps of its component, and its service for all jobs or for each."""
    # All 0, so already heaps. Which lane is which does not matter to the schedule.
    stamps = [[0] * lanes for lanes in model.usable_lanes()]
    return [
        (stamps[route], service, None)
        if isinstance(service, int)
        else (stamps[route], 0, service.tolist())
        for route, service in zip(model.routes, model.services, strict=True)
    ]


def _run_open(model: TickModel, arrivals: array[int], starts: array[int]) -> None:
    """Run arrivals that depend on nothing; the heap holds one job that has not arrived yet."""
    rows = _stage_rows(model)
    n_jobs, width = len(arrivals), model.n_stages
    bits = (n_jobs * width).bit_length()
    mask = (1 << bits) - 1
    last_stage = width - 1
    heap: list[int] = []
    key = arrivals[0] << bits
    arriving = 1
    while True:
        ready = key >> bits
        code = key & mask
        stage = code % width
        stamps, service, services = rows[stage]
        start = stamps[0]
        if start < ready:
            start = ready
        starts[code] = start
        finish = start + (service if services is None else services[code // width])
        heapreplace(stamps, finish)
        if stage == 0 and arriving < n_jobs:
            heappush(heap, arrivals[arriving] << bits | arriving * width)
            arriving += 1
        if stage != last_stage:
            key = heappushpop(heap, finish << bits | code + 1)
        elif heap:
            key = heappop(heap)
        else:
            break


def _run_closed(model: TickModel, arrivals: array[int], starts: array[int]) -> None:
    """Run a closed loop: a completion is an event after the last stage, and releases a job."""
    rows = _stage_rows(model)
    n_jobs, completion = len(arrivals), model.n_stages
    width = completion + 1
    bits = (n_jobs * width).bit_length()
    mask = (1 << bits) - 1
    arriving = min(model.arrivals.window or n_jobs, n_jobs)
    heap = [job * width for job in range(arriving)]
    heapify(heap)
    key = heappop(heap)
    while True:
        ready = key >> bits
        code = key & mask
        stage = code % width
        if stage == completion:
            if arriving < n_jobs:
                arrivals[arriving] = ready
                key = heappushpop(heap, ready << bits | arriving * width)
                arriving += 1
            elif heap:
                key = heappop(heap)
            else:
                break
            continue
        stamps, service, services = rows[stage]
        start = stamps[0]
        if start < ready:
            start = ready
        starts[code] = start
        finish = start + (service if services is None else services[code // width])
        heapreplace(stamps, finish)
        key = heappushpop(heap, finish << bits | code + 1)

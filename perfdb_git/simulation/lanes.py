"""Which lane served which visit: labels that engines need not know, made where they are shown.

A lane is the one with the smallest availability stamp, the lowest index on a tie. That is not
round robin, nor the lowest idle lane, so labels come from replaying the visits from the first.
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heapreplace
from typing import TYPE_CHECKING

from perfdb_git.simulation.tick_model import Engine, TickModel

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from perfdb_git.simulation.arrivals import Ticks


@dataclass(frozen=True, slots=True, kw_only=True)
class VisitTable:
    """Visits of consecutive jobs, one array element each: job by job, in stage order.

    Parameters
    ----------
    first_job : int
        Number of the first job.
    n_stages : int
        Visits of each job.
    job, stage, component, lane : ndarray of int64, shape (n_visits,)
        Job number; indices of stage, component and lane.
    ready, start, finish : ndarray of int64, shape (n_visits,)
        When the job was ready for the stage, when its service began and ended.
    """

    first_job: int
    n_stages: int
    job: Ticks
    stage: Ticks
    component: Ticks
    lane: Ticks
    ready: Ticks
    start: Ticks
    finish: Ticks

    def __len__(self) -> int:
        return len(self.job)

    def rows_by_component(self, n_components: int) -> list[NDArray[np.intp]]:
        """Return for each component the rows of its visits, in the table's order."""
        import numpy as np

        order = np.argsort(self.component, kind="stable")
        counts = np.bincount(self.component, minlength=n_components)
        return np.split(order, np.cumsum(counts)[:-1])


class LaneLabeller:
    """Labels the visits of one component, given to it in handling order.

    Parameters
    ----------
    lanes : int
        Lanes of the component.
    """

    def __init__(self, lanes: int) -> None:
        self._lanes = lanes
        # stamp * lanes + lane: compares like (stamp, lane).
        self._heap = list(range(lanes))

    def label(self, finishes: Ticks) -> Ticks:
        """Lane of each visit.

        Parameters
        ----------
        finishes : ndarray of int64, shape (n,)
            When each visit ends.

        Returns
        -------
        ndarray of int64, shape (n,)
            From 0.
        """
        import numpy as np

        lanes, heap = self._lanes, self._heap
        if lanes == 1:
            return np.zeros(len(finishes), dtype=np.int64)
        labels = []
        for finish in finishes.tolist():
            lane = heap[0] % lanes
            heapreplace(heap, finish * lanes + lane)
            labels.append(lane)
        return np.array(labels, dtype=np.int64)


def visit_table(model: TickModel, engine: Engine, first_job: int, last_job: int) -> VisitTable:
    """Visits of some jobs, with their lanes.

    Parameters
    ----------
    model : TickModel
        What was run.
    engine : Engine
        What ran it.
    first_job, last_job : int
        Jobs ``first_job`` to ``last_job - 1``. All visits before them are replayed.
    """
    # Where jobs overtake, later jobs too may have been handled before these.
    end = last_job if engine.keeps_job_order else model.n_jobs
    return _cut(_labelled(model, _gathered(model, engine, end)), first_job, last_job)


def _gathered(model: TickModel, engine: Engine, end: int) -> VisitTable:
    """Visits of the jobs before ``end``, without lanes."""
    import numpy as np

    shape = (end, model.n_stages)
    ready = np.empty(shape, dtype=np.int64)
    start = np.empty(shape, dtype=np.int64)
    finish = np.empty(shape, dtype=np.int64)
    for block in engine.blocks():
        rows = slice(block.first_job, min(block.first_job + len(block.arrivals), end))
        count = rows.stop - rows.start
        if count <= 0:
            break
        for stage in range(model.n_stages):
            ready[rows, stage] = block.ready(model, stage)[:count]
            start[rows, stage] = block.starts[stage][:count]
        finish[rows, :-1] = ready[rows, 1:]
        finish[rows, -1] = block.finishes[:count]
    jobs = np.arange(end, dtype=np.int64)
    return VisitTable(
        first_job=0,
        n_stages=model.n_stages,
        job=np.repeat(jobs, model.n_stages),
        stage=np.tile(np.arange(model.n_stages, dtype=np.int64), end),
        component=np.tile(np.array(model.routes, dtype=np.int64), end),
        lane=np.zeros(end * model.n_stages, dtype=np.int64),
        ready=ready.ravel(),
        start=start.ravel(),
        finish=finish.ravel(),
    )


def _labelled(model: TickModel, table: VisitTable) -> VisitTable:
    """Fill the lanes in, in place."""
    import numpy as np

    rows = table.rows_by_component(len(model.lanes))
    for lanes, places in zip(model.usable_lanes(), rows, strict=True):
        if lanes == 1:
            continue
        # Handling order: by ready time, job, stage.
        keys = (table.stage[places], table.job[places], table.ready[places])
        handled = places[np.lexsort(keys)]
        table.lane[handled] = LaneLabeller(lanes).label(table.finish[handled])
    return table


def _cut(table: VisitTable, first_job: int, last_job: int) -> VisitTable:
    rows = slice(first_job * table.n_stages, last_job * table.n_stages)
    return VisitTable(
        first_job=first_job,
        n_stages=table.n_stages,
        job=table.job[rows],
        stage=table.stage[rows],
        component=table.component[rows],
        lane=table.lane[rows],
        ready=table.ready[rows],
        start=table.start[rows],
        finish=table.finish[rows],
    )

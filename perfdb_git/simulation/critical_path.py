"""The critical path: the chain of services, without a gap, that ends the run.

From the last finish backwards: a visit that waited is bound by the previous visit on its lane, one
that did not by the job's previous stage. The services on it plus the arrival of the job at its
head are exactly the makespan.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perfdb_git.simulation.lanes import VisitTable

if TYPE_CHECKING:
    from perfdb_git.simulation.arrivals import Ticks


@dataclass(frozen=True, slots=True, kw_only=True)
class CriticalPath:
    """Rows of the visits on the path, the earliest first, and the arrival of its first job.

    In a closed loop the path goes on through the completion that released a job.
    """

    rows: tuple[int, ...]
    arrival: int


def critical_path(table: VisitTable, *, window: int | None = None) -> CriticalPath:
    """Walk back from the last finish.

    Parameters
    ----------
    table : VisitTable
        All visits of a run.
    window : int or None
        Window of a closed loop: all later jobs are bound by the completion that released them.

    Returns
    -------
    CriticalPath
        Of several jobs that end last, that of the lowest one.
    """
    previous = _previous_on_lane(table)
    n_stages = table.n_stages
    finishes = table.finish[n_stages - 1 :: n_stages]
    # The completion number k releases job `window` + k.
    completions = [] if window is None else _in_completion_order(finishes)
    free_jobs = len(finishes) if window is None else window
    ready, start = table.ready.tolist(), table.start.tolist()
    row = int(finishes.argmax()) * n_stages + n_stages - 1
    rows = [row]
    while True:
        job, stage = divmod(row, n_stages)
        if start[row] > ready[row]:
            row = previous[row]
        elif stage:
            row -= 1
        elif job >= free_jobs:
            row = completions[job - free_jobs] * n_stages + n_stages - 1
        else:
            break
        rows.append(row)
    arrival = ready[row]
    rows.reverse()
    return CriticalPath(rows=tuple(rows), arrival=arrival)


def _previous_on_lane(table: VisitTable) -> list[int]:
    """For each visit the row of the visit before it on its lane, -1 for the first."""
    import numpy as np

    keys = (table.stage, table.job, table.ready, table.lane, table.component)
    order = np.lexsort(keys)
    same_lane = (np.diff(table.component[order]) == 0) & (np.diff(table.lane[order]) == 0)
    previous = np.full(len(table), -1, dtype=np.int64)
    previous[order[1:]] = np.where(same_lane, order[:-1], -1)
    rows: list[int] = previous.tolist()
    return rows


def _in_completion_order(finishes: Ticks) -> Sequence[int]:
    """Jobs by (finish, job), which is the order in which completions are handled."""
    import numpy as np

    order: list[int] = np.argsort(finishes, kind="stable").tolist()
    return order

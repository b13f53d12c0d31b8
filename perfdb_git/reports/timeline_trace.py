"""Visits as a Chrome trace, which Perfetto and chrome://tracing show as a timeline.

One track a lane, and one counter of waiting jobs for each component. Both ends of a slice are
rounded to whole nanoseconds, never its duration: slices of a lane then cannot overlap, and
Perfetto drops those that do.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from perfdb_git.simulation.lanes import VisitTable
from perfdb_git.simulation.simulate import Simulation
from perfdb_git.simulation.summary_values import summary_value
from perfdb_git.simulation.ticks import PICOSECOND, Tick

if TYPE_CHECKING:
    from perfdb_git.simulation.arrivals import Ticks

_CHUNK = 10_000


def timeline_trace(simulation: Simulation, table: VisitTable) -> Iterator[str]:
    """Text of the trace, piece by piece.

    Parameters
    ----------
    simulation : Simulation
        Where the names come from.
    table : VisitTable
        The visits to show.

    Yields
    ------
    str
        Pieces of one JSON document. Times are in microseconds with three decimals.
    """
    yield '{"displayTimeUnit": "ns", "traceEvents": [\n'
    yield ",\n".join(_names(simulation, table))
    for events in (_slices(simulation, table), _waiting(simulation, table)):
        for event in events:
            yield ",\n" + event
    yield "\n]}\n"


def _names(simulation: Simulation, table: VisitTable) -> Iterator[str]:
    """Metadata: components are processes, their lanes threads; unused lanes are left out."""
    lanes = sorted(set(zip(table.component.tolist(), table.lane.tolist(), strict=True)))
    for component in dict.fromkeys(component for component, _ in lanes):
        name = simulation.plan.components[component]
        yield _metadata("process_name", component, {"name": name})
        yield _metadata("process_sort_index", component, {"sort_index": component})
    for component, lane in lanes:
        yield _metadata("thread_name", component, {"name": f"lane {lane}"}, lane)
        yield _metadata("thread_sort_index", component, {"sort_index": lane}, lane)


def _metadata(kind: str, process: int, values: dict[str, object], thread: int | None = None) -> str:
    event = {"ph": "M", "name": kind, "pid": process, "args": values}
    return json.dumps(event if thread is None else {**event, "tid": thread})


def _slices(simulation: Simulation, table: VisitTable) -> Iterator[str]:
    names = [json.dumps(stage.stage.name)[1:-1] for stage in simulation.plan.stages]
    tick = simulation.plan.model.tick
    for first in range(0, len(table), _CHUNK):
        rows = slice(first, first + _CHUNK)
        columns = (table.job, table.stage, table.component, table.lane)
        times = (table.ready, table.start, table.finish)
        grid = (rounded_ns(table.start[rows], tick), rounded_ns(table.finish[rows], tick))
        for job, stage, component, lane, ready, start, finish, begin, end in zip(
            *(column[rows].tolist() for column in columns),
            *(_picoseconds(column[rows], tick) for column in times),
            *(column.tolist() for column in grid),
            strict=True,
        ):
            yield (
                f'{{"ph": "X", "name": "{names[stage]} #{job}", "pid": {component}, '
                f'"tid": {lane}, "ts": {_microseconds(begin)}, '
                f'"dur": {_microseconds(end - begin)}, "args": {{"job": {job}, '
                f'"ready_ps": {ready}, "start_ps": {start}, "finish_ps": {finish}}}}}'
            )


def _picoseconds(times: Ticks, tick: Tick) -> Sequence[int | str]:
    """Return times in ps as they stand in JSON."""
    if tick == PICOSECOND:
        whole: list[int] = times.tolist()
        return whole
    return [json.dumps(summary_value(tick.ps(time))) for time in times.tolist()]


def _waiting(simulation: Simulation, table: VisitTable) -> Iterator[str]:
    """Counter events: how many of the shown jobs wait for each component."""
    import numpy as np

    for component in range(len(simulation.plan.components)):
        waits = (table.component == component) & (table.start > table.ready)
        if not waits.any():
            continue
        moved = np.concatenate([table.ready[waits], table.start[waits]])
        times = rounded_ns(moved, simulation.plan.model.tick)
        steps = np.repeat(np.array([1, -1]), int(waits.sum()))
        moments, places = np.unique(times, return_inverse=True)
        changes = np.zeros(len(moments), dtype=np.int64)
        np.add.at(changes, places, steps)
        for moment, length in zip(moments.tolist(), np.cumsum(changes).tolist(), strict=True):
            yield (
                f'{{"ph": "C", "name": "waiting", "pid": {component}, '
                f'"ts": {_microseconds(moment)}, "args": {{"jobs": {length}}}}}'
            )


def rounded_ns(times: Ticks, tick: Tick = PICOSECOND) -> Ticks:
    """Times in whole ns, ties to even; the order of times is kept.

    Parameters
    ----------
    times : ndarray of int64, shape (n,)
        At least 0, in ticks.
    tick : Tick
        What a tick is.
    """
    whole, rest = times // tick.per_ns, times % tick.per_ns
    half = tick.per_ns // 2
    up = (rest > half) | ((rest == half) & (whole % 2 == 1))
    result: Ticks = whole + up
    return result


def _microseconds(ns: int) -> str:
    return f"{ns // 1000}.{ns % 1000:03d}"

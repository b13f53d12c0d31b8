"""The schedule by its definition: every pending event in a list, every lane with its stamp."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A pipeline in ticks. ``services[job][stage]``; ``window`` makes a closed loop."""

    lanes: tuple[int, ...]
    routes: tuple[int, ...]
    services: tuple[tuple[int, ...], ...]
    arrivals: tuple[int, ...]
    window: int | None = None


@dataclass(frozen=True, slots=True)
class Visit:
    job: int
    stage: int
    component: int
    lane: int
    ready: int
    start: int
    finish: int


def run(case: Case) -> list[Visit]:
    """Visits in handling order."""
    n_jobs, n_stages = len(case.services), len(case.routes)
    stamps = [[0] * lanes for lanes in case.lanes]
    arriving = n_jobs
    pending = [(time, job, 0) for job, time in enumerate(case.arrivals)]
    if case.window is not None:
        arriving = min(case.window, n_jobs)
        pending = [(0, job, 0) for job in range(arriving)]
    visits = []
    while pending:
        event = min(pending)
        pending.remove(event)
        ready, job, stage = event
        if stage == n_stages:
            if arriving < n_jobs:
                pending.append((ready, arriving, 0))
                arriving += 1
            continue
        component = case.routes[stage]
        lane = min(range(case.lanes[component]), key=lambda k: (stamps[component][k], k))
        start = max(ready, stamps[component][lane])
        finish = start + case.services[job][stage]
        stamps[component][lane] = finish
        visits.append(Visit(job, stage, component, lane, ready, start, finish))
        pending.append((finish, job, stage + 1))
    return visits


def jobs_then_stages(case: Case) -> list[Visit]:
    """The tempting wrong loop: each job through all its stages before the next job."""
    stamps = [[0] * lanes for lanes in case.lanes]
    visits = []
    for job, arrival in enumerate(case.arrivals):
        ready = arrival
        for stage, component in enumerate(case.routes):
            lane = min(range(case.lanes[component]), key=lambda k: (stamps[component][k], k))
            start = max(ready, stamps[component][lane])
            finish = start + case.services[job][stage]
            stamps[component][lane] = finish
            visits.append(Visit(job, stage, component, lane, ready, start, finish))
            ready = finish
    return visits


def critical_path(case: Case, visits: list[Visit]) -> tuple[list[Visit], int]:
    """The path, the earliest visit first, and the arrival at its head."""
    n_stages = len(case.routes)
    by_place = {(visit.job, visit.stage): visit for visit in visits}
    last = [by_place[job, n_stages - 1] for job in range(len(case.services))]
    completed = sorted(last, key=lambda visit: (visit.finish, visit.job))
    one = max(last, key=lambda visit: (visit.finish, -visit.job))
    path = [one]
    while True:
        if one.start > one.ready:
            earlier = visits[: visits.index(one)]
            one = next(
                visit
                for visit in reversed(earlier)
                if (visit.component, visit.lane) == (one.component, one.lane)
            )
        elif one.stage:
            one = by_place[one.job, one.stage - 1]
        elif case.window is not None and one.job >= case.window:
            one = completed[one.job - case.window]
        else:
            return path[::-1], one.ready
        path.append(one)

"""Where no two things happen at once, SimPy gives the same schedule.

With ties it follows its own sequence numbers, so cases with any tie are left out.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Generator
from typing import Any

import pytest

from perfdb_git.simulation.event_engine import EventEngine
from perfdb_git.simulation.feed_forward import FeedForwardEngine, is_feed_forward
from perfdb_git.simulation.lanes import visit_table
from tests.simulation import slow_reference
from tests.simulation.simulation_fixtures import SHAPES, model_of, random_case
from tests.simulation.slow_reference import Case

simpy = pytest.importorskip("simpy")


def starts_by_simpy(case: Case) -> dict[tuple[int, int], tuple[int, int]]:
    environment = simpy.Environment()
    resources = [simpy.Resource(environment, capacity=lanes) for lanes in case.lanes]
    found: dict[tuple[int, int], tuple[int, int]] = {}
    waiting = iter(range(len(case.services)))

    def job(number: int, delay: int) -> Generator[Any, Any, None]:
        yield environment.timeout(delay)
        for stage, component in enumerate(case.routes):
            with resources[component].request() as request:
                yield request
                start = environment.now
                yield environment.timeout(case.services[number][stage])
                found[number, stage] = start, environment.now
        following = next(waiting, None) if case.window is not None else None
        if following is not None:
            environment.process(job(following, 0))

    first = case.window if case.window is not None else len(case.services)
    for number in itertools.islice(waiting, first):
        arrival = 0 if case.window is not None else case.arrivals[number]
        environment.process(job(number, arrival))
    environment.run()
    return found


def has_ties(visits: list[slow_reference.Visit]) -> bool:
    ready = [visit.ready for visit in visits if visit.ready]
    return len(set(ready)) < len(ready)


def test_tie_free_cases_are_scheduled_alike() -> None:
    generator = random.Random(17)
    compared = dict.fromkeys(SHAPES, 0)
    for number in range(1000):
        shape = SHAPES[number % len(SHAPES)]
        case = random_case(generator, shape, longest=10**6)
        visits = slow_reference.run(case)
        # A closed loop releases a job at the tick at which another ends: no tie of its own.
        if has_ties(visits) or 0 in {v.finish - v.start for v in visits}:
            continue
        compared[shape] += 1
        expected = starts_by_simpy(case)
        model = model_of(case)
        engine = FeedForwardEngine(model) if is_feed_forward(model) else EventEngine(model)
        table = visit_table(model, engine, 0, model.n_jobs)
        found = {
            (job, stage): (start, finish)
            for job, stage, start, finish in zip(
                table.job.tolist(),
                table.stage.tolist(),
                table.start.tolist(),
                table.finish.tolist(),
                strict=True,
            )
        }
        assert found == expected
    assert min(compared.values()) > 40, compared

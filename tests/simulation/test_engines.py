"""Both engines against a slow reference, and laws that every schedule keeps."""

from __future__ import annotations

import itertools
import random
from collections import defaultdict

import numpy as np
import pytest

from perfdb_git.simulation.critical_path import critical_path
from perfdb_git.simulation.event_engine import EventEngine
from perfdb_git.simulation.feed_forward import FeedForwardEngine, is_feed_forward
from perfdb_git.simulation.lanes import VisitTable, visit_table
from perfdb_git.simulation.statistics import collect
from perfdb_git.simulation.tick_model import Engine, TickModel
from tests.simulation import slow_reference
from tests.simulation.simulation_fixtures import model_of, random_case, random_cases
from tests.simulation.slow_reference import Case, Visit

CASES = 3000

Row = tuple[int, ...]


def rows_of(table: VisitTable) -> list[Row]:
    columns = (
        table.job,
        table.stage,
        table.component,
        table.lane,
        table.ready,
        table.start,
        table.finish,
    )
    return list(zip(*(column.tolist() for column in columns), strict=True))


def expected_rows(visits: list[Visit]) -> list[Row]:
    rows = [(v.job, v.stage, v.component, v.lane, v.ready, v.start, v.finish) for v in visits]
    return sorted(rows)


def engines_of(model: TickModel, block_jobs: int) -> list[Engine]:
    engines: list[Engine] = [EventEngine(model)]
    if is_feed_forward(model):
        engines.append(FeedForwardEngine(model, block_jobs=block_jobs))
    return engines


def test_engines_equal_the_reference() -> None:
    generator = random.Random(7)
    fast = 0
    for case in random_cases(CASES, seed=1):
        model = model_of(case)
        expected = expected_rows(slow_reference.run(case))
        for engine in engines_of(model, generator.randint(1, 13)):
            table = visit_table(model, engine, 0, model.n_jobs)
            assert rows_of(table) == expected, (engine.name, case)
            fast += engine.name == "feed-forward"
    assert fast > CASES // 5


def test_a_window_of_visits_has_the_lanes_of_the_whole_run() -> None:
    generator = random.Random(3)
    for case in random_cases(300, seed=2):
        model = model_of(case)
        expected = expected_rows(slow_reference.run(case))
        first = generator.randrange(model.n_jobs)
        last = generator.randint(first + 1, model.n_jobs)
        for engine in engines_of(model, generator.randint(1, 5)):
            table = visit_table(model, engine, first, last)
            assert rows_of(table) == [row for row in expected if first <= row[0] < last]


def test_many_lanes_and_short_blocks() -> None:
    """Chains shorter than a block, blocks shorter than the lanes, and one call for all chains."""
    generator = random.Random(5)
    for _ in range(40):
        n_jobs = generator.randint(1, 300)
        case = Case(
            lanes=(generator.choice((1, 63, 64, 65, 150)), 2),
            routes=(0, 1),
            services=((generator.randint(0, 90), generator.randint(0, 3)),) * n_jobs,
            arrivals=tuple(sorted(generator.randint(0, 200) for _ in range(n_jobs))),
        )
        model = model_of(case)
        expected = expected_rows(slow_reference.run(case))
        for size in (1, 7, 100, 1000):
            engine = FeedForwardEngine(model, block_jobs=size)
            assert rows_of(visit_table(model, engine, 0, n_jobs)) == expected


def test_the_critical_path_is_that_of_the_reference() -> None:
    for case in random_cases(1500, seed=4):
        visits = slow_reference.run(case)
        expected, arrival = slow_reference.critical_path(case, visits)
        model = model_of(case)
        table = visit_table(model, EventEngine(model), 0, model.n_jobs)
        path = critical_path(table, window=case.window)
        found = [rows_of(table)[row] for row in path.rows]
        assert found == [
            (v.job, v.stage, v.component, v.lane, v.ready, v.start, v.finish) for v in expected
        ]
        services = sum(row[6] - row[5] for row in found)
        assert path.arrival == arrival
        assert services + arrival == int(table.finish.max())


@pytest.mark.parametrize("shape", ["tandem", "re-entrant", "closed", "work-per-job", "anything"])
def test_laws(shape: str) -> None:
    generator = random.Random(shape)
    for _ in range(150):
        case = random_case(generator, shape)
        model = model_of(case)
        engine = engines_of(model, 4)[-1]
        rows = rows_of(visit_table(model, engine, 0, model.n_jobs))
        check_lanes(rows)
        check_first_come_first_served(rows)
        check_work_conservation(rows, case)
        check_little(rows, model, engine)


def check_lanes(rows: list[Row]) -> None:
    """No two visits of a lane overlap."""
    by_lane = defaultdict(list)
    for row in rows:
        by_lane[row[2], row[3]].append((row[5], row[6]))
    for spans in by_lane.values():
        spans.sort()
        assert all(first[1] <= second[0] for first, second in itertools.pairwise(spans))


def check_first_come_first_served(rows: list[Row]) -> None:
    """In handling order the starts at a component never descend."""
    by_component = defaultdict(list)
    for job, stage, component, _, ready, start, _ in rows:
        by_component[component].append(((ready, job, stage), start))
    for visits in by_component.values():
        starts = [start for _, start in sorted(visits)]
        assert starts == sorted(starts)


def check_work_conservation(rows: list[Row], case: Case) -> None:
    """While a visit waits, every lane of its component serves."""
    for row in rows:
        component, ready, start = row[2], row[4], row[5]
        for tick in range(ready, start):
            serving = sum(other[2] == component and other[5] <= tick < other[6] for other in rows)
            assert serving == case.lanes[component]


def check_little(rows: list[Row], model: TickModel, engine: Engine) -> None:
    """Little's law in integers: the area under the number in the system is the sum of sojourns."""
    last_stage = model.n_stages - 1
    arrivals = {row[0]: row[4] for row in rows if row[1] == 0}
    finishes = {row[0]: row[6] for row in rows if row[1] == last_stage}
    end = max(finishes.values())
    area = sum(
        sum(arrivals[job] <= tick < finishes[job] for job in arrivals) for tick in range(end)
    )
    statistics = collect(model, engine)
    sojourns = round(statistics.latency.mean * model.n_jobs)
    assert area == sojourns == sum(finishes[job] - arrivals[job] for job in arrivals)
    services = sum(model.busy(stage) for stage in range(model.n_stages))
    assert sum(statistics.waits) + services == sojourns
    assert statistics.makespan == end
    waits = [0] * model.n_stages
    for row in rows:
        waits[row[1]] = max(waits[row[1]], row[5] - row[4])
    assert statistics.waits_max == tuple(waits)


def test_a_one_lane_tandem_has_its_closed_form() -> None:
    generator = random.Random(11)
    for _ in range(100):
        services = tuple(generator.randint(0, 50) for _ in range(generator.randint(1, 6)))
        n_jobs = generator.randint(1, 40)
        count = len(services)
        batch = Case(
            lanes=(1,) * count,
            routes=tuple(range(count)),
            services=(services,) * n_jobs,
            arrivals=(0,) * n_jobs,
        )
        model = model_of(batch)
        makespan = collect(model, FeedForwardEngine(model)).makespan
        assert makespan == sum(services) + (n_jobs - 1) * max(services)


def test_faster_components_never_end_a_tandem_later() -> None:
    generator = random.Random(13)
    for _ in range(200):
        case = random_case(generator, "tandem")
        faster = tuple(max(0, service - generator.randint(0, 2)) for service in case.services[0])
        changed = Case(
            lanes=case.lanes,
            routes=case.routes,
            services=(faster,) * len(case.services),
            arrivals=case.arrivals,
        )
        ends = [
            collect(model, FeedForwardEngine(model)).makespan
            for model in map(model_of, (case, changed))
        ]
        assert ends[1] <= ends[0]


def test_large_blocks_equal_the_event_engine() -> None:
    """More jobs than a block, at real magnitudes."""
    generator = np.random.default_rng(0)
    n_jobs, lanes = 70_000, (1, 3, 2)
    case = Case(
        lanes=lanes,
        routes=(0, 1, 2),
        services=((6_720, 19_531, 13_007),) * n_jobs,
        arrivals=tuple(np.cumsum(generator.integers(0, 14_000, n_jobs)).tolist()),
    )
    model = model_of(case)
    first, second = FeedForwardEngine(model), EventEngine(model)
    for fast, slow in zip(first.blocks(), second.blocks(), strict=True):
        assert (fast.finishes == slow.finishes).all()
        assert all((a == b).all() for a, b in zip(fast.starts, slow.starts, strict=True))
    assert collect(model, first) == collect(model, second, kept_latencies=0)

"""Visits per CPU second of both engines beside SimPy's, and the memory of ten million jobs.

    python tests/bench/bench_simulation.py [--runs N] [--simpy-jobs N]

A visit is one job at one stage. Feed-forward: 8 stages with 1 to 8 lanes, seeded arrivals at 95 %
load, latency percentiles and waits included. SimPy runs the first jobs of the same arrivals, and
its CPU time is scaled by visits; both must give the same last finish. Re-entrant: 8 stages on 5
components. Medians over runs in turn. Exit status 1 if a bound that the project promises is missed.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from perfdb_git.simulation.arrivals import ArrivalTimes, listed_arrivals
from perfdb_git.simulation.event_engine import EventEngine
from perfdb_git.simulation.feed_forward import FeedForwardEngine
from perfdb_git.simulation.statistics import collect
from perfdb_git.simulation.tick_model import TickModel

N_JOBS = 1_000_000
MEMORY_JOBS = 10_000_000
LANES = (1, 2, 3, 4, 5, 6, 7, 8)
# Each stage is a little slower than the one before, so that jobs wait at all of them.
SERVICES = tuple(lanes * (950 + 6 * lanes) for lanes in LANES)
ROUTES = tuple(range(len(LANES)))
LOAD = Fraction(95, 100)
INTERVAL = Fraction(998) / LOAD


def tandem(n_jobs: int) -> TickModel:
    """Eight stages on components of 1 to 8 lanes, random arrivals."""
    gaps = np.random.default_rng(1).integers(0, round(2 * INTERVAL), n_jobs, endpoint=True)
    return TickModel(
        lanes=LANES, routes=ROUTES, services=SERVICES, arrivals=listed_arrivals(np.cumsum(gaps))
    )


def re_entrant(n_jobs: int) -> TickModel:
    """Eight stages on five components, four of them visited twice or more."""
    services = (100_000, 230_000, 300_000, 150_000, 310_000, 410_000, 90_000, 320_000)
    gaps = np.random.default_rng(2).integers(0, 2 * 337_000, n_jobs, endpoint=True)
    return TickModel(
        lanes=(1, 2, 3, 1, 2),
        routes=(0, 1, 2, 0, 3, 1, 4, 2),
        services=services,
        arrivals=listed_arrivals(np.cumsum(gaps)),
    )


def last_finish_by_simpy(model: TickModel, n_jobs: int) -> int:
    """Run the first jobs of a model in SimPy."""
    import simpy

    environment = simpy.Environment()
    resources = [simpy.Resource(environment, capacity=lanes) for lanes in model.lanes]
    steps = [(resources[route], model.services[s]) for s, route in enumerate(model.routes)]

    def job() -> Generator[Any, Any, None]:
        for server, service in steps:
            with server.request() as request:
                yield request
                yield environment.timeout(service)

    def source() -> Generator[Any, Any, None]:
        now = 0
        for arrival in model.arrivals.block(0, n_jobs).tolist():
            yield environment.timeout(arrival - now)
            now = arrival
            environment.process(job())

    environment.process(source())
    environment.run()
    return int(environment.now)


def cpu_seconds(call: Callable[[], object]) -> float:
    """CPU seconds of one call."""
    started = time.process_time()
    call()
    return time.process_time() - started


def peak_mb() -> float:
    """Peak resident memory of this process so far, in 10^6 bytes."""
    # Not getrusage: its maximum includes what the parent held when it forked.
    status = Path("/proc/self/status").read_text(encoding="ascii")
    line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024 / 1e6


def memory_child() -> None:
    """Print peak memory above the start, and CPU seconds, of ten million jobs."""
    small = TickModel(
        lanes=LANES,
        routes=ROUTES,
        services=SERVICES,
        arrivals=ArrivalTimes(n_jobs=2, interval=INTERVAL),
    )
    # Imports what is imported late.
    collect(small, FeedForwardEngine(small))
    start = peak_mb()
    model = TickModel(
        lanes=LANES,
        routes=ROUTES,
        services=SERVICES,
        arrivals=ArrivalTimes(n_jobs=MEMORY_JOBS, interval=INTERVAL),
    )
    seconds = cpu_seconds(lambda: collect(model, FeedForwardEngine(model)))
    print(peak_mb() - start, seconds)


def main() -> int:
    """Run the benchmark and print medians and ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--simpy-jobs", type=int, default=20_000)
    parser.add_argument("--memory-child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.memory_child:
        memory_child()
        return 0
    fast, slow = tandem(N_JOBS), re_entrant(N_JOBS // 4)
    few = tandem(options.simpy_jobs)
    ours = collect(few, FeedForwardEngine(few)).makespan
    theirs = last_finish_by_simpy(few, options.simpy_jobs)
    if ours != theirs:
        print(f"the schedules differ: {ours} against SimPy's {theirs}", file=sys.stderr)
        return 1
    rates: dict[str, list[float]] = {"feed-forward": [], "SimPy": [], "re-entrant": []}
    for _ in range(options.runs):
        seconds = cpu_seconds(lambda: collect(fast, FeedForwardEngine(fast)))
        rates["feed-forward"].append(fast.n_jobs * fast.n_stages / seconds)
        seconds = cpu_seconds(lambda: last_finish_by_simpy(few, options.simpy_jobs))
        rates["SimPy"].append(options.simpy_jobs * few.n_stages / seconds)
        seconds = cpu_seconds(lambda: EventEngine(slow))
        rates["re-entrant"].append(slow.n_jobs * slow.n_stages / seconds)
    median = {name: statistics.median(values) for name, values in rates.items()}
    command = [sys.executable, __file__, "--memory-child"]
    child = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    memory, seconds = map(float, child.split())
    ratio = median["feed-forward"] / median["SimPy"]
    print(f"feed-forward  {median['feed-forward'] / 1e6:8.1f} M visits/CPU s (at least 100)")
    print(f"SimPy         {median['SimPy'] / 1e6:8.3f} M visits/CPU s")
    print(f"ratio         {ratio:8.0f} x (at least 500)")
    print(f"re-entrant    {median['re-entrant'] / 1e6:8.2f} M visits/CPU s (at least 2)")
    print(f"10^7 jobs     {memory:8.1f} MB above the start (below 60), {seconds:.2f} CPU s")
    kept = (
        median["feed-forward"] >= 100e6
        and ratio >= 500
        and median["re-entrant"] >= 2e6
        and memory < 60
    )
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())

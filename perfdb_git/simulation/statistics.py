"""What is counted while a run's blocks go by: integers only, so that no order of adding matters."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from perfdb_git.model.simulation import LatencySummary
from perfdb_git.simulation.percentiles import Distribution, nearest_rank, ranked
from perfdb_git.simulation.tick_model import Block, Engine, TickModel, exact_sum
from perfdb_git.simulation.ticks import Tick

if TYPE_CHECKING:
    from perfdb_git.simulation.arrivals import Ticks

_FRACTIONS = (Fraction(50, 100), Fraction(95, 100), Fraction(99, 100))

KEPT_LATENCIES = 1 << 20
"""Jobs up to which all latencies are kept (8 MiB) instead of run through again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStatistics:
    """Sums and extremes of a run, in ticks.

    Parameters
    ----------
    makespan : int
        The last finish.
    waits, waits_max : tuple of int, shape (n_stages,)
        Sum and maximum over jobs of start - ready.
    latency : LatencySummary
        Of the jobs, from arrival to last finish, in ps.
    """

    makespan: int
    waits: tuple[int, ...]
    waits_max: tuple[int, ...]
    latency: LatencySummary


def collect(
    model: TickModel, engine: Engine, *, kept_latencies: int = KEPT_LATENCIES
) -> RunStatistics:
    """Run through the schedule, twice or more if there are too many jobs to keep latencies.

    Parameters
    ----------
    model : TickModel
        What is run.
    engine : Engine
        What runs it.
    kept_latencies : int
        Jobs up to which latencies are kept.
    """
    waits = [0] * model.n_stages
    waits_max = [0] * model.n_stages
    makespan = 0
    sink: _KeptLatencies | _CountedLatencies = (
        _KeptLatencies(model.n_jobs) if model.n_jobs <= kept_latencies else _CountedLatencies()
    )
    for block in engine.blocks():
        for stage, start in enumerate(block.starts):
            if stage == 0:
                wait = start - block.arrivals
            else:
                wait = start - block.starts[stage - 1]
                wait -= block.service(model, stage - 1)
            longest = int(wait.max())
            if longest:
                waits[stage] += exact_sum(wait, largest=longest)
                waits_max[stage] = max(waits_max[stage], longest)
        makespan = max(makespan, int(block.finishes.max()))
        sink.add(block)
    return RunStatistics(
        makespan=makespan,
        waits=tuple(waits),
        waits_max=tuple(waits_max),
        latency=sink.summary(engine, model.tick),
    )


class _KeptLatencies:
    def __init__(self, n_jobs: int) -> None:
        import numpy as np

        self._latencies: Ticks = np.empty(n_jobs, dtype=np.int64)

    def add(self, block: Block) -> None:
        rows = slice(block.first_job, block.first_job + len(block.arrivals))
        self._latencies[rows] = block.finishes - block.arrivals

    def summary(self, _engine: Engine, tick: Tick) -> LatencySummary:
        values = self._latencies
        total, count = exact_sum(values), len(values)
        inner = [nearest_rank(fraction, count) for fraction in _FRACTIONS]
        low, p50, p95, p99, high = ranked(values, [0, *inner, count - 1])
        return _latency_summary(tick, total / count, (low, p50, p95, p99, high))


class _CountedLatencies:
    def __init__(self) -> None:
        self._distribution = Distribution()

    def add(self, block: Block) -> None:
        self._distribution.add(block.finishes - block.arrivals)

    def summary(self, engine: Engine, tick: Tick) -> LatencySummary:
        def again() -> Iterator[Ticks]:
            for block in engine.blocks():
                yield block.finishes - block.arrivals

        found = self._distribution
        p50, p95, p99 = found.percentiles(_FRACTIONS, again)
        mean = found.total / found.count
        return _latency_summary(tick, mean, (found.min, p50, p95, p99, found.max))


def _latency_summary(tick: Tick, mean: float, ranks: tuple[int, ...]) -> LatencySummary:
    """Return latencies in ps."""
    low, p50, p95, p99, high = map(tick.ps, ranks)
    return LatencySummary(min=low, mean=mean / tick.per_ps, p50=p50, p95=p95, p99=p99, max=high)

"""Fit and evaluation rates of the boosted symmetric trees, in CPU seconds.

    python tests/bench/bench_trees.py [--rows N] [--features N] [--rounds N] [--fit-rounds N]

Rows are seeded: half of the features continuous, half of few values, as hardware features are. The
fit is timed over ``--fit-rounds`` rounds and scaled; evaluation uses ``--rounds`` trees, shuffled
rows and new features, so that no code is already in a cache. Exit status 1 if a bound that the
project promises is missed.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from perfdb_git.analysis.symmetric_trees import SymmetricTrees
from perfdb_git.analysis.tree_boosting import TreeSettings, fit_symmetric_trees

LEAST_TREES_PER_S = 240_000
LEAST_QUERIES_PER_S = 176_000
MOST_SINGLE_S = 1e-3
N_QUERIES = 4 * 16_384


def surface(n_rows: int, n_features: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Rows whose target depends on all features a little, on some of them much."""
    draws = np.random.default_rng(1)
    features = draws.normal(size=(n_rows, n_features))
    few = np.arange(n_features) % 2 == 1
    features[:, few] = np.rint(features[:, few] * 4)
    target = np.sin(2 * features[:, 0]) + 0.1 * features @ draws.normal(size=n_features)
    return features, target + draws.normal(0, 0.01, n_rows)


def cpu_seconds(work: Callable[[], object], runs: int = 3) -> float:
    """Median CPU time of a few runs."""
    taken = []
    for _ in range(runs):
        start = time.process_time()
        work()
        taken.append(time.process_time() - start)
    return statistics.median(taken)


def repeated(model: SymmetricTrees, rounds: int) -> SymmetricTrees:
    """The same trees again and again, up to ``rounds``: as much to evaluate as a full fit."""
    times = -(-rounds // model.n_trees)
    return SymmetricTrees(
        bins=model.bins,
        features=np.tile(model.features, (times, 1))[:rounds],
        thresholds=np.tile(model.thresholds, (times, 1))[:rounds],
        leaves=np.tile(model.leaves, (times, 1))[:rounds],
        scale=model.scale,
        offset=model.offset,
    )


def n_bytes(model: SymmetricTrees) -> int:
    """Size of the parameters."""
    arrays = (
        model.features,
        model.thresholds,
        model.leaves,
        model.bins.edges,
        model.bins.edge_counts,
    )
    return sum(array.nbytes for array in arrays)


def main() -> int:
    """Print the rates; return 1 if a bound is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=35_000)
    parser.add_argument("--features", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=1_000)
    parser.add_argument("--fit-rounds", type=int, default=100)
    chosen = parser.parse_args()
    features, target = surface(chosen.rows, chosen.features)
    print(f"{os.cpu_count()} cores, numpy {np.__version__}, load {os.getloadavg()[0]:.1f}")
    for fraction in (1.0, 0.5):
        settings = TreeSettings(rounds=chosen.fit_rounds, feature_fraction=fraction)
        start = time.process_time()
        fitted = fit_symmetric_trees(features, target, settings)
        taken = time.process_time() - start
        print(
            f"fit, {fraction:.0%} of the features a tree: {taken:.2f} s for {chosen.fit_rounds} "
            f"rounds, {taken * chosen.rounds / chosen.fit_rounds:.1f} s for {chosen.rounds}"
        )
    model = repeated(fitted, chosen.rounds)
    queries, _ = surface(N_QUERIES, chosen.features)
    codes = [model.bins.encode(part) for part in np.split(queries, 4)]
    trees = N_QUERIES / cpu_seconds(lambda: [model.predict_codes(part) for part in codes])
    overall = N_QUERIES / cpu_seconds(lambda: model.predict(queries))
    model.predict(queries[0])
    single = cpu_seconds(lambda: [model.predict(row) for row in queries[:500]]) / 500
    print(f"{model.n_trees} trees of depth {model.features.shape[1]}, {n_bytes(model):,} bytes")
    print(f"trees alone       {trees:12,.0f} queries a CPU second")
    print(f"codes and trees   {overall:12,.0f} queries a CPU second")
    print(f"one query         {single * 1e6:12,.0f} microseconds")
    missed = trees < LEAST_TREES_PER_S or overall < LEAST_QUERIES_PER_S or single > MOST_SINGLE_S
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())

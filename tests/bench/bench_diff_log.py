"""CPU time of `perfdb diff` and `perfdb log` on a million rows in a thousand files.

    python tests/bench/bench_diff_log.py [--runs N] [--keep FOLDER] [--record-sets N]

`diff` answers 200 queries before and after a change of 1,000 rows; `log` walks a thousand commits
of which twenty touch evidence. Each figure is a whole process with a warm index, user and system
time, the median over the runs. `--keep` leaves the repository and its index there, and uses those
that it finds.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

PROJECT = Path(__file__).parents[2]
QUESTION = ["operation=gemm", "device=a100", "dtype=fp16", "m=960", "n=1792", "k=256"]
LIMITS = {"diff": 5.0, "log": 3.0}


def main() -> None:
    """Run the benchmark and print a line a command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--record-sets", type=int, default=1000)
    parser.add_argument("--keep", type=Path, help="folder to keep the repository in")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or Path(temporary)
        repository = folder / "repository.git"
        if not repository.exists():
            sys.path.insert(0, str(PROJECT))
            from tests.bench.diff_repository import build

            build(repository, record_sets=options.record_sets)
        measure(repository, folder / "cache", options.runs)


def measure(repository: Path, cache: Path, runs: int) -> None:
    """Warm the index, then time both commands."""
    environment = {**os.environ, "PYTHONPATH": str(PROJECT), "PERFDB_CACHE_DIR": str(cache)}
    base = [sys.executable, "-m", "perfdb_git"]
    commands = {
        "diff": [*base, "diff", "--repo", str(repository), "base..head", "--json"],
        "log": [*base, "log", "--repo", str(repository), "--at", "long", *QUESTION, "--json"],
    }
    for name, command in commands.items():
        first = subprocess.run(command, env=environment, capture_output=True, check=True)
        print(f"{name}: {_described(name, json.loads(first.stdout)['data'])}")
        times = [_cpu_seconds(command, environment) for _ in range(runs)]
        spread = f"{min(times):.2f} to {max(times):.2f}"
        print(f"  {statistics.median(times):.2f} s CPU ({spread}), limit {LIMITS[name]:g} s")


def _described(name: str, data: Mapping[str, object]) -> str:
    if name == "log":
        steps = data["steps"]
        assert isinstance(steps, list)
        return f"{data['commits']} commits, asked at {data['evaluated']}, {len(steps)} changes"
    impact = data["impact"]
    assert isinstance(impact, dict)
    return f"{impact['asked']} queries, {len(impact['changes'])} answers differ"


def _cpu_seconds(command: Sequence[str], environment: Mapping[str, str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    main()

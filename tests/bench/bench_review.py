"""CPU time of `perfdb check --base` in a new process, on a large repository.

    python tests/bench/bench_review.py [--files N] [--rows N] [--runs N] [--keep FOLDER]

The repository is synthetic (`large_repository.py`): by default 10^6 rows in 1,000 record sets, and
a branch that adds one more set of 1,000 rows. The index of the base is warm. The floors are what
git needs for `git diff --stat` of the same range, and an interpreter that imports click, numpy and
pygit2. Medians over runs in turn.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.bench.large_repository import LargeRepository, build_large_repository


def cpu_seconds(command: Sequence[str], environment: Mapping[str, str]) -> float:
    """Return user and system seconds of one run of a command."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def commands(repository: LargeRepository) -> dict[str, list[str]]:
    """Return what is compared, by name."""
    path, base, head = str(repository.path), repository.base, repository.head
    check = [sys.executable, "-m", "perfdb_git", "check", "--repo", path, "--at", head]
    return {
        "check --base": [*check, "--base", base],
        "git diff --stat": ["git", "-C", path, "diff", "--stat", base, head],
        "imports alone": [sys.executable, "-c", "import click, numpy, pygit2"],
    }


def main() -> None:
    """Run the benchmark and print medians."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=1000)
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--keep", type=Path, help="build here, or use what was built here before")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.keep or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        repository = _repository(folder / "evidence.git", options.files, options.rows)
        environment = {**os.environ, "PERFDB_CACHE_DIR": str(Path(scratch) / "cache")}
        compared = commands(repository)
        cold = cpu_seconds(compared["check --base"], environment)
        print(f"{'first check --base, no index':30} {cold:7.2f} s CPU")
        times: dict[str, list[float]] = {}
        for _ in range(options.runs):
            for name, command in compared.items():
                times.setdefault(name, []).append(cpu_seconds(command, environment))
    for name, values in times.items():
        spread = f"{min(values):.2f} to {max(values):.2f}"
        print(f"{name:30} {statistics.median(values):7.2f} s CPU ({spread})")


def _repository(path: Path, files: int, rows: int) -> LargeRepository:
    if not path.exists():
        return build_large_repository(path, files=files, rows=rows)
    return LargeRepository(path=path, base="main", head="proposal")


if __name__ == "__main__":
    main()

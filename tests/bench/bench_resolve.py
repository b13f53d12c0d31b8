"""CPU time of one `perfdb resolve` in a new process, beside a peer's first answer.

    python tests/bench/bench_resolve.py [--peer-python PYTHON] [--runs N]

The evidence is this checkout's HEAD. The floor is a bare interpreter that imports click, numpy
and pygit2, which no answer of ours can undercut. The peer is aiconfigurator-core's own first GEMM
answer on the same H200 table, where PYTHON can import it. Medians over runs in turn.
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

PROJECT = Path(__file__).parents[2]
QUESTION = ["operation=gemm", "device=h200", "dtype=bf16", "m=128", "n=4096", "k=4096"]
RESOLVE = [sys.executable, "-m", "perfdb_git", "resolve", "--repo", str(PROJECT), *QUESTION]
PEER = """
from aiconfigurator_core.sdk import common
from aiconfigurator_core.sdk.engine import EngineHandle, build_ops_json
from aiconfigurator_core.sdk.operations import GEMM
from aiconfigurator_core.sdk.perf_database import get_database_view
handle = EngineHandle.for_database(get_database_view("h200_sxm", "trtllm", "1.3.0rc20"))
gemm = GEMM("gemm", 1.0, 4096, 4096, common.GEMMQuantMode.bfloat16)
print(handle.evaluate_ops_json(
    build_ops_json([gemm]), is_context=True, batch_size=1, s=128, prefix=0, x=128))
"""


def cpu_seconds(command: Sequence[str], environment: Mapping[str, str]) -> float:
    """Return user and system seconds of one run of a command."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Run the benchmark and print medians and ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peer-python", help="an interpreter that can import aiconfigurator_core")
    parser.add_argument("--runs", type=int, default=7)
    options = parser.parse_args()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # no user compiles the package at each start
    floor = [sys.executable, "-c", "import click, numpy, pygit2"]
    times: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as warm:
        environment = {**os.environ, "PERFDB_CACHE_DIR": warm}
        subprocess.run(RESOLVE, env=environment, stdout=subprocess.DEVNULL, check=True)
        for _ in range(options.runs):
            times.setdefault("imports alone", []).append(cpu_seconds(floor, environment))
            times.setdefault("index present", []).append(cpu_seconds(RESOLVE, environment))
            with tempfile.TemporaryDirectory() as cold:
                without = {**os.environ, "PERFDB_CACHE_DIR": cold}
                times.setdefault("no index", []).append(cpu_seconds(RESOLVE, without))
            if options.peer_python:
                peer = [options.peer_python, "-c", PEER]
                times.setdefault("peer's first answer", []).append(cpu_seconds(peer, environment))
    base = statistics.median(times["index present"])
    for name, values in times.items():
        median = statistics.median(values)
        spread = f"{min(values):.2f} to {max(values):.2f}"
        print(f"{name:20} {median:6.2f} s CPU ({spread}), {median / base:5.2f} x index present")


if __name__ == "__main__":
    main()

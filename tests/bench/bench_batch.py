"""Questions answered in tables: how many a CPU second, and how much memory a long file takes.

    python -m tests.bench.bench_batch [--peer-python PYTHON] [--runs N] [--stream QUESTIONS ...]

The evidence is this checkout's HEAD. ``exact`` asks for shapes on record, first when nobody has
asked for them yet and then with their columns in memory; ``known sites`` changes m of recorded
shapes, ``anywhere`` draws all three sizes, as the peer is asked; both have intervals. The floor
gathers as many numbers as the table of answers has columns. The peer is aiconfigurator-core's
compiled core, asked one question at a time on the same table, its JSON ready made, where PYTHON can
import it.

``--stream`` resolves CSV files of so many questions with the installed command and prints its CPU
seconds, the seconds in which Python's csv module alone reads the file, and its largest size.
"""

from __future__ import annotations

import argparse
import csv
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

# One thread: CPU seconds of idle helpers would be counted, and small products gain nothing.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from numpy.typing import NDArray

from perfdb_git.database import DatabaseSnapshot, PerformanceDatabase
from perfdb_git.resolution.batch_session import BatchSession

PROJECT = Path(__file__).parents[2]
CHUNK = 65_536
COUNT = 4 * CHUNK
PEER = """
import random, statistics, time
from aiconfigurator_core.sdk import common
from aiconfigurator_core.sdk.engine import EngineHandle, build_ops_json
from aiconfigurator_core.sdk.operations import GEMM
from aiconfigurator_core.sdk.perf_database import get_database_view
handle = EngineHandle.for_database(get_database_view("h200_sxm", "trtllm", "1.3.0rc20"))
draws = random.Random(0)
asked = [
    (build_ops_json([GEMM("gemm", 1.0, draws.randint(256, 16384), draws.randint(256, 16384),
     common.GEMMQuantMode.bfloat16)]), draws.randint(1, 16384))
    for _ in range(20000)
]
def rate(some):
    start = time.process_time()
    for ops, m in some:
        handle.evaluate_ops_json(ops, is_context=True, batch_size=1, s=m, prefix=0, x=m)
    return len(some) / (time.process_time() - start)
rate(asked[:1])  # loads the table
# Each question once: it keeps 32,000 answers, and a second round would read those.
parts = [asked[start : start + 4000] for start in range(4000, 20000, 4000)]
print(statistics.median(map(rate, parts)))
"""

Columns = dict[str, Any]


def recorded_shapes(snapshot: DatabaseSnapshot) -> NDArray[np.float64]:
    """Return every bfloat16 shape on record for the H200, ``(n, 3)``."""
    found = [
        np.column_stack([record_set.dimension(name) for name in ("m", "n", "k")])
        for key in snapshot.evidence.series_keys()
        if (key.operation, key.device) == ("gemm", "h200_141g")
        for record_set in snapshot.evidence.record_sets(key)
        if record_set.header.context["dtype"] == "bfloat16"
    ]
    return np.concatenate(found)


def questions(shapes: NDArray[np.float64]) -> Columns:
    """Return columns of questions about shapes."""
    sizes = {name: shapes[:, place].copy() for place, name in enumerate("mnk")}
    return {"operation": "gemm", "device": "h200", "dtype": "bfloat16", **sizes}


def chunks(columns: Columns) -> list[Columns]:
    """Cut columns into chunks."""
    return [
        {
            name: cells if isinstance(cells, str) else cells[start : start + CHUNK]
            for name, cells in columns.items()
        }
        for start in range(0, COUNT, CHUNK)
    ]


def rate(work: Callable[[], object]) -> float:
    """Return questions a CPU second."""
    start = time.process_time()
    work()
    return COUNT / (time.process_time() - start)


def _gather(table: NDArray[np.float64], places: NDArray[np.int64]) -> None:
    for _ in range(COUNT // CHUNK):
        for row in table:
            row[places]


def _answer(session: BatchSession, parts: list[Columns]) -> None:
    for part in parts:
        session.table(part)


def rates(snapshot: DatabaseSnapshot, runs: int) -> dict[str, float]:
    """Return the median rate of each kind of question."""
    draws = np.random.default_rng(0)
    shapes = recorded_shapes(snapshot)
    some = shapes[draws.integers(0, len(shapes), COUNT)]
    near = some.copy()
    near[:, 0] = np.maximum(1, np.round(near[:, 0] * np.exp2(draws.uniform(-0.4, 0.4, COUNT))))
    anywhere = np.round(np.exp2(draws.uniform((0, 5, 5), (15, 16, 16), (COUNT, 3))))
    table = np.zeros((24, len(shapes)))
    places = draws.integers(0, len(shapes), CHUNK)
    found: dict[str, list[float]] = {}
    kinds = (
        ("exact, asked for the first time", some),
        ("exact, columns in memory", some),
        ("known sites", near),
        ("anywhere", anywhere),
    )
    for _ in range(runs):
        gather = partial(_gather, table, places)
        found.setdefault("floor: numbers gathered", []).append(rate(gather))
        session = snapshot.batch()
        for name, asked in kinds:
            answer = partial(_answer, session, chunks(questions(asked)))
            found.setdefault(name, []).append(rate(answer))
    return {name: statistics.median(values) for name, values in found.items()}


def write_questions(path: Path, count: int) -> None:
    """Write a CSV file of questions about random sizes."""
    draws = np.random.default_rng(1)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["operation", "device", "dtype", "m", "n", "k"])
        for start in range(0, count, CHUNK):
            rows = min(CHUNK, count - start)
            sizes = np.round(np.exp2(draws.uniform(5, 15, (rows, 3)))).astype(np.int64)
            writer.writerows(["gemm", "h200", "bf16", *row] for row in sizes.tolist())


def stream(count: int) -> str:
    """Answer a file of questions in a process of its own; return a row of a Markdown table."""
    with tempfile.TemporaryDirectory() as folder:
        asked, answers = Path(folder, "asked.csv"), Path(folder, "answers.parquet")
        write_questions(asked, count)
        start = time.process_time()
        with asked.open(newline="") as file:
            deque(csv.reader(file), maxlen=0)
        floor = time.process_time() - start
        command = [sys.executable, "-m", "perfdb_git", "resolve", "--repo", str(PROJECT)]
        command += ["--queries", str(asked), "--output", str(answers)]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        if status:
            raise SystemExit(f"the command ended with status {status}")
        seconds = usage.ru_utime + usage.ru_stime
        megabytes = usage.ru_maxrss / 1024
        return f"| {count:,} | {seconds:.1f} | {floor:.2f} | {megabytes:.0f} |"


def main() -> None:
    """Run the benchmark and print rates and ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peer-python", help="an interpreter that can import aiconfigurator_core")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--stream", type=int, nargs="+", default=[], help="questions in files")
    options = parser.parse_args()
    found = rates(PerformanceDatabase.open(PROJECT).at("HEAD"), options.runs)
    if options.peer_python:
        done = subprocess.run(
            [options.peer_python, "-c", PEER], capture_output=True, text=True, check=True
        )
        found["peer, one by one, without interval"] = float(done.stdout)
    base = found["known sites"]
    for name, value in found.items():
        print(f"{name:36} {value:12,.0f} a CPU second, {value / base:6.2f} x known sites")
    if options.stream:
        print("| questions | CPU s | reading the CSV file alone | peak MB |")
        print("|---:|---:|---:|---:|")
        for count in options.stream:
            print(stream(count), flush=True)


if __name__ == "__main__":
    main()

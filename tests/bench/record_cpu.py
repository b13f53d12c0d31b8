"""Measure numpy's GEMM and memory copy on one core: one sample of every point a process.

From the top of a checkout, on a machine that does nothing else:

    OPENBLAS_NUM_THREADS=1 perfdb record --tool table --mapping tests/bench/record_cpu.yaml \
        --warmup 1 --repetitions 40 -- python tests/bench/record_cpu.py

On a machine that others use too, ``chrt -f 1`` before ``perfdb`` (as root) keeps ordinary processes
off the core; the manifest then says so.

On another processor, change the device in the mapping to its term, and add the term to
evidence/vocabulary.yaml.
"""

from __future__ import annotations

import csv
import os
import sys
import time
from collections.abc import Callable, Iterator

import numpy as np

WARMUP = 3
PAUSE = 0.02  # seconds before a point: a real-time process that never rests is stopped for a while
GEMM_SIZES = (64, 96, 128, 192, 256, 384, 512, 768, 1024)
COPY_BYTES = tuple(64 * 1024 * 2**step for step in range(11))  # 64 KiB to 64 MiB
THREADS = "OPENBLAS_NUM_THREADS"


def seconds(call: Callable[[], object]) -> float:
    """Return the time of one call after `WARMUP` calls that do not count."""
    time.sleep(PAUSE)
    for _ in range(WARMUP):
        call()
    start = time.perf_counter_ns()
    call()
    return (time.perf_counter_ns() - start) / 1e9


def gemm_rows() -> Iterator[tuple[object, ...]]:
    """Yield (operation, implementation, revision, dtype, size, seconds) of square products."""
    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]  # type: ignore[index, call-overload]
    random = np.random.default_rng(1)
    for dtype in ("float32", "float64"):
        for size in GEMM_SIZES:
            left = random.random((size, size)).astype(dtype)
            right = random.random((size, size)).astype(dtype)
            result = np.empty((size, size), dtype)
            taken = seconds(lambda a=left, b=right, out=result: np.matmul(a, b, out=out))
            yield "gemm", blas["name"], blas["version"], dtype, size, taken


def copy_rows() -> Iterator[tuple[object, ...]]:
    """Yield the same of copies from one buffer to another."""
    for size in COPY_BYTES:
        source = np.ones(size, np.uint8)
        target = np.zeros(size, np.uint8)
        taken = seconds(lambda a=source, b=target: np.copyto(b, a))
        yield "memory_copy", "numpy.copyto", np.__version__, "", size, taken


def main() -> int:
    """Print all points as a table."""
    if os.environ.get(THREADS) != "1":
        sys.stderr.write(f"set {THREADS}=1: one core is what is measured\n")
        return 2
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    writer = csv.writer(sys.stdout, lineterminator="\n")
    kind = ("implementation", "implementation_revision", "dtype", "size")
    writer.writerow(["operation", *kind, "seconds", "numpy"])
    for row in (*gemm_rows(), *copy_rows()):
        writer.writerow([*row, np.__version__])
    return 0


if __name__ == "__main__":
    sys.exit(main())

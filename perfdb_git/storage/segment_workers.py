"""Segments made by several processes at once.

The processes are fresh interpreters that talk over pipes, not forks and not `multiprocessing`: a
fork would share open packs, locks and threads of whatever program calls this library, and a spawned
child would run that program's main module once more. Nothing is pickled: requests are JSON lines
(`segment_worker`), and results are files in the cache directory. So a worker that is killed costs
the time of one batch; its files are made by whoever asked.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TypeAlias

from perfdb_git.storage.segment_worker import Outcome, Task, main, request
from perfdb_git.storage.sources import SnapshotSource, SourceFile

FEWEST_BYTES = 24_000_000
"""Text of record sets below which one process is about as quick, for less work in all."""

_LARGEST_BATCH = 16
_BATCHES_EACH = 8
_QUOTA = Path("/sys/fs/cgroup/cpu.max")
_START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    f"from {main.__module__} import main; main()"
)
"""The child finds the very modules that this process uses."""

_Batches: TypeAlias = "SimpleQueue[list[SourceFile]]"
_Done: TypeAlias = "SimpleQueue[tuple[SourceFile, Outcome] | None]"


def usable_cpus() -> int:
    """Return how many CPUs this process may use, by its affinity and its control group."""
    try:
        usable = len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        usable = os.cpu_count() or 1
    try:
        quota, period = _QUOTA.read_text(encoding="ascii").split()
    except (OSError, ValueError):
        return usable
    return usable if quota == "max" else max(1, min(usable, int(quota) // int(period)))


def _is_worthwhile(source: SnapshotSource, files: Sequence[SourceFile]) -> bool:
    """Tell whether several processes would make the segments of these files sooner."""
    total = 0
    for file in files:
        total += source.size(file)
        if total >= FEWEST_BYTES:
            return True
    return False


def in_processes(
    task: Task,
    source: SnapshotSource,
    cache: Path | None,
    files: Sequence[SourceFile],
    *,
    jobs: int | None,
    on_done: Callable[[SourceFile, Outcome], None],
) -> None:
    """Make or verify the segments of record-set files in several processes.

    Parameters
    ----------
    task : str
        ``make`` or ``verify``.
    source : SnapshotSource
        The snapshot's files.
    cache : Path or None
        The cache directory that has the segments; without one nothing is done.
    files : sequence of SourceFile
        Each content once. What was not done, for whatever reason, is not reported.
    jobs : int or None
        How many processes; None takes as many as there are usable CPUs where there is much to
        read, and does nothing where there is little, as 1 does.
    on_done : callable
        Called in this thread with each file that is done, and how it came out.
    """
    if jobs is None:
        jobs = usable_cpus() if _is_worthwhile(source, files) else 1
    if cache is None or jobs < 2:
        return
    size = max(1, min(_LARGEST_BATCH, len(files) // (jobs * _BATCHES_EACH)))
    batches: _Batches = SimpleQueue()
    for start in range(0, len(files), size):
        batches.put(list(files[start : start + size]))
    done: _Done = SimpleQueue()
    first = json.dumps(request(source.address, cache, task))
    workers: list[_Worker] = []
    try:
        with suppress(OSError):  # no further process can start; those that run will do
            for _ in range(min(jobs, batches.qsize())):
                workers.append(_Worker(first, batches, done))
        running = len(workers)
        while running:
            item = done.get()
            if item is None:
                running -= 1
            else:
                on_done(*item)
    except BaseException:
        for worker in workers:
            worker.kill()
        raise
    finally:
        for worker in workers:
            worker.wait()


class _Worker:
    """One process, and the thread that hands it batches until none is left or it ends."""

    def __init__(self, first: str, batches: _Batches, done: _Done) -> None:
        self._batches = batches
        self._done = done
        self._process = subprocess.Popen(
            # Without -P the folder that we are in comes first: somebody's repository.
            [sys.executable, "-P", "-c", _START, json.dumps(sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            encoding="ascii",
        )
        self._thread = Thread(target=self._run, args=(first,), daemon=True)
        self._thread.start()

    def kill(self) -> None:
        """Stop the process, whatever it is doing; what it has made stays."""
        self._process.kill()

    def wait(self) -> None:
        """Wait until the process and the thread have ended, which nobody keeps from it."""
        self._thread.join()
        self._process.wait()

    def _run(self, first: str) -> None:
        try:
            self._feed(first)
        except (OSError, ValueError):
            pass  # the process is gone; what it has not made is left to the parent
        finally:
            self._done.put(None)

    def _feed(self, first: str) -> None:
        requests, answers = self._process.stdin, self._process.stdout
        assert requests is not None
        assert answers is not None
        with requests, answers:
            requests.write(first + "\n")
            while True:
                try:
                    batch = self._batches.get_nowait()
                except Empty:
                    return
                requests.write(json.dumps([(file.path, file.id) for file in batch]) + "\n")
                requests.flush()
                outcomes = json.loads(answers.readline())
                for file in batch:
                    if file.id in outcomes:
                        self._done.put((file, outcomes[file.id]))

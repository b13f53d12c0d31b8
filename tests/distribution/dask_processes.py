"""A Dask cluster of real processes on loopback, and work for it that tests can watch."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.cli.evidence import ROOT

_START_S = 30

_IDLE_S = 300
"""Nobody ends these processes where the tests are killed, so they end by themselves."""


class DaskProcesses:
    """A scheduler and its workers, each a process of its own without a nanny."""

    def __init__(self, folder: Path, **variables: str) -> None:
        self.folder = folder
        self._file = folder / "scheduler.json"
        self._environment = {**os.environ, "PYTHONPATH": str(ROOT), **variables}
        self._processes: list[subprocess.Popen[bytes]] = []
        self._start(
            "scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--no-show",
            "--scheduler-file", str(self._file), "--idle-timeout", f"{_IDLE_S} seconds",
        )  # fmt: skip
        end = time.monotonic() + _START_S
        while not self._file.exists() and time.monotonic() < end:
            time.sleep(0.02)
        self.address: str = json.loads(self._file.read_text())["address"]

    def add_worker(self, name: str, **variables: str) -> subprocess.Popen[bytes]:
        return self._start(
            "worker", self.address, "--name", name, "--no-nanny", "--nthreads", "1",
            "--no-dashboard", "--host", "127.0.0.1", "--local-directory", str(self.folder),
            "--death-timeout", f"{_START_S} seconds",
            **variables,
        )  # fmt: skip

    def _start(self, what: str, *arguments: str, **variables: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, "-m", f"distributed.cli.dask_{what}", *arguments],
            cwd=self.folder,
            env={**self._environment, **variables},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self._processes.append(process)
        return process

    def stop(self) -> None:
        for process in reversed(self._processes):
            process.kill()
            process.wait()


@contextmanager
def dask_processes(folder: Path, **variables: str) -> Iterator[DaskProcesses]:
    """Start a scheduler, and stop it and all its workers in the end."""
    cluster = DaskProcesses(folder, **variables)
    try:
        yield cluster
    finally:
        cluster.stop()


def slow_square(number: int) -> tuple[int, int]:
    """Return a square, and the process that worked it out, after a moment."""
    time.sleep(0.05)
    return number * number, os.getpid()

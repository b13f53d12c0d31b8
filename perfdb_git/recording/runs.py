"""A command run again and again: warm-up, repetitions, wall times and outputs."""

from __future__ import annotations

import hashlib
import itertools
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from perfdb_git.errors import InvalidInputError, UsageError
from perfdb_git.formats.redaction import Redactor

MAX_OUTPUT_BYTES = 64 << 20
_ERROR_TAIL_BYTES = 2000
_ERROR_LINES = 5
_TIMER_READS = 20_000

Progress = Callable[[int, int, str], None]
"""Called with the runs done, their number, and what the last one was."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """What to run, and how often.

    Parameters
    ----------
    command : tuple of str
        The program and its arguments; no shell is between.
    warmup, repetitions : int
        Runs that do not count, and runs that do.
    timeout : float
        Seconds that one run may take.
    variables : mapping
        The environment variables of the command.
    """

    command: tuple[str, ...]
    warmup: int
    repetitions: int
    timeout: float
    variables: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run: its wall time in nanoseconds and what it printed on standard output."""

    nanoseconds: int
    output: bytes


def find_program(request: RunRequest) -> Path:
    """Return the file that the command starts.

    Raises
    ------
    UsageError
        'no-command' or 'command-not-found'.
    """
    if not request.command:
        raise UsageError(
            "there is no command to run",
            code="no-command",
            remedy="write it after two dashes: perfdb record [options] -- COMMAND",
        )
    program = shutil.which(request.command[0], path=request.variables.get("PATH"))
    if program is None:
        raise UsageError(
            f"{request.command[0]!r} is no program on the path",
            code="command-not-found",
            remedy="name an executable file",
        )
    return Path(program)


def program_digest(program: Path) -> str:
    """Return the SHA-256 of a program's file.

    Raises
    ------
    UsageError
        'unreadable-file' for one that may be run and not read.
    """
    try:
        with program.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise UsageError(
            f"{program.name} cannot be read: {error.strerror}",
            code="unreadable-file",
            remedy="its digest is part of the record: let it be read, or start it by a script",
        ) from error


def run_all(
    request: RunRequest,
    redactor: Redactor,
    *,
    inspect: Callable[[Run], object] | None = None,
    progress: Progress | None = None,
) -> tuple[Run, ...]:
    """Run the command's warm-up and repetitions; return the repetitions in order.

    Parameters
    ----------
    request : RunRequest
        What to run, and how often.
    redactor : Redactor
        Cleans what a failing command says.
    inspect : callable or None
        Given the very first run, to refuse it before the others take their time.
    progress : callable or None
        Told after each run.

    Raises
    ------
    UsageError
        A command that cannot be started.
    InvalidInputError
        A run that fails: 'command-failed', 'command-killed', 'command-timeout',
        'output-too-large'.
    """
    program = find_program(request)
    total = request.warmup + request.repetitions
    runs: list[Run] = []
    for number in range(total):
        label = "warm-up" if number < request.warmup else "repetition"
        run = _run(request, program, redactor)
        if number == 0 and inspect is not None:
            inspect(run)
        if label == "repetition":
            runs.append(run)
        if progress is not None:
            progress(number + 1, total, label)
    return tuple(runs)


def _run(request: RunRequest, program: Path, redactor: Redactor) -> Run:
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        stopped = threading.Event()
        start = time.perf_counter_ns()
        try:
            process = subprocess.Popen(
                request.command,
                executable=program,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                env=dict(request.variables),
                start_new_session=True,
            )
        except OSError as error:
            raise UsageError(
                f"{program.name} cannot be started: {error.strerror}", code="command-not-found"
            ) from error
        # Popen.wait with a timeout polls, which would be in the wall time.
        timer = threading.Timer(request.timeout, _stop, (process, stopped))
        timer.start()
        try:
            status = process.wait()
            nanoseconds = time.perf_counter_ns() - start
        finally:
            timer.cancel()
            if process.returncode is None:
                _stop(process, stopped)
                process.wait()
        _refuse_failure(request, program, status, stopped.is_set(), redactor.text(_tail(errors)))
        return Run(nanoseconds=nanoseconds, output=_content(output, program))


def _stop(process: subprocess.Popen[bytes], stopped: threading.Event) -> None:
    """End the command and what it started."""
    stopped.set()
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def _refuse_failure(
    request: RunRequest, program: Path, status: int, timed_out: bool, said: str
) -> None:
    if timed_out:
        raise _failed(
            program,
            f"did not end within {request.timeout:g} s; nothing is recorded",
            "command-timeout",
            "allow more with --timeout",
        )
    if status < 0:
        with suppress(ValueError):
            name = signal.Signals(-status).name
            raise _failed(
                program, f"was ended by {name}; nothing is recorded{said}", "command-killed", None
            )
    if status != 0:
        raise _failed(
            program,
            f"failed with status {status}; nothing is recorded{said}",
            "command-failed",
            "run the command alone until it succeeds",
        )


def _failed(program: Path, reason: str, code: str, remedy: str | None) -> InvalidInputError:
    return InvalidInputError(reason, code=code, document=program.name, remedy=remedy)


def _tail(errors: IO[bytes]) -> str:
    """Return the last lines of standard error, ready to follow a message."""
    size = errors.seek(0, os.SEEK_END)
    errors.seek(max(0, size - _ERROR_TAIL_BYTES))
    lines = errors.read().decode("utf-8", "replace").strip().splitlines()[-_ERROR_LINES:]
    return f"; it said: {' | '.join(lines)}" if lines else ""


def _content(output: IO[bytes], program: Path) -> bytes:
    if output.seek(0, os.SEEK_END) > MAX_OUTPUT_BYTES:
        raise _failed(
            program,
            f"printed more than {MAX_OUTPUT_BYTES} bytes; nothing is recorded",
            "output-too-large",
            "have it print its results alone",
        )
    output.seek(0)
    return output.read()


def timer_resolution_ns(read: Callable[[], int] = time.perf_counter_ns) -> int:
    """Measure the smallest step of the timer that wall times are read from.

    Parameters
    ----------
    read : callable
        Returns nanoseconds.

    Returns
    -------
    int
        Nanoseconds: the smallest positive difference between successive readings, the cost of a
        reading included.
    """
    readings: Sequence[int] = [read() for _ in range(_TIMER_READS)]
    steps = (later - earlier for earlier, later in itertools.pairwise(readings))
    return min(step for step in steps if step > 0)

"""What `perfdb record` is asked for, and what it reports."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from perfdb_git.environment.capture import CapturedEnvironment, CaptureRequest
from perfdb_git.recording.runs import RunRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordRequest:
    """What to run and how to store it.

    Parameters
    ----------
    repository : Path
        The folder that holds ``evidence``.
    run : RunRequest
        The command.
    capture : CaptureRequest
        How to capture the environment.
    pairs : tuple of str
        ``KEY=VALUE`` texts of the operation that the command runs; without a tool only.
    tool : str or None
        Importer that reads the command's output; None records the wall time.
    mapping : str or None
        Mapping of that importer, where it takes one.
    session : str or None
        Name of the session; None makes one of the program's name and the time.
    dry_run : bool
        Run and report, but write nothing.
    """

    repository: Path
    run: RunRequest
    capture: CaptureRequest
    pairs: tuple[str, ...] = ()
    tool: str | None = None
    mapping: str | None = None
    session: str | None = None
    dry_run: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedSet:
    """One record set that was written, or would be."""

    path: str
    sha256: str
    device: str
    operation: str
    rows: int
    samples: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordReport:
    """What a recording gave.

    ``seconds`` are the wall times of the repetitions, in order; with a tool they are not stored.
    """

    session: str
    command: str
    record_sets: tuple[RecordedSet, ...]
    environment: CapturedEnvironment
    seconds: tuple[float, ...]
    written: tuple[str, ...]
    dry_run: bool

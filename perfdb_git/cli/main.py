"""The ``perfdb`` command: every error ends in one line, one exit status and, if asked, JSON."""

from __future__ import annotations

import io
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

import click

from perfdb_git import __version__
from perfdb_git.cli.console import Console, error_messages
from perfdb_git.cli.groups import CommandPlace, LazyGroup
from perfdb_git.cli.thread_limits import limit_threads
from perfdb_git.errors import (
    EXIT_FINE,
    EXIT_INTERNAL,
    EXIT_INTERRUPTED,
    EXIT_USAGE,
    PerfdbError,
)
from perfdb_git.model.result import Message

limit_threads()

TRACEBACK_VARIABLE = "PERFDB_TRACEBACK"

_COMMANDS = {
    "init": CommandPlace("perfdb_git.cli.init", "init", "Make a new evidence repository."),
    "import": CommandPlace(
        "perfdb_git.cli.importing", "import_group", "Bring measurements in from other tools' files."
    ),
    "record": CommandPlace(
        "perfdb_git.cli.record", "record", "Run a benchmark and store what it showed."
    ),
    "env": CommandPlace(
        "perfdb_git.cli.env", "env_group", "Capture and compare environments of runs."
    ),
    "check": CommandPlace(
        "perfdb_git.cli.check", "check", "Find faults in the evidence of a snapshot."
    ),
    "resolve": CommandPlace(
        "perfdb_git.cli.resolve", "resolve", "Answer one question, with its proof."
    ),
    "diff": CommandPlace(
        "perfdb_git.cli.diff", "diff", "Show what a change does to evidence and answers."
    ),
    "log": CommandPlace(
        "perfdb_git.cli.log", "log", "Show when an answer changed, and through what."
    ),
    "simulate": CommandPlace(
        "perfdb_git.cli.simulate", "simulate", "Run a pipeline on a timing profile."
    ),
    "calibrate": CommandPlace(
        "perfdb_git.cli.calibrate", "calibrate_group", "Learn response behaviour from evidence."
    ),
    "validate": CommandPlace(
        "perfdb_git.cli.validate", "validate", "Judge a simulator by measurements."
    ),
    "plan": CommandPlace(
        "perfdb_git.cli.plan", "plan_group", "Many questions as one, locked to a commit."
    ),
    "compare": CommandPlace(
        "perfdb_git.cli.compare", "compare", "Judge one group of records against another."
    ),
    "list": CommandPlace("perfdb_git.cli.listing", "list_command", "List what a snapshot holds."),
    "show": CommandPlace("perfdb_git.cli.show", "show", "Show one record, document or name."),
    "retract": CommandPlace(
        "perfdb_git.cli.retract", "retract", "State that records are wrong; nothing is deleted."
    ),
    "export": CommandPlace(
        "perfdb_git.cli.export", "export_group", "Give parts of a snapshot to other tools."
    ),
    "index": CommandPlace(
        "perfdb_git.cli.index", "index_group", "Build, verify, limit or clear the derived index."
    ),
}

_HELP = """Performance evidence in Git: ask how an operation behaves, get the answer with its proof.

\b
Examples:
  perfdb resolve operation=gemm device=a100 dtype=fp16 m=128 n=10240 k=8192
  perfdb resolve operation=gemm device=a100 dtype=fp16 m=128 n=10240 k=8192 --at v1.0 --json
  perfdb simulate submit-nic-gpu --profile cnuas-analytic-v0 --trace timeline.json
  perfdb list --device h200
  perfdb show 3f2a91c0#17
  perfdb import table --mapping vidur-mlp mlp.csv --source-revision 7d47513
  perfdb check --worktree
  perfdb diff origin/main...HEAD

\b
Exit status:
  0  fine                    4   no admissible evidence
  1  findings                5   repository or revision not available
  2  wrong usage             70  internal error
  3  invalid input           130 interrupted

\b
Environment:
  PERFDB_CACHE_DIR   where derived data is kept; deleting it loses nothing
  PERFDB_CACHE_LIMIT how large it may grow: 4GiB, or say 500MB, 10GiB or none
  PERFDB_TRACEBACK   set to 1 for the traceback of an internal error
  NO_COLOR           set to anything for no colour

\b
Shell completion (zsh and fish likewise):
  eval "$(_PERFDB_COMPLETE=bash_source perfdb)"
"""

perfdb = LazyGroup(
    _COMMANDS,
    name="perfdb",
    help=_HELP,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
click.version_option(__version__, "-V", "--version", prog_name="perfdb")(perfdb)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status.

    An exception that nobody meant to raise passes through to `sys.excepthook`.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    _prepare_streams()
    console = Console(json="--json" in words)
    sys.excepthook = _UnexpectedError(console)
    try:
        status = perfdb.main(words, prog_name="perfdb", standalone_mode=False, obj=console)
    except PerfdbError as error:
        console.fail(error_messages(error))
        return error.exit_status
    except click.ClickException as error:
        return _wrong_usage(error, console)
    except (click.Abort, KeyboardInterrupt):
        console.fail([Message(level="error", code="interrupted", text="interrupted")])
        return EXIT_INTERRUPTED
    return status if isinstance(status, int) else EXIT_FINE


def _prepare_streams() -> None:
    """Make both output streams writable, whatever the caller closed and the terminal can show."""
    # A caller may start us with a stream closed; Python then has None in its place.
    if sys.stdout is None:
        sys.stdout = Path(os.devnull).open("w")  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A character that the terminal cannot show appears as its escape.
            stream.reconfigure(errors="backslashreplace")


def _wrong_usage(error: click.ClickException, console: Console) -> int:
    if not console.json:
        error.show(sys.stderr)
        return EXIT_USAGE
    if isinstance(error, click.UsageError) and error.ctx is not None:
        console.command = error.ctx.command_path.partition(" ")[2] or "perfdb"
    console.fail([Message(level="error", code="wrong-usage", text=error.format_message())])
    return EXIT_USAGE


class _UnexpectedError:
    """The last resort for an exception that nobody meant to raise: one line and status 70."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def __call__(
        self, kind: type[BaseException], error: BaseException, trace: TracebackType | None
    ) -> None:
        if os.environ.get(TRACEBACK_VARIABLE) == "1":
            traceback.print_exception(kind, error, trace)
        text = f"internal error: {kind.__name__}: {error}".rstrip(": ")
        hint = f"please report it, with the traceback that {TRACEBACK_VARIABLE}=1 prints"
        self._console.fail(
            [
                Message(level="error", code="internal", text=text),
                Message(level="note", code="remedy", text=hint),
            ]
        )
        sys.stdout.flush()
        sys.stderr.flush()
        # The interpreter would end with status 1, which means findings.
        os._exit(EXIT_INTERNAL)


if __name__ == "__main__":
    sys.exit(main())

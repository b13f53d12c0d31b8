"""The frame around every command: errors, exit statuses, streams, start-up."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from perfdb_git import __version__
from perfdb_git.cli.main import perfdb
from tests.cli.evidence import GEMM, Evidence, envelope

HEAVY = (
    *("scipy", "yaml", "jsonschema", "pyarrow", "dask", "distributed", "fsspec"),
    *("perfdb_git.importers", "perfdb_git.checks", "perfdb_git.distribution"),
)
MODULES = """
import json, sys
from perfdb_git.cli.main import main
status = main(sys.argv[1:])
print(json.dumps([status, sorted(sys.modules)]), file=sys.stderr)
"""
BROKEN = """
import sys
import perfdb_git.cli.questions
from perfdb_git.cli.main import main

def broken(*_):
    raise ZeroDivisionError("by \x1b design")

perfdb_git.cli.questions.parse_pairs = broken
sys.exit(main(sys.argv[1:]))
"""
INTERRUPTED = """
import sys
import perfdb_git.cli.questions
from perfdb_git.cli.main import main

def interrupted(*_):
    raise KeyboardInterrupt

perfdb_git.cli.questions.parse_pairs = interrupted
sys.exit(main(sys.argv[1:]))
"""


def script(
    evidence: Evidence, text: str, *arguments: str, **variables: str
) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-c", text, *arguments],
        cwd=evidence.path,
        env=evidence.environment(**variables),
        capture_output=True,
        text=True,
        timeout=50,
    )
    return done.returncode, done.stdout, done.stderr


def test_version_and_help(evidence: Evidence) -> None:
    version = evidence.perfdb("--version")
    assert (version.status, version.out) == (0, f"perfdb, version {__version__}\n")
    text = evidence.perfdb("--help")
    assert text.status == 0
    for expected in ("perfdb resolve operation=gemm", "_PERFDB_COMPLETE=bash_source", "130"):
        assert expected in text.out


def test_summaries_are_those_of_the_commands() -> None:
    groups = [perfdb]
    while groups:
        group = groups.pop()
        with group.make_context("perfdb", [], resilient_parsing=True) as context:
            for name, place in group.places.items():
                command = group.get_command(context, name)
                assert command is not None
                assert command.name == name
                if hasattr(command, "places"):
                    groups.append(command)
                else:
                    assert command.get_short_help_str(100) == place.summary
                    assert any(option.name == "json" for option in command.params)


def test_a_warm_resolve_imports_nothing_heavy(evidence: Evidence) -> None:
    assert evidence.perfdb("resolve", *GEMM).status == 0
    status, _, err = script(evidence, MODULES, "resolve", *GEMM)
    assert status == 0
    returned, modules = json.loads(err)
    assert returned == 0
    assert [name for name in modules if name.startswith(HEAVY)] == []


def test_help_imports_no_command(evidence: Evidence) -> None:
    _, _, err = script(evidence, MODULES, "--help")
    assert [name for name in json.loads(err)[1] if name.startswith(("numpy", "pygit2"))] == []


@pytest.mark.parametrize(
    ("arguments", "status", "code"),
    [
        (("resolve", "operation=gem"), 2, "unknown-operation"),
        (("resolve", "nonsense"), 2, "bad-pair"),
        (("resolve", "operation=gemm", "--at", "HEAD", "--worktree"), 2, "conflicting-options"),
        (("resolve", "--no-such-option"), 2, "wrong-usage"),
        (("show", "zzz"), 2, "unknown-id"),
        (("resolve", *GEMM, "--policy", "nothing"), 3, "unknown-policy"),
        (("resolve", *GEMM, "--at", "no-such-branch"), 5, "unknown-revision"),
        (("list", "--repo", "/"), 5, "not-a-repository"),
    ],
)
def test_errors(evidence: Evidence, arguments: tuple[str, ...], status: int, code: str) -> None:
    text = evidence.perfdb(*arguments)
    assert (text.status, text.out) == (status, "")
    assert text.err
    assert "Traceback" not in text.err
    result = evidence.perfdb(*arguments, "--json")
    value = envelope(result)
    assert (result.status, result.err) == (status, "")
    assert (value["status"], value["data"], value["command"]) == ("error", None, arguments[0])
    assert value["messages"][0]["level"] == "error"
    assert value["messages"][0]["code"] == code


def test_an_unknown_command(evidence: Evidence) -> None:
    assert evidence.perfdb("frobnicate").status == 2
    value = envelope(evidence.perfdb("frobnicate", "--json"))
    assert value["command"] == "perfdb"


def test_an_internal_error_is_one_line(evidence: Evidence) -> None:
    status, out, err = script(evidence, BROKEN, "resolve", *GEMM)
    assert (status, out) == (70, "")
    first, hint = err.splitlines()
    assert first == "perfdb: error: internal error: ZeroDivisionError: by \\x1b design"
    assert "PERFDB_TRACEBACK=1" in hint
    status, out, _ = script(evidence, BROKEN, "resolve", *GEMM, "--json")
    value = json.loads(out)
    assert (status, value["status"], value["messages"][0]["code"]) == (70, "error", "internal")
    _, _, err = script(evidence, BROKEN, "resolve", *GEMM, PERFDB_TRACEBACK="1")
    assert "Traceback (most recent call last)" in err


def test_an_interrupt(evidence: Evidence) -> None:
    status, out, err = script(evidence, INTERRUPTED, "resolve", *GEMM)
    assert (status, out) == (130, "")
    assert err.strip() == "perfdb: error: interrupted"


def test_a_reader_that_goes_away_is_no_error(evidence: Evidence) -> None:
    for arguments in (["resolve", *GEMM], ["resolve", *GEMM, "--json"], ["list"]):
        command = subprocess.Popen(
            [sys.executable, "-m", "perfdb_git", *arguments],
            cwd=evidence.path,
            env=evidence.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert command.stdout is not None
        assert command.stderr is not None
        command.stdout.close()
        err = command.stderr.read()
        command.stderr.close()
        assert (command.wait(timeout=50), err) == (0, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a full device")
def test_an_answer_that_cannot_be_written_is_an_error(evidence: Evidence) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "perfdb_git", "list"],
            cwd=evidence.path,
            env=evidence.environment(),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=50,
        )
    expected = "perfdb: error: the answer was not written: No space left on device\n"
    assert (done.returncode, done.stderr) == (70, expected)


def test_a_closed_stream_is_no_error(evidence: Evidence) -> None:
    command = f"{sys.executable} -m perfdb_git list >&- 2>&-"
    done = subprocess.run(
        ["sh", "-c", command], cwd=evidence.path, env=evidence.environment(), timeout=50
    )
    assert done.returncode == 0


def on_terminal(evidence: Evidence, *arguments: str, **variables: str) -> str:
    """Return what a command writes to a terminal."""
    controller, terminal = pty.openpty()
    environment = {**evidence.environment(**variables), "TERM": "xterm"}
    command = subprocess.Popen(
        [sys.executable, "-m", "perfdb_git", *arguments],
        cwd=evidence.path,
        env=environment,
        stdout=terminal,
        stderr=terminal,
        stdin=subprocess.DEVNULL,
    )
    os.close(terminal)
    parts = []
    try:
        while part := os.read(controller, 65536):
            parts.append(part)
    except OSError:
        pass  # Linux reports the end of a terminal this way
    os.close(controller)
    assert command.wait(timeout=50) == 0
    return b"".join(parts).decode()


def test_colour_and_progress_are_for_terminals(cold_evidence: Evidence) -> None:
    evidence = cold_evidence
    text = on_terminal(evidence, "resolve", *GEMM)
    assert "\x1b[1;32m2.872 ms" in text
    assert "indexing [########################] 1/1" in text
    assert "\x1b" not in on_terminal(evidence, "resolve", *GEMM, NO_COLOR="1")
    assert "\x1b" not in evidence.perfdb("resolve", *GEMM).out


def test_shell_completion_needs_no_repository(tmp_path: Path, evidence: Evidence) -> None:
    words = {"COMP_WORDS": "perfdb re", "COMP_CWORD": "1", "_PERFDB_COMPLETE": "bash_complete"}
    result = evidence.perfdb(at=tmp_path, **words)
    assert "resolve" in result.out


def test_a_real_interrupt_ends_quietly(evidence: Evidence) -> None:
    # A shell starts commands in the background with the signal ignored, and that is inherited.
    code = "import signal, time; signal.signal(signal.SIGINT, signal.default_int_handler)"
    code = f"{code}; print('ready', flush=True); time.sleep(30)"
    text = INTERRUPTED.replace("raise KeyboardInterrupt", code)
    command = subprocess.Popen(
        [sys.executable, "-c", text, "resolve", *GEMM],
        cwd=evidence.path,
        env=evidence.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert command.stdout is not None
    assert command.stdout.readline() == "ready\n"
    time.sleep(0.05)
    command.send_signal(signal.SIGINT)
    _, err = command.communicate(timeout=50)
    assert command.returncode == 130
    assert "Traceback" not in err

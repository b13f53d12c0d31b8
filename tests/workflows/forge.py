"""A forge on this machine: its repository, its runner of workflow jobs, and its comments."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.cli.evidence import GIT_ENVIRONMENT, ROOT

TOKEN = "a-token-that-only-the-forge-knows"
REPOSITORY = "lab/evidence"
BOT = "github-actions[bot]"

_EXPRESSION = re.compile(r"\$\{\{\s*(.*?)\s*\}\}")
_SHELLS = {
    # The runner's own command lines.
    None: ["bash", "-e"],
    "bash": ["bash", "--noprofile", "--norc", "-eo", "pipefail"],
    "python": [sys.executable],
}


@dataclass(frozen=True)
class Step:
    """One step that ran, as the forge would show it."""

    name: str
    status: int
    out: str


@dataclass
class Job:
    """What a job did: its steps, and the folder that it ran in."""

    steps: list[Step] = field(default_factory=list)
    executed: set[str] = field(default_factory=set)
    workspace: Path = Path()

    @property
    def passed(self) -> bool:
        return all(step.status == 0 for step in self.steps)

    def step(self, name: str) -> Step:
        (found,) = (step for step in self.steps if step.name == name)
        return found


class Forge:
    """Runs jobs of workflows over a bare repository, as a forge's runner does.

    Actions are played by the few lines that matter here; every ``run`` is executed as it stands.
    """

    def __init__(self, folder: Path, origin: Path) -> None:
        self.folder = folder
        self.origin = origin
        self.comments: list[dict[str, Any]] = []
        self.requests: list[tuple[str, str]] = []
        self.heads: dict[str, str] = {}
        self._jobs = 0
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))

    def __enter__(self) -> Forge:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def artifacts(self) -> Path:
        return self.folder / "artifacts"

    def run(self, workflow: Mapping[str, Any], job_name: str, event: Mapping[str, Any]) -> Job:
        """Run a job whose condition holds; a failed step ends it but for those that always run."""
        self._jobs += 1
        job = Job(workspace=self.folder / f"job-{self._jobs}")
        job.workspace.mkdir(parents=True)
        stated = workflow["jobs"][job_name]
        github = {"token": TOKEN, "event": event["event"], "event_name": event["event_name"]}
        assert self._holds(stated["if"], github), job_name
        shared = {**workflow.get("env", {}), **stated.get("env", {})}
        for number, step in enumerate(stated["steps"]):
            condition = step.get("if", "")
            if not job.passed and "cancelled()" not in condition:
                continue
            assert condition in ("", "${{ !cancelled() }}"), condition
            name = step.get("name") or step["uses"].partition("@")[0]
            environment = self._environment(event, job.workspace)
            for key, value in {**shared, **step.get("env", {})}.items():
                environment[key] = self._filled(str(value), github)
            if "run" in step:
                done = self._execute(step, environment, job.workspace, number)
                job.executed.add(f"{job_name}/{number}")
            else:
                inputs = {k: self._filled(str(v), github) for k, v in step.get("with", {}).items()}
                done = self._act(name, inputs, environment, job.workspace)
            job.steps.append(Step(name=name, status=done[0], out=done[1]))
        return job

    def _execute(
        self, step: Mapping[str, Any], environment: dict[str, str], workspace: Path, number: int
    ) -> tuple[int, str]:
        script = self.folder / f"step-{self._jobs}-{number}"
        script.write_text(step["run"])
        done = subprocess.run(
            [*_SHELLS[step.get("shell")], str(script)],
            cwd=workspace,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
        )
        return done.returncode, done.stdout

    def _act(
        self, action: str, inputs: Mapping[str, str], environment: dict[str, str], workspace: Path
    ) -> tuple[int, str]:
        if action == "actions/checkout":
            ref = inputs.get("ref", environment["GITHUB_SHA"])
            assert inputs["persist-credentials"] == "False"
            for arguments in (
                ("clone", "--quiet", "--no-checkout", str(self.origin), "."),
                ("checkout", "--quiet", "--detach", ref),
            ):
                subprocess.run(["git", *arguments], cwd=workspace, env=environment, check=True)
        elif action == "actions/upload-artifact":
            shutil.copytree(workspace / inputs["path"], self.artifacts / inputs["name"])
        elif action == "actions/download-artifact":
            assert inputs["github-token"] == TOKEN
            shutil.copytree(self.artifacts / inputs["name"], workspace / inputs["path"])
        else:
            assert action == "actions/setup-python", action
        return 0, ""

    def _environment(self, event: Mapping[str, Any], workspace: Path) -> dict[str, str]:
        keep = ("HOME", "LANG", "TMPDIR")
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        return {
            **{name: os.environ[name] for name in keep if name in os.environ},
            **{name: value for name, value in GIT_ENVIRONMENT.items() if name.startswith("GIT_")},
            "PATH": path,
            "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])),
            "PERFDB_CACHE_DIR": str(self.folder / "cache"),
            # The installed version is the one that is asked for: nothing has to be fetched.
            "PIP_NO_INDEX": "1",
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "PIP_ROOT_USER_ACTION": "ignore",
            "CI": "true",
            "GITHUB_ACTIONS": "true",
            "GITHUB_API_URL": f"http://127.0.0.1:{self._server.server_port}",
            "GITHUB_EVENT_NAME": event["event_name"],
            "GITHUB_REPOSITORY": REPOSITORY,
            "GITHUB_SHA": event.get("sha", ""),
            "GITHUB_BASE_REF": event.get("base_ref", ""),
            "GITHUB_WORKSPACE": str(workspace),
        }

    def _filled(self, text: str, github: Mapping[str, Any]) -> str:
        return _EXPRESSION.sub(lambda match: str(_value(match[1], github)), text)

    def _holds(self, condition: str, github: Mapping[str, Any]) -> bool:
        path, _, literal = condition.partition(" == ")
        return _value(path, github) == literal.strip("'")


def _value(path: str, github: Mapping[str, Any]) -> Any:
    """Look a plain path up; workflows here need no other expression."""
    root, *names = path.split(".")
    assert root == "github", path
    found: Any = github
    for name in names:
        found = found[name]
    return found


def _handler(forge: Forge) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            pass

        def do_GET(self) -> None:
            path, _, query = self.path.partition("?")
            found: Any = self._pull_request(path)
            if path.endswith("/comments"):
                found = forge.comments if "page=1" in query.split("&") else []
            self._answer(found)

        def do_POST(self) -> None:
            comment = {
                "id": 100 + len(forge.comments),
                "user": {"login": BOT},
                "body": self._body(),
            }
            forge.comments.append(comment)
            self._answer(comment)

        def do_PATCH(self) -> None:
            number = int(self.path.rpartition("/")[2])
            (comment,) = (item for item in forge.comments if item["id"] == number)
            comment["body"] = self._body()
            self._answer(comment)

        def _pull_request(self, path: str) -> Any:
            number = path.rpartition("/")[2]
            return {"head": {"sha": forge.heads.get(number)}}

        def _body(self) -> str:
            text = self.rfile.read(int(self.headers["Content-Length"]))
            body: str = json.loads(text)["body"]
            return body

        def _answer(self, value: Any) -> None:
            assert self.headers["Authorization"] == f"Bearer {TOKEN}"
            assert self.path.startswith(f"/repos/{REPOSITORY}/")
            forge.requests.append((self.command, self.path.partition("?")[0]))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps(value).encode())

    return Handler

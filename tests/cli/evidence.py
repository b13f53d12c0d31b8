"""Small evidence repositories for the command's tests, written here byte for byte."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from perfdb_git.formats.canonical import canonical_document, canonical_record_set
from perfdb_git.formats.schemas import SchemaStore
from perfdb_git.formats.strict_json import read_json
from tests.record_headers import retraction_document, table_source, timed_protocol

ROOT = Path(__file__).parents[2]
SCHEMAS = SchemaStore(ROOT / "schemas")
GIT_ENVIRONMENT = {
    **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_AUTHOR_NAME": "Ada Author",
    "GIT_AUTHOR_EMAIL": "ada@example.org",
    "GIT_COMMITTER_NAME": "Carl Committer",
    "GIT_COMMITTER_EMAIL": "carl@example.org",
}
MANIFEST = canonical_document(
    {
        "schema": "perfdb/manifest/v1",
        "device": "a100_80g",
        "device_count": 1,
        "form_factor": None,
        "driver": None,
        "firmware": None,
        "runtimes": {},
        "kernel": None,
        "operating_system": None,
        "processor": None,
        "clock_policy": None,
        "power_policy": None,
        "topology": None,
    }
)
GEMM = ("operation=gemm", "device=a100", "dtype=fp16", "m=128", "n=10240", "k=8192")


@dataclass
class Result:
    """What a command printed, and how it ended."""

    status: int
    out: str
    err: str


@dataclass
class Evidence:
    """A work tree with its Git repository, and the command run in it."""

    path: Path
    cache: Path
    clock: int = 1_700_000_000
    variables: dict[str, str] = field(default_factory=dict)

    def git(self, *arguments: str, at: Path | None = None) -> str:
        date = f"{self.clock} +0000"
        environment = {**GIT_ENVIRONMENT, "GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}
        done = subprocess.run(
            ["git", "-c", "init.defaultBranch=main", *arguments],
            cwd=at or self.path,
            env=environment,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, (arguments, done.stderr)
        return done.stdout.strip()

    def commit(self, message: str) -> str:
        self.clock += 60
        self.git("add", "-A")
        self.git("commit", "--quiet", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")

    def write(self, path: str, content: bytes) -> None:
        target = self.path / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)

    def environment(self, **variables: str) -> dict[str, str]:
        keep = {name: value for name, value in GIT_ENVIRONMENT.items() if name != "NO_COLOR"}
        return {
            **keep,
            "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])),
            "PERFDB_CACHE_DIR": str(self.cache),
            "HOME": str(self.cache.parent),
            **self.variables,
            **variables,
        }

    def perfdb(
        self, *arguments: str, at: Path | None = None, stdin: str | None = None, **variables: str
    ) -> Result:
        """Run the command in a process of its own."""
        done = subprocess.run(
            [sys.executable, "-m", "perfdb_git", *arguments],
            cwd=at or self.path,
            env=self.environment(**variables),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=50,
        )
        return Result(done.returncode, done.stdout, done.stderr)

    def add_gemm(
        self,
        session: str,
        rows: Sequence[Sequence[Any]],
        *,
        context: Mapping[str, Any] | None = None,
        measured_at: str | None = None,
        protocol: Mapping[str, Any] | None = None,
    ) -> str:
        """Write a record set of (m, n, k, median ms, std ms) rows and return its id."""
        manifest = hashlib.sha256(MANIFEST).hexdigest()
        self.write(f"evidence/manifests/{manifest}.json", MANIFEST)
        header = gemm_header(session, manifest, context or {}, measured_at, protocol or {})
        content = canonical_record_set(header, [[*row, number] for number, row in enumerate(rows)])
        sha256 = hashlib.sha256(content).hexdigest()
        device = header["context"]["device"]
        self.write(f"evidence/records/{device}/gemm/{session}-{sha256[:12]}.json", content)
        return sha256

    def retract(self, target: str) -> None:
        value = retraction_document(target, "clock was throttled")
        content = canonical_document(value)
        name = hashlib.sha256(content).hexdigest()
        self.write(f"evidence/retractions/{name}.json", content)


def gemm_header(
    session: str,
    manifest: str,
    context: Mapping[str, Any],
    measured_at: str | None,
    protocol: Mapping[str, Any],
) -> dict[str, Any]:
    return {
        "schema": "perfdb/record-set/v1",
        "kind": "measured",
        "session": session,
        "source": table_source(
            revision="7d47513",
            file=f"{session}.csv",
            keys={"op": "attn_pre_proj"},
            measured_at=measured_at,
        ),
        "environment": manifest,
        "protocol": timed_protocol(
            **{"synchronization": "profiler kernel time", "timer_resolution": None, **protocol}
        ),
        "context": {"operation": "gemm", "device": "a100_80g", "dtype": "float16", **context},
        "columns": [
            {"name": "m", "role": "dimension", "unit": "1"},
            {"name": "n", "role": "dimension", "unit": "1"},
            {"name": "k", "role": "dimension", "unit": "1"},
            {"name": "latency", "role": "metric", "unit": "ms", "statistic": "median"},
            {"name": "latency", "role": "metric", "unit": "ms", "statistic": "std"},
            {"name": "latency", "role": "metric", "unit": "1", "statistic": "count"},
            {"name": "row", "role": "source"},
        ],
    }


_SELECTION = re.compile(rb"^calibrations:.*\n(?:[ #].*\n|\n)*", re.MULTILINE)


def make_evidence(path: Path, cache: Path) -> Evidence:
    """Make a work tree with schemas, vocabulary, policy and profiles, nothing committed."""
    evidence = Evidence(path, cache)
    path.mkdir()
    evidence.git("init", "--quiet")
    for name in (
        "evidence/vocabulary.yaml",
        "evidence/policies/default.yaml",
        *(f"profiles/systems/{file.name}" for file in (ROOT / "profiles/systems").iterdir()),
        *(file.relative_to(ROOT).as_posix() for file in (ROOT / "schemas").rglob("*.json")),
    ):
        # The project's own calibrations are not here, and promoting one changes no test.
        evidence.write(name, _SELECTION.sub(b"", (ROOT / name).read_bytes()))
    return evidence


def envelope(result: Result, schemas: SchemaStore = SCHEMAS) -> dict[str, Any]:
    """Return the envelope that a command printed, judged by its schema."""
    value: Any = read_json(result.out.encode(), document="stdout")
    schemas.validate(value, document="stdout", expected_kind="result")
    assert isinstance(value, dict)
    return value

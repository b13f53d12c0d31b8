"""A small evidence repository made by commands, and pull requests against it.

Nothing of the project's checkout is used, so the same files test a wheel in a fresh environment.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from perfdb_git.formats.canonical import canonical_document, canonical_record_set

SPEC = """\
schema: perfdb/calibration-spec/v1
name: small-gemm
description: A curve over m for each (n, k).
family: operation-size-efficiency
response: latency
operation: gemm
device: a100_80g
inputs: [m]
parts:
  - split:
      name: small-shapes20
      description: A fifth of the shapes.
      records: {device: a100_80g, operations: [gemm]}
      key: {columns: [m, "n", k]}
      bucket: {seed: "7", hex_digits: 8, held_out: {at_least: 0, below: 0.2}}
    slice_by: ["n", k]
    forms: [affine, log-log-curve]
"""
DEVICE = """\
schema: perfdb/system-profile/v1
name: small
version: "1"
device: a100_80g
description: One device.
processing_mode: roofline
engines: {matrix: {float16: {peak_tops: 312, efficiency_by_gops: null}}}
memories: {mem1: {capacity_gib: 80, bandwidth_gbyte_per_s: 2039, efficiency_by_mb: null}}
networks: []
sources: [{pointer: "", source: data sheet}]
"""
POLICY = "evidence/policies/default.yaml"
PROFILE = "profiles/systems/small.yaml"
SPEC_PATH = "evidence/calibrations/specs/small-gemm.yaml"
VOCABULARY = "evidence/vocabulary.yaml"
MANIFEST: Mapping[str, Any] = {
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
ENVIRONMENT = {
    **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_AUTHOR_NAME": "Ada Author",
    "GIT_AUTHOR_EMAIL": "ada@example.org",
    "GIT_COMMITTER_NAME": "Ada Author",
    "GIT_COMMITTER_EMAIL": "ada@example.org",
    "NO_COLOR": "1",
}


@dataclass(frozen=True)
class Verdict:
    """How `perfdb check --base` ended."""

    status: int
    findings: list[dict[str, Any]]
    messages: list[dict[str, Any]]
    output: str

    def codes(self, severity: str = "error") -> set[str]:
        return {item["code"] for item in self.findings if item["severity"] == severity}

    def one(self, code: str) -> dict[str, Any]:
        return next(item for item in self.findings if item["code"] == code)


class Proposal:
    """A clone of the base repository in which one change is made and judged."""

    def __init__(self, path: Path, cache: Path) -> None:
        self.path = path
        self.cache = cache
        self.base = "origin/main"

    # --- Git and files ---

    def git(self, *arguments: str, data: bytes | None = None, ok: bool = True) -> str:
        done = subprocess.run(
            ["git", "-c", "init.defaultBranch=main", *arguments],
            cwd=self.path,
            env=ENVIRONMENT,
            input=data,
            capture_output=True,
        )
        assert done.returncode == 0 or not ok, (arguments, done.stderr)
        return done.stdout.decode().strip()

    def commit(self, message: str = "a change", *, all_files: bool = True) -> None:
        if all_files:
            self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)

    def file(self, pattern: str) -> str:
        """Return the first path of the work tree that a pattern matches."""
        return min(f.relative_to(self.path).as_posix() for f in self.path.glob(pattern))

    def read(self, path: str) -> bytes:
        return (self.path / path).read_bytes()

    def write(self, path: str, content: bytes | str) -> str:
        target = self.path / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def remove(self, path: str) -> None:
        (self.path / path).unlink()

    def edit(self, path: str, old: str, new: str) -> None:
        """Replace a text that stands in a file."""
        text = self.read(path).decode()
        assert old in text, (path, old)
        self.write(path, text.replace(old, new, 1))

    # --- evidence ---

    def record_set(self, pattern: str = "evidence/records/*/gemm/line-*.json") -> dict[str, Any]:
        """Return the value of a record set, to be changed and added again."""
        value: dict[str, Any] = json.loads(self.read(self.file(pattern)))
        return value

    def session(self, name: str, rows: Sequence[Sequence[Any]] | None = None) -> dict[str, Any]:
        """Return a further session of the base's measurements, of a source file of its own."""
        value = self.record_set()
        value["session"] = name
        value["source"] |= {
            "file": f"{name}.csv",
            "sha256": hashlib.sha256(name.encode()).hexdigest(),
        }
        if rows is not None:
            value["rows"] = [list(row) for row in rows]
        return value

    def add_record_set(self, value: Mapping[str, Any]) -> str:
        header = {key: item for key, item in value.items() if key != "rows"}
        content = canonical_record_set(header, value["rows"])
        return self.put_record_set(value, content)

    def put_record_set(self, value: Mapping[str, Any], content: bytes) -> str:
        """Write bytes where a record set of that header would stand."""
        context = value["context"]
        digest = hashlib.sha256(content).hexdigest()[:12]
        name = f"{value['session'].splitlines()[0].split()[0]}-{digest}.json"
        return self.write(
            f"evidence/records/{context['device']}/{context['operation']}/{name}", content
        )

    def add_document(self, folder: str, value: Mapping[str, Any], prefix: str = "") -> str:
        """Write a document under its content address."""
        content = canonical_document(value)
        digest = hashlib.sha256(content).hexdigest()
        name = f"{prefix}-{digest[:12]}" if prefix else digest
        return self.write(f"evidence/{folder}/{name}.json", content)

    def retract(self, target: str, reason: str = "the clock was throttled") -> str:
        return self.add_document(
            "retractions",
            {
                "schema": "perfdb/retraction/v1",
                "target": target,
                "reason": reason,
                "replacement": None,
                "retracted_on": None,
            },
        )

    def sha256(self, path: str) -> str:
        return hashlib.sha256(self.read(path)).hexdigest()

    # --- the command ---

    def perfdb(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        beside = shutil.which("perfdb", path=str(Path(sys.executable).parent))
        command = [beside] if beside else [sys.executable, "-m", "perfdb_git"]
        return subprocess.run(
            [*command, *arguments],
            cwd=self.path,
            env={**ENVIRONMENT, "PERFDB_CACHE_DIR": str(self.cache), **variables},
            capture_output=True,
            text=True,
            timeout=120,
        )

    def check(self, *arguments: str) -> Verdict:
        done = self.perfdb("check", "--base", self.base, "--json", *arguments)
        assert done.stdout, done.stderr
        envelope = json.loads(done.stdout)
        return Verdict(
            status=done.returncode,
            findings=(envelope["data"] or {"findings": []})["findings"],
            messages=envelope["messages"],
            output=done.stdout,
        )


def header(session: str, manifest: str, columns: Sequence[str]) -> dict[str, Any]:
    unknown = ("synchronization", "timer_resolution", "clock_state", "power_state")
    return {
        "schema": "perfdb/record-set/v1",
        "kind": "measured",
        "session": session,
        "source": {
            "tool": "bench",
            "revision": "7d47513",
            "file": f"{session}.csv",
            "sha256": hashlib.sha256(session.encode()).hexdigest(),
            "git_blob": None,
            "license": "MIT",
            "keys": {},
            "labels": {},
            "importer": "table/1",
            "mapping": None,
            "measured_at": None,
        },
        "environment": manifest,
        "protocol": {
            "warmup": 1,
            "repetitions": 20,
            "measurement_error": None,
            **dict.fromkeys(unknown),
        },
        "context": {"operation": "gemm", "device": "a100_80g", "dtype": "float16"},
        "columns": [
            *({"name": name, "role": "dimension", "unit": "1"} for name in columns),
            {"name": "latency", "role": "metric", "unit": "ms", "statistic": "median"},
            {"name": "row", "role": "source"},
        ],
    }


def _measure(base: Proposal) -> None:
    manifest = base.add_document("manifests", MANIFEST).rpartition("/")[2][:64]
    for place, n in enumerate((64, 128)):
        rows = [
            [m, n, 64, round(0.1 * m**0.7 * (1 + ((7 * m + place) % 11) / 500), 6), number]
            for number, m in enumerate(range(8, 488, 8))
        ]
        columns = ("m", "n", "k")
        base.add_record_set({**header(f"line-{n}", manifest, columns), "rows": rows})
    path = base.add_record_set(
        {**header("throttled", manifest, ("m", "n", "k")), "rows": [[7, 7, 7, 9.5, 0]]}
    )
    base.retract(f"{base.sha256(path)}#0")


@pytest.fixture(scope="session")
def base_repository(tmp_path_factory: pytest.TempPathFactory) -> Proposal:
    """Measurements, a retraction, a split with a calibration, profiles, and a warm index."""
    root = tmp_path_factory.mktemp("base")
    base = Proposal(root / "evidence", root / "cache")
    base.path.mkdir()
    assert base.perfdb("init").returncode == 0
    base.git("config", "user.name", "Ada Author")
    base.git("config", "user.email", "ada@example.org")
    base.write(PROFILE, DEVICE)
    base.write(POLICY, base.read(POLICY) + b"\nsystem_profiles: {a100_80g: small}\n")
    base.write(SPEC_PATH, SPEC)
    _measure(base)
    base.commit("measure")
    fitted = base.perfdb("calibrate", "fit", "small-gemm", "--commit")
    assert fitted.returncode == 0, fitted.stderr
    checked = base.perfdb("check")
    assert checked.returncode == 0, checked.stdout
    assert base.perfdb("index", "build").returncode == 0
    return base


@pytest.fixture
def propose(base_repository: Proposal, tmp_path: Path) -> Iterator[Callable[..., Proposal]]:
    """Clone the base repository."""

    def clone(*options: str, name: str = "proposal") -> Proposal:
        source = str(base_repository.path)
        if options:
            source = f"file://{source}"
        path = tmp_path / name
        base_repository.git("clone", "-q", "--no-tags", *options, source, str(path))
        return Proposal(path, base_repository.cache)

    yield clone


@pytest.fixture
def proposal(propose: Callable[..., Proposal]) -> Proposal:
    return propose()

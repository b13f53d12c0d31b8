"""A real evidence repository with the project's own vocabulary, policy and profiles."""

import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from perfdb_git.database import DatabaseSnapshot, PerformanceDatabase
from perfdb_git.formats.canonical import canonical_document, canonical_record_set
from perfdb_git.formats.digests import sha256_hex
from perfdb_git.storage.layout import record_set_path
from tests.record_headers import retraction_document, table_source, timed_protocol

PROJECT = Path(__file__).parents[2]
GIT_ENVIRONMENT = {
    **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_AUTHOR_NAME": "Ada Author",
    "GIT_AUTHOR_EMAIL": "ada@example.org",
    "GIT_COMMITTER_NAME": "Ada Author",
    "GIT_COMMITTER_EMAIL": "ada@example.org",
    "GIT_AUTHOR_DATE": "1750000000 +0000",
    "GIT_COMMITTER_DATE": "1750000000 +0000",
}
_SELECTION = re.compile(rb"^calibrations:.*\n(?:[ #].*\n|\n)*", re.MULTILINE)
_LIMIT = re.compile(rb"max_extrapolation_octaves: \d+")
MEDIAN_STD = (("latency", "median", "ms"), ("latency", "population_std", "ms"))


class EvidenceRepository:
    """Adds record sets to a repository and opens snapshots of it."""

    def __init__(self, path: Path, cache: Path) -> None:
        self.path = path
        self.cache = cache
        self.git("init", "-q", "-b", "main")
        for name in ("evidence/vocabulary.yaml", "evidence/policies/default.yaml"):
            # The project's own calibrations are not here, and promoting one changes no test.
            content = _SELECTION.sub(b"", (PROJECT / name).read_bytes())
            self.write(name, _LIMIT.sub(b"max_extrapolation_octaves: 3", content))
        for profile in (PROJECT / "profiles" / "systems").iterdir():
            self.write(f"profiles/systems/{profile.name}", profile.read_bytes())

    def git(self, *arguments: str) -> str:
        done = subprocess.run(
            ["git", *arguments],
            cwd=self.path,
            env=GIT_ENVIRONMENT,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()

    def write(self, name: str, content: bytes) -> None:
        target = self.path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)

    def commit(self, message: str = "evidence") -> str:
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")

    def add(
        self,
        rows: Sequence[Sequence[Any]],
        *,
        dimensions: Sequence[str] = ("m", "n", "k"),
        metrics: Sequence[tuple[str, str, str]] = MEDIAN_STD,
        context: Mapping[str, Any] | None = None,
        session: str = "s1",
        **header: Any,
    ) -> str:
        """Write one record set to the work tree and return its SHA-256."""
        units = {"message_bytes": "B", "transfer_bytes": "B"}
        document = {
            "schema": "perfdb/record-set/v1",
            "kind": "measured",
            "session": session,
            "source": SOURCE | header.pop("source", {}),
            "environment": "1" * 64,
            "protocol": PROTOCOL | header.pop("protocol", {}),
            "context": {
                "operation": "gemm",
                "device": "a100_80g",
                "dtype": "float16",
                **(context or {}),
            },
            "columns": [
                *(
                    {"name": name, "role": "dimension", "unit": units.get(name, "1")}
                    for name in dimensions
                ),
                *(
                    {"name": name, "role": "metric", "statistic": statistic, "unit": unit}
                    for name, statistic, unit in metrics
                ),
            ],
            **header,
        }
        content = canonical_record_set(document, rows)
        sha256 = sha256_hex(content)
        where = document["context"]
        self.write(record_set_path(where["device"], where["operation"], session, sha256), content)
        return sha256

    def retract(self, target: str) -> None:
        content = canonical_document(retraction_document(target, "the clock was wrong"))
        self.write(f"evidence/retractions/{sha256_hex(content)}.json", content)

    def at(self, revision: str = "HEAD") -> DatabaseSnapshot:
        return PerformanceDatabase.open(self.path, cache_directory=self.cache).at(revision)


SOURCE: dict[str, Any] = table_source(revision="r1")
PROTOCOL: dict[str, Any] = timed_protocol()


@pytest.fixture
def repository(tmp_path: Path) -> EvidenceRepository:
    (tmp_path / "repository").mkdir()
    return EvidenceRepository(tmp_path / "repository", tmp_path / "cache")


@pytest.fixture(scope="session")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> DatabaseSnapshot:
    """The evidence of this project itself, as it is committed."""
    cache = tmp_path_factory.mktemp("shipped")
    return PerformanceDatabase.open(PROJECT, cache_directory=cache).at("HEAD")

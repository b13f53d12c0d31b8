"""This repository's own evidence, and small evidence to break."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from perfdb_git.formats.canonical import canonical_document, canonical_record_set
from perfdb_git.formats.digests import sha256_hex
from perfdb_git.model.vocabulary import Vocabulary
from perfdb_git.storage.layout import record_set_path, retraction_path
from perfdb_git.storage.snapshot import EvidenceSnapshot
from perfdb_git.storage.sources import WorktreeSource
from tests.record_headers import retraction_document, table_source

PROJECT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> EvidenceSnapshot:
    cache = tmp_path_factory.mktemp("cache")
    return EvidenceSnapshot(WorktreeSource(PROJECT), cache_directory=cache)


@pytest.fixture(scope="session")
def vocabulary(shipped: EvidenceSnapshot) -> Vocabulary:
    return shipped.vocabulary()


class SmallEvidence:
    """Record sets below a folder, with the project's vocabulary."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.write("evidence/vocabulary.yaml", (PROJECT / "evidence/vocabulary.yaml").read_bytes())

    def write(self, path: str, content: bytes) -> None:
        target = self.path / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)

    def snapshot(self) -> EvidenceSnapshot:
        """A snapshot of what is there now."""
        return EvidenceSnapshot(WorktreeSource(self.path), cache_directory=self.path / "cache")

    def add(
        self,
        rows: Sequence[Sequence[Any]],
        *,
        columns: Sequence[Mapping[str, Any]] = (),
        context: Mapping[str, Any] | None = None,
        keys: Mapping[str, Any] | None = None,
        session: str = "session-1",
        kind: str = "measured",
    ) -> str:
        """Add a record set and return its digest; rows are m, latency in ms, row by default."""
        standard = [
            {"name": "m", "role": "dimension", "unit": "1"},
            {"name": "latency", "role": "metric", "statistic": "median", "unit": "ms"},
            {"name": "row", "role": "source"},
        ]
        header: dict[str, Any] = {
            "schema": "perfdb/record-set/v1",
            "kind": kind,
            "session": session,
            "source": table_source(license=None, keys=dict(keys or {})),
            "environment": "0" * 64,
            "protocol": {
                **dict.fromkeys(("warmup", "repetitions", "synchronization"), None),
                **dict.fromkeys(("timer_resolution", "clock_state", "power_state"), None),
                "measurement_error": None,
            },
            "context": {
                "operation": "gemm",
                "device": "a100_80g",
                "dtype": "float16",
                "n": 64,
                "k": 64,
                **(context or {}),
            },
            "columns": list(columns or standard),
        }
        for column in header["columns"]:
            # A dimension that has a column is no constant.
            header["context"].pop(column["name"], None)
        content = canonical_record_set(header, rows)
        digest = sha256_hex(content)
        self.write(record_set_path("a100_80g", "gemm", session, digest), content)
        return digest

    def retract(self, target: str) -> None:
        content = canonical_document(retraction_document(target, "throttled"))
        self.write(retraction_path(sha256_hex(content)), content)


@pytest.fixture
def small(tmp_path: Path) -> SmallEvidence:
    return SmallEvidence(tmp_path)


@pytest.fixture
def new_small(tmp_path: Path) -> Callable[[str], SmallEvidence]:
    return lambda name: SmallEvidence(tmp_path / name)

"""Fixtures of the importers' tests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from perfdb_git.formats.codec import decode
from perfdb_git.formats.strict_yaml import read_yaml
from perfdb_git.model.vocabulary import Vocabulary
from tests.importers.import_fixtures import MAPPING, PROJECT, Evidence
from tests.importers.tool_evidence import ToolEvidence


@pytest.fixture
def evidence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Evidence:
    monkeypatch.setenv("PERFDB_CACHE_DIR", str(tmp_path / "cache"))
    return Evidence(tmp_path)


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ToolEvidence:
    monkeypatch.setenv("PERFDB_CACHE_DIR", str(tmp_path / "cache"))
    return ToolEvidence(tmp_path)


@pytest.fixture(scope="session")
def vocabulary() -> Vocabulary:
    data = (PROJECT / "evidence" / "vocabulary.yaml").read_bytes()
    return decode(Vocabulary, read_yaml(data, document="vocabulary"), document="vocabulary")


@pytest.fixture
def bench_mapping(evidence: Evidence) -> Callable[[str, str], Path]:
    """Write the small mapping, with one text in it replaced by another."""

    def write(old: str = "", new: str = "") -> Path:
        assert old in MAPPING
        return evidence.put("bench.yaml", MAPPING.replace(old, new) if old else MAPPING)

    return write

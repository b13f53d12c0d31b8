"""Fixtures of the command's tests."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.evidence import GEMM, Evidence, make_evidence

ROWS = [(128, 10240, 8192, 2.872, 0.1, 20), (256, 10240, 8192, 5.1, 0.2, 20)]


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an evidence repository and its warm cache, copied for every test."""
    folder = tmp_path_factory.mktemp("template")
    made = make_evidence(folder / "evidence", folder / "cache")
    made.add_gemm("one", ROWS)
    made.commit("one session")
    assert made.perfdb("resolve", *GEMM).status == 0
    return folder


@pytest.fixture
def evidence(template: Path, tmp_path: Path) -> Evidence:
    """One commit with one record set of two rows, indexed."""
    for name in ("evidence", "cache"):
        shutil.copytree(template / name, tmp_path / name)
    return Evidence(tmp_path / "evidence", tmp_path / "cache", clock=1_700_000_060)


@pytest.fixture
def cold_evidence(evidence: Evidence) -> Evidence:
    """The same without an index."""
    shutil.rmtree(evidence.cache)
    return evidence


@pytest.fixture
def new_evidence(tmp_path: Path) -> Callable[[], Evidence]:
    """Make a repository without records or a commit."""
    return lambda: make_evidence(tmp_path / "evidence", tmp_path / "cache")

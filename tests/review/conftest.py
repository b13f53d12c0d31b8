"""Changes of one small repository, and their reviews."""

import hashlib
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from perfdb_git.database import PerformanceDatabase
from perfdb_git.model.values import Scalar
from perfdb_git.review.changes import ChangeReviewer, Review
from perfdb_git.review.impact import AnswerChange
from perfdb_git.review.tracked import TrackedQuery
from tests.resolution.conftest import PROJECT, EvidenceRepository

POLICY = "evidence/policies/default.yaml"
VOCABULARY = "evidence/vocabulary.yaml"
A100_GEMM = "cfdf315cbf0fb7b979929368453fba9ac97dfc7aaf6e72bb7b592f0218bd7d65"
CALIBRATION = f"evidence/calibrations/operation-size-efficiency/{A100_GEMM}.json"
ROWS = [[m, 10240, 8192, 2.0 * m / 128, 0.02] for m in (128, 256, 512)]
ASKED: dict[str, Any] = {
    "operation": "gemm",
    "device": "a100_80g",
    "dtype": "float16",
    "m": 128,
    "n": 10240,
    "k": 8192,
}


class Changes(EvidenceRepository):
    """A repository with one commit of three GEMM records, to be changed."""

    def __init__(self, path: Path, cache: Path) -> None:
        super().__init__(path, cache)
        self.first = self.add(ROWS)
        self.base = self.commit("base")

    def edit(self, name: str, *replacements: tuple[str, str]) -> None:
        text = (self.path / name).read_text(encoding="utf-8")
        for pattern, replacement in replacements:
            text, count = re.subn(pattern, replacement, text, count=1, flags=re.MULTILINE)
            assert count == 1, pattern
        self.write(name, text.encode())

    def promote(self, revision: str = A100_GEMM) -> None:
        """Select a calibration of the project, whose file stands in the repository."""
        text = (self.path / POLICY).read_text(encoding="utf-8")
        choice = f"response: latency, operation: gemm, device: a100_80g, revision: {revision}"
        self.write(POLICY, f"{text}\ncalibrations:\n  - {{{choice}}}\n".encode())

    def bring_calibration(self) -> None:
        self.write(CALIBRATION, (PROJECT / CALIBRATION).read_bytes())

    def database(self) -> PerformanceDatabase:
        return PerformanceDatabase.open(self.path, cache_directory=self.cache)

    def review(
        self,
        *asked: dict[str, Any],
        base: str | None = None,
        queries: int = 0,
        from_merge_base: bool = False,
        policy: str = "default",
    ) -> Review:
        """Review HEAD against the base, asking these queries and a sample up to `queries`."""
        reviewer = ChangeReviewer(
            self.database(),
            base or self.base,
            "HEAD",
            from_merge_base=from_merge_base,
            policy=policy,
        )
        tracked = [self.tracked(values, reviewer) for values in asked]
        return reviewer.review(tracked, queries=queries)

    def tracked(self, values: dict[str, Any], reviewer: ChangeReviewer) -> TrackedQuery:
        query = reviewer.head.query(values)
        return TrackedQuery(name=f"plan/{values['m']}", origin="plan", query=query)

    def change(self, **values: Any) -> AnswerChange:
        """Commit, and return the one change of the answer to one query."""
        self.commit("change")
        (found,) = self.review({**ASKED, **values}).impact.changes
        return found


def kinds(change: AnswerChange) -> list[str]:
    return [reason.kind for reason in change.reasons]


def queries_of(review: Review) -> Sequence[dict[str, Scalar]]:
    return [dict(change.query) for change in review.impact.changes]


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("changes")
    (folder / "repository").mkdir()
    changes = Changes(folder / "repository", folder / "cache")
    # The index of the base is made once for all tests.
    changes.review()
    return folder


@pytest.fixture
def changes(made: Path, tmp_path: Path) -> Changes:
    for name in ("repository", "cache"):
        shutil.copytree(made / name, tmp_path / name)
    found = Changes.__new__(Changes)
    found.path, found.cache = tmp_path / "repository", tmp_path / "cache"
    found.base = found.git("rev-parse", "HEAD")
    (path,) = (found.path / "evidence/records").rglob("*.json")
    found.first = _sha256(path)
    return found


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()

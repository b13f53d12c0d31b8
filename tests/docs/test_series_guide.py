"""The guide to comparisons shows what `perfdb log --series` prints of a history of made-up runs."""

import random
import re
import shlex
from pathlib import Path

import pytest

from tests.cli.evidence import ROOT, Evidence, make_evidence
from tests.comparison.sampled_evidence import add_records, manifest

GUIDE = (ROOT / "docs" / "comparison.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```console\n\$ perfdb (?P<command>[^\n]*)\n(?P<output>.*?)^```$", re.M | re.S)
VARYING = re.compile(r"\b[0-9a-f]{12}\b")
MS = {128: 1.21, 256: 1.85, 512: 3.4, 1024: 6.6}
STEPS = {256: (12, 0.93), 512: (9, 1.07)}
"""By shape: the run from which on it takes another time, and by what factor."""


@pytest.fixture
def nightly(tmp_path: Path) -> Evidence:
    """Twenty nights: one shape gets slower with a new library, one faster, one run elsewhere."""
    made = make_evidence(tmp_path / "evidence", tmp_path / "cache")
    draw = random.Random(5)
    for night in range(20):
        rows = []
        for m, usual in MS.items():
            start, factor = STEPS.get(m, (20, 1.0))
            level = usual * (factor if night >= start else 1) * draw.lognormvariate(0, 0.012)
            runs = [round(level * draw.lognormvariate(0, 0.004), 4) for _ in range(5)]
            rows.append([m, 1024, 4096, runs])
        revision = "12.8" if night < 9 else "12.9"
        add_records(
            made,
            f"night-{night + 1:02}",
            rows,
            context={"implementation": "cublaslt", "implementation_revision": revision},
            environment=manifest(processor=f"Example CPU {'B' if night == 17 else 'A'}"),
            measured_at=f"2026-03-{night + 1:02}T02:00:00Z",
        )
        made.commit(f"Add the run of {night + 1} March")
    return made


def comparable(text: str) -> list[str]:
    return VARYING.sub("#", text).split()


def test_the_guide_shows_real_output(nightly: Evidence) -> None:
    (block,) = BLOCK.finditer(GUIDE)
    result = nightly.perfdb(*shlex.split(block["command"]))
    assert (result.status, result.err) == (0, "")
    assert comparable(result.out) == comparable(block["output"])

"""The guide to reviews shows what the commands print."""

import re
import shlex
from pathlib import Path

import pytest

from tests.cli.evidence import GIT_ENVIRONMENT, Evidence, make_evidence

GUIDE = Path(__file__).parents[2] / "docs" / "review.md"
BLOCK = re.compile(r"^```console\n\$ perfdb (?P<command>[^\n]*)\n(?P<output>.*?)^```$", re.M | re.S)

# Ids depend on every schema, and so does how many there are.
VARYING = re.compile(r"\b[0-9a-f]{12,64}\b|\b\d+ (?=schemas|system)")


@pytest.fixture
def demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Evidence:
    """One session, and a merged branch with a second one that measured a shape again."""
    made = make_evidence(tmp_path / "evidence", tmp_path / "cache")
    made.clock = 1_767_225_600
    made.add_gemm("monday", [(128, 10240, 8192, 2.872, 0.1, 20), (256, 10240, 8192, 5.1, 0.2, 20)])
    made.commit("Measure two GEMM shapes on A100")
    made.git("checkout", "-q", "-b", "topic")
    monkeypatch.setitem(GIT_ENVIRONMENT, "GIT_AUTHOR_NAME", "Bo Branch")
    made.clock += 86_400
    made.add_gemm("tuesday", [(128, 10240, 8192, 3.61, 0.12, 20), (512, 10240, 8192, 9.7, 0.2, 20)])
    made.commit("Measure again, and a larger shape")
    made.git("checkout", "-q", "main")
    made.git("merge", "-q", "--no-ff", "-m", "Merge measurements of Tuesday", "topic")
    return made


def comparable(text: str) -> list[str]:
    return VARYING.sub("#", text).split()


def test_the_guide_shows_real_output(demo: Evidence) -> None:
    blocks = list(BLOCK.finditer(GUIDE.read_text(encoding="utf-8")))
    assert len(blocks) == 2
    for block in blocks:
        result = demo.perfdb(*shlex.split(block["command"]))
        assert (result.status, result.err) == (0, "")
        assert comparable(result.out) == comparable(block["output"])

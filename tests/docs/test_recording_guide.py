"""The guide to recording shows what the commands print of this repository's own manifests."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.evidence import ROOT, Evidence, make_evidence

GUIDE = (ROOT / "docs" / "recording.md").read_text(encoding="utf-8")
BLOCK = re.compile(
    r"^```console\n\$ perfdb (?P<command>env [^\n]*)\n(?P<output>.*?)^```$", re.M | re.S
)
BENCH = ROOT / "tests/bench/record_cpu.py"


@pytest.fixture
def manifests(tmp_path: Path) -> Evidence:
    """A repository with the manifests of this one."""
    made = make_evidence(tmp_path / "evidence", tmp_path / "cache")
    for file in (ROOT / "evidence/manifests").iterdir():
        made.write(f"evidence/manifests/{file.name}", file.read_bytes())
    return made


def test_the_guide_shows_real_output(manifests: Evidence) -> None:
    blocks = list(BLOCK.finditer(GUIDE))
    assert len(blocks) == 2
    for block in blocks:
        result = manifests.perfdb(*shlex.split(block["command"]))
        assert (result.out, result.err) == (block["output"], "")


def test_the_script_of_the_cpu_records_asks_for_one_thread() -> None:
    done = subprocess.run(
        [sys.executable, str(BENCH)],
        env={"OPENBLAS_NUM_THREADS": "2"},
        capture_output=True,
        text=True,
        timeout=50,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "set OPENBLAS_NUM_THREADS=1" in done.stderr


def test_the_shipped_cpu_records_hold_every_sample() -> None:
    files = sorted((ROOT / "evidence/records/amd_epyc_family25_model17").rglob("*.json"))
    assert len(files) == 3
    for file in files:
        value = json.loads(file.read_bytes())
        assert all(len(row[-2]) == value["protocol"]["repetitions"] == 40 for row in value["rows"])
        assert value["source"]["keys"]["command"] == "python tests/bench/record_cpu.py"

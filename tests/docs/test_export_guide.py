"""The guide to exports shows what the command and DuckDB print of the project's A100 records."""

import re
import shlex
from pathlib import Path

import pytest

from tests.cli.evidence import ROOT
from tests.cli.shipped import shipped_a100

pytest.importorskip("pyarrow")
duckdb = pytest.importorskip("duckdb")

GUIDE = (ROOT / "docs" / "export.md").read_text(encoding="utf-8")
COMMAND = re.compile(r"^\$ perfdb (?P<command>[^\n]*)\n(?P<output>[^\n`]*)$", re.M)
QUERY = re.compile(r"^```sql\n(?P<query>.*?)^```\n\n```text\n(?P<output>.*?)^```$", re.M | re.S)
WORD = re.compile(r"[\w.-]+")


def test_the_guide_shows_real_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = shipped_a100(tmp_path)
    commands = list(COMMAND.finditer(GUIDE))
    assert len(commands) == 2
    for command in commands:
        result = made.perfdb(*shlex.split(command["command"]))
        assert (result.status, result.err, result.out.strip()) == (0, "", command["output"])
    monkeypatch.chdir(made.path)
    queries = list(QUERY.finditer(GUIDE))
    assert len(queries) == 3
    for query in queries:
        # Boxes are drawn anew by each release.
        assert WORD.findall(str(duckdb.sql(query["query"]))) == WORD.findall(query["output"])

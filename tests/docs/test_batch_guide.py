"""The guide to many questions shows what the command and DuckDB print of the shipped evidence."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from perfdb_git.database import PerformanceDatabase

duckdb = pytest.importorskip("duckdb")

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs/batch.md").read_text(encoding="utf-8")
SESSION = re.compile(
    r"^\$ cat layers\.csv\n(?P<file>.*?)^\$ perfdb (?P<command>[^\n]*)\n(?P<output>.*?)^```$",
    re.M | re.S,
)
QUERY = re.compile(r"^```sql\n(?P<query>.*?)^```\n\n```text\n(?P<output>.*?)^```$", re.M | re.S)
CODE = re.compile(r"^```python\n(?P<code>.*?)^```$", re.M | re.S)
WORD = re.compile(r"[\w.-]+")


def test_the_guide_shows_real_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session, query = SESSION.search(GUIDE), QUERY.search(GUIDE)
    assert session is not None
    assert query is not None
    (tmp_path / "layers.csv").write_text(session["file"])
    done = subprocess.run(
        [sys.executable, "-m", "perfdb_git", *session["command"].split(), "--repo", str(ROOT)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr + done.stdout == session["output"]
    monkeypatch.chdir(tmp_path)
    # Boxes are drawn anew by each release.
    assert WORD.findall(str(duckdb.sql(query["query"]))) == WORD.findall(query["output"])


def test_the_code_of_the_guide_says_what_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    code = CODE.search(GUIDE)
    assert code is not None
    monkeypatch.chdir(ROOT)
    names: dict[str, object] = {"PerformanceDatabase": PerformanceDatabase}
    exec(code["code"], names)
    shown = re.findall(r"^(table\.\S+)\s+# (.*)$", code["code"], re.M)
    assert len(shown) == 3
    for expression, expected in shown[:2]:
        assert repr(eval(expression, names)) == expected

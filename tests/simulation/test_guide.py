"""The guide's example gives what the guide says."""

from __future__ import annotations

import re

import pytest

from tests.simulation.simulation_fixtures import PROJECT

GUIDE = PROJECT / "docs" / "profiles-and-pipelines.md"


def test_the_example_of_the_guide(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = GUIDE.read_text(encoding="utf-8")
    code = re.search(r"```python\n(.*?)```", text, re.DOTALL)
    output = re.search(r"```text\n(.*?)```", text, re.DOTALL)
    assert code is not None
    assert output is not None
    monkeypatch.chdir(PROJECT)
    names: dict[str, object] = {}
    exec(code[1], names)
    assert capsys.readouterr().out == output[1]
    image = GUIDE.parent / "images" / "submit-nic-gpu.svg"
    assert names["chart"] == image.read_text(encoding="utf-8")

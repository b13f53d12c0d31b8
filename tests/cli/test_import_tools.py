"""`perfdb import auto` and the tools' commands: what they say, write and refuse."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.evidence import ROOT, Evidence, envelope

FILES = ROOT / "tests/importers/tool_files"
QUESTION = (
    "operation=all_reduce",
    "device=a100",
    "message_bytes=1048576",
    "participants=8",
    "dtype=float",
    "layout=out_of_place",
)


def _committing(evidence: Evidence) -> Evidence:
    evidence.git("config", "user.name", "Ada Author")
    evidence.git("config", "user.email", "ada@example.org")
    evidence.commit("schemas")
    return evidence


@pytest.fixture
def table(new_evidence: Callable[[], Evidence]) -> tuple[Evidence, str]:
    """An empty repository, and a table of nccl-tests below a folder of its own."""
    evidence = _committing(new_evidence())
    path = evidence.path.parent / "upstream" / "all_reduce.txt"
    path.parent.mkdir()
    shutil.copy(FILES / "nccl_new_layout.txt", path)
    return evidence, str(path)


def test_import_auto_check_resolve(table: tuple[Evidence, str]) -> None:
    evidence, path = table
    arguments = ("import", "auto", "--set", "device=a100_sxm4_80g", path)
    dry = evidence.perfdb(*arguments, "--dry-run")
    assert dry.status == 0, dry.err
    assert "all_reduce.txt: taken for a file of nccl-tests 2.17.6" in dry.out
    assert "message_bytes=1048576" in dry.out
    assert "4 new records, 0 known already, 3 files would be written" in dry.out
    assert "wrong results, stored without a time" in dry.err
    assert not (evidence.path / "evidence/records").exists()
    done = envelope(evidence.perfdb(*arguments, "--commit", "--json"))
    assert done["command"] == "import auto"
    assert done["data"]["records"] == 4
    report = done["data"]["imports"][0]
    assert report["files"][0]["importer"] == "nccl-tests/1"
    assert evidence.git("log", "-1", "--format=%s") == "Import 4 records of nccl-tests"
    checked = evidence.perfdb("check")
    assert checked.status == 0, checked.out + checked.err
    answer = envelope(evidence.perfdb("resolve", *QUESTION, "--json"))
    estimate = answer["data"]["estimate"]
    latency = next(item for item in estimate["metrics"].items() if item[0] == "latency")[1]
    assert latency["value"] == pytest.approx(50e-6)
    again = envelope(evidence.perfdb(*arguments, "--json"))
    assert (again["data"]["records"], again["data"]["known"]) == (0, 4)


def test_an_unmodelled_operation_is_answered_by_records_alone(
    new_evidence: Callable[[], Evidence],
) -> None:
    evidence = _committing(new_evidence())
    path = str(FILES / "hyperfine_first_run_slow.json")
    arguments = ("import", "hyperfine", "--set", "device=a100", path, "--commit")
    assert evidence.perfdb(*arguments).status == 0
    assert evidence.perfdb("check").status == 0
    question = ("operation=benchmark", "device=a100")
    found = evidence.perfdb("resolve", *question, "benchmark=./app --size 4096")
    assert found.status == 0, found.err
    assert found.out.startswith("210.2 ms   latency, measured, exact")
    assert "the work of benchmark is not modelled" in found.out
    missing = evidence.perfdb("resolve", *question, "benchmark=./other")
    assert missing.status == 4


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("auto",), 2, "FILE"),
        (("nccl-tests", "{path}"), 3, "names the device 'Example GPU 80GB'"),
        (("hyperfine", "{path}"), 3, "is no export of hyperfine"),
        (("auto", "--set", "color=red", "{path}"), 2, "--set knows no 'color'"),
        (("auto", "{path}", "{path}"), 2, "is given twice"),
        (("auto", "missing.json"), 2, "cannot be read"),
        (("stopwatch", "{path}"), 2, "stopwatch"),
    ],
)
def test_refused_imports(
    table: tuple[Evidence, str], arguments: tuple[str, ...], status: int, message: str
) -> None:
    evidence, path = table
    given = [argument.format(path=path) for argument in arguments]
    result = evidence.perfdb("import", *given)
    assert result.status == status
    assert message in result.err
    assert evidence.git("status", "--short") == ""


def test_help_lists_the_tools(table: tuple[Evidence, str]) -> None:
    evidence, _ = table
    listed = evidence.perfdb("import", "--help").out
    for name in ("auto", "nccl-tests", "google-benchmark", "kineto"):
        assert name in listed
    one = evidence.perfdb("import", "fio", "--help").out
    assert "Import storage runs of fio 2 and 3" in one
    assert "--set KEY=VALUE" in one


def test_the_guide_names_every_importer() -> None:
    from perfdb_git.importers.tool_registry import SHIPPED

    guide = Path(ROOT / "docs/importers.md").read_text()
    for name in SHIPPED:
        assert f"| `{name}` |" in guide

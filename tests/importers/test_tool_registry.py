"""Which importers there are, what takes a file for its own, and what others may add."""

from __future__ import annotations

import json
import sys
import tomllib
from pathlib import Path

import pytest

from perfdb_git.errors import InvalidInputError, UsageError
from perfdb_git.importers import tool_registry
from perfdb_git.importers.source_text import SourceText
from perfdb_git.importers.tool_registry import SHIPPED, importer, importer_names, sniff
from tests.importers.import_fixtures import PROJECT
from tests.importers.tool_evidence import FILES, ToolEvidence

OWNERS = {
    "fio": "fio",
    "gbench": "google-benchmark",
    "hyperfine": "hyperfine",
    "iperf3": "iperf3",
    "kineto": "kineto",
    "nccl": "nccl-tests",
    "nsys": "nsight-systems",
    "nvbench": "nvbench",
    "perftest": "perftest",
    "pyperf": "pyperf",
    "pytest": "pytest-benchmark",
}


def test_the_packages_entry_points_are_the_shipped_importers() -> None:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    assert project["entry-points"][tool_registry.GROUP] == dict(SHIPPED)
    assert [importer(name).name for name in SHIPPED] == list(SHIPPED)


OWNERLESS = ("README.md", "timestamps.jsonl", "unknown_bench.csv")


@pytest.mark.parametrize(
    "path",
    [path for path in sorted(FILES.iterdir()) if path.name not in OWNERLESS],
    ids=lambda path: path.name,
)
def test_every_file_has_one_owner(path: Path) -> None:
    source = SourceText(document=path.name, data=path.read_bytes())
    owner = next(tool for start, tool in OWNERS.items() if path.name.startswith(start))
    assert sniff(source).name == owner


@pytest.mark.parametrize("data", [b"", b"\x00\xff\xfe", b"{", b"[]", b"{}", b"\x1f\x8b\x08"])
def test_files_of_nothing_are_refused_and_never_crash(data: bytes) -> None:
    with pytest.raises(InvalidInputError):
        sniff(SourceText(document="odd", data=data))


def test_a_duplicate_key_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="'a' stands twice"):
        sniff(SourceText(document="odd", data=b'{"a": 1, "a": 2}'))


MODULE = """
from perfdb_git.importers.tool_results import ToolImporter, ToolResult, Point, MetricColumn

def read(source, facts):
    metrics = {MetricColumn("latency", "sample", "s"): (float(source.lines[1]),)}
    point = Point(place="line 2", operation="benchmark", dimensions={"benchmark": "b"},
                  metrics=metrics)
    return ToolResult(tool="stopwatch", revision="1", points=[point])

STOPWATCH = ToolImporter(name="stopwatch", version=3, summary="Import stopwatch times.",
                         recognises=lambda source: source.text.startswith("stopwatch"), read=read)
"""


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Install a package that offers two importers, one of them under a taken name."""
    folder = tmp_path / "site"
    info = folder / "stopwatch_perfdb-1.0.dist-info"
    info.mkdir(parents=True)
    (folder / "stopwatch_perfdb.py").write_text(MODULE)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: stopwatch-perfdb\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[perfdb.importers]\nstopwatch = stopwatch_perfdb:STOPWATCH\n"
        "fio = stopwatch_perfdb:STOPWATCH\nbroken = stopwatch_perfdb:MISSING\n"
        "wrong = stopwatch_perfdb:read\n"
    )
    monkeypatch.syspath_prepend(str(folder))
    importer_names.cache_clear()
    tool_registry._foreign.cache_clear()
    yield folder  # type: ignore[misc]
    importer_names.cache_clear()
    tool_registry._foreign.cache_clear()
    sys.modules.pop("stopwatch_perfdb", None)


def test_another_package_adds_an_importer(tools: ToolEvidence, plugin: Path) -> None:
    assert "stopwatch" in importer_names()
    path = tools.put("a.txt", "stopwatch\n1.5\n")
    taken = tools.take(path, "device=example_cpu", tool="stopwatch")
    assert taken.sets[0].source["importer"] == "stopwatch/3"
    assert taken.sets[0].column("latency", "sample") == [[1.5]]


def test_a_name_of_this_package_stays_with_it(plugin: Path) -> None:
    assert importer("fio").summary.startswith("Import storage runs")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("broken", "cannot be loaded"),
        ("wrong", "names no ToolImporter"),
        ("absent", "no importer is called"),
    ],
)
def test_entry_points_that_are_no_importers(plugin: Path, name: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        importer(name)


def test_two_importers_that_claim_a_file(
    plugin: Path, tools: ToolEvidence, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tool_registry, "importer_names", lambda: ("stopwatch", "hyperfine"))
    path = tools.put("a.csv", "stopwatch\n")
    monkeypatch.setattr(tool_registry, "importer", lambda _: importer("stopwatch"), raising=True)
    with pytest.raises(InvalidInputError, match="could be a file of stopwatch, stopwatch"):
        sniff(SourceText(document="a.csv", data=path.read_bytes()))


def test_utf16_of_a_windows_shell(tools: ToolEvidence) -> None:
    text = (FILES / "hyperfine_single_run.json").read_text()
    path = tools.put("a.json", text.encode("utf-16"))
    assert tools.take(path, "device=example_cpu").report.records == 1
    assert json.loads(text)["results"]

"""``perfdb env``, with the installed command and tools of the test on the path."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.evidence import GIT_ENVIRONMENT, Evidence, Result, envelope
from tests.environment.tool_outputs import SERIAL, UUID, lscpu_json, nvidia_smi_xml

FIELDS = {"device", "device_count", "driver", "firmware", "kernel", "clock_policy", "topology"}


@pytest.fixture
def bare_machine(evidence: Evidence, tmp_path: Path) -> Evidence:
    """An evidence repository on a machine with no tool at all."""
    (tmp_path / "bin").mkdir()
    evidence.variables["PATH"] = str(tmp_path / "bin")
    return evidence


def install(evidence: Evidence, name: str, output: bytes) -> None:
    folder = Path(evidence.variables["PATH"])
    data = folder / f"{name}.out"
    data.write_bytes(output + b"\n")
    tool = folder / name
    tool.write_text(f'#!/bin/sh\nwhile IFS= read -r l; do echo "$l"; done < {data}\n')
    tool.chmod(0o755)


def captured(result: Result) -> dict[str, Any]:
    assert result.status == 0, result.out + result.err
    data = envelope(result)["data"]
    assert isinstance(data, dict)
    return data


def test_a_machine_without_tools_gives_a_manifest_of_unknowns(bare_machine: Evidence) -> None:
    before = bare_machine.git("status", "--porcelain")
    result = bare_machine.perfdb("env", "capture", "--dry-run")
    assert result.status == 0
    assert "nvidia-smi is not installed" in " ".join(result.out.split())
    assert bare_machine.git("status", "--porcelain") == before
    data = captured(bare_machine.perfdb("env", "capture", "--dry-run", "--json"))
    assert set(data["document"]) >= FIELDS
    assert data["written"] == []
    assert data["document"]["device"] is None


def test_a_manifest_is_named_by_its_bytes_and_written_once(bare_machine: Evidence) -> None:
    install(bare_machine, "lscpu", lscpu_json(nested=True))
    data = captured(bare_machine.perfdb("env", "capture", "--json"))
    path = bare_machine.path / data["path"]
    assert data["written"] == [data["path"]]
    assert path.name == f"{data['manifest']}.json"
    bare_machine.git("add", "-A")
    again = captured(bare_machine.perfdb("env", "capture", "--json"))
    assert (again["manifest"], again["written"]) == (data["manifest"], [])
    assert data["document"]["device"] == "amd_epyc_family25_model17"
    assert bare_machine.perfdb("check", "--worktree").status == 0


def test_a_file_of_nvidia_smi_is_read_and_its_ids_are_not_kept(
    bare_machine: Evidence, tmp_path: Path
) -> None:
    xml = tmp_path / "gpu.xml"
    xml.write_bytes(nvidia_smi_xml(13, products=("NVIDIA H200",) * 2))
    result = bare_machine.perfdb(
        *("env", "capture", "--gpu-xml", str(xml), "--runtime", "nccl=2.27.3", "--json")
    )
    document = captured(result)["document"]
    assert (document["device"], document["device_count"]) == ("h200_141g", 2)
    assert document["runtimes"]["nccl"] == "2.27.3"
    assert SERIAL not in result.out
    assert UUID not in result.out
    assert "ada" not in json.dumps(document)


def test_the_host_name_is_printed_and_not_stored(bare_machine: Evidence) -> None:
    result = bare_machine.perfdb("env", "capture")
    assert f"host {os.uname().nodename}:" in result.err
    assert "host_name" not in result.out


def test_entities_are_refused_and_nothing_is_written(
    bare_machine: Evidence, tmp_path: Path
) -> None:
    xml = tmp_path / "gpu.xml"
    xml.write_text('<!DOCTYPE x [<!ENTITY a "b">]><nvidia_smi_log>&a;</nvidia_smi_log>')
    result = bare_machine.perfdb("env", "capture", "--gpu-xml", str(xml))
    assert result.status == 3
    assert "gpu.xml:1: declares a document type of its own" in result.err
    assert bare_machine.git("status", "--porcelain") == ""


def test_threads_that_perfdb_limits_are_not_taken_for_the_callers(
    bare_machine: Evidence, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        monkeypatch.delitem(GIT_ENVIRONMENT, name, raising=False)
    arguments = ("env", "capture", "--dry-run", "--json")
    variables = {"OMP_NUM_THREADS": "4"}
    data = captured(bare_machine.perfdb(*arguments, **variables))
    threads = [note for note in data["document"]["notes"] if "NUM_THREADS" in note]
    assert threads == ["OMP_NUM_THREADS: 4"]


@pytest.fixture
def two(bare_machine: Evidence) -> Callable[[int], tuple[str, str]]:
    """Capture twice, with another number of threads."""

    def make(second: int) -> tuple[str, str]:
        ids = [
            captured(bare_machine.perfdb("env", "capture", "--json", OMP_NUM_THREADS=str(count)))
            for count in (1, second)
        ]
        return ids[0]["manifest"], ids[1]["manifest"]

    return make


def test_equal_manifests_give_status_0(
    bare_machine: Evidence, two: Callable[[int], tuple[str, str]]
) -> None:
    first, second = two(1)
    result = bare_machine.perfdb("env", "diff", first[:10], second)
    assert result.status == 0
    assert "no fact differs" in result.out
    assert "unknown in both" in result.out


def test_differing_facts_are_named_and_give_status_1(
    bare_machine: Evidence, two: Callable[[int], tuple[str, str]]
) -> None:
    first, second = two(2)
    file = bare_machine.path / f"evidence/manifests/{second}.json"
    result = bare_machine.perfdb("env", "diff", first, str(file), "--json")
    assert result.status == 1
    data = envelope(result)["data"]
    assert data["second"] == second
    differing = [fact for fact in data["facts"] if fact["agreement"] == "different"]
    assert [(fact["name"], fact["first"], fact["second"]) for fact in differing] == [
        ("notes.OMP_NUM_THREADS", "1", "2")
    ]


def test_manifests_of_a_commit_are_found_there(
    bare_machine: Evidence, two: Callable[[int], tuple[str, str]]
) -> None:
    first, second = two(2)
    result = bare_machine.perfdb("env", "diff", first, second, "--at", "HEAD")
    assert result.status == 3
    assert "no such manifest" in result.err
    shown = bare_machine.perfdb("env", "show", second)
    assert shown.status == 0
    assert f"manifest {second}" in shown.out
    assert "OMP_NUM_THREADS: 2" in shown.out

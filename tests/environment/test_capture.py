"""Capturing: identity apart from what passes, unknown where no tool says it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from perfdb_git.environment.capture import (
    CapturedEnvironment,
    CaptureRequest,
    capture_environment,
)
from perfdb_git.environment.differences import compare_manifests
from perfdb_git.environment.processor import processor_term
from perfdb_git.errors import UsageError
from perfdb_git.formats.codec import decode
from perfdb_git.formats.redaction import Redactor
from perfdb_git.formats.schemas import SchemaStore
from perfdb_git.formats.strict_yaml import read_yaml
from perfdb_git.model.vocabulary import Vocabulary
from tests.environment.tool_outputs import (
    SERIAL,
    UUID,
    lscpu_json,
    nvidia_smi_xml,
    rocm_smi_json,
)

ROOT = Path(__file__).parents[2]
VOCABULARY = decode(
    Vocabulary,
    read_yaml((ROOT / "evidence/vocabulary.yaml").read_bytes(), document="vocabulary"),
    document="vocabulary",
)
Machine = Callable[..., None]


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Put tools on an otherwise empty path; each prints what it is given."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))

    def install(**outputs: bytes) -> None:
        for name, output in outputs.items():
            data = folder / f"{name}.out"
            data.write_bytes(output + b"\n")
            tool = folder / name.replace("_", "-")
            tool.write_text(f'#!/bin/sh\nwhile IFS= read -r l; do echo "$l"; done < {data}\n')
            tool.chmod(0o755)

    return install


def capture(tmp_path: Path, **request: object) -> CapturedEnvironment:
    root = tmp_path / "root"
    for path, text in {
        "proc/meminfo": "MemTotal:       24684084 kB\nMemAvailable:   100 kB\n",
        "proc/loadavg": "0.50 0.25 0.10 1/100 42\n",
        "proc/sys/kernel/random/boot_id": "fc9e7690-2506-49ce-8f99-d9ef5983745c\n",
        "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "performance\n",
        "sys/devices/system/cpu/cpufreq/boost": "1\n",
        "sys/class/thermal/thermal_zone0/temp": "45000\n",
        "etc/os-release": 'PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\n',
    }.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    given = {"interpreter": None, **request}
    captured = capture_environment(
        CaptureRequest(**given),  # type: ignore[arg-type]
        VOCABULARY,
        redactor=Redactor(users=("ada",), hosts=("node17",)),
        root=root,
    )
    SchemaStore().validate(
        json.loads(captured.content), document="manifest", expected_kind="manifest"
    )
    return captured


def test_without_any_tool_every_device_fact_is_unknown_with_a_reason(
    machine: Machine, tmp_path: Path
) -> None:
    captured = capture(tmp_path)
    assert captured.manifest.device is None
    assert "nvidia-smi is not installed" in captured.unknown["device"]
    nulls = {name for name, value in json.loads(captured.content).items() if value is None}
    assert nulls == set(captured.unknown)


@pytest.mark.parametrize("nested", [False, True])
def test_a_processor_is_the_device_where_the_vocabulary_has_it(
    machine: Machine, tmp_path: Path, nested: bool
) -> None:
    machine(lscpu=lscpu_json(nested=nested))
    manifest = capture(tmp_path).manifest
    assert (manifest.device, manifest.device_count) == ("amd_epyc_family25_model17", 1)
    assert manifest.clock_policy == "governor performance, boost on"
    assert manifest.topology is not None
    assert "NUMA nodes 1" in manifest.topology
    assert "host memory: 24 GiB" in manifest.notes
    assert "hypervisor: KVM" in manifest.notes


def test_a_processor_with_a_number_needs_no_family() -> None:
    facts = {"Model name": "Intel(R) Xeon(R) CPU E5-2690 v4 @ 2.60GHz", "CPU family": "6"}
    assert processor_term(facts) == "intel_xeon_e5_2690_v4"


def test_what_passes_is_observed_and_not_in_the_manifest(machine: Machine, tmp_path: Path) -> None:
    machine(lscpu=lscpu_json(nested=True), nvidia_smi=nvidia_smi_xml(12, temperature=27))
    cold = capture(tmp_path)
    machine(nvidia_smi=nvidia_smi_xml(12, temperature=81))
    warm = capture(tmp_path)
    assert cold.sha256 == warm.sha256
    assert cold.observed["boot_id"] == "fc9e7690-2506-49ce-8f99-d9ef5983745c"
    assert cold.observed["host_temperatures"] == {"thermal_zone0": {"value": 45.0, "unit": "C"}}
    assert cold.observed["accelerators"] != warm.observed["accelerators"]
    assert b"fc9e7690" not in cold.content


def test_gpus_are_counted_and_named_by_their_term(machine: Machine, tmp_path: Path) -> None:
    machine(nvidia_smi=nvidia_smi_xml(13, products=("NVIDIA H200",) * 8))
    manifest = capture(tmp_path).manifest
    assert (manifest.device, manifest.device_count, manifest.form_factor) == ("h200_141g", 8, "sxm")
    assert (manifest.driver, manifest.topology) == ("595.58.03", None)
    assert "host clocks: governor performance, boost on" in manifest.notes


def test_mixed_gpus_need_the_device_named(machine: Machine, tmp_path: Path) -> None:
    machine(nvidia_smi=nvidia_smi_xml(12, products=("NVIDIA H200", "NVIDIA A100-SXM4-80GB")))
    captured = capture(tmp_path)
    assert captured.manifest.device is None
    assert "several kinds" in captured.unknown["device"]
    named = capture(tmp_path, device="a100").manifest
    assert (named.device, named.device_count, named.form_factor) == ("a100_80g", 1, "sxm")


def test_an_unknown_product_is_not_guessed(machine: Machine, tmp_path: Path) -> None:
    machine(rocm_smi=rocm_smi_json(capital=True))
    captured = capture(tmp_path)
    assert captured.manifest.device is None
    assert "Instinct MI100" in captured.unknown["device"]
    assert captured.manifest.driver == "6.3.6"
    assert captured.manifest.topology == "links between cards: PCIE; hops: 2"


def test_a_device_that_no_tool_saw_has_no_clocks_of_the_host(
    machine: Machine, tmp_path: Path
) -> None:
    machine(lscpu=lscpu_json(nested=True))
    manifest = capture(tmp_path, device="h200").manifest
    assert (manifest.device, manifest.device_count, manifest.clock_policy) == (
        "h200_141g",
        None,
        None,
    )


def test_a_device_outside_the_vocabulary_is_refused(machine: Machine, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="unknown device"):
        capture(tmp_path, device="b200_ultra")


def test_files_of_two_nodes_add_up_and_their_drivers_must_agree(
    machine: Machine, tmp_path: Path
) -> None:
    paths = (tmp_path / "one.xml", tmp_path / "two.xml")
    for path, layout in zip(paths, (12, 13), strict=True):
        path.write_bytes(nvidia_smi_xml(layout))
    captured = capture(tmp_path, gpu_xml=paths)
    assert captured.manifest.device_count == 2
    assert (captured.manifest.driver, captured.unknown["driver"]) == (
        None,
        "it differs between the files",
    )


def test_hostile_tools_get_nothing_into_the_manifest(machine: Machine, tmp_path: Path) -> None:
    product = "Card of ada on node17 --token=s3cret /home/ada Serial Number: 1650522009999"
    machine(
        nvidia_smi=nvidia_smi_xml(12, products=(product,)),
        lscpu=lscpu_json(nested=True, model="CPU of ada\x1b[31m ghp_0123456789abcdef"),
    )
    captured = capture(tmp_path, notes=("password: hunter2",), runtimes={"x": UUID})
    text = captured.content.decode() + json.dumps(captured.observed)
    for secret in ("ada", "node17", "s3cret", SERIAL, UUID[4:], "hunter2", "0123456789abcdef"):
        assert secret not in text.replace("adaptive", ""), secret
    assert "\x1b" not in text


def test_a_tool_that_hangs_or_fails_makes_facts_unknown(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing = tmp_path / "bin" / "nvidia-smi"
    failing.write_text("#!/bin/sh\necho 'NVIDIA-SMI has failed'\nexit 9\n")
    failing.chmod(0o755)
    assert "nvidia-smi failed with status 9" in capture(tmp_path).unknown["device"]


def test_threads_are_facts_of_the_run(machine: Machine, tmp_path: Path) -> None:
    one = capture(tmp_path, variables={"OMP_NUM_THREADS": "1", "OMP_NUM_THREADS_FILE": "x"})
    two = capture(tmp_path, variables={"OMP_NUM_THREADS": "2"})
    differing = [
        fact for fact in compare_manifests(one.manifest, two.manifest) if fact.first != fact.second
    ]
    assert [(f.name, f.first, f.second, f.agreement) for f in differing] == [
        ("notes.OMP_NUM_THREADS", "1", "2", "different")
    ]


def test_unusual_scheduling_is_a_fact_of_the_run(machine: Machine, tmp_path: Path) -> None:
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(before)})
        notes = capture(tmp_path).manifest.notes
    finally:
        os.sched_setaffinity(0, before)
    if os.cpu_count() != 1:
        assert f"usable CPUs: 1 of {os.cpu_count()}" in notes

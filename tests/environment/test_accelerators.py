"""Vendors' tools: every layout gives the same facts, and hostile documents are refused."""

from __future__ import annotations

import pytest

from perfdb_git.environment.nvidia_smi import read_nvidia_smi
from perfdb_git.environment.rocm_smi import read_rocm_smi
from perfdb_git.environment.sources import MAX_BYTES, read_xml
from perfdb_git.errors import InvalidInputError
from tests.environment.tool_outputs import nvidia_smi_xml, rocm_smi_json


@pytest.mark.parametrize("layout", [11, 12, 13])
def test_every_layout_of_nvidia_smi_gives_limit_power_and_active_clock_limits(layout: int) -> None:
    (device,) = read_nvidia_smi(nvidia_smi_xml(layout), document="gpu.xml").devices
    assert device.product == "NVIDIA A100-SXM4-80GB"
    assert device.power_policy == "limit 390.00 W, default limit 400.00 W"
    assert device.observed["power_drawn"] == {"value": 66.5, "unit": "W"}
    assert device.observed["clock_limits_active"] == ["sw_power_cap"]
    assert device.observed["temperature"] == {"value": 27.0, "unit": "C"}
    assert device.firmware == "vbios 92.00.36.00.02"
    assert device.notes["ECC"] == "Enabled"


def test_deprecated_clocks_are_unknown_and_not_a_policy() -> None:
    (old,) = read_nvidia_smi(nvidia_smi_xml(12), document="gpu.xml").devices
    (new,) = read_nvidia_smi(nvidia_smi_xml(13), document="gpu.xml").devices
    assert "application graphics clock 1275 MHz" in str(old.clock_policy)
    assert "application" not in str(new.clock_policy)
    assert "deprecated" not in repr(new)


def test_the_drivers_cuda_is_not_taken_for_the_programs() -> None:
    report = read_nvidia_smi(nvidia_smi_xml(12), document="gpu.xml")
    assert (report.driver, report.runtimes) == ("535.54.03", {"cuda_of_driver": "12.2"})


@pytest.mark.parametrize("capital", [False, True])
def test_both_spellings_of_rocm_smi_give_the_same(capital: bool) -> None:
    report = read_rocm_smi(rocm_smi_json(capital=capital), document="rocm.json")
    assert report.driver == "6.3.6"
    assert report.topology == "links between cards: PCIE; hops: 2"
    assert len(report.devices) == 2
    device = report.devices[0]
    assert device.product == "Arcturus GL-XL [Instinct MI100]"
    assert device.firmware == "vbios 113-D3431401-101, mec 65, smc 00.54.29.00"
    assert (device.clock_policy, device.power_policy) == (
        "performance level auto",
        "limit 290.0 W",
    )
    assert device.observed["temperature_edge"] == {"value": 53.0, "unit": "C"}


def test_warnings_before_the_json_of_rocm_smi_are_passed_over() -> None:
    content = b"WARNING: AMD GPU device(s) is/are in a low-power state.\n\n" + rocm_smi_json(
        capital=True
    )
    assert len(read_rocm_smi(content, document="rocm.json").devices) == 2


BOMB = b"""<?xml version="1.0"?>
<!DOCTYPE nvidia_smi_log [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>
<nvidia_smi_log>&b;</nvidia_smi_log>"""
FILE = b"""<!DOCTYPE nvidia_smi_log [<!ENTITY f SYSTEM "file:///etc/passwd">]>
<nvidia_smi_log><driver_version>&f;</driver_version></nvidia_smi_log>"""
UNDECLARED = b"""<!DOCTYPE nvidia_smi_log SYSTEM "http://example.org/x.dtd">
<nvidia_smi_log><driver_version>&f;</driver_version></nvidia_smi_log>"""


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (BOMB, "xml-entities"),
        (FILE, "xml-entities"),
        (UNDECLARED, "xml-entities"),
        (b"<a>" * 40 + b"</a>" * 40, "xml-too-deep"),
        (b"<nvidia_smi_log>", "bad-xml"),
        (b"NVIDIA-SMI has failed", "bad-xml"),
        (b"<html/>", "not-nvidia-smi"),
        (b" " * (MAX_BYTES + 1), "xml-too-large"),
        (
            nvidia_smi_xml(12).replace(b"<attached_gpus>1", b"<attached_gpus>8"),
            "gpu-count",
        ),
    ],
)
def test_hostile_or_foreign_xml_is_refused(content: bytes, code: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        read_nvidia_smi(content, document="gpu.xml")
    assert caught.value.code == code


@pytest.mark.parametrize("content", [b"{}", b"[]", b'{"card0": 1, "card0": 2}', b"no JSON"])
def test_foreign_json_is_refused(content: bytes) -> None:
    with pytest.raises(InvalidInputError):
        read_rocm_smi(content, document="rocm.json")


def test_a_document_type_that_names_a_file_is_not_fetched() -> None:
    root = read_xml(b'<!DOCTYPE a SYSTEM "/etc/passwd"><a>text</a>', document="a.xml")
    assert root.text == "text"

"""Calculon's system files survive the way into a profile and back."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from perfdb_git.errors import InvalidInputError, UsageError
from perfdb_git.formats.codec import decode
from perfdb_git.importers.calculon_system import (
    ProfileLabels,
    calculon_system_of_profile,
    profile_file,
    profile_of_calculon_system,
)
from perfdb_git.model.system_profile import SystemProfile

ROOT = Path(__file__).parents[2]
SYSTEMS = ROOT / "tests/workloads/systems"
NAMES = ("a100_80g", "a100_80e", "h100_80g_nvl8")
LABELS = ProfileLabels(
    name="imported",
    version="1",
    device="a100_80g",
    description="imported",
    link_classes=("nvlink",),
    source="Calculon",
    license="Apache-2.0",
)


def file_value(name: str) -> dict[str, Any]:
    value: dict[str, Any] = json.loads((SYSTEMS / f"{name}.json").read_text())
    return value


def imported(value: dict[str, Any], labels: ProfileLabels = LABELS) -> SystemProfile:
    return profile_of_calculon_system(json.dumps(value).encode(), labels, document="system.json")


@pytest.mark.parametrize("name", NAMES)
def test_the_way_back_gives_the_same_json(name: str) -> None:
    value = file_value(name)
    profile = imported(value)
    assert calculon_system_of_profile(profile) == value
    # Also after the profile has been a file.
    stored = decode(SystemProfile, json.loads(profile_file(profile)), document="profile")
    assert stored == profile
    assert calculon_system_of_profile(stored) == value


@pytest.mark.parametrize(
    ("profile", "name"),
    [("a100-80g-calculon", "a100_80g"), ("h100-80g-nvl8-calculon", "h100_80g_nvl8")],
)
def test_the_shipped_profiles_are_calculons(profile: str, name: str) -> None:
    value = json.loads((ROOT / f"profiles/systems/{profile}.json").read_text())
    shipped = decode(SystemProfile, value, document=profile)
    assert calculon_system_of_profile(shipped) == file_value(name)


def test_networks_are_named_by_their_links_as_far_as_stated() -> None:
    networks = imported(file_value("a100_80g")).networks
    assert [(network.name, network.link_class) for network in networks] == [
        ("nvlink", "nvlink"),
        ("tier1", None),
    ]


def test_numbers_are_written_as_people_write_them() -> None:
    text = profile_file(imported(file_value("a100_80e"))).decode()
    assert '"capacity_gib": 80000000000,' in text
    assert '"threshold": 128,' in text
    assert '"latency_s": 1e-05,' in text


def change(place: tuple[str | int, ...], value: object) -> Callable[[dict[str, Any]], None]:
    def apply(system: dict[str, Any]) -> None:
        node: Any = system
        for part in place[:-1]:
            node = node[part]
        node[place[-1]] = value

    return apply


@pytest.mark.parametrize(
    ("edit", "pointer"),
    [
        (change(("extra",), 1), "/extra"),
        (change(("networks", 0, "topology"), "ring"), "/networks/0/topology"),
        (change(("processing_mode",), "overlap"), "/processing_mode"),
        (change(("mem1", "MB_efficiency"), [[1, 0.5], [10, 0.9], [0, 0.1]]), "/mem1/MB_efficiency"),
        (change(("mem2", "MB_efficiency"), [[10, 0.5]]), "/mem2/MB_efficiency"),
        (
            change(("vector", "float16", "gflops_efficiency"), []),
            "/vector/float16/gflops_efficiency",
        ),
        (
            change(("matrix", "float16", "gflops_efficiency", 0, 1), 1.5),
            "/matrix/float16/gflops_efficiency/0/1",
        ),
        (change(("networks", 1, "ops"), {"p2p": [1, None]}), "/networks/1/ops"),
        (change(("networks", 1, "ops", "p2p", 1), 0), "/networks/1/ops/p2p/1"),
        (change(("networks", 0, "ops", "all_reduce", 0), 0), "/networks/0/ops/all_reduce/0"),
        (change(("networks", 0, "efficiency"), 0), "/networks/0/efficiency"),
        (change(("networks", 0, "processor_usage"), 1), "/networks/0/processor_usage"),
        (change(("networks", 0, "size"), 8.5), "/networks/0/size"),
    ],
)
def test_what_a_profile_cannot_hold_is_refused(
    edit: Callable[[dict[str, Any]], None], pointer: str
) -> None:
    value = copy.deepcopy(file_value("a100_80g"))
    edit(value)
    with pytest.raises(InvalidInputError) as caught:
        imported(value)
    assert caught.value.pointer == pointer


def test_more_link_classes_than_networks_are_refused() -> None:
    labels = replace(LABELS, link_classes=("nvlink", "infiniband", "pcie"))
    with pytest.raises(UsageError, match="3 link classes for 2 networks"):
        imported(file_value("a100_80g"), labels)


def test_a_profile_that_calculon_has_no_words_for_is_refused() -> None:
    profile = imported(file_value("a100_80g"))
    nearest, farther = profile.networks
    memories = {**profile.memories, "mem1": replace(profile.memories["mem1"], capacity_gib=None)}
    for gap, pointer in (
        (replace(profile, engines={"matrix": profile.engines["matrix"]}), "/engines"),
        (replace(profile, memories=memories), "/memories/mem1"),
        (replace(profile, table_reading="interpolated"), "/table_reading"),
        (replace(profile, networks=(replace(nearest, latency_s=None), farther)), "/networks/0"),
        (
            replace(
                profile,
                networks=(
                    nearest,
                    replace(farther, operations={"all_to_all": farther.operations["all_reduce"]}),
                ),
            ),
            "/networks/1/operations",
        ),
    ):
        with pytest.raises(InvalidInputError) as caught:
            calculon_system_of_profile(gap)
        assert caught.value.code == "not-a-calculon-system"
        assert caught.value.pointer == pointer

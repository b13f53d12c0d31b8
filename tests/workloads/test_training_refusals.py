"""What cannot be estimated is refused, with a code and a reason."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from perfdb_git.errors import InvalidInputError, NoEvidenceError
from perfdb_git.model.training import TrainingExecution
from perfdb_git.workloads.training import estimate_training, plan_training
from tests.workloads.calculon_runs import BY_NAME, Run

RUN = BY_NAME["seqsel/tab5/gpt3-175B_seqsel"]
FULL = BY_NAME["seqsel/tab5/gpt3-175B_full"]


def changed(run: Run, **changes: Any) -> TrainingExecution:
    """An execution with fields replaced; a dictionary replaces fields of a part."""
    parts = {
        name: replace(getattr(run.execution, name), **value) if isinstance(value, dict) else value
        for name, value in changes.items()
    }
    return replace(run.execution, **parts)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"processors": 128}, "8 x 8 x 1 = 64, but there are 128 processors"),
        ({"batch_size": 63, "microbatch_size": 2}, "batch size 63 does not divide"),
        (
            {"processors": 8, "pipeline_parallel": {"processors": 1}},
            "interleaving needs a pipeline",
        ),
        (
            {"processors": 8, "tensor_parallel": {"processors": 1, "overlap": "ring"}},
            "tensor overlap needs more than one",
        ),
        ({"tensor_parallel": {"communication": "all_reduce"}}, "repeat_all_gather needs"),
        ({"recompute": "full"}, "full recomputation gathers again anyway"),
        ({"data_parallel": {"overlap": True}}, "need more than one data-parallel"),
        ({"training": False}, "without training nothing is recomputed"),
        (
            {"training": False, "recompute": "none", "offload": {"optimizer": True}},
            "no optimizer to offload",
        ),
        (
            {"processors": 56, "tensor_parallel": {"processors": 7}},
            "hidden size 12288 does not divide by 7",
        ),
        ({"pipeline_parallel": {"interleaving": 5}}, "do not divide into 5 chunks"),
        (
            {
                "processors": 8 * 48,
                "pipeline_parallel": {"processors": 48, "interleaving": 2},
                "offload": {"weights": True},
            },
            "offload needs at least 3 blocks",
        ),
    ],
)
def test_a_contradiction_is_invalid_input(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(InvalidInputError, match=reason) as caught:
        plan_training(RUN.model, changed(RUN, **changes), RUN.profile)
    assert caught.value.code == "inconsistent-execution"


def test_tokens_must_divide_where_activations_are_split() -> None:
    odd = replace(RUN.model, sequence_length=2047)
    with pytest.raises(InvalidInputError, match="2047 tokens of a microbatch do not divide by 8"):
        plan_training(odd, RUN.execution, RUN.profile)


def test_an_unknown_tier_is_invalid_input() -> None:
    execution = changed(RUN, data_parallel={"network_tier": 2})
    with pytest.raises(InvalidInputError, match="network tier 2 does not exist") as caught:
        plan_training(RUN.model, execution, RUN.profile)
    assert caught.value.code == "unknown-tier"


@pytest.mark.parametrize(
    ("changes", "code", "reason"),
    [
        (
            # Tensor and pipeline groups share the tier: 8 x 8 processors on NVLink.
            {"pipeline_parallel": {"network_tier": 0}},
            "no-network",
            "holds 8 processors, not 64",
        ),
        (
            {"processors": 24, "tensor_parallel": {"processors": 3}},
            "network-not-filled",
            "3 processors do not divide its 8",
        ),
        ({"dtype": "float32"}, "no-rate", "no matrix rate for float32"),
    ],
)
def test_what_the_system_cannot_do_is_refused(
    changes: dict[str, Any], code: str, reason: str
) -> None:
    model = replace(RUN.model, sequence_length=2049) if "processors" in changes else RUN.model
    with pytest.raises(NoEvidenceError, match=reason) as caught:
        plan_training(model, changed(RUN, **changes), RUN.profile)
    assert caught.value.code == code


def test_a_batch_that_does_not_fit_is_refused() -> None:
    plan = plan_training(RUN.model, changed(RUN, microbatch_size=4), RUN.profile)
    with pytest.raises(NoEvidenceError, match=r"mem1 .* holds 80 GiB, the batch needs") as caught:
        estimate_training(plan)
    assert caught.value.code == "memory-too-small"


def test_an_offload_that_does_not_fit_is_refused() -> None:
    memories = dict(RUN.profile.memories)
    memories["mem2"] = replace(memories["mem2"], capacity_gib=1)
    profile = replace(RUN.profile, memories=memories)
    estimate_training(plan_training(RUN.model, RUN.execution, profile))
    execution = changed(RUN, offload={"weights": True})
    with pytest.raises(NoEvidenceError, match=r"mem2 .* holds 1 GiB, the batch needs"):
        estimate_training(plan_training(RUN.model, execution, profile))


def test_a_second_memory_is_needed_for_offload_alone() -> None:
    memories = {"mem1": RUN.profile.memories["mem1"]}
    profile = replace(RUN.profile, memories=memories)
    without = estimate_training(plan_training(RUN.model, RUN.execution, profile))
    assert without.times.total_s == pytest.approx(RUN.expected["times.total_s"])
    execution = changed(RUN, offload={"activations": True})
    with pytest.raises(NoEvidenceError, match="has no memory mem2"):
        estimate_training(plan_training(RUN.model, execution, profile))


def test_an_unknown_capacity_refuses_nothing() -> None:
    memories = {
        name: replace(memory, capacity_gib=None) for name, memory in RUN.profile.memories.items()
    }
    profile = replace(RUN.profile, memories=memories)
    execution = changed(RUN, microbatch_size=4)
    estimate = estimate_training(plan_training(RUN.model, execution, profile))
    assert estimate.memory.tier1_bytes > 80 * 2**30


def test_unknown_efficiencies_make_a_lower_bound() -> None:
    networks = tuple(replace(network, efficiency=None) for network in FULL.profile.networks)
    profile = replace(FULL.profile, networks=networks)
    estimate = estimate_training(plan_training(FULL.model, FULL.execution, profile))
    assert estimate.bound
    assert estimate.times.total_s < FULL.expected["times.total_s"]  # type: ignore[operator]


def test_overlap_needs_the_processor_usage_of_its_network() -> None:
    networks = tuple(replace(network, processor_usage=None) for network in RUN.profile.networks)
    profile = replace(RUN.profile, networks=networks)
    estimate_training(plan_training(RUN.model, RUN.execution, profile))
    execution = changed(RUN, tensor_parallel={"overlap": "ring"})
    with pytest.raises(NoEvidenceError, match="leaves the processor usage of nvlink open"):
        estimate_training(plan_training(RUN.model, execution, profile))


def test_a_missing_collective_is_refused() -> None:
    networks = tuple(
        replace(network, operations={"send_recv": network.operations["send_recv"]})
        for network in RUN.profile.networks
    )
    profile = replace(RUN.profile, networks=networks)
    with pytest.raises(NoEvidenceError, match="has no all_gather on nvlink"):
        estimate_training(plan_training(RUN.model, RUN.execution, profile))

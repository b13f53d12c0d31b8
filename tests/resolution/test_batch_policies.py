"""Policies of version 2 over tables of questions: throttled records, distances by dimension."""

from __future__ import annotations

import pytest

from tests.resolution.batch_comparison import differences
from tests.resolution.conftest import EvidenceRepository
from tests.resolution.fitted import POLICY, calibration, promote, slice_of, trees_model

CLOCKED = (("latency", "sample", "ms"), ("sm_clock", "sample", "MHz"))
STEADY, FALLEN = [1965.0] * 3, [1965.0, 1800.0, 1600.0]
FAST, SLOW = [1.0, 1.01, 0.99], [1.0, 1.1, 1.2]
LIMITS = """limits:
  max_extrapolation_octaves: 1
  extrapolation:
    - {operation: gemm, device: a100_80g, dimensions: [m], max_octaves: 3}
"""


@pytest.fixture
def evidence(repository: EvidenceRepository) -> EvidenceRepository:
    source = {"keys": {"throttle_reasons": "sw_power_cap"}}
    repository.add([[32, 64, 64, SLOW, FALLEN], [48, 64, 64, SLOW, FALLEN]], metrics=CLOCKED)
    repository.add([[48, 64, 64, FAST, STEADY]], metrics=CLOCKED, session="cool")
    repository.add([[80, 64, 64, 1.0, 0.1]], source=source, session="stated")
    repository.add([[96, 64, 64, 1.0, 0.1]], session="plain")
    promote(repository, calibration(device="a100_80g", slices=(slice_of(beyond=trees_model()),)))
    text = (repository.path / POLICY).read_text()
    head, _, tail = text.partition("limits:\n")
    rest = tail[tail.index("\n\n") :]
    default = f"{head}{LIMITS}{rest}"
    repository.write(POLICY, default.encode())
    lax = default.replace("name: default", "name: lax").replace(
        "throttled: refuse", "throttled: accept"
    )
    repository.write("evidence/policies/lax.yaml", lax.encode())
    repository.commit()
    return repository


@pytest.mark.parametrize("policy", ["default", "lax"])
def test_tables_refuse_and_admit_what_single_questions_do(
    evidence: EvidenceRepository, policy: str
) -> None:
    snapshot = evidence.at()
    asked = [
        {"operation": "gemm", "device": "a100_80g", "dtype": "float16", "m": m, "n": n, "k": 64}
        for m in (32, 48, 80, 96, 4096 * 2, 4096 * 8, 4096 * 32)
        for n in (64, 4096 * 2, 4096 * 8)
    ]
    assert differences(snapshot, asked, policy=policy) == []
    table = snapshot.resolve_table(
        {name: [item[name] for item in asked] for name in asked[0]}, policy=policy
    )
    found = {(item["m"], item["n"]): row for item, row in zip(asked, table.rows(), strict=True)}
    refused = {m for m in (32, 48, 80, 96) if found[m, 64]["code"] == "throttled"}
    assert refused == ({32, 80} if policy == "default" else set())
    assert len(found[48, 64]["records"]) == (1 if policy == "default" else 2)
    assert found[4096 * 8, 64]["provider"] == "calibrated"
    assert found[4096 * 8, 4096 * 2]["provider"] == "analytical"
    assert found[4096 * 32, 64]["provider"] == "analytical"

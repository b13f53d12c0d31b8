"""What the shipped calibrations for other shapes say of Phi-2, which trained none of them."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from perfdb_git.database import DatabaseSnapshot, PerformanceDatabase, policy_from_file
from perfdb_git.model.records import SeriesKey
from perfdb_git.plans.oracle_comparison import OracleComparison, OracleGates, compare_with_oracle
from perfdb_git.storage.record_sets import IndexedRecordSet

ROOT = Path(__file__).parents[2]
POLICY = ROOT / "docs" / "examples" / "transfer-policy.yaml"
SESSION = "vidur-7d47513-a100-phi-2"
TOKENS = (1, 128)


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> DatabaseSnapshot:
    cache = tmp_path_factory.mktemp("cache")
    return PerformanceDatabase.open(ROOT, cache_directory=cache).worktree()


def phi_record_sets(shipped: DatabaseSnapshot) -> list[IndexedRecordSet]:
    keys: list[SeriesKey] = list(shipped.evidence.series_keys())
    views = [view for key in keys for view in shipped.evidence.record_sets(key)]
    return [view for view in views if view.header.session == SESSION]


@pytest.fixture(scope="module")
def oracle(shipped: DatabaseSnapshot, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some of Vidur's rows, put together again from the records of Phi-2."""
    medians: dict[int, dict[str, object]] = {tokens: {} for tokens in TOKENS}
    keys: dict[str, object] = {}
    for view in phi_record_sets(shipped):
        header, rows = shipped.evidence.read_record_set(view)
        keys |= {name: value for name, value in header.source.keys.items() if name != "op"}
        places = {(c.role, c.name, c.statistic): place for place, c in enumerate(header.columns)}
        for row in rows:
            tokens = int(row[places["source", "num_tokens", None]])
            if tokens in medians:
                name = f"time_stats.{header.source.keys['op']}.median"
                medians[tokens][name] = row[places["metric", "latency", "median"]]
    path = tmp_path_factory.mktemp("oracle") / "mlp.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [*medians[1], *keys, "num_tokens"])
        writer.writeheader()
        for tokens, cells in medians.items():
            writer.writerow({**cells, **keys, "num_tokens": tokens})
    return path


def compared(shipped: DatabaseSnapshot, oracle: Path, plan: str) -> OracleComparison:
    return compare_with_oracle(
        shipped,
        plan,
        [oracle],
        gates=OracleGates(max_subtotal_error_pct=12, max_component_mape_pct=20),
        policy=policy_from_file(POLICY),
    )


def test_phi_2_trained_none_of_them(shipped: DatabaseSnapshot) -> None:
    phi = {view.sha256 for view in phi_record_sets(shipped)}
    choices = policy_from_file(POLICY).policy.calibrations
    trained = {
        address
        for choice in choices
        for item in shipped.calibration_models.document(choice.revision).value.slices
        for address in item.training.record_sets
    }
    assert len(choices) == 6
    assert len(phi) == 9
    assert trained
    assert trained.isdisjoint(phi)


@pytest.mark.parametrize("plan", ["phi-2-decode-33-a100", "phi-2-prefill-128-a100"])
def test_all_but_attention_is_within_the_gates(
    shipped: DatabaseSnapshot, oracle: Path, plan: str
) -> None:
    found = compared(shipped, oracle, plan)
    attention = [item for item in found.components if item.name.startswith("attn_decode")]
    attention += [item for item in found.components if item.name.startswith("attn_prefill")]
    assert [item.code for item in attention] == ["no-row"]
    assert found.coverage.compared == 8
    assert found.failed_gates == ()
    excluded = {item.sha256 for item in found.isolation.record_sets}
    assert excluded == {view.sha256 for view in phi_record_sets(shipped)}

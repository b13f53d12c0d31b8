from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from perfdb_git.database import PerformanceDatabase
from perfdb_git.errors import UsageError
from perfdb_git.operations.features.columns import by_term
from perfdb_git.operations.features.feature_set import FeatureSet
from perfdb_git.operations.features.registry import FEATURE_SETS
from tests.operations.features.feature_fixtures import H200, table

ALL = pytest.mark.parametrize("known", FEATURE_SETS.values(), ids=list(FEATURE_SETS))
RANGES: Mapping[str, tuple[int, int]] = {
    **dict.fromkeys(("m", "n", "k", "query_length", "kv_cache_length"), (1, 100_000)),
    **dict.fromkeys(("batch_size", "kv_heads"), (1, 128)),
    "query_heads": (128, 256),
    "head_size": (32, 256),
    "window_size": (0, 9000),
    "participants": (2, 8),
    "message_bytes": (1, 2**30),
}
TERMS = {
    "dtype": ("bfloat16", "float8"),
    "kv_cache_dtype": ("bfloat16", "float8"),
    "operation": ("all_reduce", "all_to_all"),
}
FORBIDDEN = {"implementation", "session", "device", "name", "case", "latency", "runtime", "task"}


def draw(known: FeatureSet, count: int) -> dict[str, Any]:
    draws = np.random.default_rng(7)
    return {
        name: draws.choice(TERMS[name], count)
        if name in TERMS
        else draws.integers(*RANGES[name], count, endpoint=True).astype(float)
        for name in known.inputs
    }


@ALL
def test_a_batch_equals_its_rows_one_by_one(known: FeatureSet) -> None:
    columns = draw(known, 40)
    batch, bases = known.compute(columns, H200), known.base(columns, H200)
    for row in range(40):
        single = {name: values[row : row + 1] for name, values in columns.items()}
        assert np.array_equal(known.compute(single, H200)[0], batch[row])
        assert known.base(single, H200)[0] == bases[row]


@ALL
def test_blocks_and_shared_terms_change_nothing(known: FeatureSet) -> None:
    columns = draw(known, 9000)
    for name in set(TERMS) & set(known.inputs):
        columns[name] = np.full(9000, TERMS[name][0])
    whole = known.compute(columns, H200)
    shared = {name: values[:1] if name in TERMS else values for name, values in columns.items()}
    assert np.array_equal(known.compute(shared, H200), whole)
    part = {name: values[5000:5010] for name, values in columns.items()}
    assert np.array_equal(known.compute(part, H200), whole[5000:5010])
    assert whole.dtype == np.float32
    assert whole.T.flags.c_contiguous


@ALL
def test_the_same_bits_every_time_and_in_any_order(known: FeatureSet) -> None:
    columns = draw(known, 500)
    again = {name: values[::-1].copy() for name, values in columns.items()}
    assert np.array_equal(known.compute(again, H200)[::-1], known.compute(columns, H200))


@ALL
def test_only_causal_inputs_are_read(known: FeatureSet) -> None:
    assert not FORBIDDEN & set(known.inputs)
    columns = draw(known, 5)
    expected = known.compute(columns, H200)
    labelled = {**columns, **{name: np.array(["x"] * 5) for name in FORBIDDEN}}
    assert np.array_equal(known.compute(labelled, H200), expected)
    names = known.names(H200)
    assert len(names) == len(set(names)) == expected.shape[1]


@ALL
def test_every_base_is_positive(known: FeatureSet) -> None:
    columns = draw(known, 500)
    for base in known.bases.values():
        found = base(columns, H200)
        assert np.isfinite(found).all()
        assert (found > 0).all()


def test_every_shipped_shape_has_finite_features() -> None:
    evidence = PerformanceDatabase.open(Path(__file__).parents[3]).at("HEAD").evidence
    sets = {known.operation: known for known in FEATURE_SETS.values()}
    collective = FEATURE_SETS["collective/1"]
    seen = 0
    for series in evidence.series_keys():
        known = sets.get(series.operation)
        if known is None and series.operation in collective.operation:
            known = collective
        if series.device != "h200_141g" or known is None:
            continue
        for record_set in evidence.record_sets(series):
            columns: dict[str, Any] = {}
            for name in known.inputs:
                column = record_set.dimension(name)
                context = record_set.header.context.get(name)
                columns[name] = np.array([context]) if column is None else column
            with np.errstate(all="raise", under="ignore"):
                found = known.compute(columns, H200)
            assert np.isfinite(found).all()
            seen += len(found)
    assert seen == 229_615


def test_an_unknown_term_is_refused() -> None:
    with pytest.raises(UsageError) as raised:
        by_term(table({"dtype": "int4"}), "dtype", H200.operations_per_s, np.float64)
    assert raised.value.code == "unknown-term-of-features"

import pytest

from perfdb_git.operations.features.attention_decode import ATTENTION_DECODE_1
from perfdb_git.operations.features.attention_prefill import ATTENTION_PREFILL_1
from perfdb_git.operations.work import work_of
from tests.operations.features.feature_fixtures import H200, features_of, table

SHARED = {
    "batch_size": 2,
    "query_heads": 32,
    "kv_heads": 8,
    "head_size": 128,
    "dtype": "bfloat16",
    "kv_cache_dtype": "float8",
}


@pytest.mark.parametrize(
    ("new", "cached", "window"),
    [(100, 0, 0), (100, 28, 0), (300, 0, 128), (300, 100, 128), (10, 200, 128), (64, 0, 8192)],
)
def test_prefill_counts_the_work_of_the_named_formula(new: int, cached: int, window: int) -> None:
    query = {**SHARED, "query_length": new, "kv_cache_length": cached, "window_size": window}
    found = features_of(ATTENTION_PREFILL_1, query)
    work = work_of("attention-prefill/1", query)
    assert found["compute_s"] == pytest.approx(work.operations / 989e12, rel=1e-6)


def test_prefill_blocks_by_hand() -> None:
    query = {**SHARED, "query_length": 200, "kv_cache_length": 0, "window_size": 0}
    found = features_of(ATTENTION_PREFILL_1, query)
    # 64 heads with 4 tiles of 64 queries: 256 blocks, two waves, the longest sees 256 keys.
    assert (found["blocks_64"], found["waves_64"]) == (256, 2)
    assert found["wave_fill_64"] == pytest.approx(256 / 264, rel=1e-6)
    assert found["longest_waves_64"] == 2 * 64 * 256 * 128
    assert found["padded_work_64"] == 64 * 128 * 64 * 64 * (4 * 5 / 2)
    assert found["group"] == 4
    base = ATTENTION_PREFILL_1.base(table(query), H200)
    moved = 2 * 128 * (32 * 200 * 4 + 2 * 8 * 200)
    assert base.tolist() == [pytest.approx(4.5e-6 + moved / (0.7 * 4.8e12), rel=1e-9)]


def test_decode_by_hand() -> None:
    query = {**SHARED, "kv_cache_length": 1023, "window_size": 0}
    found = features_of(ATTENTION_DECODE_1, query)
    work = work_of("attention-decode/1", query)
    assert found["compute_s"] == pytest.approx(work.operations / 989e12, rel=1e-6)
    assert found["keys"] == found["keys_seen"] == 1024
    assert found["kv_bytes"] == 2 * 2 * 8 * 1024 * 128
    assert found["memory_s"] == pytest.approx(work.bytes_moved / 4.8e12, rel=1e-6)
    # 16 blocks on 132 multiprocessors: 8 parts of two steps of 64 keys each.
    assert (found["split_1"], found["split_length_1"], found["split_rounds_1"]) == (8, 128, 1)
    assert found["capped_8_split"] == 8
    assert (found["group_padding_8"], found["padded_work_8"]) == (2, 16 * 8 * 128 * 1024)


def test_decode_sees_the_window_alone() -> None:
    query = {**SHARED, "kv_cache_length": 1000, "window_size": 128}
    found = features_of(ATTENTION_DECODE_1, query)
    assert (found["keys"], found["keys_seen"], found["keys_beyond_window"]) == (1001, 128, 873)

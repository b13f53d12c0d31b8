"""Work formulas against hand counts and brute force."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfdb_git.errors import InvalidInputError
from perfdb_git.operations.units import UNITS
from perfdb_git.operations.work import WORK_FORMULAS, work_of


def test_gemm_by_hand() -> None:
    work = work_of("gemm/1", {"m": 2, "n": 3, "k": 5, "dtype": "float16"})
    assert work.operations == 60
    assert work.bytes_read == (10 + 15) * 2
    assert work.bytes_written == 6 * 2


def test_eight_bit_gemm_writes_sixteen_bit_results() -> None:
    work = work_of("gemm/1", {"m": 2, "n": 3, "k": 5, "dtype": "float8"})
    assert (work.bytes_read, work.bytes_written) == (25, 12)


@given(st.integers(1, 40), st.integers(0, 40), st.integers(0, 60), st.integers(1, 3))
def test_prefill_pairs_equal_a_brute_force_count(
    new: int, cached: int, window: int, batch: int
) -> None:
    pairs = sum(min(cached + i, window) if window else cached + i for i in range(1, new + 1))
    seen = {
        key
        for i in range(1, new + 1)
        for key in range(max(0, cached + i - window) if window else 0, cached + i)
    }
    work = work_of(
        "attention-prefill/1",
        {
            "batch_size": batch,
            "query_heads": 4,
            "kv_heads": 2,
            "head_size": 8,
            "query_length": new,
            "kv_cache_length": cached,
            "window_size": window,
            "dtype": "float16",
            "kv_cache_dtype": "float8",
        },
    )
    assert work.operations == 4 * batch * 4 * 8 * pairs
    queries = batch * new * 4 * 8 * 2
    assert work.bytes_read == queries + 2 * batch * len(seen) * 2 * 8
    assert work.bytes_written == queries


def test_decode_looks_at_the_cache_and_the_new_token() -> None:
    shape = {
        "batch_size": 3,
        "query_heads": 8,
        "kv_heads": 1,
        "head_size": 64,
        "kv_cache_length": 99,
        "dtype": "bfloat16",
    }
    work = work_of("attention-decode/1", shape)
    assert work.operations == 4 * 3 * 8 * 64 * 100
    assert work.bytes_read == 3 * 8 * 64 * 2 + 2 * 3 * 100 * 64 * 2
    windowed = work_of("attention-decode/1", {**shape, "window_size": 10})
    assert windowed.operations == 4 * 3 * 8 * 64 * 10


@pytest.mark.parametrize(
    ("formula", "shape", "operations", "read", "written"),
    [
        ("elementwise/1", {"elements": 10, "elementwise_kind": "add"}, 10, 40, 20),
        ("elementwise/1", {"elements": 10, "elementwise_kind": "gelu"}, 80, 20, 20),
        ("norm/1", {"tokens": 2, "hidden_size": 4, "norm_kind": "layer"}, 72, 32, 16),
        ("norm/1", {"tokens": 2, "hidden_size": 4, "norm_kind": "rms"}, 32, 24, 16),
        ("softmax/1", {"rows": 3, "row_length": 5}, 75, 30, 30),
        ("rope/1", {"tokens": 2, "query_heads": 3, "kv_heads": 1, "head_size": 4}, 96, 80, 64),
        ("kv-cache-save/1", {"tokens": 2, "kv_heads": 1, "head_size": 4}, 0, 32, 32),
        ("embedding/1", {"tokens": 3, "hidden_size": 4}, 0, 48, 24),
    ],
)
def test_memory_bound_operations_by_hand(
    formula: str, shape: dict[str, int | str], operations: int, read: int, written: int
) -> None:
    work = work_of(formula, {**shape, "dtype": "float16"})
    assert (work.operations, work.bytes_read, work.bytes_written) == (operations, read, written)


def test_copies_and_messages_need_no_dtype() -> None:
    assert work_of("memory-copy/1", {"transfer_bytes": 100}).bytes_moved == 200
    assert work_of("message/1", {"message_bytes": 4096}).message_bytes == 4096


def test_a_missing_dimension_is_named_and_an_unknown_formula_refused() -> None:
    with pytest.raises(KeyError, match="k"):
        work_of("gemm/1", {"m": 1, "n": 1, "dtype": "float16"})
    with pytest.raises(InvalidInputError, match="no work formula is called 'gemm/99'"):
        work_of("gemm/99", {})
    assert "gemm/1" in WORK_FORMULAS


@pytest.mark.parametrize(
    ("unit", "value", "si", "converted"),
    [
        ("ms", 1.5, "s", 0.0015),
        ("us", 3, "s", 3e-06),
        ("ns", 7, "s", 7e-09),
        ("GiB", 2, "B", 2**31),
        ("Gbit/s", 100, "B/s", 12.5e9),
        ("GB/s", 12.5, "B/s", 12.5e9),
        ("1", 4, "1", 4),
    ],
)
def test_units_convert_exactly(unit: str, value: float, si: str, converted: float) -> None:
    assert UNITS[unit].si == si
    assert UNITS[unit].to_si(value) == converted

import pytest

from perfdb_git.operations.features.gemm import GEMM_1
from tests.operations.features.feature_fixtures import H200, features_of, table

QUERY = {"m": 130, "n": 4096, "k": 1024, "dtype": "bfloat16"}


def test_sizes_and_times_by_hand() -> None:
    found = features_of(GEMM_1, QUERY)
    assert (found["m"], found["n"], found["k"]) == (130, 4096, 1024)
    assert found["mn"] == 130 * 4096
    assert found["compute_s"] == pytest.approx(2 * 130 * 4096 * 1024 / 989e12, rel=1e-6)
    moved = 2 * (130 * 1024 + 1024 * 4096 + 130 * 4096)
    assert found["memory_s"] == pytest.approx(moved / 4.8e12, rel=1e-6)
    assert found["working_set_to_l2"] == pytest.approx(moved / 50e6, rel=1e-6)


def test_padding_by_hand() -> None:
    found = features_of(GEMM_1, QUERY)
    assert (found["m_left_8"], found["m_left_128"], found["m_modulo_128"]) == (6, 126, 2)
    assert found["m_padding_256"] == pytest.approx(256 / 130, rel=1e-6)
    assert found["n_padding_256"] == 1


def test_tiles_and_waves_by_hand() -> None:
    found = features_of(GEMM_1, QUERY)
    # 3 rows of 64 times 64 columns of 64 are 192 tiles: two waves on 132 multiprocessors.
    assert found["tiles_64x64"] == 192
    assert found["wave_fill_64x64"] == pytest.approx(192 / 264, rel=1e-6)
    wave_s = 64 * 64 * 1024 * 2 * 132 / 989e12
    assert found["tiled_s_64x64"] == pytest.approx(2 * wave_s, rel=1e-6)
    # 2 times 32 tiles of 128 x 128 fit into one wave of four times the work.
    assert found["tiles_128x128"] == 64
    assert found["tiled_s_128x128"] == pytest.approx(4 * wave_s, rel=1e-6)
    assert found["best_tile_s"] == pytest.approx(2 * wave_s, rel=1e-6)
    assert found["k_per_split"] == 512
    assert found["tiles_modulo"] == 64


def test_base_by_hand() -> None:
    found = GEMM_1.base(table(QUERY), H200)
    worked = 2 * 132 * 64 * 64 * 1024 * 2 / (0.75 * 989e12)
    moved = 2 * (130 * 1024 + 1024 * 4096 + 130 * 4096) / (0.75 * 4.8e12)
    assert found.tolist() == [pytest.approx(4e-6 + max(worked, moved), rel=1e-12)]


def test_split_helps_a_long_inner_size_with_few_tiles() -> None:
    deep = features_of(GEMM_1, {"m": 128, "n": 128, "k": 65536, "dtype": "bfloat16"})
    flat = features_of(GEMM_1, {"m": 128, "n": 128, "k": 64, "dtype": "bfloat16"})
    assert deep["split_gain"] < 0.5 < flat["split_gain"]

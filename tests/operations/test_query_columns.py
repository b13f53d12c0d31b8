"""Cells of questions: fast paths and slow ones read the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from perfdb_git.database import PerformanceDatabase
from perfdb_git.errors import UsageError
from perfdb_git.model.vocabulary import Vocabulary
from perfdb_git.operations.queries import typed_dimension
from perfdb_git.operations.query_columns import UNKNOWN, canonical_columns

ROOT = Path(__file__).parents[2]
WORDS = ["1", "16", "1.0", "1e3", "0.5", "-1", "0", "nan", "inf", "1_0", " 7", "1 2", "x", ""]
WORDS += ["1\x002", "9007199254740992", "99999999999999999999999", "null", "+5"]


@pytest.fixture(scope="module")
def vocabulary(tmp_path_factory: pytest.TempPathFactory) -> Vocabulary:
    cache = tmp_path_factory.mktemp("vocabulary")
    return PerformanceDatabase.open(ROOT, cache_directory=cache).worktree().vocabulary


def alone(vocabulary: Vocabulary, name: str, cell: Any) -> Any:
    """Return what one cell states by itself, or the code of what is wrong with it."""
    try:
        value = typed_dimension(name, cell, vocabulary)[name]
    except UsageError as error:
        return error.code, str(error)
    return np.nan if value is None else float(value)


@pytest.mark.parametrize("name", ["m", "occupancy"])
@pytest.mark.parametrize("word", WORDS)
def test_a_text_reads_alike_among_any_others(vocabulary: Vocabulary, name: str, word: str) -> None:
    expected = alone(vocabulary, name, word)
    for others in (["4", "5"], ["4", None], ["many", "5"]):
        found = canonical_columns({name: [*others, word]}, vocabulary)
        if isinstance(expected, tuple):
            assert (found.faults[2].code, found.faults[2].message) == expected
        else:
            assert 2 not in found.faults
            assert np.array_equal(found.numbers[name][2], expected, equal_nan=True)


def test_many_distinct_cells_are_read_in_a_time_that_grows_with_them(
    vocabulary: Vocabulary,
) -> None:
    texts = [f"r{number}" for number in range(30_000)]
    found = canonical_columns({"runtime_revision": texts}, vocabulary)
    column = found.terms["runtime_revision"]
    assert [column.words[code] for code in column.codes] == texts


def test_arrays_of_any_kind_are_cells(vocabulary: Vocabulary) -> None:
    columns = {
        "m": np.array([1, 2], np.int16),
        "n": np.array([1.0, np.nan]),
        "k": np.array([3, None], object),
        "dtype": np.array(["fp16", "bf16"]),
        "operation": "gemm",
    }
    found = canonical_columns(columns, vocabulary)
    assert found.numbers["m"].tolist() == [1, 2]
    assert np.array_equal(found.numbers["n"], [1, np.nan], equal_nan=True)
    assert np.array_equal(found.numbers["k"], [3, np.nan], equal_nan=True)
    assert found.terms["dtype"].words == ("float16", "bfloat16")
    assert not found.faults


def test_columns_of_frames_are_cells(vocabulary: Vocabulary) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    columns = {
        "dtype": pyarrow.array(["fp16", None, "fp16"]),
        "m": pyarrow.array([1, None, 3]),
        "layout": np.array(["t", np.nan, None], object),
        "k": np.int64(64),
    }
    found = canonical_columns(columns, vocabulary)
    assert found.terms["dtype"].codes.tolist() == [0, UNKNOWN, 0]
    assert found.terms["layout"].codes.tolist() == [0, UNKNOWN, UNKNOWN]
    assert np.array_equal(found.numbers["m"], [1, np.nan, 3], equal_nan=True)
    assert found.numbers["k"].tolist() == [64, 64, 64]
    assert not found.faults

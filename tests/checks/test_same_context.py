"""Rows of two record sets meet where a query would take both."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from perfdb_git.checks.same_context import KeyedRows
from perfdb_git.formats.codec import decode
from perfdb_git.formats.strict_yaml import read_yaml
from perfdb_git.model.policy import MatchingRules
from perfdb_git.model.vocabulary import Vocabulary
from perfdb_git.providers.matching import Matcher

TEXT = (Path(__file__).parents[2] / "evidence/vocabulary.yaml").read_bytes()
VOCABULARY = decode(Vocabulary, read_yaml(TEXT, document="v"), document="v")
MATCHER = Matcher(VOCABULARY, MatchingRules(query_unknown="unanimous"))

Columns = dict[str, list[float]]


def header(context: dict[str, Any], columns: Columns) -> dict[str, Any]:
    return {
        "context": {"operation": "gemm", "device": "a100_80g", **context},
        "columns": [{"name": name, "role": "dimension"} for name in columns],
    }


def arrays(columns: Columns) -> dict[str, Any]:
    return {name: np.array(values, dtype=np.float64) for name, values in columns.items()}


def pairs(
    mine: tuple[dict[str, Any], Columns, int], theirs: tuple[dict[str, Any], Columns, int]
) -> list[tuple[int, int]] | None:
    own = KeyedRows(
        header(*mine[:2]), arrays(mine[1]), rows=mine[2], vocabulary=VOCABULARY, matcher=MATCHER
    )
    other = header(*theirs[:2])
    by_row = own.shared_dimensions(other)
    return None if by_row is None else list(own.pairs(by_row, other, arrays(theirs[1]), theirs[2]))


GEMM: Columns = {"m": [1, 2, 3], "n": [8, 8, 9]}
FIRST = ({"k": 4, "dtype": "float16"}, GEMM, 3)


@pytest.mark.parametrize(
    ("theirs", "expected"),
    [
        # Columns in another order, a constant as a column.
        (({"dtype": "float16"}, {"n": [9, 8], "k": [4, 4], "m": [3, 1]}, 2), [(2, 0), (0, 1)]),
        # Another constant, another term.
        (({"k": 5, "dtype": "float16"}, GEMM, 3), None),
        (({"k": 4, "dtype": "bfloat16"}, GEMM, 3), None),
        # A material dimension that only one of them knows; an immaterial one; one never matched.
        (({"k": 4, "dtype": "float16", "runtime": "nccl"}, GEMM, 3), None),
        (({"k": 4, "dtype": "float16", "form_factor": "sxm"}, GEMM, 3), [(0, 0), (1, 1), (2, 2)]),
        (({"k": 4, "dtype": "float16", "task": "mlp"}, GEMM, 3), [(0, 0), (1, 1), (2, 2)]),
        (({"k": 4, "dtype": None}, GEMM, 3), None),
    ],
)
def test_pairs(theirs: Any, expected: Any) -> None:
    assert pairs(FIRST, theirs) == expected


def test_sets_without_dimension_columns() -> None:
    context = {"m": 1, "n": 2, "k": 3, "dtype": "float16"}
    assert pairs((context, {}, 2), (context, {}, 3)) == [(0, 0), (0, 1), (0, 2)]


def test_medians_over_repeats() -> None:
    columns: Columns = {"m": [1, 2, 1, 1], "n": [8, 8, 8, 8]}
    own = KeyedRows(
        header({}, columns), arrays(columns), rows=4, vocabulary=VOCABULARY, matcher=MATCHER
    )
    values = np.array([3.0, 7.0, np.nan, 5.0])
    assert own.medians(values).tolist() == [4.0, 7.0, 4.0, 4.0]

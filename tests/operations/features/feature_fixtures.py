"""Facts of an H200, and single queries, for the tests of features."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfdb_git.operations.features.feature_set import FeatureSet
from perfdb_git.operations.features.hardware import Hardware

H200 = Hardware(
    device="h200_141g",
    multiprocessors=132,
    l2_bytes=50e6,
    memory_bytes_per_s=4.8e12,
    operations_per_s={"bfloat16": 989e12, "float8": 1978e12, "float8_block": 1978e12},
    link_bytes_per_s=450e9,
    matrix_tiles=((64, 64), (128, 128), (128, 256)),
    query_tiles=(64, 128),
    launch_floor_s=4e-6,
)


def table(*queries: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """Return queries as columns."""
    return {name: np.array([query[name] for query in queries]) for name in queries[0]}


def features_of(known: FeatureSet, query: Mapping[str, Any]) -> dict[str, float]:
    """Return the features of one query by name."""
    row = known.compute(table(query), H200)[0]
    return dict(zip(known.names(H200), row.tolist(), strict=True))

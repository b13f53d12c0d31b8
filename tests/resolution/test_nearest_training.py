"""Distances to training records: one by one and many at once are the same bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from perfdb_git.database import DatabaseSnapshot
from perfdb_git.providers import nearest_training
from perfdb_git.providers.calibration_slices import Unanswered
from perfdb_git.providers.nearest_training import TrainingPoints


def _points(shipped: DatabaseSnapshot, operation: str, device: str) -> tuple[TrainingPoints, Any]:
    choice = next(
        item
        for item in shipped.policy().policy.calibrations
        if (item.operation, item.device) == (operation, device)
    )
    document = shipped.calibration_models.document(choice.revision)
    assert not isinstance(document, Unanswered)
    item = document.value.slices[0]
    zero = shipped.vocabulary.dimensions
    points = TrainingPoints(shipped.evidence, document.value, item, lambda name: zero[name].zero)
    return points, item


@pytest.mark.parametrize(
    ("operation", "device"),
    [("gemm", "h200_141g"), ("attention_prefill", "h200_141g"), ("all_reduce", "h100_80g")],
)
def test_many_queries_have_the_distances_of_each(
    shipped: DatabaseSnapshot,
    monkeypatch: pytest.MonkeyPatch,
    operation: str,
    device: str,
) -> None:
    points, item = _points(shipped, operation, device)
    draws = np.random.default_rng(2)
    inputs = {
        name: np.round(
            np.exp2(draws.uniform(np.log2(limits.minimum + 1), np.log2(limits.maximum + 1), 60))
        )
        for name, limits in item.domain.items()
    }
    together = points.octaves(inputs)
    alone = [
        points.octaves({name: values[row : row + 1] for name, values in inputs.items()})[0]
        for row in range(60)
    ]
    assert together.tolist() == alone
    assert (together > 0).any()
    monkeypatch.setattr(nearest_training, "_FEW_COMPARISONS", 0)
    assert points.octaves(inputs).tolist() == alone


def test_a_query_at_a_record_is_no_distance_away(shipped: DatabaseSnapshot) -> None:
    points, item = _points(shipped, "gemm", "h200_141g")
    (record_set,) = (
        found
        for key in shipped.evidence.series_keys()
        for found in shipped.evidence.record_sets(key)
        if found.sha256 in item.training.record_sets
        and found.header.context.get("dtype") == item.terms["dtype"]
    )
    columns = {name: record_set.dimension(name)[:500] for name in ("m", "n", "k")}
    assert (points.octaves(columns) == 0).all()

"""Folds of boosted trees are pieces of work that any process may do, and give the same fit."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from perfdb_git.analysis.tree_boosting import TreeSettings
from perfdb_git.calibration import fit_forms, fit_trees
from perfdb_git.calibration.fit_forms import fit_slice_forms
from perfdb_git.calibration.slice_fits import SliceRequest
from perfdb_git.operations.features.registry import FEATURE_SETS
from tests.calibration.test_fitting_trees import SMALL, rows

QUICK = TreeSettings(rounds=8, depth=3, learning_rate=0.4)


@pytest.fixture
def request_of_trees(monkeypatch: pytest.MonkeyPatch) -> SliceRequest:
    quick = {
        name: replace(recipe, settings=QUICK, fold_settings=QUICK)
        for name, recipe in fit_trees.RECIPES.items()
    }
    monkeypatch.setattr(fit_trees, "RECIPES", quick)
    # Gaussian processes take minutes on so many rows; what they err by is of no interest here.
    monkeypatch.setattr(fit_forms, "small_form_errors", lambda *_: np.ones(400))
    columns, latency = rows(400, noise=0.05)
    columns["dtype"] = np.array(["bfloat16"])
    return SliceRequest(
        name="some",
        columns=columns,
        latency=latency,
        inputs=("m", "n", "k"),
        forms=("gaussian-process", "boosted-trees"),
        features=FEATURE_SETS["gemm/1"],
        hardware=SMALL,
        level=0.8,
        seed=0,
    )


class Elsewhere:
    """Does the work on copies, as another process would."""

    def __init__(self) -> None:
        self.pieces = 0

    def __call__(self, function: Callable[[Any], Any], items: Iterable[Any], /) -> Iterator[Any]:
        for item in list(items):
            self.pieces += 1
            work = pickle.loads(pickle.dumps((function, item)))
            yield pickle.loads(pickle.dumps(work[0](work[1])))


def test_folds_are_spread_and_give_the_same_fit(request_of_trees: SliceRequest) -> None:
    told: list[float] = []
    here = fit_slice_forms(request_of_trees, told.append)
    elsewhere = Elsewhere()
    there = fit_slice_forms(request_of_trees, spread=elsewhere)
    assert here == there
    assert [item.form for item in here.tried if item.chosen] == ["boosted-trees"]
    # Five folds to choose the form, and three of rows and three of lines behind the interval.
    assert elsewhere.pieces == 5 + 3 + 3
    assert told == sorted(told)

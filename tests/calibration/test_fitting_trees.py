from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from perfdb_git.analysis.tree_boosting import TreeSettings
from perfdb_git.calibration.fitting_trees import (
    RECIPES,
    TreeRecipe,
    fit_slice,
    fit_sliced_trees,
    rows_of,
    slices_of,
)
from perfdb_git.calibration.tree_intervals import fit_slice_with_interval, line_codes
from perfdb_git.errors import UsageError
from perfdb_git.operations.features.feature_set import SUM_OF_PARTS
from perfdb_git.operations.features.gemm import GEMM_1
from perfdb_git.operations.features.hardware import Hardware
from perfdb_git.operations.features.registry import FEATURE_SETS

SMALL = Hardware(
    device="some",
    multiprocessors=16,
    l2_bytes=1e7,
    memory_bytes_per_s=1e12,
    operations_per_s={"bfloat16": 1e14, "float8": 2e14},
    link_bytes_per_s=None,
    matrix_tiles=((64, 64), (128, 128)),
    query_tiles=(64,),
    launch_floor_s=4e-6,
)
RECIPE = TreeRecipe(
    features="gemm/1",
    slice_by=("dtype",),
    settings=TreeSettings(rounds=60, depth=5, learning_rate=0.2),
    bases=("tiled",),
    fold_settings=TreeSettings(rounds=60, depth=5, learning_rate=0.2),
)


def rows(count: int, noise: float) -> tuple[dict[str, Any], Any]:
    """Return GEMMs that take twice their base above m = 256 and 1.2 times below, with noise."""
    draws = np.random.default_rng(3)
    columns = {
        "m": draws.choice([1.0, 16.0, 100.0, 250.0, 300.0, 700.0, 2048.0], count),
        "n": draws.choice(2.0 ** np.arange(6, 13), count),
        "k": draws.choice(2.0 ** np.arange(6, 13), count),
        "dtype": draws.choice(["bfloat16", "float8"], count),
    }
    share = np.where(columns["m"] > 256, 2.0, 1.2) * np.exp(noise * draws.standard_normal(count))
    return columns, share * GEMM_1.base(columns, SMALL)


def test_an_efficiency_that_depends_on_the_shape_is_learned() -> None:
    columns, latency = rows(800, noise=0)
    fitted = fit_sliced_trees(RECIPE, columns, latency, SMALL)
    assert set(fitted.slices) == {("bfloat16",), ("float8",)}
    assert np.abs(fitted.predict(columns) / latency - 1).max() < 0.01


def test_the_mean_over_bases_lies_between_its_parts() -> None:
    columns, latency = rows(300, noise=0)
    both = TreeRecipe(
        features="gemm/1",
        slice_by=("dtype",),
        settings=RECIPE.settings,
        bases=("tiled", "roofline"),
    )
    fitted = fit_sliced_trees(both, columns, latency, SMALL)
    assert np.abs(fitted.predict(columns) / latency - 1).mean() < 0.05


def test_a_fit_is_the_same_for_any_order_of_the_rows() -> None:
    columns, latency = rows(300, noise=0.05)
    order = np.random.default_rng(1).permutation(300)
    first = fit_sliced_trees(RECIPE, columns, latency, SMALL)
    second = fit_sliced_trees(RECIPE, rows_of(columns, order), latency[order], SMALL)
    assert np.array_equal(first.predict(columns), second.predict(columns))


def test_a_slice_without_training_rows_is_refused() -> None:
    columns, latency = rows(300, noise=0)
    only = np.flatnonzero(columns["dtype"] == "float8")
    fitted = fit_sliced_trees(RECIPE, rows_of(columns, only), latency[only], SMALL)
    with pytest.raises(UsageError) as raised:
        fitted.predict(columns)
    assert raised.value.code == "unknown-slice"


def test_intervals_cover_what_was_not_seen_and_know_new_lines() -> None:
    columns, latency = rows(2400, noise=0.05)
    mine = np.flatnonzero(columns["dtype"] == "float8")
    columns, latency = rows_of(columns, mine), latency[mine]
    new_line = columns["n"] == 256
    asked, seen = np.flatnonzero(new_line), np.flatnonzero(~new_line)
    fitted = fit_slice_with_interval(
        RECIPE, rows_of(columns, seen), latency[seen], SMALL, line_by=("n", "k")
    )
    seconds, width = fitted.predict(rows_of(columns, asked))
    covered = np.abs(np.log(seconds / latency[asked])) <= width
    assert 0.8 < covered.mean() <= 1
    one = {name: values[asked[:1]] for name, values in columns.items()}
    assert [float(part[0]) for part in fitted.predict(one)] == [seconds[0], width[0]]


def test_slices_are_found_over_several_dimensions() -> None:
    columns: Mapping[str, Any] = {
        "a": np.array(["x", "y", "x"]),
        "b": np.array([64.0, 64.0, 128.0]),
    }
    found = {values: rows.tolist() for values, rows in slices_of(columns, ("a", "b")).items()}
    assert found == {("x", "64.0"): [0], ("x", "128.0"): [2], ("y", "64.0"): [1]}


def test_lines_have_codes_of_their_own() -> None:
    columns = {"n": np.array([1.0, 2.0, 65536.0]), "k": np.array([2.0, 1.0, 51200.0])}
    assert len(set(line_codes(columns, ("n", "k")).tolist())) == 3


def test_a_sum_of_parts_goes_on_where_nothing_was_measured() -> None:
    columns, _ = rows(1500, noise=0)
    latency = 1e-5 + 1.5 * columns["m"] * columns["n"] * columns["k"] * 2 / 1e14
    columns["dtype"] = np.full(1500, "bfloat16")
    known = np.flatnonzero(columns["m"] <= 700)
    far = np.flatnonzero(columns["m"] == 2048)
    errors = {}
    for base in ("roofline", SUM_OF_PARTS):
        recipe = replace(RECIPE, bases=(base,), parts_from={"m": 100.0})
        fitted = fit_slice(recipe, rows_of(columns, known), latency[known], SMALL)
        errors[base] = np.abs(fitted.predict(rows_of(columns, far)) / latency[far] - 1).mean()
        assert bool(fitted.part_weights) == (base == SUM_OF_PARTS)
    assert errors[SUM_OF_PARTS] < 0.02 < errors["roofline"]


def test_recipes_name_what_there_is() -> None:
    for recipe in RECIPES.values():
        known = FEATURE_SETS[recipe.features]
        assert set(recipe.bases) <= {*known.bases, SUM_OF_PARTS}
        assert SUM_OF_PARTS not in recipe.bases or known.parts is not None
        assert set(recipe.slice_by) <= set(known.inputs)

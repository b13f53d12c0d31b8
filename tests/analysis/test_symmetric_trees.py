"""Symmetric trees against a slow reference, and what makes them the same everywhere."""

import itertools

import numpy as np
import pytest
from numpy.typing import NDArray

from perfdb_git.analysis.quantile_bins import QuantileBins, fit_quantile_bins
from perfdb_git.analysis.symmetric_tree_growth import grow_tree, packing_for
from perfdb_git.analysis.symmetric_trees import SymmetricTrees
from perfdb_git.analysis.tree_boosting import TreeSettings, fit_symmetric_trees
from perfdb_git.analysis.tree_rounds import select_rounds


def surface(n: int, seed: int = 0) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    draws = np.random.default_rng(seed)
    features = draws.random((n, 5))
    features[:, 4] = draws.integers(0, 4, n)
    target = np.sin(5 * features[:, 0]) * features[:, 1] + 0.3 * features[:, 4]
    return features, target + draws.normal(0, 0.01, n)


def slow_sums(model: SymmetricTrees, row: NDArray[np.float64]) -> int:
    codes = [
        int((edges < np.float32(value)).sum())
        for edges, value in zip(model.bins.per_feature(), row, strict=True)
    ]
    total = 0
    for features, thresholds, leaves in zip(
        model.features, model.thresholds, model.leaves, strict=True
    ):
        number = 0
        for feature, threshold in zip(features, thresholds, strict=True):
            number = 2 * number + (codes[feature] > threshold)
        total += int(leaves[number])
    return total


def best_split(
    codes: NDArray[np.uint8],
    gradients: NDArray[np.float64],
    leaf: NDArray[np.int64],
    regularisation: float,
) -> tuple[float, int, int]:
    """Score every split row by row; return the best score with its feature and threshold."""
    best = (-1.0, 0, 0)
    for feature, threshold in itertools.product(range(len(codes)), range(int(codes.max()) + 1)):
        score = 0.0
        for number, side in itertools.product(np.unique(leaf), (False, True)):
            inside = (leaf == number) & ((codes[feature] > threshold) == side)
            score += gradients[inside].sum() ** 2 / (inside.sum() + regularisation)
        if score > best[0] * (1 + 1e-6):
            best = (score, feature, threshold)
    return best


def test_growth_takes_the_best_split_of_a_slow_search() -> None:
    draws = np.random.default_rng(3)
    codes = draws.integers(0, 6, (4, 200)).astype(np.uint8)
    gradients = np.rint(draws.normal(0, 1000, 200) + 400.0 * codes[1] - 300.0 * codes[2])
    tree = grow_tree(codes, gradients, packing_for(200), n_bins=6, depth=4, regularisation=2.0)
    leaf = np.zeros(200, np.int64)
    for feature, threshold in zip(tree.features, tree.thresholds, strict=True):
        _, expected_feature, expected_threshold = best_split(codes, gradients, leaf, 2.0)
        assert (feature, threshold) == (expected_feature, expected_threshold)
        leaf = 2 * leaf + (codes[feature] > threshold)
    assert (tree.leaf == leaf).all()
    assert (tree.counts == np.bincount(leaf, minlength=16)).all()
    assert (tree.sums == np.bincount(leaf, gradients, 16)).all()


@pytest.mark.parametrize("n_rows", [1, 2, 1000, 35_000, 2**20])
def test_packing_keeps_counts_and_extreme_sums_apart(n_rows: int) -> None:
    packing = packing_for(n_rows)
    for sign in (-1, 1):
        packed = np.array([n_rows * (packing.unit + sign * packing.largest)])
        counts, sums = packing.unpack(packed)
        assert (counts[0], sums[0]) == (n_rows, sign * n_rows * packing.largest)
    assert n_rows * packing.unit * 2 <= 2**54


def test_too_many_rows_for_exact_sums_are_refused() -> None:
    with pytest.raises(ValueError, match="too many"):
        packing_for(2**23)


def test_one_tree_without_shrinkage_gives_means_of_its_leaves() -> None:
    features, target = surface(500)
    settings = TreeSettings(rounds=1, depth=3, learning_rate=1.0, regularisation=1e-9)
    model = fit_symmetric_trees(features, target, settings)
    predicted = model.predict(features)
    leaves = np.unique(predicted)
    assert 2 <= len(leaves) <= 8
    for value in leaves:
        mean = target[predicted == value].mean()
        assert value == pytest.approx(mean, abs=model.rounding_bound + 1e-5)


@pytest.mark.parametrize("depth", [1, 3, 8])
def test_batch_single_and_slow_evaluation_agree_exactly(depth: int) -> None:
    features, target = surface(1200)
    model = fit_symmetric_trees(features, target, TreeSettings(rounds=30, depth=depth))
    batch = model.predict(features)
    assert (batch == model.predict_codes(model.bins.encode(features))).all()
    for few in (150, 1024, 1025):
        assert (batch[:few] == model.predict(features[:few])).all()
    for row in range(0, 1200, 60):
        slow = model.offset + model.scale * slow_sums(model, features[row])
        assert model.predict(features[row]) == slow == batch[row]
    assert model.predict(features[:0]).shape == (0,)
    assert model.predict(features[0]).shape == ()


def test_batches_longer_than_a_block_are_seamless() -> None:
    features, target = surface(300)
    model = fit_symmetric_trees(features, target, TreeSettings(rounds=5, depth=4))
    many = np.tile(features, (60, 1))
    assert (model.predict(many) == np.tile(model.predict(features), 60)).all()


@pytest.mark.parametrize("loss", ["squared", "absolute", "huber"])
def test_the_fit_does_not_depend_on_the_order_of_the_rows(loss: str) -> None:
    features, target = surface(700)
    settings = TreeSettings(
        rounds=15, depth=5, row_fraction=0.7, feature_fraction=0.6, loss=loss, seed=4
    )  # type: ignore[arg-type]
    first = fit_symmetric_trees(features, target, settings)
    order = np.random.default_rng(1).permutation(700)
    second = fit_symmetric_trees(features[order], target[order], settings)
    assert (first.leaves == second.leaves).all()
    assert (first.features == second.features).all()
    assert (first.thresholds == second.thresholds).all()
    assert (first.scale, first.offset) == (second.scale, second.offset)
    other = fit_symmetric_trees(
        features, target, TreeSettings(rounds=15, depth=5, row_fraction=0.7, seed=5)
    )
    assert (first.leaves != other.leaves).any()


def test_boosting_learns_the_surface_and_unseen_rows() -> None:
    features, target = surface(3000)
    unseen, truth = surface(1000, seed=9)
    settings = TreeSettings(rounds=150, depth=5, learning_rate=0.1)
    error = fit_symmetric_trees(features, target, settings).predict(unseen) - truth
    assert np.abs(error).mean() < 0.03
    assert np.abs(truth - target.mean()).mean() > 0.3


def test_absolute_loss_withstands_gross_outliers() -> None:
    features, target = surface(2000)
    spoilt = target.copy()
    spoilt[::10] += 20.0
    errors = {}
    for loss in ("squared", "absolute", "huber"):
        settings = TreeSettings(rounds=150, depth=4, loss=loss)  # type: ignore[arg-type]
        errors[loss] = np.abs(
            fit_symmetric_trees(features, spoilt, settings).predict(features) - target
        )
    assert np.median(errors["absolute"]) < 0.1 * np.median(errors["squared"])
    assert np.median(errors["huber"]) < 0.1 * np.median(errors["squared"])


def test_a_constant_target_is_predicted_exactly() -> None:
    features, _ = surface(50)
    model = fit_symmetric_trees(features, np.full(50, 0.1), TreeSettings(rounds=3, depth=2))
    assert (model.predict(features) == 0.1).all()


def test_rounding_of_leaves_stays_within_its_bound() -> None:
    features, target = surface(600)
    model = fit_symmetric_trees(features, target, TreeSettings(rounds=1, depth=4))
    residual = target - model.offset
    predicted = model.predict(features) - model.offset
    for value in np.unique(predicted):
        inside = predicted == value
        exact = 0.08 * residual[inside].sum() / (inside.sum() + 1.0)
        # The gradients are whole numbers of 2^-20 of the largest.
        assert abs(value - exact) <= model.rounding_bound + 0.08 * np.abs(residual).max() / 2**21
    assert model.rounding_bound == model.scale / 2
    assert model.truncated(0).rounding_bound == 0
    assert (model.truncated(0).predict(features) == model.offset).all()


def test_bins_hold_equal_shares_and_lumps_stand_alone() -> None:
    even = fit_quantile_bins(np.arange(1000.0)[:, None], 10)
    assert (np.bincount(even.encode(np.arange(1000.0)[:, None])[0]) == 100).all()
    lumpy = np.concatenate((np.zeros(500), np.arange(1.0, 501.0)))[:, None]
    codes = fit_quantile_bins(lumpy, 10).encode(lumpy)[0]
    assert (codes[:500] == 0).all() and (codes[500:] > 0).all()
    assert 5 <= codes.max() <= 9


@pytest.mark.parametrize("n_bins", [2, 3, 16, 256])
def test_codes_count_edges_below_and_respect_the_limit(n_bins: int) -> None:
    draws = np.random.default_rng(n_bins)
    table = np.column_stack(
        (draws.normal(size=2000), draws.integers(0, 7, 2000), np.ones(2000), draws.zipf(1.5, 2000))
    )
    bins = fit_quantile_bins(table, n_bins)
    codes = bins.encode(table)
    for column, code, edges in zip(table.T, codes, bins.per_feature(), strict=True):
        assert (np.diff(edges) > 0).all()
        assert (code == np.searchsorted(edges, column.astype(np.float32), side="left")).all()
        assert code.max() == len(edges) <= n_bins - 1
    assert bins.edge_counts[2] == 0
    few = min(7, n_bins)
    assert bins.edge_counts[1] <= few - 1
    if n_bins >= 7:
        assert bins.edge_counts[1] == 6


def test_neighbouring_float32_values_are_told_apart() -> None:
    low = np.float32(1.0)
    column = np.array([[low], [np.nextafter(low, np.float32(2))]], np.float64)
    assert fit_quantile_bins(column, 4).encode(column).tolist() == [[0, 1]]


def test_rounds_are_chosen_where_unseen_rows_are_predicted_best() -> None:
    draws = np.random.default_rng(5)
    features = draws.random((400, 3))
    target = features[:, 0] + draws.normal(0, 0.5, 400)
    folds = np.arange(400) % 4
    settings = TreeSettings(rounds=200, depth=4, learning_rate=0.3)
    chosen = select_rounds(features, target, folds, settings, checkpoint_every=5, patience=3)
    assert chosen.rounds < 100 and chosen.checkpoints[-1] < 200
    assert chosen.errors.min() == chosen.errors[list(chosen.checkpoints).index(chosen.rounds)]
    inside = folds == 2
    alone = fit_symmetric_trees(
        features[~inside],
        target[~inside],
        TreeSettings(rounds=chosen.rounds, depth=4, learning_rate=0.3),
    )
    assert (alone.predict(features[inside]) == chosen.out_of_fold[inside]).all()


def test_rows_in_no_fold_train_and_are_not_tested() -> None:
    features, target = surface(120)
    folds = np.where(np.arange(120) < 80, -1, 0)
    chosen = select_rounds(features, target, folds, TreeSettings(rounds=4, depth=2))
    assert np.isnan(chosen.out_of_fold[:80]).all() and np.isfinite(chosen.out_of_fold[80:]).all()
    with pytest.raises(ValueError, match="cross-validation needs"):
        select_rounds(features, target, np.zeros(120), TreeSettings(rounds=4))


@pytest.mark.parametrize(
    "wrong",
    [
        {"rounds": 0},
        {"depth": 9},
        {"learning_rate": 0.0},
        {"regularisation": 0.0},
        {"row_fraction": 1.5},
        {"feature_fraction": 0.0},
        {"loss": "log"},
        {"huber_limit": 0.0},
    ],
)
def test_settings_without_a_meaning_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        TreeSettings(**wrong)  # type: ignore[arg-type]


def test_unfit_rows_and_arrays_are_refused() -> None:
    features, target = surface(20)
    settings = TreeSettings(rounds=1, depth=1)
    model = fit_symmetric_trees(features, target, settings)
    with pytest.raises(ValueError, match="need 5 columns"):
        model.predict(features[:, :4])
    with pytest.raises(ValueError, match="finite"):
        fit_symmetric_trees(np.where(features > 0.5, np.nan, features), target, settings)
    with pytest.raises(ValueError, match="finite"):
        fit_symmetric_trees(features, np.where(target > 0.5, np.inf, target), settings)
    with pytest.raises(ValueError, match="shape"):
        fit_symmetric_trees(features, target[:-1], settings)
    with pytest.raises(ValueError, match="at most 256"):
        fit_symmetric_trees(np.zeros((2, 257)), np.zeros(2), settings)
    with pytest.raises(ValueError, match="do not fit"):
        SymmetricTrees(
            bins=model.bins,
            features=model.features,
            thresholds=model.thresholds,
            leaves=model.leaves[:, :1],
            scale=1.0,
            offset=0.0,
        )
    with pytest.raises(ValueError, match="no bins"):
        SymmetricTrees(
            bins=QuantileBins(edges=np.empty(0, np.float32), edge_counts=np.empty(0, np.uint8)),
            features=model.features,
            thresholds=model.thresholds,
            leaves=model.leaves,
            scale=1.0,
            offset=0.0,
        )

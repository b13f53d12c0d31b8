"""Conformal intervals: ranks by hand, folds, pooling, and coverage in simulations."""

import math

import numpy as np
import pytest

from perfdb_git.analysis.conformal import (
    DistanceWidening,
    TwoRegimeWidths,
    cautious_level,
    conformal_quantile,
    fit_conformal_widths,
    fit_distance_widening,
    group_folds,
    least_scores,
    log_interval,
    octaves_beyond,
    row_folds,
)
from perfdb_git.analysis.error_scale import fit_error_scale
from perfdb_git.analysis.tree_boosting import TreeSettings


def test_the_quantile_is_the_finite_sample_rank() -> None:
    scores = np.arange(1.0, 20.0)[::-1]
    assert conformal_quantile(scores, 0.9) == 18
    assert conformal_quantile(scores[:9], 0.9) == scores[:9].max()
    assert conformal_quantile(scores[:8], 0.9) == math.inf
    assert conformal_quantile([], 0.5) == math.inf
    for scores, level in (([1.0], 1.0), ([math.nan], 0.5)):
        with pytest.raises(ValueError, match="no quantile"):
            conformal_quantile(scores, level)


def test_coverage_is_at_least_the_level_and_hardly_more() -> None:
    draws = np.random.default_rng(0)
    covered = []
    for _ in range(400):
        scores = np.abs(draws.standard_t(3, 60))
        covered.append(np.abs(draws.standard_t(3, 200)) <= conformal_quantile(scores, 0.9))
    assert 0.895 < np.mean(covered) < 0.912


def test_small_groups_share_one_width() -> None:
    scores = np.concatenate((np.full(300, 1.0), np.full(250, 2.0), np.full(20, 5.0)))
    groups = np.repeat([3, 7, 9], [300, 250, 20])
    widths = fit_conformal_widths(scores, 0.9, groups, least_rows=200)
    assert widths.groups.tolist() == [3, 7]
    found = widths.predict([1.0, 1.0, 1.0, 2.0], [3, 7, 9, 100])
    assert found.tolist() == [1.0, 2.0, 2.0, 4.0]
    pooled = fit_conformal_widths(scores, 0.9, groups, least_rows=10)
    assert pooled.predict(1.0, 9) == 5.0
    many_small = fit_conformal_widths(
        np.repeat([1.0, 4.0], [400, 400]), 0.9, np.repeat(np.arange(9), [400] + [50] * 8)
    )
    assert many_small.predict(1.0, 0) == 1.0 and many_small.predict(1.0, 5) == 4.0
    plain = fit_conformal_widths(scores, 0.9)
    assert len(plain.groups) == 0 and plain.predict([1.0, 3.0]).tolist() == [2.0, 6.0]
    with pytest.raises(ValueError, match="groups of shape"):
        fit_conformal_widths(scores, 0.9, groups[:-1])


def test_the_regime_of_the_line_decides() -> None:
    widths = TwoRegimeWidths(
        measured=fit_conformal_widths(np.full(50, 0.02), 0.9),
        unmeasured=fit_conformal_widths(np.full(50, 0.05), 0.9),
    )
    found = widths.predict([1.0, 1.0, 2.0], [True, False, False])
    assert found == pytest.approx([0.02, 0.05, 0.10])


def test_whole_group_folds_cover_new_groups_where_row_folds_do_not() -> None:
    draws = np.random.default_rng(3)
    coverage = {"rows": [], "groups": []}
    for trial in range(40):
        keys = np.repeat(np.arange(40), 10)
        logs = draws.normal(0, 0.2, 40)[keys] + draws.normal(0, 0.02, 400)
        fresh = draws.normal(0, 0.2, 300) + draws.normal(0, 0.02, 300)
        for name, folds in (
            ("rows", row_folds(400, 8, trial)),
            ("groups", group_folds(keys, 8, trial)),
        ):
            residual = np.empty(400)
            for fold in range(8):
                known = folds != fold
                for row in np.flatnonzero(~known):
                    peers = logs[known & (keys == keys[row])]
                    residual[row] = logs[row] - (peers.mean() if len(peers) else logs[known].mean())
            width = fit_conformal_widths(np.abs(residual), 0.9).predict(1.0)
            coverage[name].append(np.mean(np.abs(fresh - logs.mean()) <= width))
    assert np.mean(coverage["rows"]) < 0.3
    assert 0.86 < np.mean(coverage["groups"]) < 0.95


def test_folds_are_even_whole_and_independent_of_order() -> None:
    folds = row_folds(103, 5)
    assert sorted(np.bincount(folds)) == [20, 20, 21, 21, 21]
    draws = np.random.default_rng(1)
    keys = np.column_stack((draws.integers(0, 5, 200), draws.integers(0, 8, 200)))
    dealt = group_folds(keys, 4, seed=2)
    for key in np.unique(keys, axis=0):
        assert len(set(dealt[(keys == key).all(axis=1)])) == 1
    counts = np.bincount(dealt)
    assert len(counts) == 4 and counts.max() - counts.min() < 10
    order = draws.permutation(200)
    assert (group_folds(keys[order], 4, seed=2) == dealt[order]).all()
    assert (group_folds(keys, 4, seed=3) != dealt).any()
    names = np.array(["b", "a", "b", "c"])
    assert group_folds(names, 3)[0] == group_folds(names, 3)[2]
    with pytest.raises(ValueError, match="groups do not fill"):
        group_folds(names, 4)
    with pytest.raises(ValueError, match="rows do not fill"):
        row_folds(3, 4)


def test_widening_covers_every_distance_of_a_growing_error() -> None:
    draws = np.random.default_rng(5)

    def tail(n: int) -> tuple[np.ndarray, np.ndarray]:
        octaves = draws.uniform(0.1, 4, n)
        return np.abs(draws.normal(0, (1 + 1.5 * np.sqrt(octaves)) / 1.645)), octaves

    widening = fit_distance_widening(*tail(4000), 0.9)
    ratios, octaves = tail(4000)
    inside = ratios <= widening.predict(octaves)
    assert 0.88 < inside.mean() < 0.92
    assert 0.86 < inside[octaves > 3].mean() < 0.94
    assert widening.predict(0.0) == 1
    assert fit_distance_widening(np.full(20, 0.5), np.ones(20), 0.9) == DistanceWidening(rate=0.0)
    with pytest.raises(ValueError, match="too few"):
        fit_distance_widening([2.0], [1.0], 0.9)
    with pytest.raises(ValueError, match="positive distance"):
        fit_distance_widening([2.0], [0.0], 0.9)


def test_octaves_beyond_either_end() -> None:
    assert octaves_beyond([4.0, 8.0, 100.0, 128.0, 1024.0], 8, 128).tolist() == [1, 0, 0, 0, 3]


def test_log_interval_is_symmetric_in_ratio() -> None:
    lower, upper = log_interval([10.0], [math.log(2)])
    assert (lower[0], upper[0]) == pytest.approx((5, 20))


def test_a_learned_scale_narrows_where_errors_are_small_and_keeps_coverage() -> None:
    draws = np.random.default_rng(8)

    def rows(n: int) -> tuple[np.ndarray, np.ndarray]:
        features = draws.random((n, 3))
        return features, draws.normal(0, np.where(features[:, 0] > 0.5, 0.10, 0.01))

    features, residuals = rows(3000)
    folds = row_folds(3000, 5)
    settings = TreeSettings(rounds=60, depth=4, regularisation=20.0)
    scale, unseen = fit_error_scale(features, residuals, folds, settings)
    widths = fit_conformal_widths(np.abs(residuals) / unseen, 0.9)
    queries, errors = rows(4000)
    found = widths.predict(scale.predict(queries))
    inside = np.abs(errors) <= found
    wild = queries[:, 0] > 0.5
    assert 0.88 < inside.mean() < 0.925
    assert 0.85 < inside[wild].mean() < 0.95 and 0.85 < inside[~wild].mean() < 0.95
    assert np.median(found[wild]) > 5 * np.median(found[~wild])
    codes = scale.trees.bins.encode(queries)
    assert (scale.predict_codes(codes) == scale.predict(queries)).all()
    assert scale.lowest <= unseen.min() and unseen.max() <= scale.highest


@pytest.mark.parametrize(("level", "least"), [(0.5, 1), (0.8, 4), (0.9, 9), (0.95, 19)])
def test_so_few_scores_carry_a_level_and_one_less_does_not(level: float, least: int) -> None:
    assert least_scores(level) == least
    assert math.isfinite(conformal_quantile(np.ones(least), level))
    assert math.isinf(conformal_quantile(np.ones(least - 1), level))


def test_a_cautious_level_rarely_covers_less_than_asked() -> None:
    assert cautious_level(0.9, 10**8) == pytest.approx(0.9, abs=1e-4)
    assert cautious_level(0.9, 4) == pytest.approx(0.8)
    draws = np.random.default_rng(5)
    short = {"plain": 0, "cautious": 0}
    for _ in range(400):
        # Two repeats of 60 points that hardly differ; the score of a uniform number is its rank.
        scores = np.repeat(draws.random(60), 2) + 1e-6 * draws.random(120)
        short["plain"] += conformal_quantile(scores, 0.9) < 0.9
        short["cautious"] += conformal_quantile(scores, cautious_level(0.9, 60)) < 0.9
    assert 0.3 < short["plain"] / 400 < 0.6
    assert short["cautious"] / 400 < 0.2

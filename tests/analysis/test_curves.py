"""One-dimensional forms against exact curves, exhaustive search and noise."""

import itertools
import math

import numpy as np
import pytest
from scipy import optimize

from perfdb_git.analysis.curves import (
    _ascending,
    fit_affine,
    fit_log_log_curve,
    fit_step_table,
    medians_by_size,
)


def test_affine_recovers_an_exact_line_over_many_magnitudes() -> None:
    size = np.geomspace(1, 1e9, 40)
    curve = fit_affine(size, 4e-6 + size / 3e11)
    assert curve.intercept == pytest.approx(4e-6, rel=1e-9)
    assert curve.rate == pytest.approx(3e11, rel=1e-9)
    assert curve.predict(10.0) == pytest.approx(4e-6 + 10 / 3e11)
    assert curve.predict([[1.0, 2.0]]).shape == (1, 2)


def test_affine_minimises_its_loss_as_a_general_optimiser_does() -> None:
    draws = np.random.default_rng(2)
    size = np.geomspace(1, 1000, 60)
    value = (5 + 0.3 * size) * np.exp(draws.normal(0, 0.05, 60))
    value[::9] *= 2.5
    curve = fit_affine(size, value)
    found = optimize.least_squares(
        lambda p: (p[0] + p[1] * size) / value - 1, (4.0, 0.2), loss="soft_l1", f_scale=0.05,
        xtol=1e-15, ftol=1e-15, gtol=1e-15,
    )  # fmt: skip
    assert (curve.intercept, curve.slope) == pytest.approx(tuple(found.x), rel=1e-5)
    assert curve.intercept == pytest.approx(5, rel=0.05)


def test_affine_never_has_a_negative_part() -> None:
    steep = fit_affine([1.0, 2.0, 4.0], [1.0, 3.0, 7.0])
    assert steep.intercept == 0 and steep.slope > 1
    falling = fit_affine([1.0, 2.0, 4.0], [4.0, 3.0, 2.0])
    assert falling.slope == 0 and falling.rate == math.inf and 2 <= falling.intercept <= 4
    single = fit_affine([8.0], [2.0])
    assert single.predict(8.0) == pytest.approx(2.0)


def test_step_table_is_the_best_of_all_partitions() -> None:
    draws = np.random.default_rng(7)
    size = np.arange(1.0, 10.0)
    value = np.exp(draws.normal(size=9))
    logs = np.log(value)
    for n_steps in (1, 2, 3, 4):
        table = fit_step_table(size, value, n_steps)
        found = ((np.log(table.predict(size)) - logs) ** 2).sum()
        best = min(
            sum(((part - part.mean()) ** 2).sum() for part in np.split(logs, cuts))
            for used in range(n_steps)
            for cuts in itertools.combinations(range(1, 9), used)
        )
        assert found == pytest.approx(best, rel=1e-9)


def test_step_table_finds_the_steps_and_holds_below_the_first() -> None:
    table = fit_step_table([1, 2, 4, 8, 16, 32], [3, 3, 3, 5, 5, 9], 3)
    assert table.starts.tolist() == [1, 8, 32]
    assert table.values == pytest.approx([3, 5, 9])
    assert table.predict([0.5, 1, 7.9, 8, 31, 1000]) == pytest.approx([3, 3, 3, 5, 5, 9])
    assert fit_step_table([4.0], [2.0], 5).predict(1.0) == pytest.approx(2)
    with pytest.raises(ValueError, match="no step table"):
        fit_step_table([1.0], [1.0], 0)


def test_log_log_curve_is_exact_on_a_power_law_and_beyond_it() -> None:
    size = np.array([1.0, 3.0, 10.0, 70.0, 500.0])
    curve = fit_log_log_curve(size, 2 * size**0.7)
    wanted = np.array([0.01, 1.0, 2.0, 50.0, 500.0, 1e6])
    assert curve.predict(wanted) == pytest.approx(2 * wanted**0.7, rel=1e-12)
    assert curve.lower_slope == pytest.approx(0.7) and curve.upper_slope == pytest.approx(0.7)
    assert curve.predict(10.0).shape == ()


def test_log_log_curve_passes_the_median_of_repeats_in_any_order() -> None:
    size, value = [4.0, 1.0, 4.0, 4.0, 16.0, 1.0], [9.0, 2.0, 5.0, 6.0, 3.0, 4.0]
    curve = fit_log_log_curve(size, value)
    assert curve.sizes.tolist() == [1, 4, 16] and curve.values.tolist() == [3, 6, 3]
    assert curve.predict([1, 2, 4, 8, 16]) == pytest.approx([3, math.sqrt(18), 6, math.sqrt(18), 3])
    again = fit_log_log_curve(size[::-1], value[::-1])
    assert (again.values == curve.values).all()
    single = fit_log_log_curve([2.0], [7.0])
    assert single.predict([1.0, 2.0, 9.0]) == pytest.approx([7.0, 7.0, 7.0])


def test_running_median_is_taken_for_outliers_and_left_for_smooth_curves() -> None:
    draws = np.random.default_rng(1)
    size = np.geomspace(1, 1e6, 200)
    clean = 3 + size**0.9
    smooth = fit_log_log_curve(size, clean)
    assert (smooth.values == clean).all()
    spoilt = clean * np.where(draws.random(200) < 0.15, 2.5, 1.0)
    chosen = fit_log_log_curve(size, spoilt)
    plain = fit_log_log_curve(size, spoilt, smooth=False)
    inner = np.sqrt(size[1:] * size[:-1])
    errors = [
        np.abs(np.log(curve.predict(inner) / (3 + inner**0.9))).mean() for curve in (chosen, plain)
    ]
    assert errors[0] < 0.5 * errors[1]
    assert chosen.values[[0, -1]] == pytest.approx(spoilt[[0, -1]])


def test_an_ascending_curve_is_taken_where_noise_is_everywhere() -> None:
    draws = np.random.default_rng(2)
    size = np.geomspace(1, 30, 300)
    truth = 10 + size
    value = truth * np.exp(draws.normal(0, 0.2, 300))
    chosen, plain = fit_log_log_curve(size, value), fit_log_log_curve(size, value, smooth=False)
    assert (np.diff(chosen.values) >= 0).all() and (np.diff(plain.values) < 0).any()
    errors = [np.abs(np.log(curve.predict(size) / truth)).mean() for curve in (chosen, plain)]
    assert errors[0] < 0.4 * errors[1]


def test_the_ascending_curve_agrees_with_a_library() -> None:
    logs = np.random.default_rng(4).normal(size=200).cumsum() / 5
    expected = optimize.isotonic_regression(logs).x
    assert _ascending(logs) == pytest.approx(expected, rel=1e-12)


def test_end_slopes_withstand_a_single_outlier() -> None:
    size = np.geomspace(1, 1024, 41)
    value = size.copy()
    value[-2] *= 3
    curve = fit_log_log_curve(size, value, smooth=False)
    assert curve.upper_slope == pytest.approx(1.0, abs=1e-9)


def test_medians_by_size_agree_with_numpy() -> None:
    draws = np.random.default_rng(8)
    size, value = draws.integers(1, 9, 300).astype(float), draws.random(300) + 0.1
    sizes, medians = medians_by_size(size, value)
    assert sizes.tolist() == sorted(set(size.tolist()))
    for at, median in zip(sizes, medians, strict=True):
        assert median == np.median(value[size == at])


@pytest.mark.parametrize("size, value", [([], []), ([1.0], [0.0]), ([-1.0], [1.0]), ([1, 2], [1])])
def test_unfit_pairs_are_refused(size: list[float], value: list[float]) -> None:
    for fit in (fit_affine, fit_log_log_curve):
        with pytest.raises(ValueError, match="sizes"):
            fit(size, value)

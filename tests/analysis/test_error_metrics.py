"""Error metrics against hand-worked figures."""

import numpy as np
import pytest

from perfdb_git.analysis.error_metrics import error_metrics, metrics_by_slice


def test_hand_worked_figures() -> None:
    found = error_metrics([11.0, 18.0, 33.0, 40.0], [10.0, 20.0, 30.0, 40.0])
    assert found.n == 4
    assert found.mape_pct == pytest.approx(7.5)
    assert found.median_pct == pytest.approx(10.0)
    assert found.max_pct == pytest.approx(10.0)
    assert found.bias_pct == pytest.approx(2.5)
    assert found.r_squared == pytest.approx(1 - (1 + 4 + 9) / 500)
    assert found.coverage is None and found.median_half_width_pct is None


def test_quantiles_agree_with_numpy_and_order_does_not_matter() -> None:
    draws = np.random.default_rng(0)
    truth = np.exp(draws.normal(size=501))
    guess = truth * np.exp(draws.normal(0, 0.1, 501))
    found = error_metrics(guess, truth)
    ape = np.abs(guess / truth - 1) * 100
    assert (found.p90_pct, found.p95_pct) == pytest.approx(tuple(np.percentile(ape, (90, 95))))
    order = draws.permutation(501)
    assert error_metrics(guess[order], truth[order]).mape_pct == found.mape_pct
    assert error_metrics(guess[order], truth[order]).bias_pct == found.bias_pct


def test_coverage_counts_bounds_and_width_is_half_the_interval() -> None:
    found = error_metrics(
        [10.0, 10.0, 10.0, 20.0], [9.0, 11.0, 12.0, 20.0], [9.0] * 3 + [16.0], [11.0] * 3 + [24.0]
    )
    assert found.coverage == 0.75
    assert found.median_half_width_pct == pytest.approx(10.0)


def test_equal_measurements_have_no_r_squared() -> None:
    assert error_metrics([1.0, 2.0], [1.0, 1.0]).r_squared is None


def test_slices_are_ascending_and_each_equals_its_rows() -> None:
    guess, truth = np.array([1.1, 2.0, 3.3, 5.0]), np.array([1.0, 2.0, 3.0, 4.0])
    found = metrics_by_slice(guess, truth, ["fp8", "bf16", "fp8", "bf16"], guess / 2, guess * 2)
    assert list(found) == ["bf16", "fp8"]
    assert found["fp8"] == error_metrics(
        guess[[0, 2]], truth[[0, 2]], guess[[0, 2]] / 2, guess[[0, 2]] * 2
    )
    assert found["bf16"].n == 2


def test_unfit_rows_are_refused() -> None:
    for guess, truth in (([], []), ([1.0], [0.0]), ([np.nan], [1.0]), ([1.0, 2.0], [1.0])):
        with pytest.raises(ValueError):
            error_metrics(guess, truth)
    with pytest.raises(ValueError, match="both bounds"):
        error_metrics([1.0], [1.0], lower=[0.5])
    with pytest.raises(ValueError, match="names"):
        metrics_by_slice([1.0], [1.0], ["a", "b"])

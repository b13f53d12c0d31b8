"""The published numeric cases of scale and offset, outliers, covariance and the sample gate."""

from typing import get_args

import numpy as np
import pytest
from scipy import optimize

from perfdb_git.analysis.error_metrics import error_metrics
from perfdb_git.analysis.scale_offset import (
    Method,
    SampleGate,
    ScaleOffset,
    fit_scale_offset,
    sample_shortfalls,
)
from perfdb_git.errors import UsageError


@pytest.mark.parametrize("method", get_args(Method))
def test_an_exact_line_is_recovered_by_every_method(method: Method) -> None:
    found = fit_scale_offset([10, 20, 40, 80], [25, 45, 85, 165], method)
    assert (found.alpha, found.beta) == pytest.approx((2, 5), rel=1e-9)


def test_one_outlier_moves_least_squares_but_not_theil_sen() -> None:
    x, y = [10, 20, 40, 80, 160], [30, 50, 90, 170, 660]
    robust = fit_scale_offset(x, y, "theil-sen")
    assert (robust.alpha, robust.beta) == (2, 10)
    plain = fit_scale_offset(x, y, "least-squares")
    assert (plain.alpha, plain.beta) == pytest.approx((1035 / 248, -235 / 4), rel=1e-12)
    relative = fit_scale_offset(x, y, "relative-least-squares")
    assert (relative.alpha, relative.beta) == pytest.approx((2.355008, 4.679362), abs=5e-7)
    default = fit_scale_offset(x, y)
    assert abs(default.alpha - 2) < 0.15 and abs(default.beta - 10) < 2


def test_the_default_minimises_its_loss_as_a_simplex_search_does() -> None:
    draws = np.random.default_rng(3)
    x = np.geomspace(100, 10_000, 24)
    y = (1.2 * x + 300) * np.exp(draws.normal(0, 0.1, 24))

    def loss(pair: np.ndarray) -> float:
        left = np.log((pair[0] * x + 1000 * pair[1]) / y)
        return float((np.sqrt(1 + (left / 0.05) ** 2) - 1).sum())

    expected = optimize.minimize(
        loss, (1.0, 0.1), method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12}
    ).x
    found = fit_scale_offset(x, y)
    assert (found.alpha, found.beta / 1000) == pytest.approx(tuple(expected), rel=1e-5)


def test_held_out_errors_of_relative_and_plain_least_squares() -> None:
    x, y = [100, 200, 400, 800], [130, 220, 430, 830]
    unseen, truth = [150, 300, 600], [180, 320, 640]
    relative = fit_scale_offset(x, y, "relative-least-squares")
    assert relative.alpha == pytest.approx(15366971 / 15494350, rel=1e-12)
    assert relative.beta == pytest.approx(82120 / 2843, rel=1e-11)
    predicted = relative.predict(unseen)
    ape = np.abs(predicted / truth - 1) * 100
    assert ape == pytest.approx([1.3045, 2.0058, 2.5074], abs=5e-5)
    errors = error_metrics(predicted, truth)
    assert errors.mape_pct == pytest.approx(1.9393, abs=5e-5)
    assert errors.bias_pct == pytest.approx(-0.602, abs=5e-4)
    plain = fit_scale_offset(x, y, "least-squares")
    assert (plain.alpha, plain.beta) == pytest.approx((1157 / 1150, 580 / 23), rel=1e-12)
    assert error_metrics(plain.predict(unseen), truth).mape_pct == pytest.approx(2.03, abs=5e-5)


def test_a_negative_time_is_refused() -> None:
    line = ScaleOffset(alpha=1.0, beta=-200.0, covariance=None)
    with pytest.raises(UsageError, match="negative time") as caught:
        line.predict(100.0)
    assert caught.value.code == "negative-time"
    line.refuse_negative(200.0, 900.0)
    with pytest.raises(UsageError, match="negative time"):
        line.refuse_negative(199.0, 900.0)


def test_the_default_withstands_noise_and_outliers() -> None:
    draws = np.random.default_rng(4)
    alphas = []
    for _ in range(60):
        x = np.exp(draws.uniform(np.log(100), np.log(10_000), 16))
        y = (1.2 * x + 300) * np.exp(draws.normal(0, 0.05, 16))
        y *= np.where(draws.random(16) < 0.1, draws.uniform(1.5, 3, 16), 1.0)
        alphas.append(fit_scale_offset(x, y).alpha)
    assert np.median(alphas) == pytest.approx(1.2, rel=0.02)
    assert np.quantile(np.abs(np.array(alphas) / 1.2 - 1), 0.9) < 0.12


def test_covariance_of_least_squares_is_the_textbook_one_in_any_unit() -> None:
    draws = np.random.default_rng(6)
    x = np.linspace(1, 10, 20)
    y = 2 * x + 3 + draws.normal(0, 0.1, 20)
    found = fit_scale_offset(x, y, "least-squares")
    assert found.covariance is not None
    _, expected = np.polyfit(x, y, 1, cov="unscaled")
    left = y - found.alpha * x - found.beta
    assert found.covariance == pytest.approx(expected * (left**2).sum() / 18, rel=1e-9)
    for method in ("soft-l1-log", "relative-least-squares"):
        small = fit_scale_offset(x, y, method)  # type: ignore[arg-type]
        large = fit_scale_offset(x * 1e6, y * 1e6, method)  # type: ignore[arg-type]
        assert small.covariance is not None and large.covariance is not None
        assert large.alpha == pytest.approx(small.alpha, rel=1e-9)
        assert large.covariance[0, 1] == pytest.approx(small.covariance[0, 1] * 1e6, rel=1e-5)


def test_covariance_of_the_default_matches_the_spread_of_many_fits() -> None:
    draws = np.random.default_rng(12)
    x = np.geomspace(100, 10_000, 32)
    fits = [
        fit_scale_offset(x, (1.2 * x + 300) * np.exp(draws.normal(0, 0.03, 32))) for _ in range(80)
    ]
    spread = np.std([fit.alpha for fit in fits], ddof=1)
    claimed = np.median(
        [np.sqrt(fit.covariance[0, 0]) for fit in fits if fit.covariance is not None]
    )
    assert claimed == pytest.approx(spread, rel=0.3)


def test_no_covariance_without_residuals() -> None:
    assert fit_scale_offset([1, 2], [3, 5], "least-squares").covariance is None
    assert fit_scale_offset([1, 2, 3], [3, 5, 7], "theil-sen").covariance is None


def test_a_start_below_zero_still_gives_a_positive_line() -> None:
    x = np.array([1.0, 2.0, 30.0, 40.0, 50.0])
    y = np.array([0.2, 0.3, 500.0, 800.0, 1100.0])
    found = fit_scale_offset(x, y)
    assert (found.alpha * x + found.beta > 0).all()


def test_the_gate_names_what_is_missing() -> None:
    enough = np.repeat(np.geomspace(1, 10, 8), 5)
    assert sample_shortfalls(enough) == ()
    few = np.repeat([1.0, 2.0, 4.0], [5, 4, 5])
    assert [(s.requirement, s.needed, s.found) for s in sample_shortfalls(few)] == [
        ("sizes", 8, 3),
        ("span", 10.0, 4.0),
        ("repeats", 5, 4),
    ]
    assert sample_shortfalls(few, SampleGate(sizes=3, span=4, repeats=4)) == ()
    assert [s.requirement for s in sample_shortfalls([])] == ["sizes"]


def test_unfit_pairs_are_refused() -> None:
    for x, y in (([1, 1], [2, 3]), ([1, 2], [0, 3]), ([1], [1]), ([1, np.inf], [1, 2])):
        with pytest.raises(ValueError):
            fit_scale_offset(x, y)

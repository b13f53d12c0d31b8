"""The Gaussian process against dense algebra, finite differences and its own coverage."""

import numpy as np
import pytest
from scipy import stats

from perfdb_git.analysis.gaussian_process import (
    GaussianProcess,
    _negative_log_likelihood,
    fit_gaussian_process,
)


def process() -> GaussianProcess:
    draws = np.random.default_rng(0)
    inputs = draws.random((60, 2)) * (1, 10)
    target = np.sin(6 * inputs[:, 0]) + 0.1 * inputs[:, 1] + draws.normal(0, 0.05, 60)
    return fit_gaussian_process(inputs, target, restarts=2)


def test_mean_and_deviation_agree_with_dense_algebra() -> None:
    model = process()
    queries = np.random.default_rng(1).random((7, 2)) * (1, 10)
    at = (queries - model.input_centers) / model.input_spreads

    def kernel(a: np.ndarray, b: np.ndarray) -> float:
        r = np.sqrt((((a - b) / model.length_scales) ** 2).sum())
        return float(model.signal_variance * (1 + np.sqrt(3) * r) * np.exp(-np.sqrt(3) * r))

    inner = np.array([[kernel(a, b) for b in model.inputs] for a in model.inputs])
    inner += model.nugget * np.eye(60)
    cross = np.array([[kernel(a, b) for b in model.inputs] for a in at])
    mean, deviation = model.predict_with_deviation(queries)
    expected = model.target_center + model.target_spread * cross @ model.weights
    assert mean == pytest.approx(expected, rel=1e-9)
    variance = model.signal_variance - np.diag(cross @ np.linalg.solve(inner, cross.T))
    assert deviation == pytest.approx(
        model.target_spread * np.sqrt(variance + model.nugget), rel=1e-7
    )
    assert model.predict(queries[0]) == pytest.approx(mean[0], rel=1e-9)
    assert model.predict(queries[0]).shape == () and model.predict(queries[:0]).shape == (0,)


def test_likelihood_and_gradient() -> None:
    draws = np.random.default_rng(2)
    rows, values = draws.normal(size=(12, 2)), draws.normal(size=12)
    squares = (rows[:, None] - rows[None]).transpose(2, 0, 1) ** 2
    logs = np.log([0.7, 1.9, 1.3, 0.05])
    factors = 1 + draws.random(12)
    loss, gradient = _negative_log_likelihood(logs, squares, values, factors)
    r = np.sqrt(squares[0] / 0.49 + squares[1] / 1.9**2) * np.sqrt(3)
    covariance = 1.3 * (1 + r) * np.exp(-r) + 0.05 * np.diag(factors)
    assert -loss == pytest.approx(stats.multivariate_normal(cov=covariance).logpdf(values))
    for place in range(4):
        step = np.zeros(4)
        step[place] = 1e-6
        up, _ = _negative_log_likelihood(logs + step, squares, values, factors)
        down, _ = _negative_log_likelihood(logs - step, squares, values, factors)
        assert gradient[place] == pytest.approx((up - down) / 2e-6, rel=1e-5)


def test_the_fit_predicts_unseen_points_and_covers_them() -> None:
    def truth(x: np.ndarray) -> np.ndarray:
        return np.asarray(np.sin(5 * x[:, 0]) + x[:, 1] ** 2)

    inside = []
    for seed in range(4):
        draws = np.random.default_rng(seed)
        inputs, queries = draws.random((100, 3)), draws.random((300, 3))
        model = fit_gaussian_process(inputs, truth(inputs) + draws.normal(0, 0.1, 100))
        assert model.length_scales[2] > 5 * model.length_scales[0]
        mean, deviation = model.predict_with_deviation(queries)
        assert np.sqrt(np.mean((mean - truth(queries)) ** 2)) < 0.08
        measured = truth(queries) + draws.normal(0, 0.1, 300)
        inside.append(np.abs(measured - mean) < 1.645 * deviation)
    assert 0.85 < np.mean(inside) < 0.95


def test_the_fit_depends_on_neither_run_nor_order_of_rows() -> None:
    draws = np.random.default_rng(3)
    inputs, target = draws.random((40, 2)), draws.random(40)
    order = draws.permutation(40)
    first = fit_gaussian_process(inputs, target)
    second = fit_gaussian_process(inputs[order], target[order])
    assert (first.weights == second.weights).all()
    assert (first.length_scales == second.length_scales).all()


def test_t_noise_keeps_outliers_from_bending_the_curve() -> None:
    draws = np.random.default_rng(4)
    inputs = np.linspace(0, 1, 60)[:, None]
    truth = np.sin(4 * inputs[:, 0])
    target = truth + draws.normal(0, 0.02, 60)
    outliers = np.array([10, 31, 47])
    target[outliers] += 1.0
    normal, robust = (fit_gaussian_process(inputs, target, noise_degrees=n) for n in (None, 4.0))
    errors = [np.abs(model.predict(inputs) - truth) for model in (normal, robust)]
    assert errors[1].max() < 0.05 < errors[0].max()
    assert normal.noise_factors is None and robust.noise_factors is not None
    place = np.argsort(robust.noise_factors)[-3:]
    assert sorted(robust.inputs[place, 0]) == pytest.approx(
        sorted((inputs[outliers, 0] - robust.input_centers[0]) / robust.input_spreads[0])
    )


def test_deviation_with_factors_agrees_with_dense_algebra() -> None:
    draws = np.random.default_rng(6)
    inputs = draws.random((40, 1))
    model = fit_gaussian_process(inputs, draws.standard_t(2, 40), noise_degrees=4)
    assert model.noise_factors is not None

    def kernel(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        r = np.sqrt(3) * np.abs(a - b.T) / model.length_scales[0]
        return np.asarray(model.signal_variance * (1 + r) * np.exp(-r))

    at = (np.array([[0.3], [0.9]]) - model.input_centers) / model.input_spreads
    inner = kernel(model.inputs, model.inputs) + model.nugget * np.diag(model.noise_factors)
    cross = kernel(at, model.inputs)
    left = model.signal_variance - np.diag(cross @ np.linalg.solve(inner, cross.T))
    _, deviation = model.predict_with_deviation([[0.3], [0.9]])
    assert deviation == pytest.approx(model.target_spread * np.sqrt(left + model.nugget), rel=1e-7)


def test_repeated_rows_and_constant_inputs_are_fine() -> None:
    inputs = np.column_stack((np.repeat([0.0, 1.0, 2.0, 3.0], 3), np.full(12, 7.0)))
    target = inputs[:, 0] + np.tile([-0.1, 0.0, 0.1], 4)
    model = fit_gaussian_process(inputs, target)
    assert model.predict([1.0, 7.0]) == pytest.approx(1.0, abs=0.1)


def test_unfit_rows_are_refused() -> None:
    for inputs, target in (
        (np.zeros((2001, 1)), np.zeros(2001)),
        (np.zeros((1, 1)), np.zeros(1)),
        (np.zeros(3), np.zeros(3)),
        (np.full((3, 1), np.nan), np.zeros(3)),
    ):
        with pytest.raises(ValueError):
            fit_gaussian_process(inputs, target)
    with pytest.raises(ValueError, match="need 2 columns"):
        process().predict([1.0, 2.0, 3.0])

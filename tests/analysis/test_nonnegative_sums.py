"""Weights of known parts, back from their sum."""

import numpy as np
import pytest

from perfdb_git.analysis.nonnegative_sums import fit_nonnegative_sum


def test_weights_come_back_and_none_is_negative() -> None:
    draws = np.random.default_rng(0)
    parts = draws.random((200, 4)) * (1, 10, 1e-3, 1)
    truth = np.array([2.0, 0.5, 30.0, 0.0])
    found = fit_nonnegative_sum(parts, parts @ truth)
    assert found == pytest.approx(truth, rel=1e-6, abs=1e-9)
    against = parts @ np.array([2.0, 0.5, 30.0, -0.5])
    kept = against > 0.1
    assert (fit_nonnegative_sum(parts[kept], against[kept]) >= 0).all()


def test_the_misses_are_relative() -> None:
    parts = np.array([[1.0], [1.0], [1000.0]])
    found = fit_nonnegative_sum(parts, [1.0, 1.0, 2000.0])[0]
    assert found == pytest.approx((1 + 1 + 0.5) / (1 + 1 + 0.25))


def test_the_order_of_the_rows_does_not_matter() -> None:
    draws = np.random.default_rng(1)
    parts, wanted = draws.random((50, 3)), 1 + draws.random(50)
    order = draws.permutation(50)
    first, second = (
        fit_nonnegative_sum(parts[rows], wanted[rows]) for rows in (np.arange(50), order)
    )
    assert np.array_equal(first, second)


def test_unfit_rows_are_refused() -> None:
    for parts, wanted in (
        (np.ones((2, 1)), np.ones(3)),
        (np.ones((0, 1)), np.ones(0)),
        (np.full((2, 1), np.inf), np.ones(2)),
        (np.ones((2, 1)), np.zeros(2)),
    ):
        with pytest.raises(ValueError):
            fit_nonnegative_sum(parts, wanted)

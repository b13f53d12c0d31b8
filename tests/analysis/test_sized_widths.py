"""Half-widths by size: they follow noise that changes with size, and cover on the average."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from perfdb_git.analysis.conformal import conformal_quantile
from perfdb_git.analysis.sized_widths import SizedWidths, fit_sized_widths, tells_sizes_apart

Floats = NDArray[np.float64]


def spread(size: Floats) -> Floats:
    """Noise that falls from 30 % at size 1 to 1 % at size 10,000."""
    return np.asarray(0.3 * size ** (-math.log(30) / math.log(1e4)))


def drawn(seed: int, count: int = 400) -> tuple[Floats, Floats]:
    draws = np.random.Generator(np.random.PCG64(seed))
    size = np.exp(draws.uniform(0, math.log(1e4), count))
    return size, draws.normal(size=count) * spread(size)


def coverage_by_third(width_of: object, seed: int) -> Floats:
    size, error = drawn(1000 + seed, 600)
    widths = width_of(size)  # type: ignore[operator]
    third = np.digitize(np.log(size) / math.log(1e4), (1 / 3, 2 / 3))
    return np.array([(np.abs(error) <= widths)[third == place].mean() for place in range(3)])


def test_widths_follow_noise_that_changes_with_size() -> None:
    sized, single = np.zeros(3), np.zeros(3)
    for seed in range(20):
        size, error = drawn(seed)
        width = conformal_quantile(np.abs(error), 0.9)
        sized += coverage_by_third(fit_sized_widths(size, error, 0.9).predict, seed) / 20
        single += coverage_by_third(lambda some, width=width: np.full(len(some), width), seed) / 20
    assert single[0] < 0.75 and single[2] > 0.99
    assert (sized > 0.89).all() and (sized < 0.95).all()
    size, error = drawn(0)
    found = fit_sized_widths(size, error, 0.9).predict([2.0, 100.0, 5e3])
    expected = 1.645 * spread(np.array([2.0, 100.0, 5e3]))
    assert found[0] > 5 * found[2]
    assert np.abs(np.log(found / expected)).max() < 0.7


def test_most_calibrations_keep_the_level_and_not_only_their_average() -> None:
    kept = 0
    for seed in range(60):
        size, error = drawn(seed, 210)
        widths = fit_sized_widths(size, error, 0.9)
        tested, errors = drawn(5000 + seed, 4000)
        kept += bool((np.abs(errors) <= widths.predict(tested)).mean() >= 0.895)
    assert kept >= 45


def test_repeats_and_order_change_nothing() -> None:
    size, error = drawn(3, 120)
    repeated, errors = np.repeat(np.round(size) + 1, 3), np.repeat(error, 3)
    order = np.random.Generator(np.random.PCG64(0)).permutation(len(errors))
    first = fit_sized_widths(repeated, errors, 0.9)
    again = fit_sized_widths(repeated[order], -errors[order], 0.9)
    assert np.array_equal(first.sizes, again.sizes)
    assert np.array_equal(first.widths, again.widths)
    assert len(first.sizes) <= 66


def test_ends_of_the_domain_have_the_width_of_their_neighbour() -> None:
    size, error = drawn(4)
    plain = fit_sized_widths(size, error, 0.9)
    ended = fit_sized_widths(size, error, 0.9, ends=(0.5, 2e4))
    assert ended.sizes[[0, -1]].tolist() == [0.5, 2e4]
    assert ended.predict([0.5, 2e4]) == pytest.approx(plain.widths[[0, -1]], rel=1e-12)
    assert np.allclose(ended.predict(size), plain.predict(size))


def test_beyond_the_ends_each_side_adds_at_its_own_rate() -> None:
    widths = SizedWidths(
        level=0.9,
        sizes=np.array([4.0, 64.0]),
        widths=np.array([0.4, 0.1]),
        rate_below=0.2,
    )
    found = widths.predict([1.0, 2.0, 4.0, 16.0, 64.0, 128.0, 0.0])
    assert found[:5] == pytest.approx([0.4 + 0.2 * math.sqrt(2), 0.6, 0.4, 0.2, 0.1])
    assert np.isnan(found[5:]).all()


def test_errors_of_nothing_leave_a_width_that_is_positive() -> None:
    found = fit_sized_widths(np.arange(1.0, 201), np.zeros(200), 0.9)
    assert (found.widths > 0).all() and (found.widths < 1e-6).all()


def test_few_sizes_or_wrong_numbers_are_refused() -> None:
    assert not tells_sizes_apart(np.arange(99))
    assert not tells_sizes_apart(np.repeat(np.arange(49), 10))
    assert tells_sizes_apart(np.repeat(np.arange(50), 2))
    for size, error, message in (
        (np.arange(1.0, 90), np.ones(89), "do not tell"),
        (np.arange(1.0, 201), np.ones(199), "shape"),
        (np.arange(0.0, 200), np.ones(200), "positive"),
        (np.arange(1.0, 201), np.full(200, np.nan), "finite"),
    ):
        with pytest.raises(ValueError, match=message):
            fit_sized_widths(size, error, 0.9)

"""Jumps between knots: what growth explains is none, and intervals reach both sides of others."""

import math

import numpy as np
import pytest

from perfdb_git.analysis.curves import LogLogCurve
from perfdb_git.analysis.jumps import jumps_around


def curve(values: list[float], sizes: tuple[float, ...] = (16, 32, 64, 128)) -> LogLogCurve:
    return LogLogCurve(
        sizes=np.array(sizes, np.float64),
        values=np.array(values),
        lower_slope=0.0,
        upper_slope=1.0,
    )


def test_growth_up_to_proportion_is_no_jump() -> None:
    found = jumps_around(curve([1.0, 1.0, 2.0, 3.0]), [20.0, 40.0, 100.0])
    assert (found.excess <= 1e-12).all()
    assert found.covered == pytest.approx(0)
    widths = np.array([0.01, 0.02, 0.03])
    assert np.array_equal(found.widen(widths), widths)


def test_a_rise_above_proportion_and_a_fall_are_covered_on_both_sides() -> None:
    line = curve([1.0, 8.0, 4.0, 4.0])
    size = np.array([20.0, 60.0])
    found = jumps_around(line, size)
    assert found.excess == pytest.approx([math.log(4), math.log(2)])
    widths = found.widen(np.full(2, 0.05))
    value = line.predict(size)
    for place, (low, high) in enumerate(((1.0, 8.0), (4.0, 8.0))):
        assert value[place] * math.exp(-widths[place]) <= low * (1 + 1e-12)
        assert value[place] * math.exp(widths[place]) >= high * (1 - 1e-12)
    assert (found.covered <= np.minimum(found.excess, found.reach)).all()
    wide = np.full(2, 3.0)
    assert np.array_equal(found.widen(wide), wide)


def test_of_a_multiple_of_a_base_only_a_steeper_fall_is_a_jump() -> None:
    falling = curve([8.0, 4.0, 2.0, 0.5])
    assert (jumps_around(falling, [20.0, 40.0]).excess > 0.5).all()
    of_base = jumps_around(falling, [20.0, 40.0, 100.0], of_base=True).excess
    assert of_base == pytest.approx([0, 0, math.log(2)])


def test_at_knots_beyond_the_ends_and_on_one_knot_there_is_none() -> None:
    found = jumps_around(curve([1.0, 9.0, 1.0, 9.0]), [16.0, 32.0, 128.0, 8.0, 500.0])
    assert not found.excess.any() and not found.reach.any()
    alone = jumps_around(curve([1.0], (16,)), [3.0, 16.0, 30.0])
    assert not alone.excess.any()

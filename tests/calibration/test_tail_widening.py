"""How intervals widen beyond a range: learned by leaving tails out, each side on its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from perfdb_git.analysis.curves import fit_log_log_curve
from perfdb_git.analysis.sized_widths import SizedWidths
from perfdb_git.calibration.slice_fits import SliceRequest
from perfdb_git.calibration.tail_widening import learn_widening, widen_each_side

if TYPE_CHECKING:
    from perfdb_git.calibration.slice_fits import Columns, Predict

Floats = NDArray[np.float64]

WIDTHS = SizedWidths(
    level=0.9, sizes=np.array([1.0, 4096.0]), widths=np.array([0.3, 0.001]), rate_above=7.0
)


def request(latency: Floats, sizes: Floats) -> SliceRequest:
    return SliceRequest(
        name="slice",
        columns={"m": sizes},
        latency=latency,
        inputs=("m",),
        forms=("log-log-curve",),
        features=None,
        hardware=None,
        level=0.9,
        seed=0,
    )


def fit(columns: Columns, latency: Floats) -> Predict:
    curve = fit_log_log_curve(columns["m"], latency)
    return lambda some: (curve.predict(some["m"]), np.ones(len(some["m"])))


def bent(sizes: Floats) -> Floats:
    """A power law whose exponent changes at size 1,500."""
    return np.asarray(1e-6 * sizes**0.5 * np.maximum(1, sizes / 1500) ** 0.5)


def test_each_side_has_the_rate_of_its_own_tail() -> None:
    sizes = np.geomspace(1, 4096, 400)
    asked = request(bent(sizes), sizes)
    found = widen_each_side(asked, fit, WIDTHS)
    assert found.rate_below == 0
    assert found.rate_above is not None
    assert 0.1 < found.rate_above < 1
    widths = found.predict([5000.0, 8192.0])
    assert 0.05 < widths[0] < widths[1] < 1


def test_one_rate_for_both_sides_mixes_them() -> None:
    sizes = np.geomspace(1, 4096, 400)
    found = learn_widening(request(bent(sizes), sizes), fit, 0.01)
    assert found is not None
    assert found.rate > 5


def test_where_no_tail_can_be_cut_nothing_is_known() -> None:
    near = np.linspace(1000, 1100, 100)
    asked = request(bent(near), near)
    found = widen_each_side(asked, fit, WIDTHS)
    assert (found.rate_below, found.rate_above) == (None, None)
    assert learn_widening(asked, fit, 0.01) is None
    with_zero = np.linspace(0, 400, 100)
    zero = widen_each_side(request(bent(with_zero + 1), with_zero), fit, WIDTHS)
    assert (zero.rate_below, zero.rate_above) == (None, None)


def test_lower_octaves_of_equal_steps_are_cut_deeper() -> None:
    """Steps of 8 from 8 on: three octaves hold eight sizes, too few for a share of nine in ten."""
    steps = np.arange(8.0, 8 * 261, 8)
    found = widen_each_side(request(bent(steps), steps), fit, WIDTHS)
    assert found.rate_below is not None

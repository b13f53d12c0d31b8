"""Held-out reports: errors worked out by hand, groups, refusals, coverage."""

import math
from typing import Any

import numpy as np
import pytest

from perfdb_git.calibration.reports import Predictions, held_out_report, size_decades
from perfdb_git.calibration.splits import lines_digest


def report(groupings: Any = None, **changes: Any) -> Any:
    standard: dict[str, Any] = {
        "ids": ["b#0", "a#10", "a#9", "c#1"],
        "measured": np.array([1.0, 2.0, 4.0, 8.0]),
        "predicted": np.array([1.1, 1.8, np.nan, 8.4]),
    }
    predictions = Predictions(**(standard | changes))
    return held_out_report(predictions, response="latency", groupings=groupings)


def test_errors_by_hand() -> None:
    found = report()
    assert (found.held_out, found.refused) == (4, 1)
    assert found.records_digest == lines_digest(["a#10", "a#9", "b#0", "c#1"])
    errors = found.overall
    assert errors.n == 3
    assert errors.mape_pct == pytest.approx((10 + 10 + 5) / 3)
    assert errors.median_pct == pytest.approx(10)
    assert errors.p90_pct == pytest.approx(10)
    assert errors.max_pct == pytest.approx(10)
    assert errors.bias_pct == pytest.approx((10 - 10 + 5) / 3)
    assert errors.coverage is None and errors.median_half_width_pct is None
    mean = 11 / 3
    total = sum((value - mean) ** 2 for value in (1, 2, 8))
    assert errors.r_squared == pytest.approx(1 - (0.01 + 0.04 + 0.16) / total)
    assert found.interpolated is None and found.extrapolated is None


def test_coverage_and_the_two_parts() -> None:
    found = report(
        lower=np.array([0.9, 1.9, np.nan, 8.0]),
        upper=np.array([1.3, 2.1, np.nan, 8.8]),
        level=0.9,
        extrapolated=np.array([False, False, True, True]),
    )
    assert found.level == 0.9
    assert found.overall.coverage == 1
    assert found.overall.median_half_width_pct == pytest.approx(0.1 / 1.8 * 100)
    assert (found.interpolated.n, found.extrapolated.n) == (2, 1)
    assert found.extrapolated.max_pct == pytest.approx(5)
    assert found.extrapolated.r_squared is None


def test_groups_are_sorted_and_skip_what_was_refused() -> None:
    found = report(groupings={"dtype": ["b", "a", "a", "b"], "decade": ["1e1", "1e0", "2", "1e0"]})
    assert [(g.by, g.value, g.errors.n) for g in found.groups] == [
        ("dtype", "a", 1),
        ("dtype", "b", 2),
        ("decade", "1e0", 2),
        ("decade", "1e1", 1),
    ]


def test_nothing_answered() -> None:
    found = report(predicted=np.full(4, np.nan))
    assert found.refused == 4 and found.overall is None and found.groups == ()


def test_bad_values_are_refused() -> None:
    for changes in (
        {"measured": np.array([0.0, 1, 1, 1])},
        {"predicted": np.array([math.inf, 1, 1, 1])},
        {"lower": np.array([1, 1, 1, np.nan]), "upper": np.ones(4)},
    ):
        with pytest.raises(ValueError):
            report(**changes)


def test_decades() -> None:
    sizes = np.array([0, 1, 9, 10, 999.99, 1000, 0.5])
    assert size_decades(sizes) == ["0", "1e0", "1e0", "1e1", "1e2", "1e3", "1e-1"]

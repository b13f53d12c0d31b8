"""Verdicts from test, interval and threshold, at their edges."""

import pytest

from perfdb_git.comparison.results import Ratio
from perfdb_git.comparison.verdicts import judge


def ratio(lower: float | None, upper: float | None) -> Ratio:
    return Ratio(value=1.0, lower=lower, upper=upper, level=0.95)


@pytest.mark.parametrize(
    ("lower", "upper", "adjusted", "verdict", "code"),
    [
        (1.03, 1.10, 0.01, "worse", "beyond-threshold"),
        (0.80, 0.95, 0.01, "better", "beyond-threshold"),
        (0.99, 1.01, 0.50, "same", "within-threshold"),
        # Sure, and too small to matter.
        (1.005, 1.015, 0.0001, "same", "within-threshold"),
        (1.01, 1.10, 0.01, "cannot-tell", "interval-across-threshold"),
        (0.95, 0.99, 0.01, "cannot-tell", "interval-across-threshold"),
        (0.90, 1.10, 0.50, "cannot-tell", "interval-across-one"),
        (1.03, 1.10, 0.06, "cannot-tell", "not-significant-among-many"),
    ],
)
def test_judge(lower: float, upper: float, adjusted: float, verdict: str, code: str) -> None:
    found = judge(ratio(lower, upper), adjusted, p_value=0.001, alpha=0.05, threshold=0.02)
    assert (found.verdict, found.code) == (verdict, code)


def test_an_interval_that_the_test_does_not_back_is_no_verdict() -> None:
    found = judge(ratio(1.03, 1.1), 0.2, p_value=0.2, alpha=0.05, threshold=0.02)
    assert (found.verdict, found.code) == ("cannot-tell", "not-significant")


def test_a_verdict_needs_an_interval() -> None:
    with pytest.raises(ValueError, match="interval"):
        judge(ratio(None, None), 0.01, p_value=0.01, alpha=0.05, threshold=0.02)


def test_both_directions_are_alike() -> None:
    seen = ratio(1.03, 1.1)
    back = seen.inverted().inverted()
    assert (back.lower, back.upper) == pytest.approx((1.03, 1.1))
    assert (
        judge(seen.inverted(), 0.01, p_value=0.01, alpha=0.05, threshold=0.02).verdict == "better"
    )

"""Intervals against scipy, hand-worked cases and their own coverage."""

import math
import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

from perfdb_git.analysis.intervals import (
    grouped_prediction,
    log_variance,
    order_statistics_prediction,
    summary_prediction,
)
from perfdb_git.analysis.student_t import regularized_incomplete_beta, student_t_quantile


@pytest.mark.parametrize("degrees", [1, 2, 3, 4, 7, 19, 100, 5000])
@pytest.mark.parametrize("probability", [0.001, 0.05, 0.4, 0.5, 0.75, 0.95, 0.975, 0.9995])
def test_t_quantile_agrees_with_scipy(probability: float, degrees: int) -> None:
    expected = stats.t.ppf(probability, degrees)
    assert student_t_quantile(probability, degrees) == pytest.approx(expected, rel=1e-9, abs=1e-12)


@given(st.floats(0.5, 200), st.floats(0.5, 200), st.floats(0, 1))
def test_incomplete_beta_agrees_with_scipy(a: float, b: float, x: float) -> None:
    assert regularized_incomplete_beta(a, b, x) == pytest.approx(
        special.betainc(a, b, x), rel=1e-9, abs=1e-13
    )


@pytest.mark.parametrize(("probability", "degrees"), [(0, 3), (1, 3), (1.5, 3), (0.9, 0)])
def test_t_quantile_outside_its_range_is_an_error(probability: float, degrees: int) -> None:
    with pytest.raises(ValueError, match="no t quantile"):
        student_t_quantile(probability, degrees)


def test_order_statistics_reach_the_level_as_soon_as_the_samples_allow() -> None:
    """[x1, x19] of 19 samples covers exactly 18/20."""
    samples = list(range(1, 20))
    interval = order_statistics_prediction(samples, 0.9)
    assert interval is not None
    assert (interval.lower, interval.upper, interval.level) == (1, 19, 0.9)
    more = order_statistics_prediction(list(range(1, 40)), 0.9)
    assert more is not None
    assert (more.lower, more.upper, more.level) == (2, 38, 0.9)


def test_order_statistics_of_few_samples_state_the_coverage_they_have() -> None:
    """Published vector V2: the range of 8 samples covers 7/9."""
    samples = [100, 105, 98, 110, 102, 125, 101, 99]
    interval = order_statistics_prediction(samples, 0.9)
    assert interval is not None
    assert (interval.lower, interval.upper) == (98, 125)
    assert interval.level == pytest.approx(7 / 9)
    assert order_statistics_prediction([3.0], 0.9) is None


def test_grouped_prediction_reproduces_the_log_normal_vector() -> None:
    """V2 again: next sample within [85.5352, 128.1367] at 95 %, around the geometric mean."""
    samples = [100, 105, 98, 110, 102, 125, 101, 99]
    interval = grouped_prediction(samples, 0.0, 0.95, sample_count=8, quantum=None, rule="test")
    assert interval is not None
    geometric = statistics.geometric_mean(samples)
    shift = statistics.median(samples) / geometric
    assert interval.lower / shift == pytest.approx(85.5352, rel=1e-5)
    assert interval.upper / shift == pytest.approx(128.1367, rel=1e-5)


def test_summary_prediction_is_symmetric_in_logs_and_widened_by_the_timer() -> None:
    variance = log_variance(0.05, 1.0)
    interval = summary_prediction(1.0, variance, 20, 0.9, quantum=None)
    assert interval is not None
    reach = stats.t.ppf(0.95, 19) * math.sqrt(math.log1p(0.0025) * (1 + 1 / 20))
    assert interval.upper == pytest.approx(math.exp(reach))
    assert interval.lower == pytest.approx(math.exp(-reach))
    coarse = summary_prediction(1.0, 0.0, 20, 0.9, quantum=0.5)
    assert coarse is not None
    assert (coarse.lower, coarse.upper) == (0.75, 1.25)
    assert summary_prediction(1.0, 0.0, 1, 0.9, quantum=0.5) is None


def test_two_sessions_that_are_far_apart_give_a_wide_finite_interval() -> None:
    interval = grouped_prediction(
        [1e-9, 1e9], 0.0, 0.9, sample_count=None, quantum=None, rule="test"
    )
    assert interval is not None
    assert math.isfinite(interval.upper)
    assert interval.lower >= 0


def test_log_normal_intervals_cover_what_they_claim() -> None:
    """A further run falls inside a 90 % interval in about 90 % of simulated benchmarks."""
    draw = random.Random(7)
    trials, hits = 3000, 0
    for _ in range(trials):
        runs = [draw.lognormvariate(0, 0.2) for _ in range(12)]
        variance = log_variance(statistics.stdev(runs), statistics.fmean(runs))
        interval = summary_prediction(statistics.median(runs), variance, 12, 0.9, quantum=None)
        assert interval is not None
        hits += interval.lower <= draw.lognormvariate(0, 0.2) <= interval.upper
    assert 0.87 <= hits / trials <= 0.93

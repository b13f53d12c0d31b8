"""Flags: what they flag, what they let be, and that no sample is lost."""

import random

import pytest

from perfdb_git.analysis.clock_flags import throttling
from perfdb_git.analysis.order_statistics import median_interval
from perfdb_git.analysis.sample_flags import modes, outliers, sample_flags, trend

COLD_FIRST = [0.5926, 0.2075, 0.2101, 0.2099, 0.2102, 0.2098, 0.2103, 0.2107, 0.2096, 0.2157]
# One median for each of 8 processes: memory layout puts each in one of two modes.
PROCESSES = [0.040193, 0.040338, 0.084942, 0.040119, 0.084947, 0.039773, 0.040213, 0.084421]


def throttled_run() -> tuple[list[float], list[float], list[str]]:
    """40 samples of 100 us; from the 20th on a power cap pulls the clock down."""
    draw = random.Random(4)
    clocks = [1965.0] * 20 + [1946.0 - 19 * step for step in range(16)] + [1600.0] * 4
    reasons = ["none"] * 20 + ["sw_power_cap"] * 20
    samples = [100 * 1965 / clock + draw.gauss(0, 0.1) for clock in clocks]
    return samples, clocks, reasons


def test_a_cold_first_sample_hints_at_a_missing_warm_up() -> None:
    flags = sample_flags(COLD_FIRST)
    assert 0 in flags.outliers.indices
    interval = median_interval(COLD_FIRST, 0.95)
    assert interval is not None
    assert (interval.lower, interval.upper) == (0.2096, 0.2157)
    assert interval.level == pytest.approx(0.978516, abs=1e-6)
    alone = sample_flags([0.5926, 0.2095, 0.2101, 0.2099, 0.2102, 0.2098, 0.2103, 0.2107])
    assert alone.outliers.first_only
    assert alone.texts() == ("only the first sample is an outlier: was there a warm-up?",)


def test_equal_samples_have_no_outliers_and_say_so() -> None:
    found = outliers([1.0, 1.0, 1.0, 1.0, 9.0])
    assert (found.indices, found.mad) == ((), 0)


def test_a_throttled_run_is_not_stationary() -> None:
    samples, clocks, reasons = throttled_run()
    flags = sample_flags(samples, clocks=clocks, reasons=reasons)
    assert flags.throttling is not None
    assert flags.throttling.first == 20
    assert (flags.throttling.highest_clock, flags.throttling.lowest_clock) == (1965, 1600)
    assert flags.trend is not None
    assert flags.trend.correlation > 0.5
    assert not flags.stationary
    assert flags.texts("us", "MHz")[0] == ("throttled from sample 20 on: clock 1965 to 1600 MHz")
    # Either log alone shows it.
    assert throttling(clocks) == flags.throttling
    by_reason = throttling(None, reasons)
    assert by_reason is not None
    assert (by_reason.first, by_reason.lowest_clock) == (20, None)
    assert sample_flags(samples[:20], clocks=clocks[:20], reasons=reasons[:20]).stationary


@pytest.mark.parametrize(
    ("clocks", "reasons"),
    [
        ([1965.0, 1950.0, 1965.0, 1950.0], None),
        ([210.0, 1200.0, 1965.0, 1965.0, 1965.0], None),
        ([1965.0] * 3, ["none", "GPU_Idle", "Not Active"]),
        (None, ["0x0000000000000000", "", "applications_clocks_setting"]),
    ],
    ids=["one step of the clock", "waking up", "idle", "no reason"],
)
def test_what_is_no_throttling(clocks: list[float] | None, reasons: list[str] | None) -> None:
    assert throttling(clocks, reasons) is None


def test_a_reason_mask_counts_as_stated() -> None:
    found = throttling(None, ["0x0", "0x0000000000000004"])
    assert found is not None
    assert found.first == 1


def test_processes_in_two_modes() -> None:
    found = modes(PROCESSES)
    assert found is not None
    assert (found.lower_count, found.upper_count) == (5, 3)
    assert found.lower == pytest.approx(0.040, rel=0.02)
    assert found.upper == pytest.approx(0.085, rel=0.02)
    interval = median_interval(PROCESSES, 0.95)
    assert interval is not None
    assert (interval.lower, interval.upper) == (0.039773, 0.084947)
    assert interval.level == 0.9921875


@pytest.mark.parametrize(
    "samples",
    [
        [10.2, 10.4, 10.1, 10.3, 10.2, 12.9, 10.5, 10.3, 10.4, 10.2, 10.6],
        [1.0, 1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 2.0],
        [1.0, 1.0, 1.0, 1.0, 1.0, 1.0],
        [1.0, 1.1, 5.0],
    ],
    ids=["an outlier", "two ticks of a timer", "equal", "too few"],
)
def test_what_is_no_second_mode(samples: list[float]) -> None:
    assert modes(samples) is None


def test_noise_raises_few_flags() -> None:
    """One kind of sample, drawn at random: at most the stated shares are flagged."""
    draw = random.Random(9)
    trending = bimodal = 0
    for _ in range(1000):
        samples = [draw.lognormvariate(0, 0.05) for _ in range(40)]
        trending += trend(samples) is not None
        bimodal += modes(samples) is not None
    assert trending <= 25
    assert bimodal <= 60


def test_a_rise_and_a_fall_are_trends() -> None:
    rising = trend([1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7])
    assert rising is not None
    assert (rising.correlation, rising.p_value) == (1, 0)
    falling = trend([1.7, 1.6, 1.5, 1.4, 1.45, 1.2, 1.1, 1.0])
    assert falling is not None
    assert falling.correlation < -0.9
    assert trend([1.0] * 20) is None
    assert trend([1.0, 2.0, 3.0]) is None

"""The project's statistics against fixed vectors, and the exact tests against enumeration."""

import itertools
import json
import math
import random
import statistics
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from perfdb_git.analysis.bootstrap import bootstrap_interval, bootstrap_median_counts
from perfdb_git.analysis.intervals import order_statistics_prediction
from perfdb_git.analysis.mean_intervals import (
    geometric_mean_interval,
    log_normal_prediction,
    mean_interval,
    two_level_mean,
)
from perfdb_git.analysis.multiple_tests import benjamini_hochberg, holm
from perfdb_git.analysis.order_statistics import (
    binomial_cdf,
    median_interval,
    quantile_interval,
    quantile_ranks,
    samples_for_upper_bound,
)
from perfdb_git.analysis.rank_tests import (
    EXACT_PAIRS,
    hodges_lehmann_ratio,
    mann_whitney,
    smallest_p_value,
)
from perfdb_git.analysis.sample_flags import modified_z_scores, outliers
from perfdb_git.analysis.summary_ratio import Summary, summary_ratio

VECTORS: dict[str, Any] = json.loads(
    Path(__file__).with_name("statistics_vectors.json").read_text(encoding="utf-8")
)
V1 = VECTORS["V1_median_interval"]
V2 = VECTORS["V2_lognormal"]
V3 = VECTORS["V3_compare"]
V4 = VECTORS["V4_two_level"]
V5 = VECTORS["V5_exact_bootstrap_median"]


def bounds(interval: Any) -> list[float]:
    assert interval is not None
    return [interval.lower, interval.upper]


def test_v1_median_interval() -> None:
    interval = median_interval(V1["data"], V1["conf"])
    assert interval is not None
    assert (interval.kind, interval.sample_count) == ("confidence", V1["n"])
    assert interval.quantiles == {"0.5": V1["median"]}
    assert bounds(interval) == V1["interval"]
    assert interval.level == pytest.approx(V1["coverage"], rel=1e-12)


@pytest.mark.parametrize(("count", "expected"), V1["order_stats_by_n"].items())
def test_v1_ranks_by_number_of_samples(count: str, expected: list[float] | None) -> None:
    ranks = quantile_ranks(int(count), 0.5, 0.95)
    if expected is None:
        assert ranks is None
        return
    assert ranks is not None
    assert [ranks.lower, ranks.upper] == expected[:2]
    assert ranks.coverage == pytest.approx(expected[2], rel=1e-9)


def test_v1_outliers_are_flagged_and_kept() -> None:
    found = outliers(V1["data"])
    assert [V1["data"][place] for place in found.indices] == V1["flagged_outliers_modz_gt_3.5"]
    assert found.mad == pytest.approx(V1["mad"])
    scores = modified_z_scores(V1["data"])
    assert scores is not None
    assert len(scores) == V1["kept"]
    assert max(scores) == pytest.approx(17.537, abs=1e-3)


def test_v1_mean_interval() -> None:
    assert statistics.fmean(V1["data"]) == pytest.approx(V1["mean"], rel=1e-12)
    assert statistics.stdev(V1["data"]) / V1["mean"] == pytest.approx(V1["cv"], rel=1e-9)
    interval = mean_interval(V1["data"], 0.95)
    assert bounds(interval) == pytest.approx(V1["mean_t_interval"], rel=1e-6)


@pytest.mark.parametrize(("name", "count"), V1["min_n_upper_bound_95"].items())
def test_v1_samples_that_a_percentile_needs(name: str, count: int) -> None:
    probability = float(name.removeprefix("p")) / 100
    assert samples_for_upper_bound(probability, 0.95) == count
    assert 1 - probability ** (count - 1) < 0.95 <= 1 - probability**count


def test_v2_log_normal() -> None:
    interval = geometric_mean_interval(V2["data"], 0.95)
    assert interval is not None
    assert interval.kind == "confidence"
    assert bounds(interval) == pytest.approx(V2["ci95_geometric_mean"], rel=1e-6)
    following = log_normal_prediction(V2["data"], 0.95)
    assert following is not None
    assert following.kind == "prediction"
    assert bounds(following) == pytest.approx(V2["prediction95_next"], rel=1e-6)
    free = order_statistics_prediction(V2["data"], 0.95)
    assert free is not None
    assert bounds(free) == V2["nonparametric_prediction_minmax"]["interval"]
    assert free.level == pytest.approx(V2["nonparametric_prediction_minmax"]["coverage"])


def test_v3_compare() -> None:
    test = mann_whitney(V3["base"], V3["new"])
    assert (test.u, test.method) == (V3["U"], "exact")
    assert test.p_value == pytest.approx(V3["p_two_sided_exact"], rel=1e-12)
    found = hodges_lehmann_ratio(V3["base"], V3["new"], 0.95)
    assert found.ratio == pytest.approx(V3["hodges_lehmann_ratio"], rel=1e-12)
    assert found.ranks == tuple(V3["ratio_ci_order_stats_1based_of_36"])
    assert [found.lower, found.upper] == pytest.approx(V3["ratio_ci"], rel=1e-12)
    assert found.coverage == pytest.approx(V3["coverage"], rel=1e-12)


@pytest.mark.parametrize(("count", "p_value"), V3["min_p_by_n"].items())
def test_v3_smallest_p_value(count: str, p_value: float) -> None:
    size = int(count)
    assert smallest_p_value(size, size) == pytest.approx(p_value, rel=1e-12)
    apart = mann_whitney([float(i) for i in range(size)], [float(100 + i) for i in range(size)])
    assert apart.p_value == pytest.approx(p_value, rel=1e-12)


def test_three_samples_a_side_have_no_interval_at_95_percent() -> None:
    found = hodges_lehmann_ratio([1.0, 1.1, 1.2], [2.0, 2.1, 2.2], 0.95)
    assert (found.lower, found.upper, found.ranks, found.coverage) == (None, None, None, None)


def test_v4_two_levels() -> None:
    found = two_level_mean(V4["runs"], 0.95)
    assert found is not None
    assert found.mean == pytest.approx(V4["grand_mean"], rel=1e-12)
    assert bounds(found.interval) == pytest.approx(V4["ci95_by_runs"], rel=1e-6)
    assert found.within_variance == pytest.approx(V4["within_run_variance"], rel=1e-6)
    assert found.between_variance == pytest.approx(V4["between_run_variance"], rel=1e-6)
    naive = mean_interval([value for run in V4["runs"] for value in run], 0.95)
    assert bounds(naive) == pytest.approx(V4["naive_ci95_all_values"], rel=1e-6)
    assert found.interval.sample_count == len(V4["runs"])


def test_v5_exact_bootstrap() -> None:
    counts = bootstrap_median_counts(len(V5["data"]))
    found = {str(value): count for value, count in zip(V5["data"], counts, strict=True)}
    assert found == V5["distribution_over_27_resamples"]
    with pytest.raises(ValueError, match="even"):
        bootstrap_median_counts(4)


def test_bootstrap_resamples_runs_and_repeats_itself() -> None:
    draw = random.Random(3)
    levels = [draw.gauss(10, 1) for _ in range(12)]
    runs = [[level + draw.gauss(0, 0.01) for _ in range(20)] for level in levels]
    interval = bootstrap_interval(runs, statistics.fmean, 0.95, seed=1)
    assert interval == bootstrap_interval(runs, statistics.fmean, 0.95, seed=1)
    assert interval is not None
    over_runs = mean_interval([statistics.fmean(run) for run in runs], 0.95)
    assert over_runs is not None
    # As wide as the runs differ, not as the 240 samples would have it.
    width, honest = interval.upper - interval.lower, over_runs.upper - over_runs.lower
    assert 0.6 * honest < width < 1.2 * honest
    assert bootstrap_interval(runs[:9], statistics.fmean, 0.95, seed=1) is None
    with pytest.raises(ValueError, match="too few"):
        bootstrap_interval(runs, statistics.fmean, 0.95, seed=1, draws=100)


@given(st.integers(0, 40), st.integers(0, 40), st.floats(0.01, 0.99))
def test_binomial_cdf_agrees_with_scipy(successes: int, trials: int, probability: float) -> None:
    expected = stats.binom.cdf(successes, trials, probability)
    assert binomial_cdf(successes, trials, probability) == pytest.approx(expected, abs=1e-12)


def test_quantile_interval_states_what_it_covers() -> None:
    samples = [float(value) for value in range(200)]
    interval = quantile_interval(samples, 0.9, 0.95)
    ranks = quantile_ranks(200, 0.9, 0.95)
    assert interval is not None
    assert ranks is not None
    assert bounds(interval) == [ranks.lower - 1, ranks.upper - 1]
    law = stats.binom(200, 0.9)
    assert ranks.coverage == pytest.approx(law.cdf(ranks.upper - 1) - law.cdf(ranks.lower - 1))
    assert interval.level >= 0.95
    assert quantile_interval(samples[:20], 0.99, 0.95) is None


def enumerated(first: list[float], second: list[float]) -> float:
    """Two-sided p-value from every way to split the pooled midranks."""
    pooled = [*first, *second]
    ranks = stats.rankdata(pooled)
    middle = sum(ranks) * len(first) / len(pooled)
    distance = abs(sum(ranks[: len(first)]) - middle)
    splits = list(itertools.combinations(range(len(pooled)), len(first)))
    extreme = sum(abs(sum(ranks[i] for i in split) - middle) >= distance - 1e-9 for split in splits)
    return extreme / len(splits)


few_values = st.lists(st.integers(1, 5).map(float), min_size=1, max_size=5)


@given(few_values, few_values)
def test_mann_whitney_with_ties_agrees_with_enumeration(
    first: list[float], second: list[float]
) -> None:
    found = mann_whitney(first, second)
    assert found.p_value == pytest.approx(enumerated(first, second), rel=1e-12)
    pairs = [(a > b) + (a == b) / 2 for a in first for b in second]
    assert found.u == sum(pairs)


def test_mann_whitney_agrees_with_scipy_exact_and_beyond() -> None:
    draw = random.Random(5)
    for sizes in ((6, 9), (20, 20), (50, 50), (60, 60)):
        first = [draw.gauss(0, 1) for _ in range(sizes[0])]
        second = [draw.gauss(0.4, 1) for _ in range(sizes[1])]
        exact = sizes[0] * sizes[1] <= EXACT_PAIRS
        expected = stats.mannwhitneyu(first, second, method="exact" if exact else "asymptotic")
        found = mann_whitney(first, second)
        assert found.method == ("exact" if exact else "normal")
        assert found.u == expected.statistic
        assert found.p_value == pytest.approx(expected.pvalue, rel=1e-9)
    tied = [float(draw.randint(1, 9)) for _ in range(120)]
    other = [float(draw.randint(2, 10)) for _ in range(120)]
    expected = stats.mannwhitneyu(tied, other, method="asymptotic")
    assert mann_whitney(tied, other).p_value == pytest.approx(expected.pvalue, rel=1e-9)
    assert mann_whitney([1.0] * 100, [1.0] * 100).p_value == 1


def test_hodges_lehmann_of_many_samples_equals_the_direct_way() -> None:
    draw = random.Random(8)
    first = [draw.lognormvariate(0, 0.1) for _ in range(2100)]
    second = [draw.lognormvariate(0.05, 0.1) for _ in range(2000)]
    found = hodges_lehmann_ratio(first, second, 0.95)
    ratios = np.sort(np.divide.outer(second, first).ravel())
    assert found.ratio == pytest.approx(float(np.median(ratios)), rel=1e-12)
    assert found.ranks is not None
    assert found.lower == pytest.approx(ratios[found.ranks[0] - 1], rel=1e-12)
    assert found.upper == pytest.approx(ratios[found.ranks[1] - 1], rel=1e-12)
    assert found.coverage == pytest.approx(0.95, abs=1e-3)


def test_ratio_intervals_cover_what_they_claim() -> None:
    draw = random.Random(11)
    hits, trials = 0, 2000
    for _ in range(trials):
        first = [draw.lognormvariate(0, 0.2) for _ in range(6)]
        second = [1.3 * draw.lognormvariate(0, 0.2) for _ in range(6)]
        found = hodges_lehmann_ratio(first, second, 0.95)
        assert found.lower is not None
        assert found.upper is not None
        hits += found.lower <= 1.3 <= found.upper
    assert 0.945 <= hits / trials <= 0.972


def test_ratio_of_a_rate_is_the_inverse_of_that_of_its_time() -> None:
    base, new = V3["base"], V3["new"]
    time = hodges_lehmann_ratio(base, new, 0.95)
    rate = hodges_lehmann_ratio([1 / value for value in base], [1 / value for value in new], 0.95)
    assert rate.ratio == pytest.approx(1 / time.ratio, rel=1e-12)
    assert rate.upper == pytest.approx(1 / time.lower if time.lower else 0, rel=1e-12)


@pytest.mark.parametrize("bad", [[], [0.0, 1.0], [-1.0]])
def test_a_ratio_needs_positive_samples(bad: list[float]) -> None:
    with pytest.raises(ValueError, match="positive"):
        hodges_lehmann_ratio(bad, [1.0], 0.95)


def test_holm_agrees_with_the_definition() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx((0.03, 0.06, 0.06, 0.02))
    assert holm([0.5, 0.9]) == (1.0, 1.0)
    assert holm([]) == ()


def test_summaries_agree_with_welch_on_the_logarithms() -> None:
    draw = random.Random(2)
    first = [draw.lognormvariate(0, 0.1) for _ in range(15)]
    second = [draw.lognormvariate(0.1, 0.2) for _ in range(25)]
    logs = [[math.log(value) for value in group] for group in (first, second)]
    summaries = [
        Summary(
            center=math.exp(statistics.fmean(group)),
            is_median=False,
            variance=statistics.variance(group),
            count=len(group),
        )
        for group in logs
    ]
    found = summary_ratio(summaries[0], summaries[1], 0.95)
    expected = stats.ttest_ind(logs[1], logs[0], equal_var=False)
    assert found is not None
    # Degrees of freedom are rounded down, so the p-value is a little larger.
    assert expected.pvalue <= found.p_value <= expected.pvalue * 1.05
    low, high = expected.confidence_interval(0.95)
    assert [found.lower, found.upper] == pytest.approx([math.exp(low), math.exp(high)], rel=2e-3)


def test_a_recorded_spread_of_zero_proves_nothing() -> None:
    flat = Summary(center=1.0, is_median=True, variance=0.0, count=20)
    assert summary_ratio(flat, flat, 0.95) is None


def test_benjamini_hochberg_against_the_numbers_of_their_paper() -> None:
    """Fifteen p-values of section 3.2: the four smallest are rejected at a rate of 0.05."""
    p_values = [
        *(0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344),
        *(0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0),
    ]
    adjusted = benjamini_hochberg(p_values)
    assert adjusted[:4] == pytest.approx((0.0015, 0.003, 0.0095, 0.035625))
    assert [value < 0.05 for value in adjusted] == [True] * 4 + [False] * 11
    assert benjamini_hochberg(p_values[::-1]) == adjusted[::-1]
    assert benjamini_hochberg([]) == ()

"""From test, interval and practical threshold to one word."""

from __future__ import annotations

from dataclasses import dataclass

from perfdb_git.comparison.results import Ratio, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """A verdict with its reason, as a stable code and for people."""

    verdict: Verdict
    code: str
    reason: str


def judge(
    cost_ratio: Ratio, adjusted_p_value: float, *, p_value: float, alpha: float, threshold: float
) -> Judgement:
    """Judge a cost ratio: above 1 is worse, whichever way the metric is better.

    ``worse`` and ``better`` need both a significant test and an interval that lies wholly beyond
    the threshold; ``same`` needs an interval wholly within it. Everything else cannot be told.

    Parameters
    ----------
    cost_ratio : Ratio
        With bounds.
    adjusted_p_value : float
        After the correction for all tests of the comparison.
    p_value : float
        Before it.
    alpha, threshold : float
        Level of the test, and the practical threshold as a fraction: 0.02 means a factor of 1.02
        either way.

    Raises
    ------
    ValueError
        For a ratio without bounds.
    """
    lower, upper = cost_ratio.lower, cost_ratio.upper
    if lower is None or upper is None:
        raise ValueError("a verdict needs an interval")
    limit = 1 + threshold
    if 1 / limit <= lower and upper <= limit:
        return Judgement(
            verdict="same",
            code="within-threshold",
            reason=f"the interval lies within the threshold of {threshold:.3g}",
        )
    if lower > limit or upper < 1 / limit:
        return _beyond(lower > limit, adjusted_p_value, p_value, alpha)
    if lower > 1 or upper < 1:
        word = "worse" if lower > 1 else "better"
        return Judgement(
            verdict="cannot-tell",
            code="interval-across-threshold",
            reason=f"{word}, but the interval does not clear the threshold of {threshold:.3g}",
        )
    return Judgement(
        verdict="cannot-tell",
        code="interval-across-one",
        reason="the interval holds no change at all and reaches beyond the threshold",
    )


def _beyond(worse: bool, adjusted: float, p_value: float, alpha: float) -> Judgement:
    if adjusted < alpha:
        return Judgement(
            verdict="worse" if worse else "better",
            code="beyond-threshold",
            reason="the test is significant and the interval lies beyond the threshold",
        )
    if p_value < alpha:
        return Judgement(
            verdict="cannot-tell",
            code="not-significant-among-many",
            reason=f"p = {p_value:.2g} is not small enough among all the tests made "
            f"(corrected {adjusted:.2g})",
        )
    return Judgement(
        verdict="cannot-tell", code="not-significant", reason=f"the test has p = {p_value:.2g}"
    )

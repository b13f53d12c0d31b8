"""Student's t distribution without scipy, which a cold start cannot afford to import."""

from __future__ import annotations

import math
from functools import lru_cache

_TINY = 1e-300
_EPSILON = 1e-16


def _beta_continued_fraction(a: float, b: float, x: float) -> float:
    """Evaluate the continued fraction of the incomplete beta function by Lentz's method.

    Source: Press et al., Numerical Recipes, 3rd ed., section 6.4.
    """
    c, d = 1.0, 1 / _guard(1 - (a + b) * x / (a + 1))
    result = d
    for step in range(1, 500):
        even = step * (b - step) * x / ((a + 2 * step - 1) * (a + 2 * step))
        d = 1 / _guard(1 + even * d)
        c = _guard(1 + even / c)
        result *= d * c
        odd = -(a + step) * (a + b + step) * x / ((a + 2 * step) * (a + 2 * step + 1))
        d = 1 / _guard(1 + odd * d)
        c = _guard(1 + odd / c)
        factor = d * c
        result *= factor
        if abs(factor - 1) < _EPSILON:
            break
    return result


def _guard(value: float) -> float:
    return value if abs(value) > _TINY else _TINY


def regularized_incomplete_beta(a: float, b: float, x: float) -> float:
    """Return I_x(a, b), the regularised incomplete beta function, for 0 <= x <= 1."""
    if x <= 0 or x >= 1:
        return 0.0 if x <= 0 else 1.0
    log_front = (
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    )
    if x < (a + 1) / (a + b + 2):
        return math.exp(log_front) * _beta_continued_fraction(a, b, x) / a
    return 1 - math.exp(log_front) * _beta_continued_fraction(b, a, 1 - x) / b


@lru_cache(maxsize=256)
def student_t_quantile(probability: float, degrees: int) -> float:
    """Return the quantile of Student's t distribution.

    Parameters
    ----------
    probability : float
        Lower-tail probability, in (0, 1).
    degrees : int
        Degrees of freedom, at least 1.

    Returns
    -------
    float
        t with P(T <= t) = probability, within about 1e-10 relative.

    Raises
    ------
    ValueError
        Outside those ranges.
    """
    if not 0 < probability < 1 or degrees < 1:
        raise ValueError(f"no t quantile at probability {probability}, {degrees} degrees")
    if probability == 0.5:
        return 0.0
    if probability < 0.5:
        return -student_t_quantile(1 - probability, degrees)
    tail = 2 * (1 - probability)
    low, high = 0.0, 1.0
    while two_sided_tail(high, degrees) > tail:
        low, high = high, high * 2
    for _ in range(200):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        if two_sided_tail(middle, degrees) > tail:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def two_sided_tail(t: float, degrees: int) -> float:
    """Return P(abs(T) >= t) of Student's t distribution, for t of at least 0."""
    return regularized_incomplete_beta(degrees / 2, 0.5, degrees / (degrees + t * t))

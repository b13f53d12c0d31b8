"""P-values of many tests, corrected so that false alarms stay bounded: in any, or in share."""

from __future__ import annotations

from collections.abc import Sequence


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Adjust p-values by Holm's step-down method.

    Rejecting where the adjusted value is below alpha keeps the probability of any false rejection
    below alpha, whatever the tests have to do with each other.

    Parameters
    ----------
    p_values : sequence of float
        Shape ``(n_tests,)``, any order.

    Returns
    -------
    tuple of float
        In the same order.

    Notes
    -----
    Source: Holm, A simple sequentially rejective multiple test procedure, Scand. J. Statist. 6
    (1979).
    """
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    adjusted = [0.0] * len(p_values)
    largest = 0.0
    for position, place in enumerate(order):
        largest = max(largest, min(1.0, (len(p_values) - position) * p_values[place]))
        adjusted[place] = largest
    return tuple(adjusted)


def benjamini_hochberg(p_values: Sequence[float]) -> tuple[float, ...]:
    """Adjust p-values by the step-up method of Benjamini and Hochberg.

    Rejecting where the adjusted value is below a rate keeps the expected share of false ones among
    all rejections below it, for tests that are independent or positively dependent.

    Parameters
    ----------
    p_values : sequence of float
        Shape ``(n_tests,)``, any order.

    Returns
    -------
    tuple of float
        In the same order.

    Notes
    -----
    Source: Benjamini & Hochberg, Controlling the false discovery rate, J. R. Statist. Soc. B 57
    (1995).
    """
    count = len(p_values)
    order = sorted(range(count), key=p_values.__getitem__)
    adjusted = [0.0] * count
    smallest = 1.0
    for rank, place in reversed(list(enumerate(order, 1))):
        smallest = min(smallest, p_values[place] * count / rank)
        adjusted[place] = smallest
    return tuple(adjusted)

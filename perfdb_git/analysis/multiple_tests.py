"""P-values of many tests, corrected so that the chance of any false alarm stays bounded."""

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

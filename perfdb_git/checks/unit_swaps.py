"""Ratios that come from a unit and not from a measurement."""

from __future__ import annotations

import math

_SWAPS = {1: ("ms", "us"), 2: ("ms", "ns"), 3: ("s", "ns")}
"""By power of 10^3, units of time that differ by it."""

_CLOSENESS = 0.12
"""In decades: values that differ by a unit differ by noise besides, here up to 32 %."""


def swapped_units(ratio: float) -> str | None:
    """Say which units were probably swapped, or None where the ratio is no power of 10^3.

    Parameters
    ----------
    ratio : float
        Stated over expected value, above 0.
    """
    power = round(math.log10(ratio) / 3)
    swap = _SWAPS.get(abs(power))
    if swap is None or abs(math.log10(ratio) - 3 * power) > _CLOSENESS:
        return None
    stated, meant = swap if power > 0 else reversed(swap)
    return f"a factor of about 10^{3 * power}, as if {meant} were written as {stated}"

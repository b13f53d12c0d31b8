"""Which way a metric is better, from its name and its unit together; never a guess."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from perfdb_git.operations.units import METRIC_UNITS

Direction: TypeAlias = Literal["lower", "higher"]

METRIC_DIRECTIONS: Mapping[str, Direction] = {
    "latency": "lower",
    "energy": "lower",
    "bandwidth": "higher",
    "throughput": "higher",
}
"""Power, utilisation and temperature are good or bad by purpose, and stand in no direction."""

_RATE_UNITS = frozenset({"tokens/s", "ops/s", "B/s"})


def direction_of(metric: str, si_unit: str) -> Direction | None:
    """Return which values of a metric are better, or None where nothing says so.

    Parameters
    ----------
    metric : str
        Its name: one of the named metrics, or one that ends in such a name after ``_``, as
        ``bus_bandwidth`` does.
    si_unit : str
        Its SI unit, which has to be that of the name: a throughput in seconds has no direction.
        Throughput may be in tokens, operations or bytes a second.
    """
    for name, direction in METRIC_DIRECTIONS.items():
        if metric == name or metric.endswith(f"_{name}"):
            fits = si_unit == METRIC_UNITS[name] or (
                name == "throughput" and si_unit in _RATE_UNITS
            )
            return direction if fits else None
    return None

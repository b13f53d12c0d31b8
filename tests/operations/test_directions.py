"""Directions of metrics: stated by name and unit together, or not at all."""

import pytest

from perfdb_git.operations.directions import direction_of


@pytest.mark.parametrize(
    ("metric", "unit", "direction"),
    [
        ("latency", "s", "lower"),
        ("request_latency", "s", "lower"),
        ("energy", "J", "lower"),
        ("throughput", "tokens/s", "higher"),
        ("request_throughput", "ops/s", "higher"),
        ("bandwidth", "B/s", "higher"),
        ("bus_bandwidth", "B/s", "higher"),
        ("throughput", "s", None),
        ("latency", "tokens/s", None),
        ("power", "W", None),
        ("temperature", "K", None),
        ("utilization", "1", None),
        ("uptime", "s", None),
        ("superlatency", "s", None),
        ("cache_misses", "ops/s", None),
    ],
)
def test_direction_of(metric: str, unit: str, direction: str | None) -> None:
    assert direction_of(metric, unit) == direction

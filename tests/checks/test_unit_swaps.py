"""Ratios that look like a unit and not like a measurement."""

from __future__ import annotations

import pytest

from perfdb_git.checks.unit_swaps import swapped_units


@pytest.mark.parametrize(
    ("ratio", "said"),
    [
        (1000, "us were written as ms"),
        (1250, "us were written as ms"),
        (0.001, "ms were written as us"),
        (1e6, "ns were written as ms"),
        (1e-9, "s were written as ns"),
    ],
)
def test_powers_of_a_thousand(ratio: float, said: str) -> None:
    assert str(swapped_units(ratio)).endswith(said)


@pytest.mark.parametrize("ratio", [1, 1.7, 10, 60, 500, 3600, 1e12])
def test_other_ratios(ratio: float) -> None:
    assert swapped_units(ratio) is None

"""Numbers for people."""

from __future__ import annotations

import pytest

from perfdb_git.reports.quantities import counted, interval, number, percent, quantity, size


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.0028724, "s", "2.872 ms"),
        (0.0027, "s", "2.700 ms"),
        (1.5e-6, "s", "1.500 µs"),
        (9.9996e-4, "s", "1.000 ms"),
        (3e-10, "s", "0.3000 ns"),
        (1234.5, "s", "1234 s"),
        (123456.0, "s", "1.235e+05 s"),
        (0.0, "s", "0 s"),
        (2.039e12, "B/s", "2.039 TB/s"),
        (0.25, "J", "250.0 mJ"),
        (0.5, "1", "0.5000"),
        (1410.0, "MHz", "1410 MHz"),
    ],
)
def test_quantity(value: float, unit: str, text: str) -> None:
    assert quantity(value, unit) == text


def test_an_interval_has_the_scale_of_its_value() -> None:
    assert interval(0.0009, 0.0011, 0.001, "s") == "[0.9000, 1.100] ms"


def test_small_words() -> None:
    assert number(128.0) == "128.0"
    assert percent(0.9) == "90 %"
    assert percent(0.9469) == "94.7 %"
    assert [counted(1, "record"), counted(1234, "record")] == ["1 record", "1,234 records"]
    assert [size(12), size(12_345), size(5_000_000_000)] == ["12 B", "12.3 kB", "5.0 GB"]

"""Arrival times: exact, without drift, the same in any blocks."""

from __future__ import annotations

import random
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from perfdb_git.errors import InvalidInputError, UsageError
from perfdb_git.model.pipeline import Arrivals
from perfdb_git.simulation.arrivals import (
    ArrivalTimes,
    arrival_times,
    listed_arrivals,
    parse_arrivals,
)


def test_an_interval_is_rounded_for_each_job() -> None:
    generator = random.Random(1)
    for _ in range(200):
        digits = generator.randint(0, 12)
        interval = Fraction(generator.randint(0, 10**6), 10**digits)
        times = ArrivalTimes(n_jobs=500, interval=interval)
        first = generator.randrange(500)
        block = times.block(first, 500)
        assert block.dtype == np.int64
        assert block.tolist() == [round(interval * job) for job in range(first, 500)]


def test_a_long_decimal_does_not_overflow_on_the_way() -> None:
    interval = Fraction(Decimal("1.234567890123456789012"))
    times = ArrivalTimes(n_jobs=1000, interval=interval)
    assert times.block(990, 1000).tolist() == [round(interval * n) for n in range(990, 1000)]


def test_a_list_is_sorted_stably() -> None:
    times, order = arrival_times(
        Arrivals(kind="list", times_ns=tuple(map(Decimal, ("5", "0", "5", "2.5")))),
        4,
        document="d",
    )
    assert times.block(0, 4).tolist() == [0, 2500, 5000, 5000]
    assert order == [1, 3, 0, 2]


@pytest.mark.parametrize("times", [[], [3, 2], [-1, 4], [[1, 2]]])
def test_wrong_arrays_are_refused(times: list[int]) -> None:
    with pytest.raises(ValueError, match="ascend"):
        listed_arrivals(times)


def test_arrivals_beyond_the_grid_are_refused() -> None:
    for arrivals in (
        Arrivals(kind="list", times_ns=(Decimal("9.3e15"),)),
        Arrivals(kind="list", times_ns=(Decimal("1e300"),)),
        Arrivals(kind="interval", interval_ns=Decimal("1e15")),
    ):
        with pytest.raises(InvalidInputError) as caught:
            arrival_times(arrivals, 11, document="d")
        assert caught.value.code == "time-overflow"


@pytest.mark.parametrize(
    ("typed", "arrivals"),
    [
        ("batch", Arrivals()),
        ("interval:50ns", Arrivals(kind="interval", interval_ns=Decimal(50))),
        ("interval:1.5us", Arrivals(kind="interval", interval_ns=Decimal(1500))),
        ("interval:7", Arrivals(kind="interval", interval_ns=Decimal(7))),
        ("interval:2s", Arrivals(kind="interval", interval_ns=Decimal(2 * 10**9))),
        ("interval:3ps", Arrivals(kind="interval", interval_ns=Decimal("0.003"))),
        (
            "list:0, 5ns,1ms",
            Arrivals(kind="list", times_ns=(Decimal(0), Decimal(5), Decimal(10**6))),
        ),
        ("closed-loop:4", Arrivals(kind="closed-loop", window=4)),
    ],
)
def test_typed_arrivals(typed: str, arrivals: Arrivals) -> None:
    assert parse_arrivals(typed) == arrivals


@pytest.mark.parametrize(
    "typed",
    [
        "",
        "batch:1",
        "interval",
        "interval:",
        "interval:-1",
        "interval:NaN",
        "interval:1min",
        "list:",
        "list:1,,2",
        "closed-loop:0",
        "closed-loop:x",
        "poisson:3",
    ],
)
def test_wrong_typed_arrivals_say_the_forms(typed: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_arrivals(typed)
    assert caught.value.code == "arrivals"
    assert "closed-loop:WINDOW" in str(caught.value)

"""Percentiles of counted values equal those of a sort."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from perfdb_git.simulation import percentiles
from perfdb_git.simulation.percentiles import Distribution, nearest_rank
from perfdb_git.simulation.tick_model import exact_sum

FRACTIONS = [Fraction(0), Fraction(1, 2), Fraction(95, 100), Fraction(99, 100), Fraction(1)]


@pytest.mark.parametrize("kept", [1 << 18, 3], ids=["kept", "counted"])
def test_equal_to_a_sort(kept: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(percentiles, "_MAX_KEPT", kept)
    generator = np.random.default_rng(0)
    for case in range(60):
        count, largest = int(generator.integers(1, 3000)), 2 ** int(generator.integers(0, 63)) - 1
        if case % 3:
            values = generator.integers(0, largest, count, endpoint=True)
        else:
            values = largest - generator.integers(0, min(largest, 4), count, endpoint=True)
        blocks = [values[first : first + 700] for first in range(0, count, 700)]
        distribution = Distribution()
        for block in blocks:
            distribution.add(block)
        ordered = np.sort(values)
        expected = tuple(int(ordered[nearest_rank(part, count)]) for part in FRACTIONS)
        assert distribution.percentiles(FRACTIONS, lambda blocks=blocks: iter(blocks)) == expected
        assert (distribution.min, distribution.max) == (expected[0], expected[-1])
        assert distribution.total == sum(values.tolist())


def test_nearest_ranks() -> None:
    assert [nearest_rank(Fraction(1, 2), n) for n in (1, 2, 3, 4)] == [0, 0, 1, 1]
    assert [nearest_rank(Fraction(95, 100), n) for n in (1, 19, 20, 21, 100)] == [0, 18, 18, 19, 94]


def test_a_sum_beyond_int64() -> None:
    values = np.full(5, 2**62, dtype=np.int64)
    assert exact_sum(values) == 5 * 2**62
    assert exact_sum(np.array([], dtype=np.int64)) == 0

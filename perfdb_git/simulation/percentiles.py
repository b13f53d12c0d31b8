"""Exact percentiles of more values than memory should hold.

The first pass counts values in bins of nearly equal relative width; later passes, over the same
values made again, look into the few bins that hold the wanted ranks. The results are values that
occurred, never interpolated, and equal those of a sort.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from perfdb_git.simulation.tick_model import exact_sum

if TYPE_CHECKING:
    from perfdb_git.simulation.arrivals import Ticks

# Bits of a float64 that a bin drops: 12 of the 52 mantissa bits stay, so a bin spans 1/4096.
_DROPPED_BITS = 40
# That of 2**63: no int64 value has it.
_END_BIN = ((1023 + 63) << 52) >> _DROPPED_BITS
# From here on a float64 cannot hold every integer, but can hold those whose last 10 bits are 0.
_EXACT = 1 << 53
_MAX_KEPT = 1 << 18


def nearest_rank(fraction: Fraction, count: int) -> int:
    """Rank from 0 of a percentile: the least one with at least that fraction at or below it.

    Notes
    -----
    Source: the nearest-rank method; rank ceil(fraction * count), counted from 1.
    """
    return max(-(-fraction.numerator * count // fraction.denominator) - 1, 0)


def ranked(values: Ticks, ranks: Sequence[int]) -> tuple[int, ...]:
    """Values at ranks from 0 of an array that fits memory; the array is reordered."""
    values.partition(sorted(set(ranks)))
    return tuple(int(values[rank]) for rank in ranks)


class Distribution:
    """Counts, sum and extremes of values that come block by block."""

    def __init__(self) -> None:
        import numpy as np

        self.count = 0
        self.total = 0
        self.min = 0
        self.max = 0
        self._bins: Ticks = np.zeros(_END_BIN, dtype=np.int64)

    def add(self, values: Ticks) -> None:
        """Count values of at least 0, shape (n,), n >= 1."""
        import numpy as np

        low, high = int(values.min()), int(values.max())
        self.min = low if self.count == 0 else min(self.min, low)
        self.max = max(self.max, high)
        self.count += len(values)
        self.total += exact_sum(values)
        bins = bins_of(values)
        first = int(bins.min())
        counts = np.bincount(bins - first)
        self._bins[first : first + len(counts)] += counts

    def percentiles(
        self, fractions: Sequence[Fraction], again: Callable[[], Iterable[Ticks]]
    ) -> tuple[int, ...]:
        """Nearest-rank percentiles.

        Parameters
        ----------
        fractions : sequence of Fraction
            From 0 to 1.
        again : callable
            Gives the same blocks of values once more; called one or more times.
        """
        import numpy as np

        ends = np.cumsum(self._bins)
        searches = []
        for fraction in fractions:
            rank = nearest_rank(fraction, self.count)
            place = int(np.searchsorted(ends, rank, side="right"))
            inside = int(self._bins[place])
            low, high = _bounds(place)
            searches.append(
                _Search(
                    low=max(low, self.min),
                    high=min(high, self.max),
                    rank=rank - int(ends[place]) + inside,
                    count=inside,
                )
            )
        while any(search.low < search.high for search in searches):
            _pass(searches, again())
        return tuple(search.low for search in searches)


@dataclass(slots=True, kw_only=True)
class _Search:
    """The value of a rank among the ``count`` values from ``low`` to ``high``, both inclusive."""

    low: int
    high: int
    rank: int
    count: int

    def narrow(self, found: list[Ticks], counts: Ticks, shift: int) -> None:
        import numpy as np

        if found:
            (value,) = ranked(np.concatenate(found), [self.rank])
            self.low = self.high = value
            return
        ends = np.cumsum(counts)
        place = int(np.searchsorted(ends, self.rank, side="right"))
        self.count = int(counts[place])
        self.rank -= int(ends[place]) - self.count
        self.low += place << shift
        self.high = min(self.high, self.low + (1 << shift) - 1)


def _pass(searches: Sequence[_Search], blocks: Iterable[Ticks]) -> None:
    """Look at all values once, and narrow every search that is still open."""
    import numpy as np

    # Percentiles often fall into one bin: such searches share their columns.
    open_bins = {(s.low, s.high): s.count for s in searches if s.low < s.high}
    kept: dict[tuple[int, int], list[Ticks]] = {span: [] for span in open_bins}
    counts: dict[tuple[int, int], Ticks] = {}
    shifts = {(low, high): max((high - low).bit_length() - 18, 0) for low, high in open_bins}
    for span, shift in shifts.items():
        counts[span] = np.zeros(((span[1] - span[0]) >> shift) + 1, dtype=np.int64)
    for values in blocks:
        for (low, high), count in open_bins.items():
            inside = values[(values >= low) & (values <= high)]
            if count <= _MAX_KEPT:
                kept[low, high].append(inside)
            else:
                column = counts[low, high]
                places = (inside - low) >> shifts[low, high]
                column += np.bincount(places, minlength=len(column))
    for search in searches:
        span = (search.low, search.high)
        if span in open_bins:
            search.narrow(kept[span], counts[span], shifts[span])


def bins_of(values: Ticks) -> Ticks:
    """Bin of each value of at least 0, never descending in the value.

    Parameters
    ----------
    values : ndarray of int64, shape (n,), n >= 1
        Any values of at least 0.
    """
    import numpy as np

    if int(values.max()) >= _EXACT:
        values = np.where(values >= _EXACT, values & ~1023, values)
    bits: Ticks = values.astype(np.float64).view(np.int64)
    bins: Ticks = bits >> _DROPPED_BITS
    return bins


def _bounds(place: int) -> tuple[int, int]:
    """Least and largest integer of a bin, both inclusive."""
    import numpy as np

    edges = (np.array([place, place + 1], dtype=np.int64) << _DROPPED_BITS).view(np.float64)
    return math.ceil(edges[0]), math.ceil(edges[1]) - 1

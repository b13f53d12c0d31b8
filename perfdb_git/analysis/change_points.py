"""Where a series of results changed for good, in either direction, and not where it was noisy.

A change point is a place that splits the series into two parts of different level. Places are
found one at a time, the clearest first, and each part is searched again; at the end every place is
judged once more between its neighbours. The test uses ranks alone, so a single outlier is no
change, and permutations, so the search over all places raises no alarm by itself.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from perfdb_git.analysis.rank_tests import hodges_lehmann_ratio, midranks

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    FloatArray = NDArray[np.float64]

ALPHA = 0.01
THRESHOLD = 0.02
MIN_SEGMENT = 3
PERMUTATIONS = 9_999
SEED = 20_190_401

_AT_ONCE = 2_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangePoint:
    """A lasting change of level.

    Attributes
    ----------
    index : int
        From 0, of the first value at the new level.
    before, after : float
        Medians of the values up to the change and from it on, between its neighbouring changes.
    ratio : float
        Hodges-Lehmann ratio after / before.
    lower, upper : float or None
        Its 95 % confidence interval, None where the parts are too short for one.
    p_value : float
        Of the place itself between its neighbours, the search over all places included.
    """

    index: int
    before: float
    after: float
    ratio: float
    lower: float | None
    upper: float | None
    p_value: float

    @property
    def relative_change(self) -> float:
        """How much higher the new level is; negative where it is lower."""
        return self.ratio - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangePoints:
    """The changes of one series.

    Attributes
    ----------
    changes : tuple of ChangePoint
        In order.
    not_comparable : tuple of int
        Indices of values that were taken under another condition than the series and are too few
        to be judged among themselves.
    """

    changes: tuple[ChangePoint, ...]
    not_comparable: tuple[int, ...]


def fewest_values(alpha: float = ALPHA) -> int:
    """Return how many values a series needs for any change to be found in it.

    The clearest of all changes, no value of one half beyond any of the other, has that order in
    common with two of all ways to split the series in halves.

    Parameters
    ----------
    alpha : float
        Probability of an alarm in a series without a change, in (0, 1).
    """
    return next(
        count
        for count in itertools.count(2 * MIN_SEGMENT)
        if 2 / math.comb(count, count // 2) < alpha
    )


def find_change_points(
    values: Sequence[float],
    conditions: Sequence[str] | None = None,
    *,
    alpha: float = ALPHA,
    threshold: float = THRESHOLD,
    seed: int = SEED,
) -> ChangePoints:
    """Find lasting changes of level in a series, in order of commits or dates.

    Parameters
    ----------
    values : sequence of float
        Positive values, one a commit or date, shape ``(n_values,)``.
    conditions : sequence of str or None
        What has to be equal for two values to be comparable, such as the processor, shape
        ``(n_values,)``. Each condition is a series of its own: values of different conditions are
        never held against each other.
    alpha : float
        Probability of an alarm in a series without a change, in (0, 1).
    threshold : float
        Smallest change that matters, as a fraction; the same factor either way.
    seed : int
        Of the permutations; the same seed gives the same answer.

    Raises
    ------
    ValueError
        For values that are not positive, or another number of conditions.
    """
    if any(not value > 0 for value in values):
        raise ValueError("a ratio of levels needs positive values")
    labels = [""] * len(values) if conditions is None else list(conditions)
    if len(labels) != len(values):
        raise ValueError(f"{len(labels)} conditions for {len(values)} values")
    sizes = Counter(labels)
    main = max(sizes, key=sizes.__getitem__, default="")
    changes: list[ChangePoint] = []
    apart: list[int] = []
    for label, size in sizes.items():
        places = [place for place, found in enumerate(labels) if found == label]
        if size < 2 * MIN_SEGMENT and label != main:
            apart += places
            continue
        series = [values[place] for place in places]
        found = _series_changes(series, alpha=alpha, threshold=threshold, seed=seed)
        changes += [_at(change, places[change.index]) for change in found]
    changes.sort(key=lambda change: change.index)
    return ChangePoints(changes=tuple(changes), not_comparable=tuple(sorted(apart)))


def _at(change: ChangePoint, index: int) -> ChangePoint:
    return replace(change, index=index)


def _series_changes(
    values: Sequence[float], *, alpha: float, threshold: float, seed: int
) -> list[ChangePoint]:
    places = [0, *sorted(_split(values, 0, len(values), alpha, seed)), len(values)]
    while True:
        judged = [
            _judged(values, before, place, after, seed)
            for before, place, after in zip(places, places[1:], places[2:], strict=False)
        ]
        weak = [
            change
            for change in judged
            if change.p_value >= alpha or not _matters(change.ratio, threshold)
        ]
        if not weak:
            return judged
        # One at a time: without it, its neighbours may stand.
        worst = max(weak, key=lambda change: change.p_value)
        places.remove(worst.index)


def _matters(ratio: float, threshold: float) -> bool:
    return max(ratio, 1 / ratio) >= 1 + threshold


def _split(values: Sequence[float], start: int, stop: int, alpha: float, seed: int) -> list[int]:
    """Return the places that split values[start:stop], clearest first."""
    if stop - start < 2 * MIN_SEGMENT:
        return []
    size, p_value = _clearest(values[start:stop], seed)
    if p_value >= alpha:
        return []
    place = start + size
    return [
        place,
        *_split(values, start, place, alpha, seed),
        *_split(values, place, stop, alpha, seed),
    ]


def _judged(values: Sequence[float], before: int, place: int, after: int, seed: int) -> ChangePoint:
    first, second = values[before:place], values[place:after]
    _, p_value = _clearest(values[before:after], seed)
    found = hodges_lehmann_ratio(first, second, 0.95)
    return ChangePoint(
        index=place,
        before=statistics.median(first),
        after=statistics.median(second),
        ratio=found.ratio,
        lower=found.lower,
        upper=found.upper,
        p_value=p_value,
    )


def _clearest(values: Sequence[float], seed: int) -> tuple[int, float]:
    """Return the size of the first part of the clearest split, and its p-value.

    The statistic is the largest standardised rank sum over all splits; its distribution without
    any change comes from permutations of the same ranks.

    Notes
    -----
    Source: Pettitt, A non-parametric approach to the change-point problem, Appl. Statist. 28
    (1979), with the standardised statistic of James, James & Siegmund, Biometrika 74 (1987).
    """
    import numpy as np

    ranks = np.array(midranks(values))
    centred = ranks - ranks.mean()
    count = len(ranks)
    sizes = np.arange(MIN_SEGMENT, count - MIN_SEGMENT + 1)
    if len(sizes) == 0 or not centred.any():
        return 0, 1.0
    scale = np.sqrt(sizes * (count - sizes))
    observed = np.abs(np.cumsum(centred)[sizes - 1]) / scale
    height = float(observed.max())
    generator = np.random.Generator(np.random.PCG64(seed))
    batch = max(1, _AT_ONCE // count)
    above = 0
    for done in range(0, PERMUTATIONS, batch):
        rows = min(batch, PERMUTATIONS - done)
        shuffled = generator.permuted(np.tile(centred, (rows, 1)), axis=1)
        sums = np.abs(np.cumsum(shuffled, axis=1)[:, sizes - 1]) / scale
        # A hair below, so that the observed order counts as one of its own permutations.
        above += int((sums.max(axis=1) >= height * (1 - 1e-12)).sum())
    return int(sizes[int(observed.argmax())]), (above + 1) / (PERMUTATIONS + 1)

"""Steps of a model of several inputs, seen from its own answers close by.

Such a model holds no measured sizes to compare. Its answers at sizes an eighth of an octave below
and above stand for them, inside the domain and one input at a time: tile, alignment and protocol
edges between measured sizes may lie on either side of a query.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from perfdb_git.model.calibration import DomainRange

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]
    Booleans: TypeAlias = NDArray[np.bool_]
    Columns: TypeAlias = Mapping[str, NDArray[Any]]

_AROUND = 2.0 ** (1 / 8)
"""How far around a query of several inputs a step of the model is looked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbours:
    """Queries, then for each input the same queries with a smaller and with a larger size of it.

    Attributes
    ----------
    columns : Mapping[str, ndarray]
        Every input, ``((1 + 2 * n_inputs) * n,)``.
    low, high : Mapping[str, ndarray]
        The sizes, ``(n,)``; the query's own where it cannot be varied.
    varied : Mapping[str, ndarray]
        Where an input can be varied inside the domain, bool ``(n,)``.
    """

    columns: Columns
    low: Mapping[str, Floats]
    high: Mapping[str, Floats]
    varied: Mapping[str, Booleans]

    @property
    def count(self) -> int:
        """Rows of the columns."""
        return len(next(iter(self.columns.values())))


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """The largest step around each query; arrays are ``(n,)``.

    ``found`` says whether it exceeds the half-width, ``widths`` are half-widths that cover both
    sides, ``place`` is the input's place in ``names``, ``rise`` the change of ln(seconds).
    """

    names: tuple[str, ...]
    found: Booleans
    widths: Floats
    place: NDArray[np.intp]
    low: Floats
    high: Floats
    rise: Floats

    def note(self, row: int, *, is_covered: bool) -> str | None:
        """Say where the step lies, None where there is none."""
        if not self.found[row]:
            return None
        return (
            f"the model has a step of {self.names[int(self.place[row])]} between "
            f"{self.low[row]:g} and {self.high[row]:g} (factor {math.exp(self.rise[row]):.3g}): "
            + ("the interval covers both sides" if is_covered else "either side's value may hold")
        )


def neighbours_of(inputs: Columns, domain: Mapping[str, DomainRange]) -> Neighbours:
    """Return whole sizes below and above each input of each query.

    Parameters
    ----------
    inputs : Mapping[str, ndarray]
        Every input, float64 ``(n,)``.
    domain : Mapping[str, DomainRange]
        Their ranges.
    """
    low, high, varied = {}, {}, {}
    for name, sizes in inputs.items():
        below = np.maximum(np.floor(sizes / _AROUND), domain[name].minimum)
        above = np.minimum(np.ceil(sizes * _AROUND), domain[name].maximum)
        varied[name] = (below > 0) & (below < above)
        low[name] = np.where(varied[name], below, sizes)
        high[name] = np.where(varied[name], above, sizes)
    columns = {
        name: np.concatenate(
            [
                sizes,
                *(
                    side[name] if other == name else sizes
                    for other in inputs
                    for side in (low, high)
                ),
            ]
        )
        for name, sizes in inputs.items()
    }
    return Neighbours(columns=columns, low=low, high=high, varied=varied)


def steps_around(neighbours: Neighbours, seconds: Floats, widths: Floats) -> Steps:
    """Compare a model's answers around each query with what growth explains.

    Between two sizes a cost grows by nothing at least and in proportion at most; what is more is a
    step. One that the half-width exceeds is none.

    Parameters
    ----------
    neighbours : Neighbours
        As `neighbours_of` gives them.
    seconds : ndarray of float64
        The model's answers to ``neighbours.columns``.
    widths : ndarray of float64
        Half-widths of the queries themselves, ``(n,)``.
    """
    names, count = tuple(neighbours.low), len(widths)
    around = seconds.reshape(1 + 2 * len(names), count)
    here, below, above = around[0], around[1::2], around[2::2]
    low = np.stack([neighbours.low[name] for name in names])
    high = np.stack([neighbours.high[name] for name in names])
    varied = np.stack([neighbours.varied[name] for name in names])
    with np.errstate(all="ignore"):
        rises = np.log(above / below)
        jumps = np.where(varied, np.maximum(rises - np.log(high / low), -rises), -np.inf)
        reaches = np.maximum(np.abs(np.log(below / here)), np.abs(np.log(above / here)))
        has_values = ((around > 0) & np.isfinite(around)).all(axis=0)
    place = jumps.argmax(axis=0)
    at = (place, np.arange(count))
    return Steps(
        names=names,
        found=has_values & np.isfinite(widths) & (jumps[at] > widths),
        widths=np.maximum(reaches[at], widths),
        place=place,
        low=low[at],
        high=high[at],
        rise=rises[at],
    )

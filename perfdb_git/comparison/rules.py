"""How a comparison judges, and what its caller may choose of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from perfdb_git.operations.directions import Direction

ALPHA = 0.05
LEVEL = 0.95
THRESHOLD = 0.02
"""A difference below this is of no practical interest, however sure it is."""

UnitChoice: TypeAlias = Literal["auto", "session", "record", "sample"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """How a comparison judges.

    Attributes
    ----------
    alpha : float
        Probability of any false verdict of worse or better in the whole comparison.
    level : float
        Coverage asked of each interval.
    threshold : float
        Smallest difference that matters, as a fraction.
    unit : str
        What counts as one independent value; see `contrast`.
    accept_throttled : bool
        Whether samples under a lowered clock may be judged.
    directions : mapping of str to str
        Which way a metric is better, where the caller states it.
    gate : float or None
        Threshold beyond which ``worse`` fails the comparison; None for no gate.
    bootstrap_seed : int or None
        Of the resamples that bound the median of each side; None for none.
    """

    alpha: float = ALPHA
    level: float = LEVEL
    threshold: float = THRESHOLD
    unit: UnitChoice = "auto"
    accept_throttled: bool = False
    directions: Mapping[str, Direction] = field(default_factory=dict)
    gate: float | None = None
    bootstrap_seed: int | None = None

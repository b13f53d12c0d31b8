"""The grids of time that a run may use. Engines add and compare ticks, whichever they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction

from perfdb_git.errors import UsageError
from perfdb_git.model.simulation import Picoseconds, TickName

TICK_LIMIT = 2**63
"""Ticks are int64: no event may reach this one."""

PS_PER_NS = 1000
PS_PER_S = 10**12

# Sums over all visits of a run have up to 29 digits.
_EXACT = Context(prec=60)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """A grid of time.

    Parameters
    ----------
    name : str
        Its unit.
    unit : str
        The unit in words, plural.
    per_ps : int
        Ticks in a picosecond.
    horizon : str
        How long `TICK_LIMIT` ticks are.
    remedy : str or None
        What to do about a time beyond the horizon.
    """

    name: TickName
    unit: str
    per_ps: int
    horizon: str
    remedy: str | None = None

    @property
    def per_ns(self) -> int:
        """Ticks in a nanosecond."""
        return self.per_ps * PS_PER_NS

    @property
    def per_s(self) -> int:
        """Ticks in a second."""
        return self.per_ps * PS_PER_S

    @property
    def limit(self) -> str:
        """The first tick that no event may reach, in words."""
        return f"2**63 {self.name} ({self.horizon})"

    def on_grid(self, exact_ps: Fraction) -> int:
        """Round a time in ps to a whole number of ticks, ties to even."""
        return round(exact_ps * self.per_ps)

    def ps(self, ticks: int) -> Picoseconds:
        """Return ticks in ps: themselves if ticks are ps, else an exact decimal."""
        if self.per_ps == 1:
            return ticks
        return _EXACT.divide(Decimal(ticks), Decimal(self.per_ps))

    def each_ps(self, ticks: list[int]) -> Sequence[Picoseconds]:
        """Return all ticks of a list in ps, see `ps`."""
        return ticks if self.per_ps == 1 else [self.ps(tick) for tick in ticks]


PICOSECOND = Tick(name="ps", unit="picoseconds", per_ps=1, horizon="106.75 days")
FEMTOSECOND = Tick(
    name="fs",
    unit="femtoseconds",
    per_ps=1000,
    horizon="2.56 h",
    remedy="the tick ps (--tick ps) reaches 106.75 days",
)

TICKS: Mapping[TickName, Tick] = {tick.name: tick for tick in (PICOSECOND, FEMTOSECOND)}


def tick_named(name: str) -> Tick:
    """Return the tick of a name.

    Raises
    ------
    UsageError
        If there is none.
    """
    for tick in TICKS.values():
        if tick.name == name:
            return tick
    raise UsageError(f"unknown tick {name!r}", code="tick", remedy=f"one of {', '.join(TICKS)}")

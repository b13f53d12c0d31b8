"""Arrival times on the grid, made block by block so that no run must hold them all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import TYPE_CHECKING

from perfdb_git.errors import InvalidInputError, UsageError
from perfdb_git.model.pipeline import Arrivals
from perfdb_git.simulation.ticks import PICOSECOND, PS_PER_NS, TICK_LIMIT, Tick

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ticks = NDArray[np.int64]

_NS_PER_UNIT = {
    "ps": Fraction(1, 1000),
    "ns": Fraction(1),
    "us": Fraction(10**3),
    "ms": Fraction(10**6),
    "s": Fraction(10**9),
}
_FORMS = "batch, interval:TIME, list:TIME,TIME,... or closed-loop:WINDOW, such as interval:50ns"


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrivalTimes:
    """When each job arrives, in ticks.

    Parameters
    ----------
    n_jobs : int
        The number of jobs.
    interval : Fraction
        Job i arrives at i * interval, rounded once for each job (no drift). 0 is a batch.
    times : ndarray of int64, shape (n_jobs,), or None
        Ascending; takes the place of the interval.
    window : int or None
        Jobs of a closed loop; the others arrive when one completes.
    """

    n_jobs: int
    interval: Fraction = Fraction(0)
    times: Ticks | None = None
    window: int | None = None

    def last(self) -> int:
        """Return the last arrival that is known before the run."""
        if self.times is not None:
            return int(self.times[-1])
        return round(self.interval * (self.n_jobs - 1))

    def block(self, first: int, last: int) -> Ticks:
        """Arrival times of an open run.

        Parameters
        ----------
        first, last : int
            Jobs ``first`` to ``last - 1``.

        Returns
        -------
        ndarray of int64, shape (last - first,)
            Ascending.
        """
        import numpy as np

        if self.times is not None:
            return self.times[first:last]
        whole, rest = divmod(self.interval, 1)
        jobs = np.arange(first, last, dtype=np.int64)
        times: Ticks = jobs * whole
        if not rest:
            return times
        if last * rest.denominator * 2 >= TICK_LIMIT:
            exact = [round(job * self.interval) for job in range(first, last)]
            return np.array(exact, dtype=np.int64)
        floors, remainders = np.divmod(jobs * rest.numerator, rest.denominator)
        times += floors
        # Ties to even, where even is said of the whole time.
        half = 2 * remainders - rest.denominator
        times += (half > 0) | ((half == 0) & (times % 2 == 1))
        return times


def arrival_times(
    arrivals: Arrivals, n_jobs: int, *, document: str, tick: Tick = PICOSECOND
) -> tuple[ArrivalTimes, Sequence[int] | None]:
    """Arrival times of a pipeline's jobs.

    Parameters
    ----------
    arrivals : Arrivals
        As the pipeline or the caller states them.
    n_jobs : int
        The number of jobs.
    document : str
        For messages.
    tick : Tick
        The grid.

    Returns
    -------
    times : ArrivalTimes
        In ticks.
    order : sequence of int or None
        For each job its place in an explicit list; ``None`` where jobs keep their order.

    Raises
    ------
    InvalidInputError
        If an arrival lies beyond the grid (``time-overflow``).
    """
    order: list[int] | None = None
    if arrivals.kind == "interval" and arrivals.interval_ns is not None:
        times = ArrivalTimes(n_jobs=n_jobs, interval=Fraction(arrivals.interval_ns) * tick.per_ns)
    elif arrivals.kind == "list" and arrivals.times_ns is not None:
        ticks = [tick.on_grid(Fraction(time) * PS_PER_NS) for time in arrivals.times_ns]
        _guard(max(ticks), tick, document)
        # Stable: jobs of one tick keep the order in which they are listed.
        order = sorted(range(len(ticks)), key=ticks.__getitem__)
        times = listed_arrivals([ticks[place] for place in order])
    else:
        times = ArrivalTimes(n_jobs=n_jobs, window=arrivals.window)
    _guard(times.last(), tick, document)
    return times, order


def listed_arrivals(times: Sequence[int] | Ticks) -> ArrivalTimes:
    """Arrivals at explicit times.

    Parameters
    ----------
    times : sequence of int or ndarray of int64, shape (n_jobs,)
        Ascending, at least 0, in ticks.

    Raises
    ------
    ValueError
        If there is none, or they descend or are negative.
    """
    import numpy as np

    array = np.asarray(times, dtype=np.int64)
    if array.ndim != 1 or not len(array) or array[0] < 0 or bool((np.diff(array) < 0).any()):
        raise ValueError("arrival times ascend from at least 0, and there is at least one")
    return ArrivalTimes(n_jobs=len(array), times=array)


def _guard(last: int, tick: Tick, document: str) -> None:
    if last >= TICK_LIMIT:
        raise InvalidInputError(
            f"an arrival lies beyond {tick.limit}",
            code="time-overflow",
            document=document,
            remedy=tick.remedy,
        )


def parse_arrivals(text: str) -> Arrivals:
    """Arrivals as typed: ``batch``, ``interval:50ns``, ``list:0,5us`` or ``closed-loop:4``.

    A time is a decimal with ``ps``, ``ns``, ``us``, ``ms`` or ``s``; without a unit it is ns.

    Raises
    ------
    UsageError
        If the text has another form.
    """
    kind, _, rest = text.partition(":")
    try:
        if kind == "batch" and not rest:
            return Arrivals()
        if kind == "interval":
            return Arrivals(kind="interval", interval_ns=_nanoseconds(rest))
        if kind == "list":
            times = tuple(_nanoseconds(part) for part in rest.split(","))
            return Arrivals(kind="list", times_ns=times)
        if kind == "closed-loop":
            return Arrivals(kind="closed-loop", window=int(rest))
    except (ValueError, InvalidOperation) as error:
        raise UsageError(
            f"arrivals {text!r} cannot be read: {error or 'no number'}",
            code="arrivals",
            remedy=f"write {_FORMS}",
        ) from error
    raise UsageError(f"unknown arrivals {text!r}", code="arrivals", remedy=f"write {_FORMS}")


def _nanoseconds(text: str) -> Decimal:
    number = text.strip()
    unit = next((unit for unit in ("ps", "ns", "us", "ms", "s") if number.endswith(unit)), "")
    value = Decimal(number.removesuffix(unit)) * (Decimal(1) if not unit else _factor(unit))
    if not value.is_finite() or value < 0:
        raise ValueError(f"a time is finite and at least 0, not {text!r}")
    return value


def _factor(unit: str) -> Decimal:
    ratio = _NS_PER_UNIT[unit]
    return Decimal(ratio.numerator) / Decimal(ratio.denominator)

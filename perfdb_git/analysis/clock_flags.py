"""Clocks that fell while samples were taken, and the driver's reasons for it.

A clock is judged against its own height, a driver by the reasons that limit it: being idle, or set
by the user, is none.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

CLOCK_DROP = 0.02
"""Clocks move by a step of 15 MHz (1 %) without any throttling."""

_CLOCK_BAND = 0.005
_NO_LIMITS = frozenset(
    {
        *("", "none", "n/a", "notactive", "inactive", "false", "no", "unknown", "notsupported"),
        *("idle", "gpuidle", "applicationsclockssetting", "displayclocksetting"),
        "displayclockssetting",
    }
)
_NO_LIMIT_BITS = 0x1 | 0x2 | 0x100
"""Of the driver's mask: idle, application clocks, display clocks."""

_REASON_PREFIX = re.compile(r"(nvml)?clocks?(throttle|event)reasons?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Throttling:
    """A clock that fell during the samples.

    Attributes
    ----------
    first : int
        Index from 0 of the first sample under a lowered clock.
    highest_clock, lowest_clock : float or None
        In the unit of the log; None where only reasons were logged.
    """

    first: int
    highest_clock: float | None
    lowest_clock: float | None


def throttling(
    clocks: Sequence[float] | None, reasons: Sequence[str] | None = None
) -> Throttling | None:
    """Flag samples that were taken while the device held its clock down.

    Parameters
    ----------
    clocks : sequence of float or None
        Clock at each sample, shape ``(n_samples,)``, any one unit. A clock that rises before it
        first reaches its height is a device that wakes up, and not throttled.
    reasons : sequence of str or None
        What the driver stated at each sample, shape ``(n_samples,)``; ``none`` and an idle device
        are no throttling.

    Returns
    -------
    Throttling or None
        ``None`` where the clock fell by no more than `CLOCK_DROP` and no reason was stated.
    """
    stated = [place for place, reason in enumerate(reasons or ()) if is_clock_limit(reason)]
    fallen = _fallen(clocks or ())
    if not stated and not fallen:
        return None
    return Throttling(
        first=min([*stated, *fallen]),
        highest_clock=max(clocks) if clocks else None,
        lowest_clock=min(clocks[min([*stated, *fallen]) :]) if clocks else None,
    )


def is_clock_limit(reason: str) -> bool:
    """Return whether a driver's reason says that the clock was held down.

    Parameters
    ----------
    reason : str
        A name such as ``sw_power_cap``, several of them, or the driver's mask of bits. An idle
        device and clocks that somebody set are no limit.
    """
    return any(_limits_the_clock(part) for part in re.split(r"[|,;+&]", reason))


def _limits_the_clock(part: str) -> bool:
    text = re.sub(r"[\s_.\[\]-]", "", part.lower())
    if re.fullmatch(r"0x[0-9a-f]+|[0-9]+", text):
        return int(text, 0 if text.startswith("0x") else 10) & ~_NO_LIMIT_BITS != 0
    return _REASON_PREFIX.sub("", text) not in _NO_LIMITS


def _fallen(clocks: Sequence[float]) -> list[int]:
    if not clocks:
        return []
    height = max(clocks)
    first_high = next(place for place, clock in enumerate(clocks) if _high(clock, height))
    if min(clocks[first_high:]) >= height * (1 - CLOCK_DROP):
        return []
    after = range(first_high, len(clocks))
    return [place for place in after if not _high(clocks[place], height)]


def _high(clock: float, height: float) -> bool:
    return clock >= height * (1 - _CLOCK_BAND)


def throttling_text(found: Throttling, unit: str) -> str:
    """Describe a clock that fell for people; ``unit`` is that of the clock."""
    text = f"throttled from sample {found.first} on"
    if found.highest_clock is None or found.lowest_clock is None:
        return text
    clocks = f"{found.highest_clock:.4g} to {found.lowest_clock:.4g} {unit}".rstrip()
    return f"{text}: clock {clocks}"

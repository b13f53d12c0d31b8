"""Numbers for people: four significant digits and a prefix that fits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

DIGITS = 4


@dataclass(frozen=True, slots=True)
class Scale:
    """A display unit and how many SI units it is, as one exact integer each way."""

    unit: str
    multiply: int = 1
    divide: int = 1

    def apply(self, value: float) -> float:
        """Convert a value in the SI unit to this unit."""
        return value * self.multiply if self.divide == 1 else value / self.divide


_SCALES: Mapping[str, Sequence[Scale]] = {
    "s": (
        Scale("s"),
        Scale("ms", multiply=10**3),
        Scale("µs", multiply=10**6),
        Scale("ns", multiply=10**9),
    ),
    "B/s": (
        Scale("TB/s", divide=10**12),
        Scale("GB/s", divide=10**9),
        Scale("MB/s", divide=10**6),
        Scale("B/s"),
    ),
    "J": (Scale("J"), Scale("mJ", multiply=10**3), Scale("µJ", multiply=10**6)),
}


def scale_for(value: float, unit: str) -> Scale:
    """Return the largest scale in which the rounded value is at least one."""
    scales = _SCALES.get(unit, (Scale("" if unit == "1" else unit),))
    for scale in scales:
        if abs(float(f"{scale.apply(value):.{DIGITS}g}")) >= 1:
            return scale
    return scales[0] if value == 0 else scales[-1]


def number(value: float) -> str:
    """Return a number with four significant digits, zeros at the end included."""
    text = f"{value:#.{DIGITS}g}"
    return "0" if value == 0 else text.removesuffix(".")


def quantity(value: float, unit: str) -> str:
    """Return a value in an SI unit, such as ``2.872 ms``."""
    scale = scale_for(value, unit)
    return f"{number(scale.apply(value))} {scale.unit}".rstrip()


def interval(lower: float, upper: float, value: float, unit: str) -> str:
    """Return an interval in the scale of its value, such as ``[2.701, 3.049] ms``."""
    scale = scale_for(value, unit)
    bounds = f"[{number(scale.apply(lower))}, {number(scale.apply(upper))}]"
    return f"{bounds} {scale.unit}".rstrip()


def percent(fraction: float) -> str:
    """Return a fraction in percent, such as ``90 %`` or ``94.7 %``."""
    return f"{fraction * 100:.3g} %"


def counted(count: int, noun: str) -> str:
    """Return a count with its noun, such as ``1 record`` or ``1,234 records``."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def size(count: int) -> str:
    """Return a number of bytes, such as ``12.3 MB``."""
    value = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000 or unit == "GB":
            break
        value /= 1000
    return f"{value:.0f} B" if unit == "B" else f"{value:.1f} {unit}"

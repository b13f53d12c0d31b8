"""Prediction intervals of fitted models: their parameters as documents, and back.

Half-widths are on the natural logarithm. ``split-conformal`` has one width, ``sized-conformal``
one for every size that a curve reads and covers both sides of a jump, ``scaled-conformal``
multiplies a width by an error scale or by a process's own deviation, ``two-regime-conformal`` has
a scale and a width for measured lines and for others. Each may hold a rate by which it widens
beyond the domain, ``sized-conformal`` one for each side; without one it says nothing there.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from perfdb_git.analysis.conformal import ConformalWidths, DistanceWidening, TwoRegimeWidths
from perfdb_git.analysis.error_scale import ErrorScale
from perfdb_git.analysis.quantile_bins import QuantileBins
from perfdb_git.analysis.sized_widths import SizedWidths
from perfdb_git.formats.arrays import encode_parameters
from perfdb_git.model.calibration import IntervalCalibration
from perfdb_git.providers.stored_parameters import ParameterReader, named_order
from perfdb_git.providers.stored_trees import Arrays, Numbers, read_scale, same_bins, scale_parts

Columns: TypeAlias = Mapping[str, NDArray[Any]]
Seconds: TypeAlias = NDArray[np.float64]

SPLIT, SIZED = "split-conformal", "sized-conformal"
SCALED, TWO_REGIME = "scaled-conformal", "two-regime-conformal"
METHODS = (SPLIT, SIZED, SCALED, TWO_REGIME)
VERSION = 1
_LINE_STEP = 2.0**17
_WIDENING = "widening_rate"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OneWidth:
    """The same half-width for every query, or in units of an error scale.

    ``scale`` needs boosted trees, ``by_deviation`` a Gaussian process.
    """

    level: float
    width: float
    scale: ErrorScale | None = None
    by_deviation: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TwoRegimes:
    """Error scales and half-widths for measured lines and for others.

    A line is what training rows share that differ in one size only; ``line_by`` are the numeric
    dimensions that make it, ``lines`` the sorted codes of the measured ones; see `line_codes`.
    """

    widths: TwoRegimeWidths
    on_line: ErrorScale
    off_line: ErrorScale
    line_by: tuple[str, ...]
    lines: NDArray[np.float64]

    @property
    def level(self) -> float:
        """Coverage asked for."""
        return self.widths.measured.level

    def predict_codes(self, codes: NDArray[np.uint8], columns: Columns) -> Seconds:
        """Return half-widths, ``(n,)``, for byte codes and the dimensions of the lines."""
        wanted = line_codes(columns, self.line_by)
        place = np.minimum(np.searchsorted(self.lines, wanted), len(self.lines) - 1)
        known = self.lines[place] == wanted
        on, off = self.on_line.predict_codes(codes), self.off_line.predict_codes(codes)
        return self.widths.predict(np.where(known, on, off), known)


Interval: TypeAlias = OneWidth | SizedWidths | TwoRegimes


def line_codes(columns: Columns, line_by: tuple[str, ...]) -> NDArray[np.float64]:
    """Return one number a row, equal where all of ``line_by`` are."""
    code = np.zeros(len(columns[line_by[0]]))
    for name in line_by:
        # Three sizes of 17 bits fit exactly into a float64; larger ones may share a code, which
        # only chooses between two widths.
        code = code * _LINE_STEP + columns[name]
    return code


def widened(
    widths: Seconds, octaves: NDArray[np.float64] | None, widening: DistanceWidening | None
) -> Seconds:
    """Return half-widths at distances from the domain; NaN outside it where no rate is known."""
    if octaves is None:
        return widths
    distance = np.asarray(octaves, np.float64)
    if widening is None:
        return np.where(distance > 0, np.nan, widths)
    return widths * widening.predict(distance)


def encode_interval(
    interval: Interval,
    *,
    folds: str,
    residuals: int,
    bins: QuantileBins | None = None,
    widening: DistanceWidening | None = None,
) -> IntervalCalibration:
    """Return an interval calibration as a document states it.

    Parameters
    ----------
    interval : OneWidth, SizedWidths or TwoRegimes
        Without widths by group; sized ones belong to forms of one size.
    folds : str
        What the folds behind the residuals left out, in words.
    residuals : int
        How many there are.
    bins : QuantileBins or None
        Of the model for points; error scales must have the same, which are stored with the model.
    widening : DistanceWidening or None
        Beyond the domain; sized widths hold their own rates.

    Raises
    ------
    ValueError
        For other bins, widths by group, two ways to widen, or a width without end.
    """
    method, numbers, arrays, scales = _parts(interval)
    if widening is not None:
        if method == SIZED:
            raise ValueError("sized widths widen at their own rates")
        numbers[_WIDENING] = widening.rate
    for prefix, scale in scales.items():
        if bins is None or not same_bins(scale.trees.bins, bins):
            raise ValueError("an error scale needs the bins of the model for points")
        more_numbers, more_arrays = scale_parts(prefix, scale)
        numbers, arrays = numbers | more_numbers, arrays | more_arrays
    return IntervalCalibration(
        method=method,
        version=VERSION,
        level=interval.level,
        folds=folds,
        residuals=residuals,
        parameters=encode_parameters(numbers, arrays),
    )


def _parts(interval: Interval) -> tuple[str, Numbers, Arrays, dict[str, ErrorScale]]:
    """Return method, numbers, arrays and error scales of an interval."""
    if isinstance(interval, SizedWidths):
        rates = {"rate_below": interval.rate_below, "rate_above": interval.rate_above}
        known_rates = {name: rate for name, rate in rates.items() if rate is not None}
        return SIZED, known_rates, {"sizes": interval.sizes, "widths": interval.widths}, {}
    if isinstance(interval, OneWidth):
        method = SPLIT if interval.scale is None and not interval.by_deviation else SCALED
        scales = {} if interval.scale is None else {"error": interval.scale}
        return method, {"width": interval.width}, {}, scales
    known, other = interval.widths.measured, interval.widths.unmeasured
    if len(known.groups) or len(other.groups):
        raise ValueError("widths by group have no stored form")
    numbers = {"measured_width": known.pooled, "unmeasured_width": other.pooled}
    numbers |= named_order("line", interval.line_by)
    scales = {"on_line": interval.on_line, "off_line": interval.off_line}
    return TWO_REGIME, numbers, {"lines": interval.lines}, scales


def decode_interval(
    stored: IntervalCalibration, *, bins: QuantileBins | None, document: str, pointer: str
) -> tuple[Interval, DistanceWidening | None]:
    """Return an interval and its widening.

    Parameters
    ----------
    stored : IntervalCalibration
        As a document states it.
    bins : QuantileBins or None
        Of the model for points, where it has any.
    document, pointer : str
        Where it stands, for messages.

    Raises
    ------
    InvalidInputError
        'unknown-interval' or 'bad-parameters'.
    """
    where = f"{pointer}/parameters"
    reader = ParameterReader(stored.parameters, document=document, pointer=where)
    if stored.method not in METHODS or stored.version != VERSION:
        raise reader.fault(
            f"no interval {stored.method} of version {stored.version}", code="unknown-interval"
        )
    if not 0 < stored.level < 1:
        raise reader.fault(f"a level of {stored.level:g}")
    rate = None if stored.method == SIZED else reader.optional(_WIDENING, least=0)
    if stored.method == TWO_REGIME:
        interval: Interval = _two_regimes(reader, stored.level, _needed(reader, bins))
    elif stored.method == SIZED:
        interval = _sized(reader, stored.level)
        # They widen themselves, on each side of the domain at a rate of its own.
        rate = 0.0
    else:
        interval = _one_width(reader, stored, bins)
    reader.finish()
    return interval, None if rate is None else DistanceWidening(rate=rate)


def _one_width(
    reader: ParameterReader, stored: IntervalCalibration, bins: QuantileBins | None
) -> OneWidth:
    width = reader.number("width", least=0)
    if stored.method == SPLIT:
        return OneWidth(level=stored.level, width=width)
    if bins is None:
        return OneWidth(level=stored.level, width=width, by_deviation=True)
    return OneWidth(level=stored.level, width=width, scale=read_scale(reader, "error", bins))


def _sized(reader: ParameterReader, level: float) -> SizedWidths:
    sizes, widths = reader.array("sizes", "float64", 1), reader.array("widths", "float64", 1)
    if not len(sizes) or sizes.shape != widths.shape or bool((np.diff(sizes) <= 0).any()):
        raise reader.fault("sizes of widths must ascend, and each have a width")
    if not bool((sizes > 0).all() and (widths > 0).all()):
        raise reader.fault("sizes and their widths must be positive")
    return SizedWidths(
        level=level,
        sizes=sizes,
        widths=widths,
        rate_below=reader.optional("rate_below", least=0),
        rate_above=reader.optional("rate_above", least=0),
    )


def _two_regimes(reader: ParameterReader, level: float, bins: QuantileBins) -> TwoRegimes:
    line_by = reader.names("line")
    lines = reader.array("lines", "float64", 1)
    if not line_by or not len(lines) or bool((np.diff(lines) <= 0).any()):
        raise reader.fault("lines need dimensions, and ascending codes")
    widths = TwoRegimeWidths(
        measured=_pooled(reader.number("measured_width", least=0), level),
        unmeasured=_pooled(reader.number("unmeasured_width", least=0), level),
    )
    return TwoRegimes(
        widths=widths,
        on_line=read_scale(reader, "on_line", bins),
        off_line=read_scale(reader, "off_line", bins),
        line_by=line_by,
        lines=lines,
    )


def _needed(reader: ParameterReader, bins: QuantileBins | None) -> QuantileBins:
    if bins is None:
        raise reader.fault("this interval needs boosted trees")
    return bins


def _pooled(width: float, level: float) -> ConformalWidths:
    assert math.isfinite(width)
    nothing = np.empty(0, np.float64)
    return ConformalWidths(level=level, pooled=width, groups=np.empty(0, np.int64), widths=nothing)

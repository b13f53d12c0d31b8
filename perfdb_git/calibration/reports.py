"""Held-out reports from predictions: errors in percent of the measured value."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from perfdb_git.analysis.error_metrics import error_metrics
from perfdb_git.calibration.splits import lines_digest
from perfdb_git.model.held_out import ErrorStatistics, HeldOutReport, ReportGroup

if TYPE_CHECKING:
    from numpy.typing import NDArray

    FloatArray: TypeAlias = NDArray[np.float64]
    BoolArray: TypeAlias = NDArray[np.bool_]

REPORT_SCHEMA = "perfdb/held-out-report/v1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Predictions:
    """Held-out records beside what a model says of them, refused ones included.

    Attributes
    ----------
    ids : sequence of str
        Record ids, ``n`` of them.
    measured, predicted : array
        Shape ``(n,)``, in one unit; a prediction of NaN is a refusal.
    lower, upper : array or None
        Bounds of the intervals, shape ``(n,)``; every answer has both, or none has.
    level : float or None
        Coverage that was asked of them.
    extrapolated : array or None
        Which answers lie outside the domain, shape ``(n,)``; None where the domain has no part.
    """

    ids: Sequence[str]
    measured: FloatArray
    predicted: FloatArray
    lower: FloatArray | None = None
    upper: FloatArray | None = None
    level: float | None = None
    extrapolated: BoolArray | None = None

    @property
    def answered(self) -> BoolArray:
        """Mask of the answers, shape ``(n,)``."""
        return ~np.isnan(self.predicted)

    def errors(self, mask: BoolArray | None = None) -> ErrorStatistics | None:
        """Return the errors of the answers in a mask, or None where there is none.

        Raises
        ------
        ValueError
            Where a measured value is not positive, or an answer not finite or without a bound.
        """
        chosen = self.answered if mask is None else self.answered & mask
        if not bool(chosen.any()):
            return None
        bounds = [None if some is None else some[chosen] for some in (self.lower, self.upper)]
        if any(some is not None and not np.isfinite(some).all() for some in bounds):
            raise ValueError("an answer has no interval while others have one")
        return error_metrics(self.predicted[chosen], self.measured[chosen], *bounds)


def held_out_report(
    predictions: Predictions,
    *,
    response: str,
    groupings: Mapping[str, Sequence[object]] | None = None,
) -> HeldOutReport:
    """Return the report over held-out records.

    Parameters
    ----------
    predictions : Predictions
        The records and the answers.
    response : str
        The metric.
    groupings : mapping or None
        Label of each record by grouping, such as ``{"dtype": [...]}``; a group without answers
        is left out.

    Raises
    ------
    ValueError
        As `Predictions.errors`.
    """
    groups = []
    for by, labels in (groupings or {}).items():
        texts = np.array([str(label) for label in labels])
        for value in sorted(set(texts.tolist()), key=_natural):
            errors = predictions.errors(texts == value)
            if errors is not None:
                groups.append(ReportGroup(by=by, value=value, errors=errors))
    beyond = predictions.extrapolated
    return HeldOutReport(
        schema=REPORT_SCHEMA,
        response=response,
        held_out=len(predictions.measured),
        refused=int((~predictions.answered).sum()),
        records_digest=lines_digest(predictions.ids),
        level=predictions.level,
        overall=predictions.errors(),
        interpolated=None if beyond is None else predictions.errors(~beyond),
        extrapolated=None if beyond is None else predictions.errors(beyond),
        groups=tuple(groups),
    )


def _natural(text: str) -> tuple[float, str]:
    """Order numbers by size and before other texts."""
    try:
        return float(text), text
    except ValueError:
        return math.inf, text


def size_decades(sizes: FloatArray) -> list[str]:
    """Return for each size the power of ten that it begins with, such as ``1e3``.

    Parameters
    ----------
    sizes : array
        Shape ``(n,)``; zero and less are called ``0``.
    """
    # Comparing with exact powers, as log10 rounds differently from place to place.
    powers = [10.0**exponent for exponent in range(-30, 40)]
    places = np.searchsorted(np.array(powers), sizes, side="right")
    return [f"1e{int(place) - 31}" if place else "0" for place in places]

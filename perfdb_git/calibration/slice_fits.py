"""What a fit of one slice is asked for, and what it gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from perfdb_git.calibration.choosing import TriedForm
from perfdb_git.model.calibration import FittedModel, Form
from perfdb_git.model.spreading import Spread

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from perfdb_git.operations.features.feature_set import FeatureSet
    from perfdb_git.operations.features.hardware import Hardware

    Columns: TypeAlias = Mapping[str, NDArray[Any]]
    Seconds: TypeAlias = NDArray[np.float64]
    Places: TypeAlias = NDArray[np.int64]
    Predict: TypeAlias = Callable[[Columns], tuple[Seconds, Seconds]]
    Fit: TypeAlias = Callable[[Columns, Seconds], Predict]


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceRequest:
    """The training rows of one slice, and how to fit them.

    Attributes
    ----------
    name : str
        Of the slice, for messages.
    columns : mapping of str to ndarray
        Inputs ``(n,)``, terms ``(1,)``.
    latency : ndarray
        The response in its SI unit, ``(n,)``, positive.
    inputs : tuple of str
        Names of the inputs.
    forms : tuple of str
        To choose from.
    features : FeatureSet or None
        None reads the inputs bare.
    hardware : Hardware or None
        Facts of the base; a feature set needs them.
    level : float
        Coverage asked of the interval.
    seed : int
        Of folds and fits.
    """

    name: str
    columns: Columns
    latency: Seconds
    inputs: tuple[str, ...]
    forms: tuple[Form, ...]
    features: FeatureSet | None
    hardware: Hardware | None
    level: float
    seed: int

    def points(self) -> Seconds:
        """Return the inputs of every row, ``(n, n_inputs)``."""
        return np.column_stack([self.columns[name] for name in self.inputs])


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceFit:
    """The models of a slice, and what was tried on the way."""

    inside: FittedModel
    beyond: FittedModel | None
    tried: tuple[TriedForm, ...]


def some_rows(columns: Columns, rows: NDArray[np.generic], count: int) -> dict[str, NDArray[Any]]:
    """Return rows, by place or mask, of the columns of ``count`` rows; terms stay as they are."""
    return {
        name: values[rows] if len(values) == count and count > 1 else values
        for name, values in columns.items()
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fold:
    """All rows but some to fit, and those rows to judge the model by."""

    fit: Fit
    columns: Columns
    latency: Seconds
    left_out: Columns
    measured: Seconds


def _errors_and_scale(fold: _Fold) -> tuple[Seconds, Seconds]:
    predict = fold.fit(fold.columns, fold.latency)
    predicted, scale = predict(fold.left_out)
    return np.asarray(np.log(predicted / fold.measured)), scale


class FoldErrors:
    """Errors of rows by models that had not seen them, being worked out.

    Parameters
    ----------
    fit : Callable
        Of rows to a prediction, which gives the response and the scale of its log error, 1 where
        the form knows none.
    columns, latency
        The rows.
    folds : ndarray
        Fold of each row; a negative one is always seen, and NaN in the results.
    spread : Spread
        Where the folds are fitted.
    """

    def __init__(
        self, fit: Fit, columns: Columns, latency: Seconds, folds: Places, spread: Spread = map
    ) -> None:
        count = len(latency)
        self._count = count
        self._inside = [folds == fold for fold in np.unique(folds[folds >= 0]).tolist()]
        tasks = (
            _Fold(
                fit=fit,
                columns=some_rows(columns, ~inside, count),
                latency=latency[~inside],
                left_out=some_rows(columns, inside, count),
                measured=latency[inside],
            )
            for inside in self._inside
        )
        self._pending = spread(_errors_and_scale, tasks)

    def collect(self, after_each: Callable[[], object] | None = None) -> tuple[Seconds, Seconds]:
        """Return log(predicted / measured) of each row, and its scale.

        Parameters
        ----------
        after_each : callable or None
            Called after every fold.
        """
        errors, scales = np.full((2, self._count), np.nan)
        for inside, (error, scale) in zip(self._inside, self._pending, strict=True):
            errors[inside] = error
            scales[inside] = scale
            if after_each is not None:
                after_each()
        return errors, scales


def out_of_fold(
    fit: Fit, columns: Columns, latency: Seconds, folds: Places, spread: Spread = map
) -> tuple[Seconds, Seconds]:
    """Return what `FoldErrors` collects."""
    return FoldErrors(fit, columns, latency, folds, spread).collect()

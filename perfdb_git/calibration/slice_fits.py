"""What a fit of one slice is asked for, and what it gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from perfdb_git.calibration.choosing import TriedForm
from perfdb_git.model.calibration import FittedModel, Form

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


def out_of_fold(
    fit: Fit, columns: Columns, latency: Seconds, folds: Places
) -> tuple[Seconds, Seconds]:
    """Return log(predicted / measured) of rows by models that had not seen them, and its scale.

    Parameters
    ----------
    fit : Callable
        Of rows to a prediction, which gives the response and the scale of its log error, 1 where
        the form knows none.
    columns, latency
        The rows.
    folds : ndarray
        Fold of each row; a negative one is always seen, and NaN in the results.
    """
    errors, scales = np.full((2, len(latency)), np.nan)
    for fold in np.unique(folds[folds >= 0]).tolist():
        inside, rest = folds == fold, folds != fold
        predict = fit(some_rows(columns, rest, len(latency)), latency[rest])
        predicted, scale = predict(some_rows(columns, inside, len(latency)))
        errors[inside] = np.log(predicted / latency[inside])
        scales[inside] = scale
    return errors, scales

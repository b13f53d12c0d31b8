"""Answers of a slice fitted as `perfdb calibrate fit` does, from its stored parameters.

What is measured here is what a revision holds: forms chosen, models encoded and decoded, the model
beyond the range where a query lies there, intervals widened by their stored rate.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from perfdb_git.analysis.conformal import octaves_beyond
from perfdb_git.calibration.fit_forms import fit_slice_forms
from perfdb_git.calibration.slice_fits import SliceRequest, some_rows
from perfdb_git.model.calibration import BaseModel, Form
from perfdb_git.model.values import Scalar
from perfdb_git.operations.features.registry import FEATURE_SETS
from perfdb_git.providers.fitted_models import decode_model, hardware_numbers
from tests.bench.h200 import H200
from tests.resolution.fitted import calibration

Columns: TypeAlias = Mapping[str, NDArray[Any]]
Floats = NDArray[np.float64]
LEVEL = 0.9


def request_of(
    columns: Columns,
    latency: Floats,
    *,
    inputs: tuple[str, ...],
    features: str,
    forms: tuple[Form, ...],
) -> SliceRequest:
    """Return the request of one slice of the H200 tables."""
    return SliceRequest(
        name="held-out accuracy",
        columns=columns,
        latency=latency,
        inputs=inputs,
        forms=forms,
        features=FEATURE_SETS[features],
        hardware=H200,
        level=LEVEL,
        seed=0,
    )


def fit_and_answer(
    request: SliceRequest, asked: Columns, terms: Mapping[str, Scalar]
) -> tuple[Floats, Floats]:
    """Fit, and return seconds and half-widths on the logarithm of queries, each ``(n,)``.

    Parameters
    ----------
    request : SliceRequest
        Training rows.
    asked : mapping of str to ndarray
        Queries, each ``(n,)``.
    terms : mapping of str to scalar
        What the slice fixes, ``operation`` among them.
    """
    fit = fit_slice_forms(request)
    document = calibration(
        operation=str(terms["operation"]),
        device=H200.device,
        inputs=request.inputs,
        base=BaseModel(kind="stated", name="hardware", numbers=hardware_numbers(H200)),
    )
    octaves = np.max([_octaves(request, asked, name) for name in request.inputs], axis=0)
    found = np.full((2, len(octaves)), np.nan)
    for model, rows in ((fit.inside, octaves == 0), (fit.beyond, octaves > 0)):
        if model is None or not rows.any():
            continue
        own = {name: value for name, value in terms.items() if name != "operation"}
        predictor = decode_model(
            model, document, document="accuracy", pointer="/slices/0", terms=own
        )
        some = some_rows(asked, rows, len(rows))
        found[:, rows] = predictor.predict_with_half_width(some, octaves=octaves[rows])
    return found[0], found[1]


def _octaves(request: SliceRequest, asked: Columns, name: str) -> Floats:
    limits = request.columns[name]
    return octaves_beyond(asked[name], float(limits.min()), float(limits.max()))

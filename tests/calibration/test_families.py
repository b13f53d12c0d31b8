"""Families beyond operation sizes: what a launch costs, and what sharing a device costs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from perfdb_git.analysis.curves import AffineCurve
from perfdb_git.calibration.documents import document_file, write_documents
from perfdb_git.calibration.fit import FitResult, fit_calibration
from perfdb_git.calibration.revision_checks import check_revisions
from perfdb_git.providers.fitted_forms import CurveEvaluator
from perfdb_git.providers.fitted_models import FittedPredictor, decode_model
from tests.calibration.conftest import SmallEvidence
from tests.calibration.test_fit import affine, noisy, part, recipe, spec


def predictor_of(result: FitResult) -> FittedPredictor:
    (item,) = result.calibration.slices
    return decode_model(item.inside, result.calibration, document="x", pointer="/inside")


def written_paths(result: FitResult) -> list[str]:
    return [document_file(item)[0] for item in result.documents]


def test_launch_overhead_is_the_constant_of_an_affine_form(small: SmallEvidence) -> None:
    small.add(noisy(affine, spread=0.005))
    result = fit_calibration(small.snapshot(), spec(family="launch-overhead"))
    evaluator = predictor_of(result).evaluator
    assert isinstance(evaluator, CurveEvaluator)
    assert isinstance(evaluator.curve, AffineCurve)
    assert evaluator.curve.intercept == pytest.approx(0.2e-3, rel=0.05)
    assert any(
        path.startswith("evidence/calibrations/launch-overhead/") for path in written_paths(result)
    )


def test_contention_is_latency_against_concurrency(small: SmallEvidence) -> None:
    def shared(count: float) -> float:
        return float(0.2 * max(1.0, count / 16) * (1 + 0.02 * count))

    draws = np.random.Generator(np.random.PCG64(4)).normal(0, 0.01, 96)
    rows: list[list[Any]] = [
        [count, shared(count) * float(np.exp(draw)), row]
        for row, (count, draw) in enumerate(zip(range(1, 192, 2), draws, strict=True))
    ]
    columns = [
        {"name": "concurrency", "role": "dimension", "unit": "1"},
        {"name": "latency", "role": "metric", "statistic": "median", "unit": "ms"},
        {"name": "row", "role": "source"},
    ]
    small.add(rows, columns=columns, context={"m": 128})
    asked = spec(
        family="contention",
        inputs=("concurrency",),
        parts=(part(split=recipe("concurrency")),),
    )
    result = fit_calibration(small.snapshot(), asked)
    between = np.array([8.0, 40.0, 150.0])
    predicted = predictor_of(result).predict({"concurrency": between})
    assert predicted == pytest.approx([shared(count) * 1e-3 for count in between], rel=0.05)
    write_documents(small.path, *result.documents)
    assert check_revisions(small.snapshot()) == ()
    assert any(
        path.startswith("evidence/calibrations/contention/") for path in written_paths(result)
    )

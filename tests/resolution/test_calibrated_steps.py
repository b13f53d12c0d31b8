"""Steps of models of several inputs: seen from the model's own answers close by."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from perfdb_git.analysis.gaussian_process import fit_gaussian_process
from perfdb_git.analysis.tree_boosting import TreeSettings, fit_symmetric_trees
from perfdb_git.database import DatabaseSnapshot
from perfdb_git.model.calibration import DomainRange
from perfdb_git.operations.features.registry import FEATURE_SETS
from perfdb_git.providers.fitted_models import (
    OneWidth,
    encode_gaussian_process,
    encode_interval,
    encode_trees,
)
from tests.resolution.conftest import EvidenceRepository
from tests.resolution.fitted import HARDWARE, calibration, gemm_columns, promote, slice_of

DEVICE = "a100_80g"


def ask(snapshot: DatabaseSnapshot, m: int) -> Any:
    asked = {"operation": "gemm", "device": DEVICE, "dtype": "float16", "n": 512, "k": 1024}
    estimate = snapshot.resolve(**asked, m=m).estimate
    assert estimate is not None
    return estimate


def _log_width(estimate: Any) -> float:
    interval = estimate.metrics["latency"].uncertainty
    return float(np.log(interval.upper / interval.lower) / 2)


def test_a_step_of_a_model_of_several_inputs_widens_the_interval(
    repository: EvidenceRepository,
) -> None:
    draws = np.random.default_rng(0)
    octaves = draws.uniform(8, 14, 200)
    target = np.log(1e-6) + 0.02 * octaves + np.where(octaves > 11, 0.7, 0.0)
    process = fit_gaussian_process(octaves[:, None], target + draws.normal(0, 0.01, 200))
    interval = encode_interval(OneWidth(level=0.9, width=0.03), folds="rows", residuals=200)
    model = encode_gaussian_process(process, inputs=["m"], interval=interval)
    item = slice_of(
        inside=model,
        domain={"m": DomainRange(minimum=256, maximum=16384)},
        terms={"dtype": "float16", "n": 512, "k": 1024},
    )
    promote(repository, calibration(device=DEVICE, inputs=("m",), slices=(item,)))
    snapshot = repository.at()
    smooth, stepping = (ask(snapshot, m) for m in (800, 2050))
    assert _log_width(smooth) == pytest.approx(0.03)
    assert not any("step" in note for note in smooth.diagnostics.notes)
    found = stepping.metrics["latency"].uncertainty
    assert found.rule == "split-conformal-over-jump"
    low, high = snapshot.calibration_models.predictor(stepping.provenance.calibration, 0).predict(
        {"m": np.array([1879.0, 2236.0])}
    )
    assert found.lower <= low * (1 + 1e-12)
    assert found.upper >= high * (1 - 1e-12)
    assert any("step of m between 1879 and 2236" in n for n in stepping.diagnostics.notes)


def test_a_step_of_trees_is_told_and_widens_nothing(repository: EvidenceRepository) -> None:
    draws = np.random.default_rng(1)
    columns = gemm_columns(400, seed=7)
    columns["m"] = np.round(np.exp2(draws.uniform(8, 12, 400)))
    features = FEATURE_SETS["gemm/1"]
    rises = np.where(columns["m"] > 1024, 0.8, 0.0)
    trees = fit_symmetric_trees(
        features.compute(columns, HARDWARE), rises, TreeSettings(rounds=80, depth=3, seed=0)
    )
    interval = encode_interval(
        OneWidth(level=0.9, width=0.03), folds="rows", residuals=400, bins=trees.bins
    )
    model = encode_trees([trees], features="gemm/1", bases=["tiled"], interval=interval)
    domain = {"m": DomainRange(minimum=256, maximum=4096)}
    domain |= {name: DomainRange(minimum=16, maximum=4096) for name in ("n", "k")}
    item = slice_of(inside=model, domain=domain)
    promote(repository, calibration(device=DEVICE, slices=(item,)))
    snapshot = repository.at()
    (note,) = (text for text in ask(snapshot, 1030).diagnostics.notes if "step of m" in text)
    assert note.endswith("either side's value may hold")
    for m in (300, 1030):
        assert _log_width(ask(snapshot, m)) == pytest.approx(0.03)
        rule = ask(snapshot, m).metrics["latency"].uncertainty.rule
        assert rule == "split-conformal"

"""Small fitted models over made-up latencies, and the calibrations that hold them."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfdb_git.analysis.conformal import DistanceWidening, fit_conformal_widths
from perfdb_git.analysis.curves import LogLogCurve, fit_log_log_curve
from perfdb_git.analysis.gaussian_process import fit_gaussian_process
from perfdb_git.analysis.sized_widths import SizedWidths
from perfdb_git.analysis.symmetric_trees import SymmetricTrees
from perfdb_git.analysis.tree_boosting import TreeSettings, fit_symmetric_trees
from perfdb_git.calibration.documents import CALIBRATION_SCHEMA, document_file
from perfdb_git.calibration.reports import Predictions, held_out_report
from perfdb_git.model.calibration import (
    BaseModel,
    Calibration,
    CalibrationSlice,
    DomainRange,
    FittedModel,
    TrainingRecords,
)
from perfdb_git.operations.features.hardware import Hardware
from perfdb_git.operations.features.registry import FEATURE_SETS
from perfdb_git.providers.fitted_models import (
    OneWidth,
    encode_curve,
    encode_gaussian_process,
    encode_interval,
    encode_trees,
    hardware_numbers,
)

POLICY = "evidence/policies/default.yaml"
SHA = "0123456789abcdef" * 4
LEVEL = 0.9
_READ = ("compute_to_memory", "best_tile_s")

HARDWARE = Hardware(
    device="a100",
    multiprocessors=108,
    l2_bytes=40e6,
    memory_bytes_per_s=2e12,
    operations_per_s={"float16": 312e12, "bfloat16": 312e12},
    link_bytes_per_s=300e9,
    matrix_tiles=((64, 64), (128, 128), (256, 128)),
    query_tiles=(64, 128),
    launch_floor_s=4e-6,
)

Columns = dict[str, NDArray[Any]]


def gemm_columns(count: int = 300, seed: int = 0) -> Columns:
    draws = np.random.default_rng(seed)
    sizes = {name: 2.0 ** draws.integers(4, 13, count) for name in ("m", "n", "k")}
    return sizes | {"dtype": np.array(["float16"])}


def gemm_seconds(columns: Columns) -> NDArray[np.float64]:
    base = FEATURE_SETS["gemm/1"].base(columns, HARDWARE)
    wave = 1 + 0.1 * np.sin(columns["m"] / 300)
    return np.asarray(base * 1.3 * wave)


@cache
def gemm_trees(seed: int = 0, base: str = "tiled", rounds: int = 60) -> SymmetricTrees:
    columns, features = gemm_columns(), FEATURE_SETS["gemm/1"]
    target = np.log(gemm_seconds(columns) / features.bases[base](columns, HARDWARE))
    settings = TreeSettings(rounds=rounds, depth=4, seed=seed)
    return fit_symmetric_trees(features.compute(columns, HARDWARE), target, settings)


@cache
def trees_model(rate: float | None = None) -> FittedModel:
    trees = gemm_trees()
    columns = gemm_columns(seed=1)
    base = FEATURE_SETS["gemm/1"].base(columns, HARDWARE)
    described = FEATURE_SETS["gemm/1"].compute(columns, HARDWARE)
    errors = np.log(gemm_seconds(columns) / base) - trees.predict(described)
    width = fit_conformal_widths(np.abs(errors), LEVEL).pooled
    interval = encode_interval(
        OneWidth(level=LEVEL, width=width),
        folds="rows",
        residuals=len(errors),
        bins=trees.bins,
        widening=None if rate is None else DistanceWidening(rate=rate),
    )
    return encode_trees([trees], features="gemm/1", bases=["tiled"], interval=interval)


def curve_model(size: str = "m", width: float = 0.05, **changes: Any) -> FittedModel:
    sizes = np.array([16.0, 64.0, 256.0, 1024.0])
    curve = fit_log_log_curve(sizes, 1e-6 + sizes * 1e-8)
    interval = encode_interval(OneWidth(level=LEVEL, width=width), folds="rows", residuals=40)
    return encode_curve(curve, size=size, interval=interval, **changes)


def sized_model(
    sizes: tuple[float, ...] = (16.0, 1024.0),
    widths: tuple[float, ...] = (0.4, 0.025),
    rate_above: float = 0.3,
) -> FittedModel:
    """A curve with a jump between 128 and 130, and noise that falls with size."""
    curve = LogLogCurve(
        sizes=np.array([16.0, 64.0, 128.0, 130.0, 1024.0]),
        values=np.array([1e-6, 2e-6, 3e-6, 6e-6, 9e-6]),
        lower_slope=0.2,
        upper_slope=0.9,
    )
    by_size = SizedWidths(
        level=LEVEL, sizes=np.array(sizes), widths=np.array(widths), rate_above=rate_above
    )
    interval = encode_interval(by_size, folds="points", residuals=120)
    return encode_curve(curve, size="m", interval=interval)


@cache
def process_model() -> FittedModel:
    draws = np.random.default_rng(3)
    message, ranks = 2.0 ** draws.integers(8, 28, 60), 2.0 ** draws.integers(1, 4, 60)
    target = np.log(1e-5 + message * ranks / 1e12)
    process = fit_gaussian_process(np.log2(np.column_stack((message, ranks))), target)
    interval = encode_interval(
        OneWidth(level=LEVEL, width=1.8, by_deviation=True), folds="rows", residuals=60
    )
    return encode_gaussian_process(
        process, inputs=["message_bytes", "participants"], interval=interval
    )


@cache
def gemm_process() -> FittedModel:
    """A process over one input and two features, as a multiple of a base."""
    columns, features = gemm_columns(60, seed=4), FEATURE_SETS["gemm/1"]
    table = features.compute(columns, HARDWARE).astype(np.float64)
    names = features.names(HARDWARE)
    read = np.column_stack(
        [np.log2(columns["k"]), *(table[:, names.index(name)] for name in _READ)]
    )
    target = np.log(gemm_seconds(columns) / features.bases["roofline"](columns, HARDWARE))
    return encode_gaussian_process(
        fit_gaussian_process(read, target),
        inputs=["k", *_READ],
        features="gemm/1",
        base="roofline",
    )


def slice_of(**changes: Any) -> CalibrationSlice:
    standard: dict[str, Any] = {
        "terms": {"dtype": "float16"},
        "domain": {name: DomainRange(minimum=16, maximum=4096) for name in ("m", "n", "k")},
        "training": TrainingRecords(records=300, record_sets=(SHA,), digest=SHA),
        "split": SHA,
        "inside": trees_model(),
    }
    return CalibrationSlice(**(standard | changes))


def calibration(**changes: Any) -> Calibration:
    predictions = Predictions(
        ids=[f"{SHA}#{row}" for row in range(3)],
        measured=np.array([1.0, 2.0, 4.0]),
        predicted=np.array([1.1, 2.0, 4.0]),
    )
    standard: dict[str, Any] = {
        "schema": CALIBRATION_SCHEMA,
        "family": "operation-size-efficiency",
        "response": "latency",
        "operation": "gemm",
        "device": "a100",
        "inputs": ("m", "n", "k"),
        "terms": {},
        "base": BaseModel(kind="stated", name="hardware", numbers=hardware_numbers(HARDWARE)),
        "slices": (slice_of(),),
        "held_out_report": held_out_report(predictions, response="latency"),
        "seed": 0,
        "libraries": {"numpy": "2.1.0"},
    }
    return Calibration(**(standard | changes))


def promote(repository: Any, *found: Calibration, names: bool = True) -> list[str]:
    """Add calibrations, have the default policy name them, commit."""
    text = (repository.path / POLICY).read_text().partition("\ncalibrations:")[0]
    digests, lines = [], []
    for item in found:
        path, sha256, content = document_file(item)
        digests.append(sha256)
        repository.write(path, content)
        lines.append(
            f"  - {{response: latency, operation: {item.operation}, device: {item.device}, "
            f"revision: {digests[-1]}}}"
        )
    if names:
        text += "\ncalibrations:\n" + "\n".join(lines) + "\n"
    repository.write(POLICY, text.encode())
    repository.commit("calibrations")
    return digests

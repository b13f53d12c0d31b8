"""A small calibration revision, complete and made up."""

from typing import Any

import numpy as np

from perfdb_git.calibration.documents import CALIBRATION_SCHEMA, VALIDATION_SCHEMA
from perfdb_git.calibration.reports import Predictions, held_out_report
from perfdb_git.formats.arrays import encode_parameters
from perfdb_git.model.calibration import (
    Calibration,
    CalibrationSlice,
    DomainRange,
    FittedModel,
    TrainingRecords,
)
from perfdb_git.model.held_out import HeldOutReport
from perfdb_git.model.validation import (
    ErrorLimit,
    RecordPair,
    Simulator,
    Validation,
    ValidationTarget,
)

SHA = "0123456789abcdef" * 4


def report(**changes: Any) -> HeldOutReport:
    standard: dict[str, Any] = {
        "ids": [f"{SHA}#{row}" for row in range(3)],
        "measured": np.array([1.0, 2.0, 4.0]),
        "predicted": np.array([1.1, 2.0, np.nan]),
    }
    return held_out_report(Predictions(**(standard | changes)), response="latency")


def slice_of(**changes: Any) -> CalibrationSlice:
    standard: dict[str, Any] = {
        "terms": {"dtype": "float16"},
        "domain": {name: DomainRange(minimum=1, maximum=64) for name in ("m", "n", "k")},
        "training": TrainingRecords(records=9, record_sets=(SHA,), digest=SHA),
        "split": SHA,
        "inside": FittedModel(
            form="log-log-curve",
            form_version=1,
            features=None,
            parameters=encode_parameters({"noise": 0.01}, {"size": np.arange(5.0)}),
            interval=None,
        ),
    }
    return CalibrationSlice(**(standard | changes))


def calibration(**changes: Any) -> Calibration:
    standard: dict[str, Any] = {
        "schema": CALIBRATION_SCHEMA,
        "family": "operation-size-efficiency",
        "response": "latency",
        "operation": "gemm",
        "device": "a100_80g",
        "inputs": ("m", "n", "k"),
        "terms": {"runtime": "trtllm", "form_factor": None},
        "base": None,
        "slices": (slice_of(),),
        "held_out_report": report(),
        "seed": 0,
        "libraries": {"numpy": "2.1.0"},
    }
    return Calibration(**(standard | changes))


def validation(**changes: Any) -> Validation:
    standard: dict[str, Any] = {
        "schema": VALIDATION_SCHEMA,
        "simulator": Simulator(name="gpusim", revision="1a2b3c"),
        "target": ValidationTarget(device="a100_80g", component=None, capability_revision=None),
        "operation": "gemm",
        "response": "latency",
        "pairs": (RecordPair(simulated=f"{SHA}#0", measured=f"{SHA}#1"),),
        "held_out_report": report(),
        "limit": ErrorLimit(statistic="max_pct", value=15),
    }
    return Validation(**(standard | changes))

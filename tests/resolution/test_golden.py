"""Answers that may only change together with their provider's revision number.

`PERFDB_UPDATE_GOLDEN=1 pytest tests/resolution/test_golden.py` writes the file anew; do that after
raising REVISION in the provider whose answers changed.
"""

import json
import math
import os
from pathlib import Path
from typing import Any

import numpy as np

from perfdb_git.analysis.conformal import DistanceWidening
from perfdb_git.analysis.curves import LogLogCurve
from perfdb_git.analysis.scale_offset import ScaleOffset
from perfdb_git.formats.codec import encode
from perfdb_git.model.calibration import DomainRange
from perfdb_git.providers import analytical, calibration_selection, fallback, recorded
from perfdb_git.providers.fitted_models import (
    OneWidth,
    encode_curve,
    encode_interval,
    encode_scale_offset,
)
from tests.resolution.fitted import calibration, promote, sized_model, slice_of

GOLDEN = Path(__file__).parent / "golden" / "answers.json"
GOLDEN_CALIBRATED = GOLDEN.with_name("calibrated.json")
REVISIONS = {
    "analytical": analytical.REVISION,
    "fallback": fallback.REVISION,
    "recorded": recorded.REVISION,
}
GEMM = {"operation": "gemm", "device": "a100_80g", "dtype": "float16", "n": 256, "k": 512}
REDUCE = {"operation": "all_reduce", "message_bytes": 2**20, "participants": 8}
DECODE = {
    "operation": "attention_decode",
    "device": "h200_141g",
    "dtype": "bfloat16",
    "kv_cache_dtype": "float8",
    "batch_size": 4,
    "query_heads": 32,
    "kv_heads": 8,
    "head_size": 128,
    "kv_cache_length": 1023,
}
QUESTIONS: dict[str, dict[str, Any]] = {
    "one record": {**GEMM, "m": 128},
    "two sessions": {**GEMM, "m": 64},
    "repeats": {**GEMM, "m": 32},
    "raw samples": {**GEMM, "m": 16},
    "between records": {**GEMM, "m": 100},
    "ambiguous": {**GEMM, "m": 8},
    "another dtype": {**GEMM, "m": 128, "dtype": "float32"},
    "H100 GEMM": {**GEMM, "m": 4096, "device": "h100_80g", "dtype": "float8"},
    "H200 decode": DECODE,
    "H200 windowed decode": {**DECODE, "window_size": 128},
    "A100 all-reduce": {**REDUCE, "device": "a100_80g"},
    "H200 all-reduce over nodes": {**REDUCE, "device": "h200_141g", "participants_per_node": 4},
    "copy": {"operation": "memory_copy", "device": "h100_80g", "transfer_bytes": 10**8},
}


def fill(repository: Any) -> None:
    repository.add([[128, 256, 512, 1.0, 0.05], [64, 256, 512, 0.6, 0.02]])
    repository.add([[64, 256, 512, 0.9, 0.01]], session="s2")
    repository.add(
        [[32, 256, 512, value] for value in (0.4, 0.41, 0.44)],
        metrics=(("latency", "mean", "ms"),),
    )
    repository.add(
        [[16, 256, 512, [0.30, 0.31, 0.29, 0.33, 0.30]]], metrics=(("latency", "sample", "ms"),)
    )
    for runtime in ("trtllm", "vllm"):
        repository.add([[8, 256, 512, 0.2, 0.01]], context={"runtime": runtime}, session=runtime)
    repository.commit()


def plain(value: Any) -> Any:
    """Return the value as a JSON document reads it back, without what names the snapshot.

    The commit, the policy's digest and the cache key follow every remark in a policy or vocabulary.
    """
    found = json.loads(json.dumps(value))
    del found["snapshot"], found["policy"], found["cache_key"]
    if found["estimate"] is not None:
        del found["estimate"]["provenance"]["commit"]
    return found


def equal(found: Any, golden: Any) -> bool:
    """Compare values exactly, floats within 1e-12: log and exp differ in the last bits."""
    if isinstance(golden, dict):
        return (
            isinstance(found, dict)
            and found.keys() == golden.keys()
            and all(equal(found[key], golden[key]) for key in golden)
        )
    if isinstance(golden, list):
        return (
            isinstance(found, list)
            and len(found) == len(golden)
            and all(equal(*pair) for pair in zip(found, golden, strict=True))
        )
    if isinstance(golden, float) and isinstance(found, int | float):
        return math.isclose(found, golden, rel_tol=1e-12)
    return bool(found == golden)


def test_answers_change_only_with_their_revision(repository: Any) -> None:
    fill(repository)
    snapshot = repository.at()
    answers = {
        name: plain(encode(snapshot.resolve(**question))) for name, question in QUESTIONS.items()
    }
    if os.environ.get("PERFDB_UPDATE_GOLDEN") == "1":
        GOLDEN.parent.mkdir(exist_ok=True)
        text = json.dumps({"revisions": REVISIONS, "answers": answers}, indent=1)
        GOLDEN.write_text(text + "\n")
    golden = json.loads(GOLDEN.read_text())
    changed = [name for name in QUESTIONS if not equal(answers[name], golden["answers"][name])]
    assert not changed, f"{changed} changed: raise REVISION of the provider, then update"
    assert golden["revisions"] == REVISIONS, "REVISION was raised: update the golden file"


def test_calibrated_answers_change_only_with_their_revision(repository: Any) -> None:
    curve = LogLogCurve(
        sizes=np.array([16.0, 64.0, 128.0, 130.0, 1024.0]),
        values=np.array([1e-6, 2e-6, 3e-6, 6e-6, 9e-6]),
        lower_slope=0.2,
        upper_slope=0.9,
    )
    interval = encode_interval(
        OneWidth(level=0.9, width=0.05),
        folds="rows",
        residuals=40,
        widening=DistanceWidening(rate=0.3),
    )
    by_base = ScaleOffset(alpha=1.5, beta=1e-6, covariance=None)
    models = {
        "float16": encode_curve(curve, size="m", interval=interval),
        "bfloat16": encode_scale_offset(by_base, modelled="tiled", features="gemm/1"),
        "float32": sized_model(),
    }
    terms = {"n": 256, "k": 512}
    domain = {"m": DomainRange(minimum=16, maximum=1024)}
    slices = tuple(
        slice_of(inside=model, domain=domain, terms={"dtype": dtype, **terms})
        for dtype, model in models.items()
    )
    promote(repository, calibration(device="a100_80g", inputs=("m",), slices=slices))
    snapshot = repository.at()
    answers = {
        f"{dtype} {m:g}": plain(encode(snapshot.resolve(**{**GEMM, "dtype": dtype, "m": m})))
        for dtype in models
        for m in (16, 100, 129, 4096, 10**5)
    }
    if os.environ.get("PERFDB_UPDATE_GOLDEN") == "1":
        text = json.dumps(
            {"revision": calibration_selection.REVISION, "answers": answers}, indent=1
        )
        GOLDEN_CALIBRATED.write_text(text + "\n")
    golden = json.loads(GOLDEN_CALIBRATED.read_text())
    changed = [name for name in answers if not equal(answers[name], golden["answers"][name])]
    assert not changed, f"{changed} changed: raise REVISION of the provider, then update"
    assert golden["revision"] == calibration_selection.REVISION, (
        "REVISION was raised: update the golden file"
    )


def test_the_comparison_itself_sees_a_change() -> None:
    assert equal({"a": [1.0, "x"]}, {"a": [1.0 + 1e-15, "x"]})
    assert not equal({"a": [1.0, "x"]}, {"a": [1.0 + 1e-9, "x"]})
    assert not equal({"a": [1.0, "x"]}, {"a": [1.0, "y"]})
    assert not equal({"a": 1}, {"a": 1, "b": 2})

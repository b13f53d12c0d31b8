"""Inputs that a calibration may not have, each with its reason."""

from typing import Any

import pytest

from perfdb_git.calibration.forbidden import (
    forbidden_in_spec,
    forbidden_inputs,
    input_fault,
    slice_term_fault,
)
from perfdb_git.formats.codec import decode
from perfdb_git.formats.strict_yaml import read_yaml
from perfdb_git.model.calibration import CalibrationSpec, DomainRange, TrainingRecords
from tests.calibration.conftest import PROJECT
from tests.calibration.revisions import SHA, calibration, slice_of

REFUSED = {
    # case and benchmark ids
    "case_id": "an id says",
    "benchmark_id": "an id says",
    "row": "an id says",
    "session": "an id says",
    # oracle totals, and the answer itself
    "oracle_total": "it is the answer",
    "total_time": "it is the answer",
    "measured_latency": "it is the answer",
    "latency": "it is a metric",
    "energy": "it is a metric",
    # factors for each case
    "correction_factor": "a factor for each case",
    "case_factor": "an id says",
    "scale": "a factor for each case",
    # names of models and networks, tasks and labels
    "model": "the name of a model",
    "model_name": "the name of a model",
    "network": "the name of a model",
    "op": "the name of a model",
    "task": "it is for people",
    "label": "the name of a model",
    # what is no quantity of the work
    "implementation": "a dimension of the subject",
    "runtime_revision": "free text has no size",
    "layout": "free text has no size",
    "operation": "a calibration is for one operation",
    "device": "a calibration is for one operation",
    "tile_count": "it is no dimension",
}
ALLOWED = (
    "m",
    "k",
    "batch_size",
    "window_size",
    "message_bytes",
    "participants",
    "participants_per_node",
    "dtype",
    "kv_cache_dtype",
    "concurrency",
    "occupancy",
    "bytes_read",
    "norm_kind",
)


@pytest.mark.parametrize("name", REFUSED)
def test_refused_with_a_reason(name: str, vocabulary: Any) -> None:
    reason = input_fault(name, vocabulary)
    assert reason is not None and reason.startswith(REFUSED[name])


@pytest.mark.parametrize("name", ALLOWED)
def test_causal_dimensions_are_allowed(name: str, vocabulary: Any) -> None:
    assert input_fault(name, vocabulary) is None


def test_names_may_tell_slices_apart_where_queries_are_matched_by_them(vocabulary: Any) -> None:
    for name in ("runtime", "runtime_revision", "implementation", "topology", "head_size"):
        assert slice_term_fault(name, vocabulary) is None
    for name in ("task", "model", "benchmark", "kernel", "operation", "row"):
        assert slice_term_fault(name, vocabulary) is not None


def test_an_honest_revision_has_none(vocabulary: Any) -> None:
    assert list(forbidden_inputs(calibration(), vocabulary)) == []


def test_a_revision_written_by_hand_is_searched(vocabulary: Any) -> None:
    wide = {name: DomainRange(minimum=1, maximum=2) for name in ("m", "n", "k", "case_id")}
    lone = TrainingRecords(records=1, record_sets=(SHA,), digest=SHA)
    cheat = calibration(
        inputs=("m", "n", "k", "case_id"),
        terms={"task": "up"},
        slices=(
            slice_of(terms={"model": "Llama-2-70b"}, domain=wide),
            slice_of(terms={"m": 1, "n": 2, "k": 3}, domain={**wide, "layer": wide["m"]}),
            slice_of(domain=wide, training=lone),
        ),
    )
    found = [(item.pointer, item.name) for item in forbidden_inputs(cheat, vocabulary)]
    assert found == [
        ("/inputs/3", "case_id"),
        ("/terms/task", "task"),
        ("/slices/0/terms/model", "model"),
        ("/slices/1/domain/layer", "layer"),
        ("/slices/2", "dtype=float16"),
    ]


def test_a_slice_that_leaves_no_input_free_is_a_factor(vocabulary: Any) -> None:
    pinned = calibration(slices=(slice_of(terms={"m": 1, "n": 2, "k": 3}),))
    (found,) = forbidden_inputs(pinned, vocabulary)
    assert found.pointer == "/slices/0" and "no input free" in found.reason


def test_a_spec_is_searched(vocabulary: Any) -> None:
    path = PROJECT / "tests/schemas/examples/calibration-spec.yaml"
    value = read_yaml(path.read_bytes(), document=path.name)
    assert isinstance(value, dict)
    honest = decode(CalibrationSpec, value, document=path.name)
    assert list(forbidden_in_spec(honest, vocabulary)) == []
    part = {**value["parts"][0], "slice_by": ["dtype", "task"], "terms": {"op": ["up"]}}
    cheat = decode(
        CalibrationSpec, {**value, "inputs": ["latency"], "parts": [part]}, document=path.name
    )
    found = [item.pointer for item in forbidden_in_spec(cheat, vocabulary)]
    assert found == ["/inputs/0", "/parts/0/terms/op", "/parts/0/slice_by/1"]

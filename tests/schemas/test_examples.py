"""One small valid document of each kind, and broken variants refused at the right place."""

from __future__ import annotations

import copy
import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from perfdb_git.errors import InvalidInputError
from perfdb_git.formats.codec import decode, encode
from perfdb_git.formats.schemas import SchemaStore
from perfdb_git.formats.strict_yaml import read_yaml
from perfdb_git.model.calibration import Calibration, CalibrationSpec
from perfdb_git.model.estimate import CostEstimate
from perfdb_git.model.gates import Gates
from perfdb_git.model.held_out import HeldOutReport
from perfdb_git.model.mapping import TableMapping
from perfdb_git.model.pipeline import Pipeline
from perfdb_git.model.plan import Plan
from perfdb_git.model.plan_lock import PlanLock
from perfdb_git.model.policy import Policy
from perfdb_git.model.query import CostQuery
from perfdb_git.model.records import Manifest, RecordSetHeader, Retraction
from perfdb_git.model.result import Resolution, ResultEnvelope
from perfdb_git.model.splits import Split
from perfdb_git.model.system_profile import SystemProfile
from perfdb_git.model.timing_profile import TimingProfile
from perfdb_git.model.training import TrainingExecution, TrainingModel
from perfdb_git.model.transformer import TransformerModel
from perfdb_git.model.validation import Validation
from perfdb_git.model.vocabulary import Vocabulary

SCHEMAS = Path(__file__).parents[2] / "schemas"
STORE = SchemaStore(SCHEMAS)
SHA = "0123456789abcdef" * 4

TYPES: dict[str, type] = {
    "record-set": RecordSetHeader,
    "manifest": Manifest,
    "vocabulary": Vocabulary,
    "mapping": TableMapping,
    "system-profile": SystemProfile,
    "timing-profile": TimingProfile,
    "pipeline": Pipeline,
    "plan": Plan,
    "plan-lock": PlanLock,
    "policy": Policy,
    "query": CostQuery,
    "estimate": CostEstimate,
    "result": ResultEnvelope,
    "retraction": Retraction,
    "split": Split,
    "held-out-report": HeldOutReport,
    "calibration": Calibration,
    "calibration-spec": CalibrationSpec,
    "validation": Validation,
    "gates": Gates,
    "training-model": TrainingModel,
    "training-execution": TrainingExecution,
    "transformer-model": TransformerModel,
}


EXACT = {"timing-profile", "pipeline"}
"""Kinds whose numbers stay decimals."""


def read(kind: str) -> dict[str, Any]:
    path = Path(__file__).with_name("examples") / f"{kind}.yaml"
    value = read_yaml(path.read_bytes(), document=path.name, decimal=kind in EXACT)
    assert isinstance(value, dict)
    return value


EXAMPLES = {kind: (cls, read(kind)) for kind, cls in TYPES.items()}
TUNING = "/extensions/perfdb~1extension~1collective-tuning~1v1"
ABSENT = object()

BROKEN: list[tuple[str, str, object, str]] = [
    # kind, where to change, new value, pointer of the refusal
    ("record-set", "/kind", "guessed", "/kind"),
    ("record-set", "/environment", "abc", "/environment"),
    ("record-set", "/environment", SHA + "\n", "/environment"),
    ("record-set", "/protocol/clock_state", ABSENT, "/protocol"),
    ("record-set", "/protocol/timer_resolution/unit", "usec", "/protocol/timer_resolution/unit"),
    ("record-set", "/protocol/warmup", -1, "/protocol/warmup"),
    ("record-set", "/context/device", None, "/context/device"),
    ("record-set", "/context/operation", ABSENT, "/context"),
    ("record-set", "/context/graph", True, "/context/graph"),
    ("record-set", "/source/git_blob", SHA, "/source/git_blob"),
    ("record-set", "/source/measured_at", "May 2024", "/source/measured_at"),
    ("record-set", "/source/mapping/sha256", None, "/source/mapping/sha256"),
    ("record-set", "/columns/0/unit", ABSENT, "/columns/0"),
    ("record-set", "/columns/0/statistic", "mean", "/columns/0/statistic"),
    ("record-set", "/columns/1/statistic", ABSENT, "/columns/1"),
    ("record-set", "/columns/1/statistic", "avg", "/columns/1/statistic"),
    ("record-set", "/columns/1/unit", None, "/columns/1/unit"),
    ("record-set", "/columns/2/unit", "1", "/columns/2/unit"),
    ("record-set", "/columns/1", ABSENT, "/columns"),
    ("record-set", "/rows", ABSENT, ""),
    ("record-set", TUNING, 1, TUNING),
    ("record-set", "/extensions/tuning", {}, "/extensions"),
    ("manifest", "/device_count", 0, "/device_count"),
    ("manifest", "/runtimes/cuda", 12.1, "/runtimes/cuda"),
    ("manifest", "/host_name", "node1", ""),
    ("manifest", "/driver", ABSENT, ""),
    ("vocabulary", "/dimensions/M", {}, "/dimensions"),
    ("vocabulary", "/dimensions/m/unit", ABSENT, "/dimensions/m"),
    ("vocabulary", "/dimensions/m/terms", {"a": []}, "/dimensions/m/terms"),
    ("vocabulary", "/dimensions/dtype/terms", ABSENT, "/dimensions/dtype"),
    ("vocabulary", "/dimensions/dtype/terms", {}, "/dimensions/dtype/terms"),
    (
        "vocabulary",
        "/dimensions/dtype/terms/float32",
        ["a", "a"],
        "/dimensions/dtype/terms/float32",
    ),
    ("vocabulary", "/dimensions/dtype/unit", "B", "/dimensions/dtype/unit"),
    ("vocabulary", "/operations/gemm/engine", "gpu", "/operations/gemm/engine"),
    ("mapping", "/dimensions/dtype/value", "float16", "/dimensions/dtype"),
    ("mapping", "/dimensions/runtime/unknown", ABSENT, "/dimensions/runtime"),
    ("mapping", "/operations/0/metrics/0/unit", "msec", "/operations/0/metrics/0/unit"),
    ("mapping", "/operations/0/metrics", [], "/operations/0/metrics"),
    ("mapping", "/operations/0/protocol", {"warmup": 1}, "/operations/0/protocol"),
    ("mapping", "/format", "xlsx", "/format"),
    ("mapping", "/version", 0, "/version"),
    ("system-profile", "/networks/0/efficiency", 1.01, "/networks/0/efficiency"),
    ("system-profile", "/networks/0/size", 0, "/networks/0/size"),
    ("system-profile", "/table_reading", "smooth", "/table_reading"),
    (
        "system-profile",
        "/engines/matrix/float16/efficiency_by_gops/1/threshold",
        -1,
        "/engines/matrix/float16/efficiency_by_gops/1/threshold",
    ),
    (
        "system-profile",
        "/engines/matrix/float16/peak_tops",
        0,
        "/engines/matrix/float16/peak_tops",
    ),
    ("system-profile", "/fallback/source", ABSENT, "/fallback"),
    ("system-profile", "/sources/0/pointer", "engines", "/sources/0/pointer"),
    ("timing-profile", "/components/cpu/lanes", 0, "/components/cpu/lanes"),
    ("timing-profile", "/components/cpu/lanes", ABSENT, "/components/cpu"),
    ("timing-profile", "/components/cpu/color", "red", "/components/cpu"),
    ("timing-profile", "/components/cpu/clock_mhz", 0, "/components/cpu/clock_mhz"),
    ("timing-profile", "/components/cpu/notes", "", "/components/cpu/notes"),
    ("timing-profile", "/components/link/target", ABSENT, "/components/link"),
    ("timing-profile", "/components/link/target", None, "/components/link/target"),
    ("timing-profile", "/components/link/calibration", "newest", "/components/link/calibration"),
    ("timing-profile", "/components", {}, "/components"),
    ("pipeline", "/stages", [], "/stages"),
    ("pipeline", "/stages/0/work/bytes", -1, "/stages/0/work/bytes"),
    ("pipeline", "/stages/0/work/flops", 1, "/stages/0/work"),
    ("pipeline", "/stages/1/query", {}, "/stages/1/query"),
    ("pipeline", "/jobs/count", 0, "/jobs/count"),
    ("pipeline", "/jobs/arrivals/kind", "random", "/jobs/arrivals/kind"),
    ("plan", "/name", "decode.lock", "/name"),
    ("plan", "/queries", [], "/queries"),
    ("plan", "/queries/0/query", {}, "/queries/0/query"),
    ("plan", "/queries/0/multiplicity", 0, "/queries/0/multiplicity"),
    ("plan", "/queries/1/multiplicity", 1.5, "/queries/1/multiplicity"),
    ("plan", "/composition/kind", "product", "/composition/kind"),
    ("plan", "/composition/pipeline", "submit", "/composition/pipeline"),
    ("plan", "/composition/kind", "pipeline", "/composition"),
    ("plan-lock", "/commit", "main", "/commit"),
    ("plan-lock", "/digest", ABSENT, ""),
    ("plan-lock", "/trees/evidence", "", "/trees/evidence"),
    ("plan-lock", "/queries/0/answer/value", -1, "/queries/0/answer/value"),
    ("plan-lock", "/queries/0/answer/method", "guessed", "/queries/0/answer/method"),
    ("plan-lock", "/result/makespan_ps", "012", "/result/makespan_ps"),
    ("plan-lock", "/host", "node1", ""),
    ("policy", "/tiers", ["analytical", "analytical"], "/tiers"),
    ("policy", "/tiers/1", "guess", "/tiers/1"),
    ("policy", "/interval/level", 1, "/interval/level"),
    ("policy", "/conflict/threshold", -0.1, "/conflict/threshold"),
    ("policy", "/limits/max_age_days", -1, "/limits/max_age_days"),
    ("policy", "/calibrations/0/revision", "latest", "/calibrations/0/revision"),
    ("query", "/workload/operation", ABSENT, "/workload"),
    ("query", "/workload/shape/m", True, "/workload/shape/m"),
    ("query", "/workload/message_bytes", -1, "/workload/message_bytes"),
    ("query", "/deployment/participants", 1.5, "/deployment/participants"),
    ("query", "/evidence_policy/methods/0", "guessed", "/evidence_policy/methods/0"),
    ("query", "/deployment/color", "red", "/deployment"),
    ("estimate", "/method", ABSENT, ""),
    ("estimate", "/provenance", ABSENT, ""),
    ("estimate", "/metrics", {}, "/metrics"),
    ("estimate", "/metrics/latency/uncertainty/level", 0, "/metrics/latency/uncertainty/level"),
    ("estimate", "/metrics/latency/value", -1, "/metrics/latency/value"),
    ("estimate", "/provenance/record_ids/0", SHA + "#01", "/provenance/record_ids/0"),
    ("estimate", "/validity/distance_octaves", -1, "/validity/distance_octaves"),
    ("result", "/status", "fine", "/status"),
    ("result", "/status", "no-evidence", "/data/estimate"),
    ("result", "/data", None, "/data"),
    ("result", "/data/estimate", None, "/data/estimate"),
    ("result", "/data/estimate/method", "guessed", "/data/estimate/method"),
    ("result", "/data/query_digest", SHA, "/data/query_digest"),
    ("result", "/data/snapshot/commit", "main", "/data/snapshot/commit"),
    ("result", "/data/alternatives/0/code", "No record", "/data/alternatives/0/code"),
    ("result", "/messages/0/level", "info", "/messages/0/level"),
    ("retraction", "/target", SHA + "#-1", "/target"),
    ("retraction", "/reason", "", "/reason"),
    ("retraction", "/retracted_on", "2024-13-01", "/retracted_on"),
    ("retraction", "/replacement", ABSENT, ""),
    ("split", "/recipe/bucket", ABSENT, "/recipe"),
    (
        "split",
        "/recipe/cut",
        {"dimension": "m", "at": 1, "held_out": "above"},
        "/recipe",
    ),
    ("split", "/recipe/bucket/hex_digits", 65, "/recipe/bucket/hex_digits"),
    ("split", "/recipe/bucket/modulus", 1, "/recipe/bucket/modulus"),
    ("split", "/recipe/key/columns", [], "/recipe/key/columns"),
    ("split", "/recipe/records/terms/k", [], "/recipe/records/terms/k"),
    ("split", "/membership/held_out_digest", "d6dbc1a0", "/membership/held_out_digest"),
    ("held-out-report", "/overall/mape_pct", -1, "/overall/mape_pct"),
    ("held-out-report", "/overall/n", 0, "/overall/n"),
    ("held-out-report", "/overall/coverage", 1.01, "/overall/coverage"),
    ("held-out-report", "/groups/0/errors", None, "/groups/0/errors"),
    ("held-out-report", "/records_digest", ABSENT, ""),
    ("calibration", "/family", "guesses", "/family"),
    ("calibration", "/inputs", [], "/inputs"),
    ("calibration", "/inputs/0", "Model", "/inputs/0"),
    ("calibration", "/held_out_report", ABSENT, ""),
    ("calibration", "/slices/0/split", "rand20", "/slices/0/split"),
    ("calibration", "/slices/0/training/records", 0, "/slices/0/training/records"),
    ("calibration", "/slices/0/inside/form", "oracle", "/slices/0/inside/form"),
    (
        "calibration",
        "/slices/0/inside/parameters/arrays/leaf_values/data",
        "AAA-",
        "/slices/0/inside/parameters/arrays/leaf_values/data",
    ),
    ("calibration", "/libraries", {}, "/libraries"),
    ("calibration-spec", "/parts", [], "/parts"),
    ("calibration-spec", "/parts/0/forms", ["forest"], "/parts/0/forms/0"),
    ("calibration-spec", "/parts/0/split/cut", ABSENT, "/parts/0/split"),
    ("calibration-spec", "/level", 1, "/level"),
    ("validation", "/pairs", [], "/pairs"),
    ("validation", "/pairs/0/measured", SHA, "/pairs/0/measured"),
    ("validation", "/limit/value", 0, "/limit/value"),
    ("validation", "/target/component", ABSENT, "/target"),
    ("gates", "/defaults", ABSENT, ""),
    ("gates", "/defaults/inside/max_coverage", 1.5, "/defaults/inside/max_coverage"),
    ("gates", "/defaults/inside/max_mape", 1, "/defaults/inside"),
    ("gates", "/series/0/limits", ABSENT, "/series/0"),
    ("gates", "/defaults/min_held_out_records", 2.5, "/defaults/min_held_out_records"),
    ("transformer-model", "/kv_heads", 0, "/kv_heads"),
    ("transformer-model", "/norm", "batch", "/norm"),
    ("transformer-model", "/experts", 8, ""),
    ("transformer-model", "/vocabulary_size", ABSENT, ""),
    ("training-model", "/blocks", 0, "/blocks"),
    ("training-model", "/hidden_size", 1.5, "/hidden_size"),
    ("training-model", "/head_size", ABSENT, ""),
    ("training-execution", "/recompute", "attn_only", "/recompute"),
    (
        "training-execution",
        "/tensor_parallel/communication",
        "ar",
        "/tensor_parallel/communication",
    ),
    ("training-execution", "/pipeline_parallel/interleaving", 0, "/pipeline_parallel/interleaving"),
    ("training-execution", "/data_parallel/network_tier", -1, "/data_parallel/network_tier"),
    ("training-execution", "/offload/weights", 1, "/offload/weights"),
]


def changed(document: Mapping[str, Any], pointer: str, value: object) -> dict[str, Any]:
    """Copy of a document with one place set, or taken out for ``ABSENT``."""
    result = copy.deepcopy(dict(document))
    *parents, last = [p.replace("~1", "/").replace("~0", "~") for p in pointer.split("/")[1:]]
    node: Any = result
    for part in parents:
        node = node[int(part)] if isinstance(node, list) else node[part]
    key: Any = int(last) if isinstance(node, list) else last
    if value is ABSENT:
        del node[key]
    else:
        node[key] = value
    return result


def assert_kept(document: Any, encoded: Any, where: str = "") -> None:
    """Everything that the document states is in its encoded form, with an equal value."""
    if isinstance(document, dict):
        assert isinstance(encoded, dict), where
        for key, value in document.items():
            assert_kept(value, encoded[key], f"{where}/{key}")
    elif isinstance(document, list):
        assert len(document) == len(encoded), where
        for index, value in enumerate(document):
            assert_kept(value, encoded[index], f"{where}/{index}")
    else:
        assert document == encoded, where


def plain(value: object) -> Any:
    """Nested dictionaries and lists of a dataclass object, decimals as they are."""
    if dataclasses.is_dataclass(value):
        return {item.name: plain(getattr(value, item.name)) for item in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, tuple) else value


def refusal(kind: str, document: dict[str, Any]) -> InvalidInputError:
    with pytest.raises(InvalidInputError) as caught:
        STORE.validate(document, document="example", expected_kind=kind)
    return caught.value


def test_there_is_an_example_of_each_kind() -> None:
    kinds = {kind for kind in STORE.kinds() if not kind.startswith("extension")}
    assert set(EXAMPLES) == kinds


@pytest.mark.parametrize("kind", EXAMPLES)
def test_a_valid_document_survives_the_codec(kind: str) -> None:
    cls, document = EXAMPLES[kind]
    STORE.validate(document, document="example", expected_kind=kind)
    rows = {"rows": document["rows"]} if "rows" in document else {}
    header = {key: value for key, value in document.items() if key not in rows}
    value = decode(cls, header, document="example")
    if kind in EXACT:
        # Documents of these kinds are written by hand only, so that decimals have no JSON form.
        assert_kept(header, plain(value))
        return
    encoded = encode(value)
    assert isinstance(encoded, dict)
    assert_kept(header, encoded)
    assert decode(cls, encoded, document="example") == value
    STORE.validate({**encoded, **rows}, document="example", expected_kind=kind)


def test_a_resolution_survives_the_codec() -> None:
    _, envelope = EXAMPLES["result"]
    value = decode(Resolution, envelope["data"], document="example", pointer="/data")
    encoded = encode(value)
    assert_kept(envelope["data"], encoded)
    STORE.validate({**envelope, "data": encoded}, document="example", expected_kind="result")


@pytest.mark.parametrize(
    ("kind", "place", "value", "pointer"),
    BROKEN,
    ids=[f"{kind}{place}-{index}" for index, (kind, place, _, _) in enumerate(BROKEN)],
)
def test_a_broken_document_is_refused_at_its_place(
    kind: str, place: str, value: object, pointer: str
) -> None:
    document = changed(EXAMPLES[kind][1], place, value)
    assert refusal(kind, document).pointer == pointer
    assert pointer in {
        violation.pointer for violation in STORE.iter_violations(document, document="example")
    }


def test_each_kind_has_broken_variants() -> None:
    counts = {kind: sum(broken[0] == kind for broken in BROKEN) for kind in EXAMPLES}
    assert min(counts.values()) >= 3


@pytest.mark.parametrize(("status", "data"), [("error", None), ("no-evidence", "without estimate")])
def test_a_resolve_result_without_an_answer_is_valid(status: str, data: object) -> None:
    envelope = changed(EXAMPLES["result"][1], "/status", status)
    if data is None:
        envelope = changed(envelope, "/data", None)
    else:
        envelope = changed(envelope, "/data/estimate", None)
    STORE.validate(envelope, document="example", expected_kind="result")


def test_data_of_other_commands_is_free() -> None:
    envelope = changed(EXAMPLES["result"][1], "/command", "list")
    STORE.validate({**envelope, "data": {"series": []}}, document="example", expected_kind="result")


# Extensions


def extension_schema() -> dict[str, Any]:
    path = SCHEMAS / "extensions" / "collective-tuning.v1.schema.json"
    schema: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return schema


def extension_faults(schema: dict[str, Any], value: object) -> set[str]:
    from jsonschema import Draft202012Validator

    errors = Draft202012Validator(schema).iter_errors(value)
    return {"".join(f"/{part}" for part in error.absolute_path) for error in errors}


@pytest.mark.parametrize(
    ("key", "value"),
    [("algorithm", "bubble"), ("protocol", 128), ("channels", 0), ("chunk_bytes", 0.5)],
)
def test_a_wrong_tuning_is_refused(key: str, value: object) -> None:
    _, document = EXAMPLES["record-set"]
    tuning = document["extensions"]["perfdb/extension/collective-tuning/v1"]
    assert extension_faults(extension_schema(), tuning) == set()
    assert extension_faults(extension_schema(), {**tuning, key: value}) == {f"/{key}"}


@pytest.mark.parametrize(
    ("place", "value", "pointer"),
    [
        ("/$id", "urn:perfdb:schema:query:v1", "/$id"),
        ("/additionalProperties", True, "/additionalProperties"),
        ("/type", "array", "/type"),
        ("/description", ABSENT, ""),
        ("/patternProperties", {}, ""),
        ("/$defs", {}, ""),
        ("/properties", {}, "/properties"),
        ("/properties/channels/description", ABSENT, "/properties/channels"),
        ("/properties/channels/pattern", "(a+)+", "/properties/channels"),
        ("/properties/channels/$ref", "#", "/properties/channels"),
        ("/properties/channels/items", {"pattern": "a"}, "/properties/channels/items"),
        (
            "/properties/channels/additionalProperties",
            {"properties": {"a": {"description": "A.", "pattern": "a"}}},
            "/properties/channels/additionalProperties",
        ),
        ("/properties/channels/type", "int", "/properties/channels/type"),
    ],
)
def test_a_wrong_extension_schema_is_refused(place: str, value: object, pointer: str) -> None:
    judge = STORE.load_schema("extension", 1)
    assert extension_faults(judge, extension_schema()) == set()
    faults = extension_faults(judge, changed(extension_schema(), place, value))
    assert pointer in faults


def test_an_extension_may_have_a_property_called_pattern() -> None:
    schema = changed(
        extension_schema(), "/properties/pattern", {"type": "string", "description": "A pattern."}
    )
    assert extension_faults(STORE.load_schema("extension", 1), schema) == set()

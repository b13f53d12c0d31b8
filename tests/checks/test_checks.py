"""Every rule, broken once in an otherwise clean repository."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from perfdb_git.checks.record_contents import illegal_rows
from perfdb_git.checks.registry import CHECKS, run_checks
from perfdb_git.errors import InvalidInputError, UsageError
from perfdb_git.formats.codec import decode
from perfdb_git.formats.digests import sha256_hex
from perfdb_git.formats.strict_yaml import read_yaml
from perfdb_git.model.vocabulary import Vocabulary
from perfdb_git.operations.queries import value_fault
from perfdb_git.storage.git import GitStore, ReadLimits
from perfdb_git.storage.sources import GitSource, SourceFile, WorktreeSource
from tests.checks.calibration_breaks import CALIBRATION_BREAKS, clean_documents
from tests.checks.gate_breaks import GATE_BREAKS, clean_gates
from tests.checks.plan_breaks import PLAN_BREAKS, clean_plan

ROOT = Path(__file__).parents[2]
POLICY = "evidence/policies/default.yaml"
PROFILE = "profiles/systems/small.json"
VOCABULARY = "evidence/vocabulary.yaml"

Expected = list[tuple[str, str, str | None, int | None]]
Break = Callable[[Any], Expected]

BREAKS: dict[str, Break] = {}


def breaks(function: Break) -> Break:
    """Enter one way to break a clean repository; it returns the findings to expect."""
    BREAKS[function.__name__] = function
    return function


def one(code: str, document: str, pointer: str | None = None, row: int | None = None) -> Expected:
    return [(code, document, pointer, row)]


# --- layout ---


@breaks
def stray_file(e: Any) -> Expected:
    e.files["evidence/notes.txt"] = b"x"
    return one("unknown-file", "evidence/notes.txt")


@breaks
def file_among_schemas(e: Any) -> Expected:
    e.files["schemas/policy.yaml"] = b"x"
    return one("unknown-file", "schemas/policy.yaml")


@breaks
def record_set_in_no_operation(e: Any) -> Expected:
    e.files["evidence/records/a100_80g/set.json"] = b"{}"
    return one("unknown-file", "evidence/records/a100_80g/set.json")


@breaks
def odd_name(e: Any) -> Expected:
    e.files["evidence/records/two words.md"] = b"x"
    return one("odd-name", "evidence/records/two words.md")


@breaks
def too_deep(e: Any) -> Expected:
    e.files["evidence/splits/" + "d/" * 13 + "x.md"] = b"x"
    # The folder that is too deep for a walk that begins at splits itself.
    return [
        ("too-deep", "evidence/splits/" + "d/" * 11 + "d", None, None),
        ("too-deep", "evidence/splits/" + "d/" * 12 + "d", None, None),
    ]


@breaks
def twins(e: Any) -> Expected:
    e.files["evidence/readme.md"] = b"x"
    return one("name-twins", "evidence/readme.md")


@breaks
def twin_folders(e: Any) -> Expected:
    e.files["evidence/splits/x.md"] = e.files["evidence/Splits/y.md"] = b"x"
    return one("name-twins", "evidence/splits")


@breaks
def large_directory(e: Any) -> Expected:
    e.files.update({f"evidence/splits/{number}.md": b"" for number in range(1000)})
    return one("large-directory", "evidence/splits")


@breaks
def large_file(e: Any) -> Expected:
    e.files["evidence/README.md"] = b" " * 5_000_001
    return one("large-file", "evidence/README.md")


# --- schemas, bytes, digests, folders ---


@breaks
def not_json(e: Any) -> Expected:
    return one("unreadable-document", e.replace(b'{"schema": 1, "schema": 2}\n'), "/schema")


@breaks
def not_yaml(e: Any) -> Expected:
    e.files[POLICY] = b"name: on\n"
    return one("unreadable-document", POLICY, "/name")


@breaks
def missing_protocol_fact(e: Any) -> Expected:
    del e.header["protocol"]["warmup"]
    return one("schema-violation", e.keep(), "/protocol")


@breaks
def no_rows(e: Any) -> Expected:
    path = e.replace(e.files[e.path].replace(b'"rows": [', b'"columns2": ['))
    return [("schema-violation", path, "", None)] * 2


@breaks
def unknown_tier(e: Any) -> Expected:
    e.policy["tiers"] = ["guesses"]
    e.keep()
    return one("schema-violation", POLICY, "/tiers/0")


@breaks
def document_of_another_kind(e: Any) -> Expected:
    e.files["evidence/policies/strict.yaml"] = e.files[VOCABULARY]
    return one("schema-violation", "evidence/policies/strict.yaml", "/schema")


@breaks
def future_policy(e: Any) -> Expected:
    e.policy["schema"] = "perfdb/policy/v9"
    e.keep()
    return one("unknown-version", POLICY, "/schema")


@breaks
def future_kind(e: Any) -> Expected:
    content = b'{\n  "schema": "perfdb/hologram/v1"\n}\n'
    path = f"evidence/splits/x-{sha256_hex(content)[:12]}.json"
    e.files[path] = content
    return one("schema-violation", path, "/schema")


@breaks
def unknown_schema(e: Any) -> Expected:
    e.files["schemas/mine.v1.schema.json"] = b"{}"
    return one("unknown-schema", "schemas/mine.v1.schema.json")


@breaks
def changed_schema(e: Any) -> Expected:
    path = "schemas/policy.v1.schema.json"
    e.files[path] += b"\n"
    return one("schema-differs", path)


@breaks
def changed_extension_schema(e: Any) -> Expected:
    path = "schemas/extensions/collective-tuning.v1.schema.json"
    e.files[path] = b"no schema"
    return [*one("schema-differs", path), *one("unreadable-document", path)]


@breaks
def uncanonical_record_set(e: Any) -> Expected:
    return one("not-canonical", e.replace(e.files[e.path].replace(b"[1, 512", b"[1,  512")))


@breaks
def edited_record_set(e: Any) -> Expected:
    e.files[e.path] = e.files[e.path].replace(b"[1, 512", b"[1, 513")
    return one("wrong-digest", e.path)


@breaks
def edited_retraction(e: Any) -> Expected:
    e.edit(e.retraction, "wrong clock", "wrong time")
    return one("wrong-digest", e.retraction)


@breaks
def misnamed_manifest(e: Any) -> Expected:
    path = "evidence/manifests/" + "0" * 64 + ".json"
    e.files[path] = e.files[f"evidence/manifests/{e.manifest}.json"]
    return one("wrong-digest", path)


@breaks
def set_of_another_device(e: Any) -> Expected:
    content = e.files.pop(e.path)
    path = e.path.replace("a100_80g", "h100_80g")
    e.files[path] = content
    return one("wrong-folder", path, "/context/device")


@breaks
def set_of_another_operation(e: Any) -> Expected:
    content = e.files.pop(e.path)
    path = e.path.replace("/gemm/", "/norm/")
    e.files[path] = content
    return one("wrong-folder", path, "/context/operation")


# --- references ---


@breaks
def absent_manifest(e: Any) -> Expected:
    e.header["environment"] = "1" * 64
    return one("unknown-manifest", e.keep(), "/environment")


@breaks
def manifest_of_another_device(e: Any) -> Expected:
    e.header["environment"] = e.add_manifest(device="h100_80g")
    return one("environment-differs", e.keep(), "/environment")


@breaks
def retraction_of_nothing(e: Any) -> Expected:
    return one("unknown-target", e.add_retraction("2" * 64), "/target")


@breaks
def retraction_of_no_row(e: Any) -> Expected:
    return one("row-out-of-range", e.add_retraction(f"{e.sha(e.path)}#3"), "/target")


@breaks
def retraction_of_a_huge_row(e: Any) -> Expected:
    target = f"{e.sha(e.path)}#{'9' * 5000}"
    return one("row-out-of-range", e.add_retraction(target), "/target")


@breaks
def replaced_by_nothing(e: Any) -> Expected:
    path = e.add_retraction(f"{e.sha(e.path)}#0", replacement="2" * 64)
    return one("unknown-target", path, "/replacement")


@breaks
def replaced_by_itself(e: Any) -> Expected:
    target = f"{e.sha(e.path)}#0"
    path = e.add_retraction(target, replacement=target)
    return one("replaced-by-itself", path, "/replacement")


@breaks
def retracted_twice(e: Any) -> Expected:
    path = e.add_retraction(f"{e.sha(e.other)}#0")
    return one("retracted-twice", max(path, e.retraction), "/target")


@breaks
def the_same_rows_again(e: Any) -> Expected:
    path = e.add_set({"session": "session-3"}, [[*row[:-1], 100] for row in e.rows])
    return one("same-rows", max(path, e.path), "/rows")


# --- record contents ---


@breaks
def short_row(e: Any) -> Expected:
    e.rows[1] = e.rows[1][:-1]
    return one("row-length", e.keep(), "/rows/1", 1)


@breaks
def row_that_is_none(e: Any) -> Expected:
    text = e.files[e.path].replace(b"[2, 512, null, 0.75, 20, 8]", b"17")
    return one("row-length", e.replace(text), "/rows/1", 1)


@breaks
def text_cell(e: Any) -> Expected:
    e.rows[1][0] = "2"
    return one("cell-type", e.keep(), "/rows/1/0", 1)


@breaks
def no_samples(e: Any) -> Expected:
    e.rows[0][3] = []
    return one("no-samples", e.keep(), "/rows/0/3", 0)


@breaks
def negative_metric(e: Any) -> Expected:
    e.rows[2][2] = -0.5
    return one("negative-metric", e.keep(), "/rows/2/2", 2)


@breaks
def half_a_count(e: Any) -> Expected:
    e.rows[2][4] = 2.5
    return one("wrong-count", e.keep(), "/rows/2/4", 2)


@breaks
def column_twice(e: Any) -> Expected:
    e.header["columns"][3]["statistic"] = "median"
    e.rows[0][3] = 0.5
    return one("duplicate-column", e.keep(), "/columns/3")


@breaks
def dimension_stated_twice(e: Any) -> Expected:
    e.header["context"]["m"] = 1
    return one("dimension-stated-twice", e.keep(), "/columns/0")


@breaks
def latency_in_bytes(e: Any) -> Expected:
    e.header["columns"][2]["unit"] = "B"
    return one("wrong-unit", e.keep(), "/columns/2")


@breaks
def unknown_operation(e: Any) -> Expected:
    e.header["context"]["operation"] = "gem"
    return one("unknown-operation", e.keep(), "/context/operation")


@breaks
def unknown_dimension_in_context(e: Any) -> Expected:
    e.header["context"]["dtpye"] = "float16"
    return one("unknown-dimension", e.keep(), "/context/dtpye")


@breaks
def unknown_dimension_in_columns(e: Any) -> Expected:
    e.header["columns"][0]["name"] = "mm"
    return one("unknown-dimension", e.keep(), "/columns/0/name")


@breaks
def alias_in_context(e: Any) -> Expected:
    e.header["context"]["dtype"] = "fp16"
    return one("unknown-term", e.keep(), "/context/dtype")


@breaks
def shorthand_in_context(e: Any) -> Expected:
    e.header["context"]["device"] = "a100_sxm4_80g"
    e.header["environment"] = e.add_manifest(device=None)
    return one("unknown-term", e.keep(), "/context/device")


@breaks
def unknown_device(e: Any) -> Expected:
    e.header["context"]["device"] = "z9"
    e.header["environment"] = e.add_manifest(device=None)
    return one("unknown-term", e.keep(), "/context/device")


@breaks
def zero_in_context(e: Any) -> Expected:
    e.header["context"]["k"] = 0
    return one("bad-value", e.keep(), "/context/k")


@breaks
def text_in_context(e: Any) -> Expected:
    e.header["context"]["k"] = "4096"
    return one("bad-value", e.keep(), "/context/k")


@breaks
def bad_dimension_cells(e: Any) -> Expected:
    e.rows[0][0], e.rows[1][0], e.rows[2][0] = 0, 1.5, -1
    path = e.keep()
    return [("bad-value", path, f"/rows/{row}/0", row) for row in range(3)]


@breaks
def foreign_dimension_in_context(e: Any) -> Expected:
    e.header["context"]["hidden_size"] = 4096
    return one("foreign-dimension", e.keep(), "/context/hidden_size")


@breaks
def foreign_dimension_in_columns(e: Any) -> Expected:
    e.header["columns"][1]["name"] = "tokens"
    return one("foreign-dimension", e.keep(), "/columns/1/name")


@breaks
def text_dimension_as_column(e: Any) -> Expected:
    e.header["columns"][1]["name"] = "runtime_revision"
    return one("text-dimension", e.keep(), "/columns/1/name")


@breaks
def dimension_in_another_unit(e: Any) -> Expected:
    e.header["columns"][1] = {"name": "bytes_read", "role": "dimension", "unit": "KiB"}
    return one("dimension-unit", e.keep(), "/columns/1/unit")


@breaks
def reason_for_no_column(e: Any) -> Expected:
    e.header["null_reasons"] = {"energy": "no meter"}
    return one("unused-null-reason", e.keep(), "/null_reasons/energy")


@breaks
def wrong_extension_value(e: Any) -> Expected:
    e.header["extensions"]["perfdb/extension/collective-tuning/v1"]["channels"] = 0
    where = "/extensions/perfdb~1extension~1collective-tuning~1v1/channels"
    return one("extension-violation", e.keep(), where)


@breaks
def unknown_extension(e: Any) -> Expected:
    e.header["extensions"]["perfdb/extension/telepathy/v1"] = {}
    where = "/extensions/perfdb~1extension~1telepathy~1v1"
    return one("extension-violation", e.keep(), where)


@breaks
def manifest_with_an_alias(e: Any) -> Expected:
    digest = e.add_manifest(device="a100")
    return one("unknown-term", f"evidence/manifests/{digest}.json", "/device")


# --- vocabulary ---


@breaks
def no_vocabulary(e: Any) -> Expected:
    del e.files[VOCABULARY]
    return one("no-vocabulary", VOCABULARY)


@breaks
def unknown_formula(e: Any) -> Expected:
    e.edit(VOCABULARY, "work: gemm/1", "work: gemm/2")
    return one("unknown-formula", VOCABULARY, "/operations/gemm/work")


@breaks
def unknown_shape_dimension(e: Any) -> Expected:
    e.edit(VOCABULARY, "shape: [transfer_bytes]", "shape: [transfer_bites]")
    return one("unknown-dimension", VOCABULARY, "/operations/memory_copy/shape/0")


@breaks
def unknown_optional_dimension(e: Any) -> Expected:
    e.edit(VOCABULARY, "optional: [vocabulary_size]", "optional: [vocab]")
    return one("unknown-dimension", VOCABULARY, "/operations/embedding/optional/0")


@breaks
def alias_of_two_terms(e: Any) -> Expected:
    e.edit(VOCABULARY, "bfloat16: [bf16]\n      float8: [fp8,", "bfloat16: [half]\n      float8: [")
    return one("ambiguous-term", VOCABULARY, "/dimensions/dtype/terms/bfloat16/0")


@breaks
def alias_that_is_a_term(e: Any) -> Expected:
    e.edit(VOCABULARY, "layer: [layer_norm, layernorm]", "layer: [layer_norm, rms]")
    return one("ambiguous-term", VOCABULARY, "/dimensions/norm_kind/terms/layer/1")


@breaks
def term_that_means_unknown(e: Any) -> Expected:
    e.edit(VOCABULARY, "      relu: []\n", '      relu: []\n      "null": []\n')
    return one("ambiguous-term", VOCABULARY, "/dimensions/elementwise_kind/terms/null")


@breaks
def shorthand_that_is_an_alias(e: Any) -> Expected:
    e.edit(VOCABULARY, "      h200_sxm: {", "      h200: {")
    return one("ambiguous-term", VOCABULARY, "/dimensions/device/shorthands/h200")


@breaks
def shorthand_of_nothing(e: Any) -> Expected:
    e.edit(VOCABULARY, "h200_sxm: {device: h200_141g,", "h200_sxm: {devise: h200_141g,")
    return one("bad-shorthand", VOCABULARY, "/dimensions/device/shorthands/h200_sxm/devise")


@breaks
def shorthand_of_an_alias(e: Any) -> Expected:
    e.edit(VOCABULARY, "h200_sxm: {device: h200_141g,", "h200_sxm: {device: h200,")
    return one("bad-shorthand", VOCABULARY, "/dimensions/device/shorthands/h200_sxm/device")


@breaks
def dimension_that_no_query_has(e: Any) -> Expected:
    e.edit(
        VOCABULARY,
        "  power_mode:\n",
        "  mood: {group: execution, type: label, description: Mood.}\n  power_mode:\n",
    )
    return one("no-query-field", VOCABULARY, "/dimensions/mood/group")


@breaks
def dimension_in_another_group(e: Any) -> Expected:
    e.edit(VOCABULARY, "  power_mode:\n    group: execution", "  power_mode:\n    group: shape")
    return one("no-query-field", VOCABULARY, "/dimensions/power_mode/group")


@breaks
def query_field_without_dimension(e: Any) -> Expected:
    e.edit(VOCABULARY, "  power_mode:\n    group: execution", "  power:\n    group: shape")
    return one("undefined-query-field", VOCABULARY, "/dimensions")


# --- policies ---


@breaks
def no_default_policy(e: Any) -> Expected:
    e.policy["name"] = "strict"
    e.keep()
    e.files["evidence/policies/strict.yaml"] = e.files.pop(POLICY)
    return one("no-default-policy", POLICY)


@breaks
def policy_of_another_name(e: Any) -> Expected:
    e.policy["name"] = "strict"
    e.keep()
    return one("policy-name", POLICY, "/name")


@breaks
def unknown_profile(e: Any) -> Expected:
    e.policy["system_profiles"]["a100_80g"] = "large"
    e.keep()
    return one("unknown-system-profile", POLICY, "/system_profiles/a100_80g")


@breaks
def profile_of_another_device(e: Any) -> Expected:
    e.policy["system_profiles"]["h100_80g"] = "small"
    e.keep()
    return one("profile-device", POLICY, "/system_profiles/h100_80g")


@breaks
def policy_for_an_alias(e: Any) -> Expected:
    e.policy["system_profiles"] = {"h100": "h100"}
    e.keep()
    profile = {**e.profile, "name": "h100", "device": "h100"}
    path = "profiles/systems/h100.json"
    e.files[path] = json.dumps(profile).encode()
    return [
        ("unknown-term", POLICY, "/system_profiles/h100", None),
        ("unknown-term", path, "/device", None),
    ]


def _choice(**changes: str) -> dict[str, str]:
    choice = {"response": "latency", "operation": "gemm", "device": "a100_80g"}
    return {**choice, "revision": "3" * 64, **changes}


@breaks
def unknown_calibration(e: Any) -> Expected:
    e.policy["calibrations"] = [_choice(operation="gem")]
    e.keep()
    return [
        ("unknown-calibration", POLICY, "/calibrations/0/revision", None),
        ("unknown-operation", POLICY, "/calibrations/0/operation", None),
    ]


@breaks
def two_calibrations(e: Any) -> Expected:
    e.policy["calibrations"] = [_choice(), _choice(revision="4" * 64)]
    e.keep()
    return [
        ("two-calibrations", POLICY, "/calibrations/1", None),
        ("unknown-calibration", POLICY, "/calibrations/0/revision", None),
        ("unknown-calibration", POLICY, "/calibrations/1/revision", None),
    ]


@breaks
def unknown_material_dimension(e: Any) -> Expected:
    e.policy["matching"]["material"] = ["layuot"]
    e.keep()
    return one("unknown-dimension", POLICY, "/matching/material/0")


@breaks
def material_and_immaterial(e: Any) -> Expected:
    e.policy["matching"]["immaterial"] = ["runtime", "layout"]
    e.keep()
    return one("material-and-immaterial", POLICY, "/matching/immaterial/1")


@breaks
def unknown_names_of_an_extrapolation_limit(e: Any) -> Expected:
    entry = {"operation": "gem", "device": "a100", "dimensions": ["m", "nn"], "max_octaves": 4}
    e.policy["schema"] = "perfdb/policy/v2"
    e.policy["limits"] = {"extrapolation": [entry]}
    e.keep()
    place = "/limits/extrapolation/0"
    return [
        ("unknown-dimension", POLICY, f"{place}/dimensions/1", None),
        ("unknown-operation", POLICY, f"{place}/operation", None),
        ("unknown-term", POLICY, f"{place}/device", None),
    ]


@breaks
def version_1_has_no_word_for_clocks(e: Any) -> Expected:
    e.policy["throttled"] = "refuse"
    e.keep()
    return one("schema-violation", POLICY, "")


# --- system profiles ---


@breaks
def profile_of_another_name(e: Any) -> Expected:
    e.profile["name"] = "large"
    e.keep()
    return one("profile-name", PROFILE, "/name")


@breaks
def profile_twice(e: Any) -> Expected:
    path = PROFILE.replace(".json", ".yaml")
    e.files[path] = json.dumps(e.profile).encode()
    return one("name-stands-twice", path)


@breaks
def steps_out_of_order(e: Any) -> Expected:
    e.profile["engines"]["matrix"]["float16"]["efficiency_by_gops"][1]["threshold"] = 128
    e.keep()
    where = "/engines/matrix/float16/efficiency_by_gops/1/threshold"
    return one("step-order", PROFILE, where)


@breaks
def steps_that_end_above_zero(e: Any) -> Expected:
    e.profile["memories"]["mem1"]["efficiency_by_mb"] = [{"threshold": 10, "efficiency": 0.5}]
    e.keep()
    return one("step-order", PROFILE, "/memories/mem1/efficiency_by_mb/0/threshold")


@breaks
def profile_of_an_unknown_dtype(e: Any) -> Expected:
    rates = e.profile["engines"]["matrix"]
    rates["fp16"] = rates.pop("float16")
    e.keep()
    return one("unknown-term", PROFILE, "/engines/matrix/fp16")


@breaks
def unknown_link_class(e: Any) -> Expected:
    e.profile["networks"][0]["link_class"] = "string"
    e.keep()
    return one("unknown-term", PROFILE, "/networks/0/link_class")


@breaks
def unknown_collective(e: Any) -> Expected:
    e.profile["networks"][0]["operations"]["gossip"] = {"scalar": 1, "offset": None}
    e.keep()
    return one("unknown-operation", PROFILE, "/networks/0/operations/gossip")


@breaks
def source_of_nothing(e: Any) -> Expected:
    e.profile["sources"].append({"pointer": "/networks/00/size", "source": "hearsay"})
    e.keep()
    return one("unresolved-source", PROFILE, "/sources/5/pointer")


@breaks
def value_without_source(e: Any) -> Expected:
    e.profile["sources"] = e.profile["sources"][1:4]
    e.keep()
    return [
        ("no-source", PROFILE, "/engines", None),
        ("no-source", PROFILE, "/networks/0/operations", None),
    ]


# --- timing profiles and pipelines ---

_COMPONENT = {
    "fixed_latency_ns": 1,
    "lanes": 1,
    "resource_mode": "overlap",
    "evidence": "analytic",
    "notes": "Assumption.",
}


def _put_timing(e: Any, path: str, **changes: Any) -> str:
    """Write a timing profile with one component."""
    value = {"name": "timing", "version": "1", "components": {"A": {**_COMPONENT, **changes}}}
    e.files[path] = json.dumps(value).encode()
    return path


def _put_pipeline(e: Any, **stage: Any) -> str:
    path = "pipelines/small.yaml"
    value = {"stages": [{"name": "s", "component": "A", **stage}]}
    e.files[path] = json.dumps(value).encode()
    return path


@breaks
def timing_profile_without_a_reason(e: Any) -> Expected:
    path = _put_timing(e, "profiles/timing.json", notes=["  "])
    return one("unsound-timing-profile", path, "/components/A")


@breaks
def timing_profile_of_two_meanings(e: Any) -> Expected:
    _put_timing(e, "profiles/a.json")
    path = _put_timing(e, "profiles/b.yaml", lanes=2)
    return one("changed-profile", path, "/components/A/lanes")


@breaks
def timing_profile_twice(e: Any) -> Expected:
    _put_timing(e, "profiles/a.json")
    return one("name-stands-twice", _put_timing(e, "profiles/a.yaml"))


@breaks
def pipeline_without_work(e: Any) -> Expected:
    return one("unsound-pipeline", _put_pipeline(e), "/stages/0")


@breaks
def pipeline_that_asks_in_other_words(e: Any) -> Expected:
    path = _put_pipeline(e, query={"operation": "gemm", "dtype": "fp16", "rows": 3})
    return [
        ("bad-stage-query", path, "/stages/0/query/dtype", None),
        ("bad-stage-query", path, "/stages/0/query/rows", None),
    ]


@breaks
def pipeline_that_asks_for_nothing(e: Any) -> Expected:
    return one("bad-stage-query", _put_pipeline(e, query={"m": 4}), "/stages/0/query")


BREAKS |= CALIBRATION_BREAKS | PLAN_BREAKS | GATE_BREAKS


def _plain(findings: Any) -> Expected:
    return [(f.code, f.document, f.pointer, f.row) for f in findings]


@pytest.mark.parametrize("name", BREAKS)
def test_broken_repository(name: str, new_evidence: Any, repository: Any) -> None:
    evidence = new_evidence()
    expected = BREAKS[name](evidence)
    findings = repository.check(repository.commit(evidence.files))
    assert _plain(findings) == expected
    rules = {rule.code: rule for check in CHECKS for rule in check.rules}
    for finding in findings:
        assert finding.severity == rules[finding.code].severity
        assert finding.message and finding.remedy


def test_clean_repository(evidence: Any, repository: Any, tmp_path: Path) -> None:
    commit = repository.commit(evidence.files)
    assert repository.check(commit) == ()
    bare = tmp_path / "bare"
    repository.git("clone", "--quiet", "--bare", str(repository.path), str(bare))
    assert run_checks(GitSource(GitStore.open(bare), commit)) == ()
    repository.git("checkout", "--quiet", "main")
    assert run_checks(WorktreeSource(repository.path)) == ()


def test_clean_calibrations(evidence: Any, repository: Any) -> None:
    clean_documents(evidence)
    clean_gates(evidence)
    assert repository.check(repository.commit(evidence.files)) == ()


def test_a_clean_plan_and_its_lock(evidence: Any, repository: Any) -> None:
    clean_plan(evidence)
    assert repository.check(repository.commit(evidence.files)) == ()


def test_own_evidence_is_clean() -> None:
    assert run_checks(WorktreeSource(ROOT)) == ()


# --- trees that git itself would not write ---


def _entry(mode: str, name: str, object_id: str) -> bytes:
    return f"{mode} {name}".encode() + b"\0" + bytes.fromhex(object_id)


TREES: dict[str, tuple[Callable[[bytes, str], bytes], str]] = {
    "symlink": (lambda raw, blob: raw + _entry("120000", "z.md", blob), "/z.md"),
    "submodule": (lambda raw, blob: raw + _entry("160000", "z.md", blob), "/z.md"),
    "odd-mode": (lambda raw, blob: raw + _entry("100664", "z.md", blob), "/z.md"),
    "duplicate-name": (
        lambda raw, blob: raw + 2 * _entry("100644", "z.md", blob),
        "/z.md",
    ),
    "unsorted-tree": (lambda raw, blob: raw + _entry("100644", "+.md", blob), "/+.md"),
    "tree-malformed": (lambda raw, blob: raw + b"40000 half", ""),
}


@pytest.mark.parametrize("code", TREES)
def test_malformed_tree(code: str, evidence: Any, repository: Any) -> None:
    change, document = TREES[code]
    evidence.policy["name"] = "strict"
    evidence.keep()
    repository.commit(evidence.files)
    blob = repository.git("rev-parse", "main:evidence/README.md")
    commit = repository.commit_raw_tree("evidence/manifests", lambda raw: change(raw, blob))
    # The manifests cannot be walked; every other document is judged all the same.
    assert _plain(repository.check(commit)) == [
        (code, f"evidence/manifests{document}", None, None),
        ("policy-name", POLICY, "/name", None),
    ]


def test_odd_name_beside_the_vocabulary(evidence: Any, repository: Any) -> None:
    evidence.files["evidence/-x"] = b"x"
    evidence.edit(VOCABULARY, "work: gemm/1", "work: gemm/2")
    assert _plain(repository.check(repository.commit(evidence.files))) == [
        ("odd-name", "evidence/-x", None, None),
        ("unknown-formula", VOCABULARY, "/operations/gemm/work", None),
    ]


@pytest.mark.parametrize(
    ("code", "limits"),
    [
        ("too-many-entries", ReadLimits(max_entries=8)),
        ("directory-too-large", ReadLimits(max_directory_entries=3)),
    ],
)
def test_limits_of_a_walk(code: str, limits: ReadLimits, evidence: Any, repository: Any) -> None:
    source = repository.source(repository.commit(evidence.files), limits=limits)
    found = run_checks(source, select=["layout"])
    assert {finding.code for finding in found} == {code}


def test_a_file_too_large_to_read(evidence: Any, repository: Any) -> None:
    evidence.files["evidence/splits/x.md"] = b" " * 70_000
    commit = repository.commit(evidence.files)
    source = repository.source(commit, limits=ReadLimits(max_blob_bytes=65_536))
    assert _plain(run_checks(source)) == one("blob-too-large", "evidence/splits/x.md")


class _RefusedSource:
    """A source whose folders cannot be walked for a reason yet unknown."""

    commit = None
    committer_time = None

    def object_id(self, path: str) -> str | None:
        return None

    def files(self, path: str) -> tuple[SourceFile, ...]:
        if path == "profiles":
            raise InvalidInputError("is on fire", code="on-fire", document=path)
        return ()

    def read(self, file: SourceFile) -> bytes:
        raise AssertionError(file)


def test_unforeseen_walk_fault() -> None:
    assert _plain(run_checks(_RefusedSource(), select=["layout"])) == one(
        "folder-unreadable", "profiles"
    )


def test_every_rule_has_a_broken_repository(new_evidence: Any) -> None:
    broken = {code for change in BREAKS.values() for code, *_ in change(new_evidence())}
    elsewhere = {*TREES, "too-many-entries", "directory-too-large", "blob-too-large"}
    # The history of a shallow clone: tests/cli/test_simulate.py.
    elsewhere |= {"folder-unreadable", "history-incomplete"}
    # Figures that follow from records: tests/cli/test_figures.py.
    elsewhere |= {"held-out-error", "leak", "split-not-reproduced", "training-digest"}
    elsewhere |= {"validation-pair", "figure-not-worked-out"}
    # What changes from one commit to another: test_gate_judging.py.
    elsewhere |= {"loosened-gate", "gate-not-met"}
    # Rules of a change have bad pull requests: tests/end_to_end/test_bad_pull_requests.py.
    rules = {rule.code for c in CHECKS if c.judge_document or c.judge_snapshot for rule in c.rules}
    assert rules - {"imported-twice"} == broken | elsewhere


def test_columns_are_judged_as_single_values_are() -> None:
    vocabulary = decode(
        Vocabulary, read_yaml((ROOT / VOCABULARY).read_bytes(), document="v"), document="v"
    )
    numbers = [-1, -0.5, 0, 0.5, 1, 1.5, 2, 2**53 - 1, 2.0**53, -(2.0**60), 1e308, 5e-324]
    for dimension in vocabulary.dimensions.values():
        if dimension.type in ("integer", "number"):
            expected = [n for n, v in enumerate(numbers) if value_fault(dimension, v) is not None]
            values = np.array([*numbers, np.nan], dtype=np.float64)
            assert illegal_rows(values, dimension) == expected


def test_long_texts_are_cut(evidence: Any, repository: Any) -> None:
    evidence.header["context"]["dtype"] = "f" * 100_000
    evidence.keep()
    (finding,) = repository.check(repository.commit(evidence.files))
    assert finding.code == "unknown-term" and len(finding.message) == 500


# --- the table and the runner ---


def test_table_is_well_formed() -> None:
    ids = [check.id for check in CHECKS]
    assert len(set(ids)) == len(ids)
    rules: dict[str, Any] = {}
    for check in CHECKS:
        assert check.rules
        judges = (check.judge_document, check.judge_snapshot)
        assert any((*judges, check.judge_addition, check.judge_change))
        for rule in check.rules:
            assert rules.setdefault(rule.code, rule) is rule
        for text in (check.id, *(rule.code for rule in check.rules)):
            assert text == text.lower() and text.replace("-", "").isalpha()
        for line in (check.documentation, *(rule.documentation for rule in check.rules)):
            assert line.endswith(".") and "\n" not in line
    assert not rules.keys() & set(ids)


def _broken_twice(evidence: Any, repository: Any) -> str:
    evidence.policy["name"] = "strict"
    evidence.rows[0][0] = 0
    evidence.keep()
    commit: str = repository.commit(evidence.files)
    return commit


def test_select_and_ignore(evidence: Any, repository: Any) -> None:
    commit = _broken_twice(evidence, repository)

    def codes(**options: Any) -> list[str]:
        return [finding.code for finding in repository.check(commit, **options)]

    assert codes() == ["policy-name", "bad-value"]
    assert codes(select=["policies"]) == ["policy-name"]
    assert codes(select=["bad-value", "duplicates"]) == ["bad-value"]
    assert codes(ignore=["record-contents"]) == ["policy-name"]
    assert codes(ignore=["policy-name"]) == ["bad-value"]
    assert codes(select=["policies"], ignore=["policy-name"]) == []
    with pytest.raises(UsageError) as caught:
        codes(select=["poIicies"])
    assert caught.value.code == "unknown-check"


def test_findings_are_sorted_by_document_bytes_then_row(evidence: Any, repository: Any) -> None:
    evidence.rows[:] = [[0, 512, 0.25, None, 20, row] for row in range(12)]
    evidence.files["evidence/Z.txt"] = evidence.files["evidence/a.txt"] = b""
    path = evidence.keep()
    found = [(f.document, f.row) for f in repository.check(repository.commit(evidence.files))]
    assert found == [
        ("evidence/Z.txt", None),
        ("evidence/a.txt", None),
        *((path, row) for row in range(12)),
    ]


def test_progress_counts_every_file(evidence: Any, repository: Any) -> None:
    calls: list[tuple[int, int, str]] = []
    commit = repository.commit(evidence.files)
    repository.check(commit, progress=lambda *call: calls.append(call))
    paths = sorted(path for path in evidence.files if not path.startswith("Source"))
    assert calls == [(n, len(paths), path) for n, path in enumerate(paths, start=1)]


def test_snapshot_checks_read_record_sets_themselves(evidence: Any, repository: Any) -> None:
    evidence.add_retraction(f"{evidence.sha(evidence.path)}#99")
    commit = repository.commit(evidence.files)
    found = repository.check(commit, select=["references"])
    assert [finding.code for finding in found] == ["row-out-of-range"]

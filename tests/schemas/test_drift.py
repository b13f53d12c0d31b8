"""Schemas and dataclasses agree on names, optionality, nullability, types and choices.

The schema may say more than a type can (patterns, ranges, the unit list); it may not say less.
"""

from __future__ import annotations

import copy
import dataclasses
import json
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal, Union

import pytest

from perfdb_git.model import (
    calibration,
    estimate,
    gates,
    held_out,
    mapping,
    pipeline,
    plan,
    plan_lock,
    policy,
    query,
    records,
    result,
    splits,
    system_profile,
    timing_profile,
    training,
    transformer,
    validation,
    vocabulary,
)

SCHEMAS = Path(__file__).parents[2] / "schemas"

PAIRS: dict[str, tuple[str, str, type]] = {
    "record-set": ("record-set", "", records.RecordSetHeader),
    "manifest": ("manifest", "", records.Manifest),
    "vocabulary": ("vocabulary", "", vocabulary.Vocabulary),
    "mapping": ("mapping", "", mapping.TableMapping),
    "system-profile": ("system-profile", "", system_profile.SystemProfile),
    "timing-profile": ("timing-profile", "", timing_profile.TimingProfile),
    "pipeline": ("pipeline", "", pipeline.Pipeline),
    "plan": ("plan", "", plan.Plan),
    "plan-lock": ("plan-lock", "", plan_lock.PlanLock),
    "policy": ("policy", "", policy.Policy),
    "query": ("query", "", query.CostQuery),
    "estimate": ("estimate", "", estimate.CostEstimate),
    "retraction": ("retraction", "", records.Retraction),
    "result": ("result", "", result.ResultEnvelope),
    "resolution": ("result", "resolution", result.Resolution),
    "split": ("split", "", splits.Split),
    "held-out-report": ("held-out-report", "", held_out.HeldOutReport),
    "calibration": ("calibration", "", calibration.Calibration),
    "calibration-spec": ("calibration-spec", "", calibration.CalibrationSpec),
    "validation": ("validation", "", validation.Validation),
    "gates": ("gates", "", gates.Gates),
    "training-model": ("training-model", "", training.TrainingModel),
    "training-execution": ("training-execution", "", training.TrainingExecution),
    "transformer-model": ("transformer-model", "", transformer.TransformerModel),
}
NOT_IN_CLASS = {records.RecordSetHeader: {"rows"}}
"""Rows become arrays, one per column, and never objects."""

ANYTHING = object()
_HINT_NAMES = {"JsonValue": ANYTHING, "Scalar": int | float | str, "Number": int | float}
_SCALAR_TYPES = {str: "string", bool: "boolean", int: "integer", float: "number", Decimal: "number"}


def load(kind: str) -> dict[str, Any]:
    """Return the newest schema of a kind; what it adds to older ones is optional in its class."""
    newest = max(
        SCHEMAS.glob(f"{kind}.v*.schema.json"),
        key=lambda path: int(path.name.split(".v")[1].split(".")[0]),
    )
    return json.loads(newest.read_text(encoding="utf-8"))


def json_type(value: object) -> str:
    if value is None:
        return "null"
    return _SCALAR_TYPES[type(value)]


def strip_null(hint: Any) -> tuple[list[Any], bool]:
    """Alternatives of a hint without ``None``, and whether ``None`` was one."""
    if typing.get_origin(hint) in (Union, types.UnionType):
        members = typing.get_args(hint)
        return [member for member in members if member is not type(None)], type(None) in members
    return [hint], False


def hint_types(alternatives: list[Any]) -> set[str]:
    """JSON types of a hint's alternatives."""
    found: set[str] = set()
    for hint in alternatives:
        origin = typing.get_origin(hint)
        if origin is Literal:
            found |= {json_type(choice) for choice in typing.get_args(hint)}
        elif origin is tuple:
            found.add("array")
        elif dataclasses.is_dataclass(hint) or origin is not None:
            found.add("object")
        else:
            found.add(_SCALAR_TYPES[hint])
    # JSON Schema's number includes the integers.
    return found - {"integer"} if "number" in found else found


class Drift:
    """Differences between one schema document and the dataclasses that repeat it."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._document = document
        self.faults: list[str] = []
        self.seen: set[type] = set()

    def _resolved(self, node: Mapping[str, Any]) -> dict[str, Any]:
        """Node with a local reference's keywords merged in."""
        merged = dict(node)
        while "$ref" in merged:
            name = merged.pop("$ref").removeprefix("#/$defs/")
            merged = {**self._document["$defs"][name], **merged}
        return merged

    def _without_null(self, node: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
        merged = self._resolved(node)
        nullable = merged.get("then", {}).get("$ref")
        if nullable is not None:  # {"type": [kind, "null"], "if": {"type": kind}, "then": …}
            kinds = [merged["if"]["type"], "null"]
            return self._resolved(merged["then"]), merged["type"] == kinds
        if "enum" in merged:
            choices = [choice for choice in merged["enum"] if choice is not None]
            return {**merged, "enum": choices}, None in merged["enum"]
        kinds = merged.get("type")
        if isinstance(kinds, list) and "null" in kinds:
            return {**merged, "type": [kind for kind in kinds if kind != "null"]}, True
        return merged, False

    def compare(self, hint: Any, node: Mapping[str, Any], where: str) -> None:
        """Note every difference between a type hint and a schema node, recursively."""
        alternatives, hint_null = strip_null(hint)
        if alternatives == [ANYTHING]:
            return
        node, node_null = self._without_null(node)
        if hint_null != node_null:
            self.faults.append(f"{where}: null is legal on one side only")
        expected, found = hint_types(alternatives), self._types(node)
        if expected != found:
            self.faults.append(f"{where}: {sorted(expected)} against {sorted(found)}")
            return
        if len(alternatives) == 1:
            self._compare_inside(alternatives[0], node, where)

    def _types(self, node: Mapping[str, Any]) -> set[str]:
        if "const" in node:
            return {json_type(node["const"])}
        if "enum" in node:
            return {json_type(choice) for choice in node["enum"]}
        kinds = node.get("type", [])
        return set(kinds) if isinstance(kinds, list) else {kinds}

    def _compare_inside(self, hint: Any, node: Mapping[str, Any], where: str) -> None:
        origin, arguments = typing.get_origin(hint), typing.get_args(hint)
        if origin is Literal:
            if set(arguments) != set(node.get("enum", [])):
                self.faults.append(f"{where}: choices differ")
        elif origin is tuple:
            self.compare(arguments[0], node.get("items", {}), f"{where}/*")
        elif dataclasses.is_dataclass(hint):
            self.compare_class(typing.cast(type, hint), node, where)
        elif origin is not None:
            self._compare_map(arguments[1], node, where)

    def _compare_map(self, value_hint: Any, node: Mapping[str, Any], where: str) -> None:
        values = node.get("additionalProperties")
        if value_hint is ANYTHING and values in (True, None):
            return
        if not isinstance(values, dict):
            self.faults.append(f"{where}: the values of the map have no schema")
            return
        self.compare(value_hint, values, f"{where}/*")

    def compare_class(self, cls: type, node: Mapping[str, Any], where: str) -> None:
        """Note every difference between a dataclass and an object schema."""
        self.seen.add(cls)
        hints = typing.get_type_hints(cls, localns=_HINT_NAMES)
        fields = {field.name: field for field in dataclasses.fields(cls)}
        extra = NOT_IN_CLASS.get(cls, set())
        properties = {k: v for k, v in node.get("properties", {}).items() if k not in extra}
        required = set(node.get("required", [])) - extra
        if node.get("additionalProperties") is not False:
            self.faults.append(f"{where}: unknown keys are not refused")
        for name in sorted(fields.keys() ^ properties.keys()):
            self.faults.append(f"{where}/{name}: on one side only")
        for name in sorted(fields.keys() & properties.keys()):
            if (name in required) == has_default(fields[name]):
                self.faults.append(f"{where}/{name}: optional on one side only")
            self.compare(hints[name], properties[name], f"{where}/{name}")


def has_default(field: dataclasses.Field[Any]) -> bool:
    missing = dataclasses.MISSING
    return field.default is not missing or field.default_factory is not missing


def drift(document: Mapping[str, Any], name: str, cls: type) -> Drift:
    judge = Drift(document)
    judge.compare_class(cls, document["$defs"][name] if name else document, "")
    return judge


def dataclasses_of(module: types.ModuleType) -> Iterator[type]:
    for value in vars(module).values():
        if dataclasses.is_dataclass(value) and value.__module__ == module.__name__:
            yield typing.cast(type, value)


@pytest.mark.parametrize("pair", PAIRS)
def test_schema_and_class_agree(pair: str) -> None:
    kind, name, cls = PAIRS[pair]
    assert drift(load(kind), name, cls).faults == []


def test_every_class_of_a_document_is_compared() -> None:
    """A new class that no schema reaches would escape the comparison."""
    seen: set[type] = set()
    for kind, name, cls in PAIRS.values():
        seen |= drift(load(kind), name, cls).seen
    modules = (records, vocabulary, mapping, system_profile, policy, query, estimate, result)
    modules += (
        timing_profile,
        pipeline,
        splits,
        held_out,
        calibration,
        validation,
        plan,
        plan_lock,
        gates,
    )
    never_written = {estimate.CostSupport, records.SeriesKey, records.VerifiedRow}
    assert {cls for module in modules for cls in dataclasses_of(module)} - seen == never_written


def test_definitions_of_one_name_are_equal_in_all_schemas() -> None:
    """Files are self-contained, so that what they share stands in several of them."""
    first: dict[str, tuple[str, Any]] = {}
    for path in sorted(SCHEMAS.glob("*.v1.schema.json")):
        for name, node in json.loads(path.read_text(encoding="utf-8")).get("$defs", {}).items():
            if path.stem.startswith("extension."):
                continue
            other, expected = first.setdefault(name, (path.name, node))
            assert node == expected, f"{name} in {path.name} differs from {other}"


@pytest.mark.parametrize(
    ("around", "kind"),
    [
        ("result", "query"),
        ("result", "estimate"),
        ("calibration", "held-out-report"),
        ("validation", "held-out-report"),
        ("plan-lock", "plan"),
    ],
)
def test_an_embedded_document_is_the_released_one(around: str, kind: str) -> None:
    embedded, document = load(around)["$defs"][kind.replace("-", "_")], load(kind)
    for keyword in ("properties", "required", "additionalProperties"):
        assert embedded[keyword] == document[keyword]


def _properties(document: dict[str, Any]) -> dict[str, Any]:
    return document["properties"]


def _rename(document: dict[str, Any]) -> None:
    _properties(document)["sesssion"] = _properties(document).pop("session")


def _make_optional(document: dict[str, Any]) -> None:
    document["required"].remove("environment")


def _forbid_null(document: dict[str, Any]) -> None:
    document["$defs"]["protocol"]["properties"]["warmup"]["type"] = "integer"


def _forbid_null_object(document: dict[str, Any]) -> None:
    properties = document["$defs"]["source"]["properties"]
    properties["mapping"] = {"$ref": "#/$defs/mapping_reference"}


def _widen_type(document: dict[str, Any]) -> None:
    document["$defs"]["protocol"]["properties"]["repetitions"]["type"] = ["number", "null"]


def _add_choice(document: dict[str, Any]) -> None:
    document["$defs"]["statistic"]["enum"].append("mode")


def _drop_choice(document: dict[str, Any]) -> None:
    document["$defs"]["record_kind"]["enum"].remove("profiled")


def _open_object(document: dict[str, Any]) -> None:
    document["$defs"]["column"]["additionalProperties"] = True


def _add_property(document: dict[str, Any]) -> None:
    document["$defs"]["quantity"]["properties"]["error"] = {"type": "number"}


def _change_map_values(document: dict[str, Any]) -> None:
    _properties(document)["context"]["additionalProperties"] = {"type": "string"}


def _change_items(document: dict[str, Any]) -> None:
    _properties(document)["columns"]["items"] = {"type": "string"}


BREAKS: dict[str, tuple[Callable[[dict[str, Any]], None], str]] = {
    "renamed": (_rename, "/sesssion: on one side only"),
    "optional": (_make_optional, "/environment: optional on one side only"),
    "not nullable": (_forbid_null, "/protocol/warmup: null is legal on one side only"),
    "object not nullable": (_forbid_null_object, "/source/mapping: null is legal on one side only"),
    "wider type": (_widen_type, "/protocol/repetitions: ['integer'] against ['number']"),
    "more choices": (_add_choice, "/columns/*/statistic: choices differ"),
    "fewer choices": (_drop_choice, "/kind: choices differ"),
    "open object": (_open_object, "/columns/*: unknown keys are not refused"),
    "new property": (_add_property, "/protocol/timer_resolution/error: on one side only"),
    "map values": (_change_map_values, "/context/*: null is legal on one side only"),
    "items": (_change_items, "/columns/*: ['object'] against ['string']"),
}


@pytest.mark.parametrize("name", BREAKS)
def test_a_broken_schema_is_found(name: str) -> None:
    """The checker itself must fail when the two sides differ."""
    break_it, expected = BREAKS[name]
    document = copy.deepcopy(load("record-set"))
    break_it(document)
    assert expected in drift(document, "", records.RecordSetHeader).faults

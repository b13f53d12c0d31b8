"""Schema lookup and validation, on schema folders made for the test."""

import json
import socket
import subprocess
import sys

import pytest

from perfdb_git.errors import InvalidInputError
from perfdb_git.formats.schemas import SchemaStore, default_root, parse_schema_id

DIALECT = "https://json-schema.org/draft/2020-12/schema"
BOX = {
    "$schema": DIALECT,
    "$id": "perfdb/box/v1",
    "type": "object",
    "required": ["schema", "size", "unit"],
    "additionalProperties": False,
    "properties": {
        "schema": {"const": "perfdb/box/v1"},
        "size": {"type": "number", "exclusiveMinimum": 0},
        "unit": {"enum": ["ms", "us"]},
        "when": {"type": ["string", "null"], "format": "date-time"},
        "lid": {"$ref": "perfdb/lid/v2#/$defs/lid"},
        "parts": {"type": "array", "minItems": 1, "items": {"type": "integer"}},
        "either": {"anyOf": [{"type": "string"}, {"type": "object", "required": ["a"]}]},
    },
}
LID = {"$schema": DIALECT, "$id": "perfdb/lid/v2", "$defs": {"lid": {"type": "string"}}}
OLD_LID = {"$schema": DIALECT, "$id": "perfdb/lid/v1", "type": "object"}
REMOTE = {"$schema": DIALECT, "$id": "perfdb/remote/v1", "$ref": "https://example.org/s.json"}


@pytest.fixture
def root(tmp_path):
    (tmp_path / "extensions").mkdir()
    extension = {"$schema": DIALECT, "properties": {"pattern": {"type": "string"}}}
    for name, schema in {
        "box.v1": BOX,
        "lid.v1": OLD_LID,
        "lid.v2": LID,
        "remote.v1": REMOTE,
        "extensions/heat.v1": extension,
    }.items():
        (tmp_path / f"{name}.schema.json").write_text(json.dumps(schema))
    (tmp_path / "notes.md").write_text("no schema")
    return tmp_path


@pytest.fixture
def store(root):
    return SchemaStore(root)


GOOD = {"schema": "perfdb/box/v1", "size": 1, "unit": "ms"}


def test_lookup(store, root):
    assert store.kinds() == ("box", "extension/heat", "lid", "remote")
    assert store.known_versions("lid") == (1, 2)
    assert store.known_versions("nothing") == ()
    assert store.load_schema("box", 1) == BOX
    store.load_schema("box", 1).clear()
    assert store.load_schema("box", 1) == BOX
    assert store.schema_bytes("lid", 2) == (root / "lid.v2.schema.json").read_bytes()
    assert "extensions/heat.v1.schema.json" in store.file_names()
    assert parse_schema_id("perfdb/record-set/v12") == ("record-set", 12)
    assert parse_schema_id("perfdb/extension/heat/v1") == ("extension/heat", 1)
    assert store.check_schemas() == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        "perfdb/box",
        "perfdb/box/1",
        "perfdb/box/v0",
        "perfdb/box/v01",
        "perfdb/Box/v1",
        "x/box/v1",
        "perfdb/../v1",
        "perfdb/a/b/v1",
        "perfdb/box/v1\n",
    ],
)
def test_bad_schema_ids(text):
    with pytest.raises(InvalidInputError) as caught:
        parse_schema_id(text, document="d")
    assert caught.value.code == "schema-id"


def test_good_documents_pass(store):
    store.validate(GOOD, document="d")
    store.validate({**GOOD, "lid": "x", "when": "no date", "parts": [1, 2.0]}, document="d")
    store.validate({"schema": "perfdb/extension/heat/v1"}, document="d")
    assert store.iter_violations(GOOD, document="d", expected_kind="box") == []


@pytest.mark.parametrize(
    ("changes", "pointer", "code", "words"),
    [
        ({"size": "1"}, "/size", "wrong-type", 'expected number, found "1"'),
        ({"size": 0}, "/size", "schema-violation", "more than 0, found 0"),
        ({"unit": "s"}, "/unit", "wrong-choice", 'expected one of "ms", "us", found "s"'),
        ({"colour": 1}, "", "unknown-key", 'unknown key "colour"; known: either, lid'),
        ({"lid": 3}, "/lid", "wrong-type", "expected string, found 3"),
        ({"parts": []}, "/parts", "schema-violation", "1 or more items"),
        ({"parts": [1, None]}, "/parts/1", "wrong-type", "expected integer, found null"),
        ({"when": {}}, "/when", "wrong-type", "string or null, found an object"),
        ({"either": {"b": 1}}, "/either", "missing-key", 'missing key "a"'),
    ],
)
def test_violations_say_what_was_expected(store, changes, pointer, code, words):
    with pytest.raises(InvalidInputError) as caught:
        store.validate({**GOOD, **changes}, document="d.json")
    error = caught.value
    assert (error.pointer, error.code, error.document) == (pointer, code, "d.json")
    assert words in error.reason


def test_all_violations_in_order(store):
    value = {"schema": "perfdb/box/v1", "parts": [1, "x", 2, "y"], "colour": 1}
    found = store.iter_violations(value, document="d")
    assert [v.pointer for v in found] == ["", "", "/parts/1", "/parts/3"]
    assert {v.code for v in found[:2]} == {"missing-key", "unknown-key"}
    assert {v.code for v in found[2:]} == {"wrong-type"}
    assert any(v.message == 'missing keys "size", "unit"' for v in found)


@pytest.mark.parametrize(
    ("value", "options", "code", "words"),
    [
        ([], {}, "wrong-type", "object"),
        ({}, {}, "schema-missing", "does not name"),
        ({"schema": 3}, {"default": ("box", 1)}, "schema-missing", "does not name"),
        ({"schema": "box"}, {}, "schema-id", "form"),
        ({"schema": "perfdb/lid/v3"}, {}, "unknown-version", "newer perfdb.* lid v2 and older"),
        ({"schema": "perfdb/bag/v1"}, {}, "unknown-kind", "box, extension/heat, lid"),
        ({"schema": "perfdb/lid/v1"}, {"expected_kind": "box"}, "wrong-kind", "'box', found 'lid'"),
    ],
)
def test_unusable_schema_names(store, value, options, code, words):
    with pytest.raises(InvalidInputError, match=words) as caught:
        store.validate(value, document="d", **options)
    assert caught.value.code == code
    (violation,) = store.iter_violations(value, document="d", **options)
    assert violation.code == code


def test_default_schema_for_documents_which_may_leave_it_out(store):
    store.validate({"any": 1}, document="d", default=("lid", 1))
    with pytest.raises(InvalidInputError, match='"size"'):
        store.validate({}, document="d", default=("box", 1))


def test_absolute_ids_resolve_too(root):
    absolute = {**LID, "$id": "https://schemas.invalid/lid.v2.schema.json"}
    (root / "lid.v2.schema.json").write_text(json.dumps(absolute))
    box = {**BOX, "$id": "https://schemas.invalid/box.v1.schema.json"}
    box["properties"] = {**BOX["properties"], "lid": {"$ref": "lid.v2.schema.json#/$defs/lid"}}
    (root / "box.v1.schema.json").write_text(json.dumps(box))
    store = SchemaStore(root)
    store.validate({**GOOD, "lid": "x"}, document="d")
    with pytest.raises(InvalidInputError, match="expected string"):
        store.validate({**GOOD, "lid": 1}, document="d")


def test_gap_in_versions(root):
    (root / "lid.v1.schema.json").unlink()
    with pytest.raises(InvalidInputError, match="never released"):
        SchemaStore(root).validate({"schema": "perfdb/lid/v1"}, document="d")


def test_remote_references_are_not_fetched(store, monkeypatch):
    def no_network(*_args, **_options):
        raise AssertionError("tried to open a connection")

    monkeypatch.setattr(socket, "socket", no_network)
    with pytest.raises(InvalidInputError, match="nothing is fetched") as caught:
        store.validate({"schema": "perfdb/remote/v1"}, document="d")
    assert caught.value.code == "schema-reference"


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": {"pattern": "(a+)+$"}}},
        {"patternProperties": {"^x": {}}},
        {"$defs": {"a": {"anyOf": [{"pattern": "x"}]}}},
        {"const": {"pattern": "(a+)+$"}, "$ref": "#/const"},
    ],
)
def test_extensions_may_not_use_regular_expressions(root, schema):
    (root / "extensions" / "evil.v1.schema.json").write_text(json.dumps(schema))
    store = SchemaStore(root)
    with pytest.raises(InvalidInputError) as caught:
        store.validate({"schema": "perfdb/extension/evil/v1"}, document="d")
    assert caught.value.code == "schema-regular-expression"
    assert [name for name, _ in store.check_schemas()] == ["extensions/evil.v1.schema.json"]


def test_faulty_schema_files_are_found(root):
    (root / "bad.v1.schema.json").write_text('{"type": "numbr"}')
    (root / "twice.v1.schema.json").write_text('{"a": 1, "a": 2}')
    (root / "list.v1.schema.json").write_text("[]")
    faults = SchemaStore(root).check_schemas()
    assert {name: violation.code for name, violation in faults} == {
        "bad.v1.schema.json": "schema-invalid",
        "list.v1.schema.json": "schema-invalid",
        "twice.v1.schema.json": "duplicate-key",
    }


def test_unevaluated_keys_are_named(root):
    schema = {
        "$schema": DIALECT,
        "allOf": [{"properties": {"schema": True, "a": True}}],
        "unevaluatedProperties": False,
    }
    (root / "open.v1.schema.json").write_text(json.dumps(schema))
    value = {"schema": "perfdb/open/v1", "a": 1, "b": 2}
    with pytest.raises(InvalidInputError, match='unknown key "b"') as caught:
        SchemaStore(root).validate(value, document="d")
    assert caught.value.code == "unknown-key"


def test_validators_are_built_once(store):
    assert store._validator(("box", 1)) is store._validator(("box", 1))


def test_default_root_is_the_checkout_or_the_installed_copy():
    assert default_root().name == "schemas"


def test_start_up_imports_nothing_heavy():
    code = (
        "import sys, perfdb_git.formats.schemas, perfdb_git.formats.codec, "
        "perfdb_git.formats.strict_yaml, perfdb_git.formats.canonical, perfdb_git.formats.digests\n"
        "heavy = {'numpy', 'yaml', 'jsonschema', 'referencing', 'rfc8785', 'importlib.resources'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    command = [sys.executable, "-c", code]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "[]\n"

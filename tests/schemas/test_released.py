"""Schema files are valid, described, safe to evaluate, and never change once released."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

SCHEMAS = Path(__file__).parents[2] / "schemas"
RELEASED = Path(__file__).with_name("released.json")
FILES = sorted(
    path.relative_to(SCHEMAS).as_posix() for path in SCHEMAS.rglob("*") if path.is_file()
)

_CONDITIONS = ("if", "then", "else", "not", "allOf", "oneOf", "contains")


def load(name: str) -> dict[str, Any]:
    return json.loads((SCHEMAS / name).read_text(encoding="utf-8"))


def described(node: Any, where: str = "") -> Iterator[tuple[str, Any]]:
    """Every schema that introduces a name: properties and definitions, conditions apart."""
    if isinstance(node, list):
        for index, item in enumerate(node):
            yield from described(item, f"{where}/{index}")
    elif isinstance(node, dict):
        for keyword, inner in node.items():
            if keyword in ("properties", "$defs"):
                for name, child in inner.items():
                    yield f"{where}/{keyword}/{name}", child
                    yield from described(child, f"{where}/{keyword}/{name}")
            elif keyword not in (*_CONDITIONS, "enum", "const"):
                yield from described(inner, f"{where}/{keyword}")


def references(node: Any) -> Iterator[str]:
    if isinstance(node, list):
        for item in node:
            yield from references(item)
    elif isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"]
        for inner in node.values():
            yield from references(inner)


def patterns(node: Any) -> Iterator[str]:
    if isinstance(node, list):
        for item in node:
            yield from patterns(item)
    elif isinstance(node, dict):
        if isinstance(node.get("pattern"), str):
            yield node["pattern"]
        for inner in node.values():
            yield from patterns(inner)


@pytest.mark.parametrize("name", FILES)
def test_is_a_valid_schema(name: str) -> None:
    schema = load(name)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    Draft202012Validator.check_schema(schema)


@pytest.mark.parametrize("name", FILES)
def test_is_named_after_its_file(name: str) -> None:
    stem, version = name.removesuffix(".schema.json").split(".")
    namespace, _, kind = stem.rpartition("/")
    urn = "urn:perfdb:extension" if namespace == "extensions" else "urn:perfdb:schema"
    schema = load(name)
    assert schema["$id"] == f"{urn}:{kind}:{version}"
    if "schema" in schema["properties"]:
        assert schema["properties"]["schema"]["const"] == f"perfdb/{kind}/{version}"


@pytest.mark.parametrize("name", FILES)
def test_every_property_is_described(name: str) -> None:
    schema = load(name)
    assert schema["title"]
    assert schema["description"]
    silent = [where for where, node in described(schema) if not node.get("description")]
    assert silent == []


@pytest.mark.parametrize("name", FILES)
def test_is_self_contained(name: str) -> None:
    """No reference leaves the file, so that nothing needs to be fetched to judge a document."""
    schema = load(name)
    targets = {f"#/$defs/{definition}" for definition in schema.get("$defs", {})}
    used = set(references(schema))
    assert used <= targets
    assert targets <= used | {"#/$defs/resolution"}, "a definition that nothing uses"


@pytest.mark.parametrize("name", FILES)
def test_patterns_are_anchored(name: str) -> None:
    r"""Also against a final newline, which a plain ``$`` lets through in Python."""
    for pattern in patterns(load(name)):
        assert pattern.startswith("^")
        assert pattern.endswith("(?!\\n)$")


@pytest.mark.parametrize("name", [name for name in FILES if name.startswith("extensions/")])
def test_extensions_obey_the_extension_schema(name: str) -> None:
    Draft202012Validator(load("extension.v1.schema.json")).validate(load(name))


def test_released_files_never_change() -> None:
    """Documents in old commits are judged by these bytes: a change needs a new version file."""
    digests = {name: hashlib.sha256((SCHEMAS / name).read_bytes()).hexdigest() for name in FILES}
    assert digests == json.loads(RELEASED.read_text(encoding="utf-8"))

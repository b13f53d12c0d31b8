"""Which changes of a vocabulary change what old questions mean."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfdb_git.checks.vocabulary_meaning import meaning_changes
from perfdb_git.formats.codec import decode
from perfdb_git.formats.strict_yaml import read_yaml
from perfdb_git.model.vocabulary import Vocabulary

TEXT = (Path(__file__).parents[2] / "evidence/vocabulary.yaml").read_text()


def vocabulary(*edits: tuple[str, str]) -> Vocabulary:
    text = TEXT
    for old, new in edits:
        assert old in text, old
        text = text.replace(old, new, 1)
    return decode(Vocabulary, read_yaml(text.encode(), document="v"), document="v")


ADDITIONS = {
    "an alias": ("int4: [i4]", "int4: [i4, four_bits]"),
    "a term": ("int4: [i4]", "int4: [i4]\n      int2: [i2]"),
    "an optional dimension": ("optional: [vocabulary_size]", "optional: [vocabulary_size, m]"),
    "a description": ("Matrix product, result", "Matrix multiplication, result"),
    "a shorthand": (
        "h200_sxm: {device: h200_141g, form_factor: sxm}",
        "h200_sxm: {device: h200_141g, form_factor: sxm}\n      h200_nvl: {device: h200_141g}",
    ),
}


@pytest.mark.parametrize("name", ADDITIONS)
def test_additions_change_nothing(name: str) -> None:
    assert meaning_changes(vocabulary(), vocabulary(ADDITIONS[name])) == ()


CHANGES = {
    "a shorthand": (
        ("a100_sxm4_80g: {device: a100_80g", "a100_sxm4_80g: {device: h100_80g"),
        "/dimensions/device/shorthands/a100_sxm4_80g",
        False,
    ),
    "a second meaning": (
        ("bfloat16: [bf16]", "bfloat16: [bf16, half]"),
        "/dimensions/dtype/terms/float16/1",
        False,
    ),
    "an alias that goes": (("int4: [i4]", "int4: []"), "/dimensions/dtype/terms/int4/0", True),
    "an alias that becomes a term": (
        ("int4: [i4]", "int4: []\n      i4: []"),
        "/dimensions/dtype/terms/int4/0",
        False,
    ),
    "a unit": (('type: number\n    unit: "1"', "type: number\n    unit: B"), None, False),
    "a formula": (("work: rope/1", "work: norm/1"), "/operations/rope/work", False),
    "a shape": (("shape: [rows, row_length]", "shape: [rows]"), "/operations/softmax/shape", False),
    "optional dimensions": (
        ("optional: [vocabulary_size]", "optional: []"),
        "/operations/embedding/optional",
        True,
    ),
    "zero": (
        ("zero: true\n    description: Arithmetic", "zero: false\n    description: Arithmetic"),
        "/dimensions/operations/zero",
        False,
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_changes_of_meaning(name: str) -> None:
    edit, pointer, lost = CHANGES[name]
    (change,) = meaning_changes(vocabulary(), vocabulary(edit))
    assert change.lost is lost
    assert pointer is None or change.pointer == pointer


def test_a_removed_dimension_and_operation() -> None:
    old = vocabulary()
    kept = {name: item for name, item in old.dimensions.items() if name != "layout"}
    operations = {name: item for name, item in old.operations.items() if name != "rope"}
    new = Vocabulary(schema=old.schema, name=old.name, dimensions=kept, operations=operations)
    changes = meaning_changes(old, new)
    assert [(item.pointer, item.lost) for item in changes] == [
        ("/dimensions/layout", True),
        ("/operations/rope", True),
    ]

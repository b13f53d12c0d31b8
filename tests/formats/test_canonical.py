"""The canonical writers: one value, one text."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfdb_git.formats.canonical import (
    canonical_bytes,
    canonical_document,
    canonical_record_set,
    first_uncanonical_line,
    is_canonical,
)
from perfdb_git.formats.digests import canonical_digest, sha256_hex
from perfdb_git.formats.strict_json import read_json, read_json_rows

numbers = st.integers(-(2**53) + 1, 2**53 - 1) | st.floats(allow_nan=False, allow_infinity=False)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
scalars = st.none() | st.booleans() | numbers | texts
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(texts | st.just("schema"), inner, max_size=4)
    ),
    max_leaves=12,
)
cells = scalars | st.lists(numbers, max_size=3)


def test_document_layout():
    value = {
        "z": [1, 2.0, {"b": [], "schema": "s", "a": {}}],
        "é": 'naïve\n"\\',
        "schema": "perfdb/x/v1",
        "curve": ((1, 2.5), (3, -0.0)),
        "zero": 1e20,
        "big": 9007199254740991.0,
    }
    assert canonical_document(value).decode() == (
        "{\n"
        '  "schema": "perfdb/x/v1",\n'
        '  "big": 9007199254740991,\n'
        '  "curve": [\n    [1, 2.5],\n    [3, 0]\n  ],\n'
        '  "z": [\n    1,\n    2,\n    {\n'
        '      "schema": "s",\n      "a": {},\n      "b": []\n    }\n  ],\n'
        '  "zero": 1e+20,\n'
        '  "é": "naïve\\n\\"\\\\"\n'
        "}\n"
    )


def test_record_set_layout():
    header = {
        "observed": {"b": 1, "a": [1.0, None]},
        "columns": [{"unit": "1", "name": "m"}, {"name": "latency", "unit": "ms"}],
        "kind": "measured",
        "schema": "perfdb/record-set/v1",
    }
    data = canonical_record_set(header, [(128, 0.5, "x", True), (256, None, "é", [1, 2.5])])
    assert data.decode() == (
        "{\n"
        '  "schema": "perfdb/record-set/v1",\n'
        '  "kind": "measured",\n'
        '  "columns": [\n'
        '    {"name": "m", "unit": "1"},\n'
        '    {"name": "latency", "unit": "ms"}\n'
        "  ],\n"
        '  "observed": {"a": [1, null], "b": 1},\n'
        '  "rows": [\n'
        '    [128, 0.5, "x", true],\n'
        '    [256, null, "é", [1, 2.5]]\n'
        "  ]\n"
        "}\n"
    )
    assert canonical_record_set({}, []) == b'{\n  "rows": []\n}\n'


@given(values)
def test_documents_survive_and_settle(value):
    data = canonical_document(value)
    back = read_json(data, document="d")
    assert back == value
    assert canonical_document(back) == data
    assert canonical_digest(back) == canonical_digest(value)


@given(
    st.dictionaries(texts.filter(lambda key: key != "rows"), values, max_size=4),
    st.lists(st.lists(cells, max_size=4), max_size=4),
)
def test_record_sets_survive_and_settle(header, rows):
    header = {**header, "schema": "perfdb/record-set/v1"}
    data = canonical_record_set(header, rows)
    back = read_json_rows(data, document="d")
    assert back == {**header, "rows": rows}
    assert canonical_bytes(back) == data
    assert is_canonical(data, back)
    row_lines = data.split(b'  "rows": ')[-1].count(b"\n    [")
    assert row_lines == len(rows)


@given(st.dictionaries(texts, values, min_size=2, max_size=5), st.randoms())
def test_key_order_does_not_matter(value, shuffler):
    items = list(value.items())
    shuffler.shuffle(items)
    assert canonical_document(dict(items)) == canonical_document(value)
    assert canonical_digest(dict(items)) == canonical_digest(value)


@pytest.mark.parametrize(
    "value",
    [np.float64(1.5), np.int64(1), np.bool_(True), np.zeros(2), {1, 2}, object(), b"x"],
    ids=lambda value: type(value).__name__,
)
def test_foreign_types_are_refused(value):
    for write in (
        canonical_document,
        lambda v: canonical_document({"a": [v]}),
        lambda v: canonical_record_set({}, [[1, v]]),
        lambda v: canonical_record_set({}, [[[v]]]),
        lambda v: canonical_record_set({"a": v}, []),
        canonical_digest,
    ):
        with pytest.raises(TypeError):
            write(value)


def test_other_refusals():
    for number in (math.nan, math.inf, 2**53, -(2**53)):
        for write in (
            canonical_document,
            canonical_digest,
            lambda v: canonical_record_set({}, [[v]]),
        ):
            with pytest.raises(ValueError):
                write(number)
    with pytest.raises(ValueError):
        canonical_document("\ud800")
    with pytest.raises(ValueError):
        canonical_record_set({"rows": []}, [])
    for row in ([{"a": 1}], [["text"]], [[None]], [[True]], "text"):
        with pytest.raises(TypeError):
            canonical_record_set({}, [row])
    for write in (canonical_document, canonical_digest):
        with pytest.raises(TypeError):
            write({1: 2})


def test_is_canonical_and_the_first_other_line():
    value = {"schema": "perfdb/record-set/v1", "rows": [[1], [2]]}
    data = canonical_bytes(value)
    assert first_uncanonical_line(data, value) is None
    for other, line in [
        (data.replace(b"[2]", b"[2.0]"), 5),
        (data.replace(b"\n", b"\r\n"), 1),
        (data[:-1], 7),
        (data + b"\n", 8),
        (json.dumps(value).encode(), 1),
    ]:
        assert read_json(other, document="d") == value
        assert not is_canonical(other, value)
        assert first_uncanonical_line(other, value) == line


def test_digests():
    assert sha256_hex(b"") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    # RFC 8785 text of this value is {"a":[1,0,1e+30],"b":"é"}
    expected = "sha256:" + sha256_hex('{"a":[1,0,1e+30],"b":"é"}'.encode())
    assert canonical_digest({"b": "é", "a": (1.0, -0.0, 1e30)}) == expected
    assert canonical_digest({"b": "é", "a": [1, 0, 1e30]}) == expected
    assert canonical_digest([True]) != canonical_digest([1])

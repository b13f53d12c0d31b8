"""The restricted YAML reader: JSON's values only, the same with and without libyaml."""

import json
from decimal import Decimal

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from perfdb_git.errors import InvalidInputError
from perfdb_git.formats import strict_yaml
from perfdb_git.formats._yaml_events import build_document
from perfdb_git.formats.strict_json import read_json
from perfdb_git.formats.strict_yaml import read_yaml

LOADERS = [
    loader for loader in (yaml.SafeLoader, getattr(yaml, "CSafeLoader", None)) if loader is not None
]


@pytest.fixture(params=LOADERS, ids=lambda loader: loader.__name__, autouse=True)
def loader(request, monkeypatch):
    monkeypatch.setattr("perfdb_git.formats._yaml_events.default_loader", lambda: request.param)


def read(text, **options):
    return read_yaml(text.encode(), document="d.yaml", **options)


def test_values_of_json_grammar():
    text = """
# a policy
name: default            # the words stay text
limits: {octaves: 1.5, count: 3, negative: -2.5e-3, ten: 1e1}
flags: [true, false, null]
quoted: ["on", '12:30', "012", '', "null", "1.5"]
text: |
  two
  lines
version: 1.2.3
range: 1-2
hash: 12ab
path: a/b.c
sentence: why not? because
"null": key
"""
    assert read(text) == {
        "name": "default",
        "limits": {"octaves": 1.5, "count": 3, "negative": -0.0025, "ten": 10.0},
        "flags": [True, False, None],
        "quoted": ["on", "12:30", "012", "", "null", "1.5"],
        "text": "two\nlines\n",
        "version": "1.2.3",
        "range": "1-2",
        "hash": "12ab",
        "path": "a/b.c",
        "sentence": "why not? because",
        "null": "key",
    }
    assert isinstance(read("a: 1e1")["a"], float)


@pytest.mark.parametrize(
    "scalar",
    [
        "on",
        "off",
        "yes",
        "no",
        "y",
        "n",
        "Yes",
        "NO",
        "~",
        "True",
        "NULL",
        ".inf",
        "-.INF",
        ".nan",
        "012",
        "0x10",
        "0o17",
        "0b11",
        "1_000",
        "12:30:00",
        "12:30",
        "+1",
        ".5",
        "-.5",
        "1.",
        "1_0.5",
        "1_0e+3",
        "1__0",
        "00",
        "-01",
        "2024-01-01",
        "2024-1-1T00:00:00Z",
        "2024-01-01 10:00",
        "=",
    ],
)
def test_ambiguous_scalars_are_refused_unless_quoted(scalar):
    for text, pointer in [(f"a:\n  - {scalar}\n", "/a/0"), (f"a: [x, {scalar}]\n", "/a/1")]:
        with pytest.raises(InvalidInputError, match="quote it") as caught:
            read(text)
        assert caught.value.code == "yaml-ambiguous-scalar"
        assert caught.value.pointer == pointer
        assert caught.value.line == text.rstrip("\n").count("\n") + 1
    assert read(f"a: '{scalar}'") == {"a": scalar}
    with pytest.raises(InvalidInputError):
        read(f"{scalar}: a")


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        ("a: &x 1\nb: *x", "yaml-alias", 1),
        ("a: 1\nb: *x", "yaml-alias", 2),
        ("a: !!str 1", "yaml-tag", 1),
        ("a: ! b", "yaml-tag", 1),
        ("a: !local {}", "yaml-tag", 1),
        ("a: 1\nb: 2\na: 3", "duplicate-key", 3),
        ("{a: 1, 'a': 2}", "duplicate-key", 1),
        ("x:\n  <<: {a: 1}", "yaml-merge-key", 2),
        ("1: a", "yaml-key", 1),
        ("null: a", "yaml-key", 1),
        ("[a]: b", "yaml-key", 1),
        ("? {a: b}\n: c", "yaml-key", 1),
        ("a:\nb: 1", "yaml-ambiguous-scalar", 1),
        ("a: 1\n---\nb: 2", "yaml-several-documents", 2),
        ("", "yaml-empty", 1),
        ("# nothing\n", "yaml-empty", 1),
        ("%YAML 1.1\n---\na: b", "yaml-directive", 1),
        ("a: 1e400", "number-not-finite", 1),
        ("a: 1e-400", "number-underflow", 1),
        ("a: 9007199254740992", "integer-too-large", 1),
        ("a:\n\t- b", "control-character", 2),
        ("a: b\x07", "control-character", 1),
        ("a: b\x85c", "control-character", 1),
        ("a: [1\nb: ]", "yaml-syntax", 2),
        ("a: |#c\n  b", "yaml-syntax", 1),
        ("a: [b?c]", "yaml-", 1),
        ("[" * 101 + "1" + "]" * 101, "nesting-too-deep", 1),
    ],
)
def test_refused_with_line(text, code, line):
    with pytest.raises(InvalidInputError) as caught:
        read(text)
    assert caught.value.code.startswith(code)
    assert caught.value.line == line


def test_encoding_size_and_depth(monkeypatch):
    for data, code in [
        (b"\xef\xbb\xbfa: b", "byte-order-mark"),
        ("a: b".encode("utf-16"), "not-utf8"),
        (b"a: \xff", "not-utf8"),
    ]:
        with pytest.raises(InvalidInputError) as caught:
            read_yaml(data, document="d")
        assert caught.value.code == code
    assert read("[" * 100 + "]" * 100)
    monkeypatch.setattr(strict_yaml, "MAX_YAML_BYTES", 10)
    with pytest.raises(InvalidInputError) as caught:
        read("a: 12345678")
    assert caught.value.code == "document-too-large"


def test_half_a_surrogate_pair_is_refused():
    with pytest.raises(InvalidInputError):
        read('a: "\\ud800"')


def test_decimal():
    assert read("a: 0.10\nb: 3", decimal=True) == {"a": Decimal("0.10"), "b": 3}
    assert isinstance(read("0.5", decimal=True), Decimal)


plain_texts = st.text(st.characters(codec="ascii", categories=["L", "N", "P", "S"]), max_size=6)
yaml_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(-1e300, 1e300)
    | plain_texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(plain_texts, inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=60)
@given(yaml_values)
def test_json_text_is_yaml_with_the_same_value(value):
    # Long keys and tabs aside, JSON is YAML; json.dumps writes neither here.
    data = json.dumps(value).encode()
    assert repr(read_yaml(data, document="d")) == repr(read_json(data, document="d"))


@settings(max_examples=100)
@given(plain_texts)
def test_a_plain_scalar_is_never_silently_another_value(text):
    """What is read as a string, PyYAML's own YAML 1.1 rules call that very string too."""
    try:
        value = read_yaml(f"- {text}\n".encode(), document="d")
    except InvalidInputError:
        return
    if value and isinstance(value[0], str):
        assert yaml.safe_load(f"- {text}\n") == value


fragments = st.sampled_from(
    [
        "a",
        "b",
        "é",
        "😀",
        "1",
        ": ",
        ": a",
        ":",
        "- ",
        "-",
        "? ",
        "?",
        "[",
        "[",
        "]",
        "]",
        "{",
        "}",
        ",",
        ", ",
        "'",
        '"',
        "#",
        " #",
        "|",
        "|-\n",
        ">\n",
        "|2\n",
        "%",
        "@",
        "`",
        "&a",
        "*a",
        "!t",
        "\\",
        "~",
        "---\n",
        "--- ",
        "...\n",
        "=",
        "<<",
        "\n",
        "\n  ",
        "\n\n",
        "\r\n",
        "\r",
        "\t",
    ]
)


@pytest.mark.skipif(len(LOADERS) < 2, reason="PyYAML was built without libyaml")
@settings(max_examples=400)
@given(st.lists(fragments, max_size=12).map("".join))
def test_both_parsers_agree_on_any_text(text):
    outcomes = []
    for loader in LOADERS:
        try:
            strict_yaml._refuse_characters(text, "d")
            outcomes.append(build_document(text, document="d", decimal=False, loader=loader))
        except InvalidInputError:
            outcomes.append("refused")
    assert outcomes[0] == outcomes[1]

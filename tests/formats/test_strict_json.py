"""The strict JSON readers: what they refuse, where they say it is, and that they agree."""

import json
import math
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfdb_git.errors import InvalidInputError
from perfdb_git.formats import strict_json
from perfdb_git.formats._located_json import LocatedReader
from perfdb_git.formats.strict_json import read_json, read_json_rows

READERS = [read_json, read_json_rows]


@pytest.fixture(params=["orjson", "standard library"], scope="module", autouse=True)
def decoder(request):
    """Run everything with and without the optional decoder: it may not change an answer."""
    original = strict_json._orjson
    if request.param == "orjson" and original is None:
        pytest.skip("orjson is not installed")
    strict_json._orjson = original if request.param == "orjson" else None
    yield request.param
    strict_json._orjson = original


safe_integers = st.integers(-(2**53) + 1, 2**53 - 1)
floats = st.floats(allow_nan=False, allow_infinity=False)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
json_values = st.recursive(
    st.none() | st.booleans() | safe_integers | floats | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)


def _typed(value):
    """The value with its types, so that 1, 1.0, True and -0.0 differ."""
    if isinstance(value, dict):
        return [(key, _typed(item)) for key, item in value.items()]
    if isinstance(value, list):
        return [_typed(item) for item in value]
    return type(value), repr(value)


def _outcome(read, data):
    try:
        return _typed(read(data, document="d.json"))
    except InvalidInputError as error:
        return error.code, error.line, error.pointer, str(error)


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize(
    ("text", "code", "line", "pointer"),
    [
        ('{"a": 1,\n "b": {"a": 1, "a": 2}}', "duplicate-key", 2, "/b/a"),
        ('{"a/b": 1, "~": [0, {"a": 1, "\\u0061": 2}]}', "duplicate-key", 1, "/~0/1/a"),
        ("[1,\n NaN]", "number-not-finite", 2, "/1"),
        ("[-Infinity]", "number-not-finite", 1, "/0"),
        ("[1e400]", "number-not-finite", 1, "/0"),
        ("[-1e999]", "number-not-finite", 1, "/0"),
        ("[" + "9" * 400 + ".0]", "number-not-finite", 1, "/0"),
        ('{"a": 1e-400}', "number-underflow", 1, "/a"),
        ("0." + "0" * 400 + "1", "number-underflow", 1, ""),
        ("[9007199254740992]", "integer-too-large", 1, "/0"),
        ("[-9007199254740992]", "integer-too-large", 1, "/0"),
        ("9" * 5000, "integer-too-large", 1, ""),
        ('"\\ud800"', "lone-surrogate", 1, ""),
        ('{"\\udc00": 1}', "lone-surrogate", 1, ""),
        ("[" * 101 + "]" * 101, "nesting-too-deep", 1, "/0" * 100),
        ('{"a":' * 200_000, "nesting-too-deep", 1, "/a" * 100),
        ("[1]\n2", "json-syntax", 2, None),
        ("[1,\n]", "json-syntax", 2, None),
        ("", "json-syntax", 1, None),
        ("[01]", "json-syntax", 1, None),
        ("[1.]", "json-syntax", 1, None),
        ("['a']", "json-syntax", 1, None),
        ('["a\tb"]', "json-syntax", 1, None),
        ('["a', "json-syntax", 1, None),
        ('["\\x41"]', "json-syntax", 1, None),
        ("{1: 2}", "json-syntax", 1, None),
        ("[tru]", "json-syntax", 1, None),
        ("[1 /* c */]", "json-syntax", 1, None),
        ("[1\u00a0]", "json-syntax", 1, None),
    ],
)
def test_refused_with_place(read, text, code, line, pointer):
    with pytest.raises(InvalidInputError) as caught:
        read(text.encode(), document="d.json")
    assert (caught.value.code, caught.value.line, caught.value.pointer) == (code, line, pointer)
    assert str(caught.value).startswith(f"d.json:{line}")


def test_too_large_integer_tells_the_remedy():
    with pytest.raises(InvalidInputError, match="store it as a string"):
        read_json(b"[12345678901234567890]", document="d")


@pytest.mark.parametrize("read", READERS)
def test_encodings(read):
    for data, code in [
        (b"\xef\xbb\xbf{}", "byte-order-mark"),
        ("{}".encode("utf-16"), "not-utf8"),
        (b'["a",\n"\xff"]', "not-utf8"),
        (b'"\xed\xa0\x80"', "not-utf8"),
    ]:
        with pytest.raises(InvalidInputError) as caught:
            read(data, document="d")
        assert caught.value.code == code
    assert read('["é\\ud83d\\ude00"]'.encode(), document="d") == ["é😀"]


@pytest.mark.parametrize("read", READERS)
def test_accepted_borders(read):
    text = (
        "[9007199254740991, -9007199254740991, 1e308, 5e-324, 0e999999, -0.0, 0.00e-400,"
        ' 0.1000000000000000055511151231257827, 1E+2, "9007199254740992 1e400 [[[[", 1e-100]'
    )
    value = read(text.encode(), document="d")
    assert value[:8] == [2**53 - 1, 1 - 2**53, 1e308, 5e-324, 0.0, 0.0, 0.0, 0.1]
    assert math.copysign(1, value[5]) == -1
    assert isinstance(value[8], float)
    assert read(b"[" * 100 + b"]" * 100, document="d")
    brackets = '["' + "[" * 500 + '", "]"]'
    assert read(brackets.encode(), document="d") == ["[" * 500, "]"]


def test_brackets_in_strings_do_not_hide_depth():
    text = '["]",' * 101 + "0" + ', "["]' * 101
    for read in READERS:
        with pytest.raises(InvalidInputError) as caught:
            read(text.encode(), document="d")
        assert caught.value.code == "nesting-too-deep"


def test_decimal_keeps_digits_and_limits():
    value = read_json(
        b"[0.1000000000000000055, 3, 1e2, 0e999999999999]", document="d", decimal=True
    )
    assert value == [Decimal("0.1000000000000000055"), 3, Decimal(100), 0]
    assert [type(item) for item in value] == [Decimal, int, Decimal, Decimal]
    for text, code in [(b"1e400", "number-not-finite"), (b"1e-400", "number-underflow")]:
        with pytest.raises(InvalidInputError) as caught:
            read_json(text, document="d", decimal=True)
        assert caught.value.code == code


@given(json_values, st.sampled_from([None, 1]), st.booleans())
def test_reads_what_the_standard_writer_writes(value, indent, ascii_only):
    data = json.dumps(value, indent=indent, ensure_ascii=ascii_only).encode()
    for read in READERS:
        assert _typed(read(data, document="d")) == _typed(value)
    located = LocatedReader(data.decode(), document="d", decimal=False).read()
    assert _typed(located) == _typed(value)


fragments = st.sampled_from(
    [
        "[",
        "]",
        "[",
        "]",
        "{",
        "}",
        "{",
        ":",
        ":",
        ",",
        ",",
        ",",
        '"',
        '"',
        "\\",
        "\\u0041",
        "\\ud83d",
        "\\ude00",
        "a",
        "0",
        "1",
        "12",
        "-1",
        "1.5",
        "1e5",
        "e400",
        "E-400",
        "-",
        "+",
        ".",
        "true",
        "null",
        "NaN",
        "Infinity",
        '"a"',
        '"a":',
        '"b":',
        "9007199254740991",
        "9007199254740993",
        "0" * 16,
        "0" * 200,
        "é",
        "\n",
        " ",
        "\t",
        "\x00",
    ]
)


@settings(max_examples=400)
@given(st.lists(fragments, max_size=14).map("".join))
def test_all_readers_agree_on_any_text(text):
    data = text.encode()
    outcome = _outcome(read_json, data)
    assert _outcome(read_json_rows, data) == outcome
    located = _outcome(
        lambda data, document: LocatedReader(
            data.decode(), document=document, decimal=False
        ).read(),
        data,
    )
    assert located == outcome


number_texts = st.from_regex(
    r"-?(0|[1-9][0-9]{0,18})(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,3})?", fullmatch=True
)


@settings(max_examples=400)
@given(st.lists(number_texts, min_size=1, max_size=4))
def test_readers_agree_on_numbers(literals):
    data = ("[" + ",".join(literals) + "]").encode()
    assert _outcome(read_json_rows, data) == _outcome(read_json, data)


def test_hostile_texts_end():
    """In quadratic time, each of these would take minutes."""
    for text in ['["' + '\\"' * 300_000, "[" * 300_000, "[[]" * 100_000, '"\\ud800' * 50_000]:
        for read in READERS:
            with pytest.raises(InvalidInputError):
                read(text.encode(), document="d")

"""The generic codec of frozen dataclasses."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Literal, NewType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfdb_git.errors import InvalidInputError
from perfdb_git.formats.canonical import canonical_document
from perfdb_git.formats.codec import decode, encode
from perfdb_git.formats.frozen import FrozenMap, freeze

Unit = NewType("Unit", str)


class Validity(enum.Enum):
    EXACT = "exact"
    BOUND = "bound"


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    x: int
    y: float
    unit: Unit = Unit("1")

    def __post_init__(self) -> None:
        if self.x < 0:
            raise ValueError("x must not be negative")


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    schema: Literal["perfdb/shape/v1"]
    points: tuple[Point, ...]
    from_: str | None = field(metadata={"name": "from"})
    validity: Validity = Validity.EXACT
    closed: bool = False
    weights: Mapping[str, float] = field(
        default_factory=lambda: FrozenMap({}), metadata={"omit_default": True}
    )
    pair: tuple[int, str] | None = field(default=None, metadata={"omit_default": True})
    cell: int | float | str | None = field(default=None, metadata={"omit_default": True})
    part: Point | Named | None = field(default=None, metadata={"omit_default": True})
    extra: object = field(default=None, metadata={"omit_default": True})


BASE = {"schema": "perfdb/shape/v1", "points": [{"x": 1, "y": 2}], "from": None}


def decoded(**changes) -> Shape:
    return decode(Shape, {**BASE, **changes}, document="d.json")


def test_decodes_and_encodes():
    shape = decoded(
        validity="bound",
        weights={"a": 1, "b": 2.5},
        pair=[1, "p"],
        cell=3,
        part={"name": "n"},
        extra={"list": [1, {"k": None}]},
    )
    assert shape.points == (Point(x=1, y=2.0),)
    assert type(shape.points[0].y) is float
    assert shape.validity is Validity.BOUND
    assert shape.weights == {"a": 1.0, "b": 2.5}
    assert (shape.pair, shape.cell, type(shape.cell)) == ((1, "p"), 3, int)
    assert shape.part == Named(name="n")
    assert hash(shape) == hash(decode(Shape, encode(shape), document="d"))
    assert encode(shape) == {
        "schema": "perfdb/shape/v1",
        "points": [{"x": 1, "y": 2.0, "unit": "1"}],
        "from": None,
        "validity": "bound",
        "closed": False,
        "weights": {"a": 1.0, "b": 2.5},
        "pair": [1, "p"],
        "cell": 3,
        "part": {"name": "n"},
        "extra": {"list": [1, {"k": None}]},
    }


def test_defaults_are_left_out_only_where_asked():
    assert encode(decoded()) == {
        **BASE,
        "points": [{"x": 1, "y": 2.0, "unit": "1"}],
        "validity": "exact",
        "closed": False,
    }


@pytest.mark.parametrize(
    ("changes", "code", "pointer", "words"),
    [
        (
            {"points": [{"x": 1, "y": 2}, {"x": True, "y": 2}]},
            "wrong-type",
            "/points/1/x",
            "integer",
        ),
        ({"points": [{"x": 1.5, "y": 2}]}, "wrong-type", "/points/0/x", "integer"),
        ({"points": [{"x": 1, "y": "2"}]}, "wrong-type", "/points/0/y", "found string '2'"),
        ({"points": [{"x": 1, "y": False}]}, "wrong-type", "/points/0/y", "number"),
        ({"points": {"x": 1}}, "wrong-type", "/points", "array"),
        ({"points": [[]]}, "wrong-type", "/points/0", "object"),
        ({"points": [{"x": 1}]}, "missing-key", "/points/0", "'y'"),
        ({"points": [{"x": -1, "y": 1}]}, "invalid-value", "/points/0", "negative"),
        ({"from": 3}, "wrong-type", "/from", "string"),
        ({"from_": "a"}, "unknown-key", "/from_", "unknown"),
        ({"a/b~": 1}, "unknown-key", "/a~1b~0", "unknown"),
        ({"schema": "perfdb/shape/v2"}, "wrong-choice", "/schema", "perfdb/shape/v1"),
        ({"validity": "sure"}, "wrong-choice", "/validity", "exact"),
        ({"validity": ["exact"]}, "wrong-choice", "/validity", "exact"),
        ({"closed": 1}, "wrong-type", "/closed", "true or false"),
        ({"weights": {"k/1": "x"}}, "wrong-type", "/weights/k~11", "number"),
        ({"pair": [1]}, "wrong-type", "/pair", "array of 2"),
        ({"pair": [1, 2]}, "wrong-type", "/pair/1", "string"),
        ({"cell": [1]}, "wrong-type", "/cell", "an integer.* or .*a string"),
        ({"cell": True}, "wrong-type", "/cell", "boolean"),
        ({"part": {"x": 1, "y": []}}, "wrong-type", "/part/y", "number"),
    ],
)
def test_refused_with_pointer(changes, code, pointer, words):
    with pytest.raises(InvalidInputError, match=words) as caught:
        decoded(**changes)
    assert (caught.value.code, caught.value.pointer) == (code, pointer)


def test_pointer_of_the_caller_comes_first():
    with pytest.raises(InvalidInputError) as caught:
        decode(Point, {"x": "", "y": 1}, document="d", pointer="/a/0")
    assert caught.value.pointer == "/a/0/x"


def test_one_and_one_point_zero_are_one_value():
    assert decode(Point, {"x": 1.0, "y": 1}, document="d") == Point(x=1, y=1.0)
    assert type(decode(int, 1.0, document="d")) is int
    assert decode(Decimal, Decimal("0.1"), document="d") == Decimal("0.1")
    with pytest.raises(InvalidInputError):
        decode(Decimal, 0.1, document="d")


def test_class_faults_are_type_errors():
    with pytest.raises(TypeError, match="does not know"):
        decode(set[int], [1], document="d")
    for value in (b"x", {1: 2}, {1}, Point):
        with pytest.raises(TypeError):
            encode(value)


def test_exact_decimals_pass_and_no_document_takes_them():
    """Whoever prints a result decides how; a permanent document holds float64 only."""
    assert encode({"a": Decimal("0.1")}) == {"a": Decimal("0.1")}
    with pytest.raises(TypeError):
        canonical_document({"a": Decimal("0.1")})


def test_choices_keep_their_types():
    hint = Literal[1, "1", None]
    assert decode(hint, 1, document="d") == 1
    assert decode(hint, None, document="d") is None
    with pytest.raises(InvalidInputError):
        decode(hint, True, document="d")


def test_frozen_map_cannot_change():
    frozen = freeze({"a": [1, {"b": 2}]})
    assert frozen == {"a": (1, {"b": 2})}
    assert hash(frozen) == hash(freeze({"a": [1, {"b": 2}]}))
    with pytest.raises(TypeError):
        frozen["a"] = 1
    with pytest.raises(AttributeError):
        frozen._items = {}


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)
points = st.builds(Point, x=st.integers(0, 99), y=st.floats(allow_nan=False), unit=st.text())


@given(
    st.builds(
        Shape,
        schema=st.just("perfdb/shape/v1"),
        points=st.lists(points, max_size=3).map(tuple),
        from_=st.none() | st.text(),
        validity=st.sampled_from(Validity),
        closed=st.booleans(),
        weights=st.dictionaries(st.text(), st.floats(allow_nan=False)).map(FrozenMap),
        pair=st.none() | st.tuples(st.integers(), st.text()),
        cell=st.none() | st.integers() | st.floats(allow_nan=False) | st.text(),
        part=st.none() | points | st.builds(Named, name=st.text()),
        extra=json_values.map(freeze),
    )
)
def test_round_trip(shape):
    back = decode(Shape, encode(shape), document="d")
    assert back == shape
    assert hash(back) == hash(shape)


@given(json_values)
def test_any_value_decodes_or_is_refused(value):
    for cls in (Shape, Point, tuple[int, ...], Mapping[str, bool]):
        try:
            decode(cls, value, document="d")
        except InvalidInputError as error:
            assert error.pointer is not None

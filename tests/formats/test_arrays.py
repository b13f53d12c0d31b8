"""Arrays as text: every type survives, and text that does not fit is refused."""

import base64
import zlib
from dataclasses import replace
from typing import Any, get_args

import numpy as np
import pytest

from perfdb_git.errors import InvalidInputError
from perfdb_git.formats.arrays import (
    MAX_BYTES,
    decode_array,
    decode_parameters,
    encode_array,
    encode_parameters,
)
from perfdb_git.model.calibration import ArrayType, EncodedArray

TYPES = get_args(ArrayType)


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("shape", [(), (0,), (5,), (3, 4), (2, 0, 3)])
def test_round_trip(name: str, shape: tuple[int, ...]) -> None:
    values = np.random.default_rng(0).uniform(0, 100, size=shape).astype(name)
    encoded = encode_array(values)
    found = decode_array(encoded, document="x")
    assert encoded.shape == shape and found.dtype == values.dtype and found.shape == shape
    np.testing.assert_array_equal(found, values)
    assert not found.flags.writeable
    assert encode_array(found) == encoded


def test_order_and_byte_order_do_not_matter() -> None:
    values = np.arange(12, dtype=np.float64).reshape(3, 4)
    expected = encode_array(values)
    assert encode_array(np.asfortranarray(values)) == expected
    assert encode_array(values.astype(">f8")) == expected
    assert encode_array(np.concatenate([values, values])[::2][:0]).data == ""
    assert base64.b64decode(encode_array(np.array([1.0])).data) == b"\0\0\0\0\0\0\xf0\x3f"


def test_compression_only_where_it_pays() -> None:
    noise = np.random.default_rng(0).uniform(size=1000)
    assert encode_array(noise).compression == "none"
    steps = np.repeat(np.arange(10, dtype=np.int16), 1000)
    encoded = encode_array(steps)
    assert encoded.compression == "zlib" and len(encoded.data) < 500
    np.testing.assert_array_equal(decode_array(encoded, document="x"), steps)


@pytest.mark.parametrize(
    "values",
    [
        np.array([1.0, np.nan]),
        np.array([np.inf], dtype=np.float32),
        np.array([1 + 2j]),
        np.array(["a"]),
        np.array([True]),
        np.broadcast_to(np.float64(1), (MAX_BYTES,)),
    ],
    ids=["nan", "infinity", "complex", "text", "bool", "huge"],
)
def test_what_cannot_be_written(values: Any) -> None:
    with pytest.raises(ValueError):
        encode_array(values)


def _zlib(data: bytes) -> str:
    return base64.b64encode(data).decode()


GOOD = encode_array(np.arange(4, dtype=np.float64))
BAD: dict[str, EncodedArray] = {
    "short": replace(GOOD, shape=(5,)),
    "long": replace(GOOD, shape=(3,)),
    "other type": replace(GOOD, dtype="float32"),
    "no base64": replace(GOOD, data="AAA"),
    "not zlib": replace(GOOD, compression="zlib", data=_zlib(bytes(32))),
    "cut stream": replace(GOOD, compression="zlib", data=_zlib(zlib.compress(bytes(32))[:-3])),
    "bomb": replace(GOOD, compression="zlib", data=_zlib(zlib.compress(bytes(10**6)))),
    "tail": replace(GOOD, compression="zlib", data=_zlib(zlib.compress(bytes(32)) + b"x")),
    "not finite": EncodedArray(dtype="float64", shape=(1,), data=_zlib(np.array(np.nan).tobytes())),
    "huge": replace(GOOD, shape=(MAX_BYTES,)),
}


@pytest.mark.parametrize("name", BAD)
def test_text_that_does_not_fit(name: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        decode_array(BAD[name], document="evidence/x.json", pointer="/arrays/a")
    assert caught.value.code == "bad-array"
    assert (caught.value.document, caught.value.pointer) == ("evidence/x.json", "/arrays/a")


def test_parameters() -> None:
    parameters = encode_parameters({"b": np.float64(2), "a": 1}, {"x": np.arange(3)})
    assert parameters.numbers == {"a": 1.0, "b": 2.0}
    assert list(parameters.numbers) == ["a", "b"]
    assert all(type(value) is float for value in parameters.numbers.values())
    assert decode_parameters(parameters, document="x")["x"].tolist() == [0, 1, 2]
    broken = replace(parameters, arrays={"x": BAD["short"]})
    with pytest.raises(InvalidInputError) as caught:
        decode_parameters(broken, document="x", pointer="/inside/parameters")
    assert caught.value.pointer == "/inside/parameters/arrays/x"
    with pytest.raises(ValueError):
        encode_parameters({"a": float("nan")})

"""Arrays of numbers as text: little-endian bytes in base64, compressed where it pays."""

from __future__ import annotations

import base64
import binascii
import math
import zlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias, get_args

from perfdb_git.errors import InvalidInputError
from perfdb_git.model.calibration import ArrayType, EncodedArray, Parameters

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    AnyArray: TypeAlias = NDArray[np.generic]

MAX_BYTES = 64 * 1024 * 1024
"""Bytes of one array, uncompressed; a stream that holds more is not unpacked."""

_TYPES = frozenset(get_args(ArrayType))
_WORTH_COMPRESSING = 0.9


def encode_array(array: AnyArray) -> EncodedArray:
    """Return an array as text; equal arrays give equal text.

    Parameters
    ----------
    array : array
        Of any shape; finite.

    Raises
    ------
    ValueError
        For another type of elements, a number that is not finite, or an array beyond `MAX_BYTES`.
    """
    import numpy as np

    name: Any = array.dtype.name
    if name not in _TYPES:
        raise ValueError(f"an array of {name} has no encoded form")
    if array.nbytes > MAX_BYTES:
        raise ValueError(f"an array of {array.nbytes} bytes is larger than {MAX_BYTES}")
    if array.dtype.kind == "f" and not bool(np.isfinite(array).all()):
        raise ValueError("an encoded array holds finite numbers only")
    data = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).tobytes()
    packed = zlib.compress(data, 9)
    is_packed = len(packed) < _WORTH_COMPRESSING * len(data)
    return EncodedArray(
        dtype=name,
        shape=tuple(array.shape),
        compression="zlib" if is_packed else "none",
        data=base64.b64encode(packed if is_packed else data).decode("ascii"),
    )


def decode_array(encoded: EncodedArray, *, document: str, pointer: str = "") -> AnyArray:
    """Return the array that a text holds, read-only.

    Parameters
    ----------
    encoded : EncodedArray
        As a document states it.
    document : str
        Its name, for messages.
    pointer : str
        JSON pointer of the array in that document.

    Raises
    ------
    InvalidInputError
        'bad-array' where text, shape and type do not fit each other.
    """
    import numpy as np

    dtype = np.dtype(encoded.dtype).newbyteorder("<")
    size = math.prod(encoded.shape) * dtype.itemsize
    fault = None if size <= MAX_BYTES else f"{size} bytes are more than {MAX_BYTES}"
    data = b""
    if fault is None:
        data, fault = _bytes(encoded, size)
    if fault is None:
        array = np.frombuffer(data, dtype=dtype).reshape(encoded.shape)
        if dtype.kind != "f" or bool(np.isfinite(array).all()):
            return array
        fault = "it holds a number that is not finite"
    raise InvalidInputError(
        fault,
        code="bad-array",
        document=document,
        pointer=pointer,
        remedy="write the document with perfdb instead of by hand",
    )


def _bytes(encoded: EncodedArray, size: int) -> tuple[bytes, str | None]:
    """Return the array's bytes, and what is wrong with them."""
    try:
        data = base64.b64decode(encoded.data, validate=True)
        if encoded.compression == "zlib":
            stream = zlib.decompressobj()
            # One byte more than there should be shows a stream that is too long.
            data = stream.decompress(data, size + 1)
            if not stream.eof or stream.unused_data:
                return b"", "the zlib stream is cut off, or something follows it"
    except (binascii.Error, zlib.error) as error:
        return b"", f"the data cannot be read: {error}"
    if len(data) != size:
        return b"", f"{len(data)} bytes or more where shape and type call for {size}"
    return data, None


def encode_parameters(
    numbers: Mapping[str, float] | None = None, arrays: Mapping[str, AnyArray] | None = None
) -> Parameters:
    """Return numbers and arrays as the parameters of a document.

    Raises
    ------
    ValueError
        As `encode_array`, or for a number that is not finite.
    """
    plain = {name: float(value) for name, value in sorted((numbers or {}).items())}
    for name, value in plain.items():
        if not math.isfinite(value):
            raise ValueError(f"parameter {name} is {value}")
    return Parameters(
        numbers=plain,
        arrays={name: encode_array(array) for name, array in sorted((arrays or {}).items())},
    )


def decode_parameters(
    parameters: Parameters, *, document: str, pointer: str = ""
) -> dict[str, AnyArray]:
    """Return the arrays among a document's parameters, by name; see `decode_array`."""
    return {
        name: decode_array(array, document=document, pointer=f"{pointer}/arrays/{name}")
        for name, array in parameters.arrays.items()
    }

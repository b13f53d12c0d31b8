"""Named formulas of work: the shape of an operation to operations and bytes.

A vocabulary names its formulas with a version (``gemm/1``); a changed formula gets a new number,
so that an answer at an old commit stays what it was. Every formula counts a multiply-add as two
operations and each operand as moved once between device memory and the chip. Numbers are float64,
for one shape or for a column of shapes alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from perfdb_git.errors import InvalidInputError
from perfdb_git.model.values import Scalar
from perfdb_git.operations.element_sizes import element_bytes

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Coordinates: TypeAlias = "Mapping[str, Scalar | NDArray[np.float64]]"
"""Known dimensions by flat name: one shape, or a column ``(n,)`` where shapes differ."""

Number: TypeAlias = Any
"""A float, or a column of floats ``(n,)``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What an operation has to do; sizes in bytes, ``message_bytes`` for collectives.

    Each is a float, or a column ``(n,)`` for a column of shapes.
    """

    operations: Number = 0.0
    bytes_read: Number = 0.0
    bytes_written: Number = 0.0
    message_bytes: Number = 0.0

    @property
    def bytes_moved(self) -> Number:
        """Bytes read and written together."""
        return self.bytes_read + self.bytes_written


class Shape:
    """Typed access to the coordinates of a query; a missing one is an explicit error."""

    def __init__(self, coordinates: Coordinates) -> None:
        self._coordinates = coordinates

    def number(self, name: str) -> Number:
        """Return a required numeric dimension."""
        value = self._coordinates[name]
        if isinstance(value, str):
            raise TypeError(f"{name} is not a number")
        return float(value) if isinstance(value, int | float) else value

    def number_or(self, name: str, default: float) -> Number:
        """Return a numeric dimension, or ``default`` where it is unknown."""
        return self.number(name) if name in self._coordinates else default

    def term(self, name: str) -> str:
        """Return a required term."""
        return str(self._coordinates[name])

    def has(self, name: str) -> bool:
        """Return whether the dimension is known."""
        return name in self._coordinates

    def element_bytes(self, name: str = "dtype") -> float:
        """Return the size in bytes of one element of the dtype dimension ``name``."""
        return element_bytes(self.term(name))


def gemm(shape: Shape) -> Work:
    """Count a matrix product: 2mnk operations, both inputs and the result moved once.

    An 8-bit or smaller product writes 16-bit results, as the inference libraries do.
    """
    m, n, k = (shape.number(name) for name in "mnk")
    size = shape.element_bytes()
    return Work(
        operations=2 * m * n * k,
        bytes_read=(m * k + k * n) * size,
        bytes_written=m * n * max(size, 2),
    )


def _lesser(one: Number, other: Number) -> Number:
    if isinstance(one, float) and isinstance(other, float):
        return min(one, other)
    import numpy as np

    return np.minimum(one, other)


def _choose(condition: Any, chosen: Number, otherwise: Number) -> Number:
    if isinstance(condition, bool):
        return chosen if condition else otherwise
    import numpy as np

    return np.where(condition, chosen, otherwise)


def _causal_pairs(new: Number, cached: Number, window: Number) -> Number:
    """Count query-key pairs: token i of ``new`` sees ``cached + i`` keys, at most ``window``."""
    all_pairs = new * cached + new * (new + 1) / 2
    # Tokens whose window still grows, at least none: the lesser of two is taken on negatives.
    growing = -_lesser(0.0, -_lesser(new, window - cached))
    ramp = growing * cached + growing * (growing + 1) / 2
    is_whole = (window <= 0) | (cached + new <= window)
    return _choose(is_whole, all_pairs, ramp + (new - growing) * window)


def attention_prefill(shape: Shape) -> Work:
    """Count causal attention of new tokens: 4 d operations a pair and query head.

    Query-key product and value product are 2 d each; softmax is not counted, as in the
    FlashAttention papers (Dao et al., 2022).
    """
    batch, heads, kv_heads, size = (
        shape.number(name) for name in ("batch_size", "query_heads", "kv_heads", "head_size")
    )
    new, cached = shape.number("query_length"), shape.number("kv_cache_length")
    window = shape.number_or("window_size", 0.0)
    keys = _choose(window <= 0, cached + new, _lesser(cached + new, window + new - 1))
    element = shape.element_bytes()
    kv_element = shape.element_bytes("kv_cache_dtype") if shape.has("kv_cache_dtype") else element
    queries = batch * new * heads * size
    return Work(
        operations=4 * batch * heads * size * _causal_pairs(new, cached, window),
        bytes_read=queries * element + 2 * batch * keys * kv_heads * size * kv_element,
        bytes_written=queries * max(element, 2),
    )


def attention_decode(shape: Shape) -> Work:
    """Count attention of one new token a sequence over ``kv_cache_length`` + 1 tokens."""
    batch, heads, kv_heads, size = (
        shape.number(name) for name in ("batch_size", "query_heads", "kv_heads", "head_size")
    )
    window = shape.number_or("window_size", 0.0)
    keys = shape.number("kv_cache_length") + 1
    keys = _choose(window > 0, _lesser(keys, window), keys)
    sequences = batch * shape.number_or("beam_width", 1.0)
    element = shape.element_bytes()
    kv_element = shape.element_bytes("kv_cache_dtype") if shape.has("kv_cache_dtype") else element
    return Work(
        operations=4 * sequences * heads * size * keys,
        bytes_read=sequences * heads * size * element
        + 2 * sequences * keys * kv_heads * size * kv_element,
        bytes_written=sequences * heads * size * max(element, 2),
    )


_ELEMENTWISE: Mapping[str, tuple[int, int]] = {
    "add": (2, 1),
    "multiply": (2, 1),
    "relu": (1, 1),
    "gelu": (1, 8),
    "silu": (1, 4),
    "silu_mul": (2, 5),
}
"""Kind to (inputs, operations an element); GeLU as in Calculon (tanh form)."""


def elementwise(shape: Shape) -> Work:
    """Count an element-wise operation: each input read, the result written."""
    elements, size = shape.number("elements"), shape.element_bytes()
    inputs, operations = _ELEMENTWISE[shape.term("elementwise_kind")]
    return Work(
        operations=operations * elements,
        bytes_read=inputs * elements * size,
        bytes_written=elements * size,
    )


def norm(shape: Shape) -> Work:
    """Count a normalisation: 9 operations an element (layer, as in Calculon) or 4 (rms)."""
    tokens, hidden = shape.number("tokens"), shape.number("hidden_size")
    elements, size = tokens * hidden, shape.element_bytes()
    is_layer = shape.term("norm_kind") == "layer"
    parameters = 2 * hidden if is_layer else hidden
    return Work(
        operations=(9 if is_layer else 4) * elements,
        bytes_read=(elements + parameters) * size,
        bytes_written=elements * size,
    )


def softmax(shape: Shape) -> Work:
    """Count a softmax: 5 operations an element, as in Calculon."""
    elements, size = shape.number("rows") * shape.number("row_length"), shape.element_bytes()
    return Work(operations=5 * elements, bytes_read=elements * size, bytes_written=elements * size)


def rope(shape: Shape) -> Work:
    """Count a rotary embedding: two multiplies and an add for each query and key element."""
    tokens, head = shape.number("tokens"), shape.number("head_size")
    elements = tokens * (shape.number("query_heads") + shape.number("kv_heads")) * head
    size = shape.element_bytes()
    return Work(
        operations=3 * elements,
        bytes_read=(elements + tokens * head) * size,
        bytes_written=elements * size,
    )


def kv_cache_save(shape: Shape) -> Work:
    """Count writing keys and values of new tokens to the cache."""
    elements = 2 * shape.number("tokens") * shape.number("kv_heads") * shape.number("head_size")
    element = shape.element_bytes()
    kv_element = shape.element_bytes("kv_cache_dtype") if shape.has("kv_cache_dtype") else element
    return Work(bytes_read=elements * element, bytes_written=elements * kv_element)


def embedding(shape: Shape) -> Work:
    """Count a table look-up: one row read (with its 8-byte index) and written for each token."""
    tokens, size = shape.number("tokens"), shape.element_bytes()
    elements = tokens * shape.number("hidden_size")
    return Work(bytes_read=elements * size + 8 * tokens, bytes_written=elements * size)


def memory_copy(shape: Shape) -> Work:
    """Count a copy: every byte read once and written once."""
    size = shape.number("transfer_bytes")
    return Work(bytes_read=size, bytes_written=size)


def message(shape: Shape) -> Work:
    """Count a collective by its message; the wire traffic depends on the network's factors."""
    return Work(message_bytes=shape.number("message_bytes"))


def stream(shape: Shape) -> Work:
    """Count a kernel of STREAM (McCalpin): arrays as the program reads and writes them."""
    size = shape.number("elements") * shape.element_bytes()
    reads, writes, operations = _STREAM[shape.term("stream_kind")]
    return Work(
        operations=operations * shape.number("elements"),
        bytes_read=reads * size,
        bytes_written=writes * size,
    )


_STREAM: Mapping[str, tuple[int, int, int]] = {
    "copy": (1, 1, 0),
    "scale": (1, 1, 1),
    "add": (2, 1, 1),
    "triad": (2, 1, 2),
    "dot": (2, 0, 2),
}
"""Kind to (arrays read, arrays written, operations an element)."""


def unmodelled(shape: Shape) -> Work:
    """Refuse: nobody can tell the work of a named benchmark from its name."""
    raise KeyError("work")


WORK_FORMULAS: Mapping[str, Callable[[Shape], Work]] = {
    "gemm/1": gemm,
    "attention-prefill/1": attention_prefill,
    "attention-decode/1": attention_decode,
    "elementwise/1": elementwise,
    "norm/1": norm,
    "softmax/1": softmax,
    "rope/1": rope,
    "kv-cache-save/1": kv_cache_save,
    "embedding/1": embedding,
    "memory-copy/1": memory_copy,
    "message/1": message,
    "stream/1": stream,
    "unmodelled/1": unmodelled,
}
"""Every formula that a vocabulary may name."""

UNMODELLED = "unmodelled/1"
"""Formula of operations whose work is unknown; only recorded evidence answers them."""

FORMULAS_WITHOUT_DTYPE = frozenset({"memory-copy/1", "message/1", UNMODELLED})
"""Formulas that count bytes as they stand and so need no element size."""


def work_of(formula: str, coordinates: Coordinates) -> Work:
    """Apply the named formula to a query's coordinates, or to those of many.

    Parameters
    ----------
    formula : str
        A key of `WORK_FORMULAS`.
    coordinates : Mapping[str, Scalar or ndarray]
        Known dimensions by flat name; a column ``(n,)`` of float64 where queries differ.

    Returns
    -------
    Work
        Operations and bytes, those of the columns' queries as columns.

    Raises
    ------
    KeyError
        When a dimension that the formula needs is unknown.
    InvalidInputError
        When this version has no formula of that name.
    """
    known = WORK_FORMULAS.get(formula)
    if known is None:
        raise InvalidInputError(
            f"no work formula is called {formula!r}; known: {', '.join(sorted(WORK_FORMULAS))}",
            code="unknown-formula",
            document="evidence/vocabulary.yaml",
            remedy="use a newer perfdb, or one of the known formulas",
        )
    return known(Shape(coordinates))

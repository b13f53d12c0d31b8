"""Queries that pipelines carry: flat dimensions and values, in the vocabulary's own words."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from perfdb_git.model.values import Scalar
from perfdb_git.model.vocabulary import Dimension, Vocabulary
from perfdb_git.operations.queries import shape_dimensions, value_fault

_MAX_NAME = 100
"""Looking for similar names takes time that grows with the square of their length."""


class QueryFault(NamedTuple):
    """What is wrong with a query; ``name`` is the dimension, ``None`` where one is missing."""

    name: str | None
    message: str


def query_faults(query: Mapping[str, Scalar], vocabulary: Vocabulary) -> Iterator[QueryFault]:
    """Yield what keeps a query from being asked.

    Parameters
    ----------
    query : mapping of str to scalar
        Values by flat dimension name.
    vocabulary : Vocabulary
        Dimensions, terms and operations in force.
    """
    operation = query.get("operation")
    if operation is None:
        yield QueryFault(None, "it has no operation")
        return
    if operation not in vocabulary.operations:
        yield QueryFault(
            "operation", f"unknown operation {operation!r}{_hint(operation, vocabulary.operations)}"
        )
        return
    own = shape_dimensions(str(operation), vocabulary)
    for name, value in query.items():
        if name == "operation":
            continue
        dimension = vocabulary.dimensions.get(name)
        if dimension is None:
            hint = _hint(name, vocabulary.dimensions)
            yield QueryFault(name, f"unknown dimension {name!r}{hint}")
        elif dimension.group == "shape" and name not in own:
            yield QueryFault(
                name, f"operation {operation} has no dimension {name!r}, only {', '.join(own)}"
            )
        else:
            fault = _value_fault(dimension, value)
            if fault is not None:
                yield QueryFault(name, f"{name}: {fault}")


def _value_fault(dimension: Dimension, value: Scalar) -> str | None:
    if dimension.type == "term":
        for term, aliases in dimension.terms.items():
            if value in aliases and value not in dimension.terms:
                return f"{value!r} is an alias of {term!r}; documents use canonical terms"
        if isinstance(value, str) and value in dimension.shorthands:
            meant = ", ".join(f"{key}={part}" for key, part in dimension.shorthands[value].items())
            return f"{value!r} is a shorthand of {meant}; documents use canonical terms"
    return value_fault(dimension, value)


def _hint(name: object, known: Mapping[str, object]) -> str:
    if not isinstance(name, str) or len(name) > _MAX_NAME:
        return ""
    close = difflib.get_close_matches(name, sorted(known), n=2)
    return f"; did you mean {' or '.join(close)}?" if close else ""

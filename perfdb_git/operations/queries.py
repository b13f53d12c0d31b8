"""Typed input to exact queries, and queries to their canonical form.

Aliases and shorthands apply to what people type; documents must use canonical terms.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping
from dataclasses import replace

from perfdb_git.errors import InvalidInputError, UsageError
from perfdb_git.formats.codec import decode, encode
from perfdb_git.formats.digests import canonical_digest
from perfdb_git.model.query import (
    GROUP_FIELDS,
    GROUP_TYPES,
    QUERY_GROUPS,
    CostQuery,
    EvidencePolicy,
    Workload,
)
from perfdb_git.model.values import JsonValue, Scalar
from perfdb_git.model.vocabulary import Dimension, Vocabulary

LARGEST_INTEGER = 2**53 - 1


def parse_pairs(pairs: Iterable[str], vocabulary: Vocabulary) -> dict[str, Scalar | None]:
    """Read ``KEY=VALUE`` texts; ``null`` states an explicit unknown.

    Parameters
    ----------
    pairs : Iterable[str]
        Texts as typed, such as ``dtype=fp16``.
    vocabulary : Vocabulary
        Dimensions, terms and aliases in force.

    Returns
    -------
    dict[str, Scalar | None]
        Canonical values by flat dimension name.

    Raises
    ------
    UsageError
        A text without ``=``, an unknown dimension or term, a bad number, or one dimension with
        two values.
    """
    values: dict[str, Scalar | None] = {}
    for pair in pairs:
        key, separator, text = pair.partition("=")
        if not separator:
            raise UsageError(
                f"{pair!r} is not KEY=VALUE",
                code="bad-pair",
                remedy="write, for example, operation=gemm device=a100 m=128",
            )
        for name, value in _typed(key.strip(), text.strip(), vocabulary).items():
            if name in values and values[name] != value:
                raise UsageError(
                    f"{name} is given twice, as {values[name]!r} and {value!r}",
                    code="repeated-dimension",
                )
            values[name] = value
    return values


def typed_dimension(
    name: str, value: Scalar | None, vocabulary: Vocabulary
) -> Mapping[str, Scalar | None]:
    """Return what one cell of a table of questions states: text as typed, numbers as they are.

    Parameters
    ----------
    name : str
        Dimension that the cell's column is named after.
    value : str, int, float or None
        The cell.
    vocabulary : Vocabulary
        Dimensions, terms and aliases in force.

    Returns
    -------
    Mapping[str, Scalar | None]
        Canonical values by dimension; a shorthand states several.

    Raises
    ------
    UsageError
        An unknown dimension or term, or an illegal value.
    """
    if isinstance(value, str):
        return _typed(name, value, vocabulary)
    _checked_dimension(name, value, vocabulary)
    return {name: value}


def _typed(name: str, text: str, vocabulary: Vocabulary) -> Mapping[str, Scalar | None]:
    dimension = vocabulary.dimensions.get(name)
    if dimension is None:
        raise _unknown("dimension", name, vocabulary.dimensions, "unknown-dimension")
    if text == "null":
        return {name: None}
    if name == "operation":
        if text not in vocabulary.operations:
            raise _unknown("operation", text, vocabulary.operations, "unknown-operation")
        return {name: text}
    if text in dimension.shorthands:
        return dimension.shorthands[text]
    return {name: _typed_value(name, dimension, text)}


def _typed_value(name: str, dimension: Dimension, text: str) -> Scalar:
    if dimension.type == "term":
        return canonical_term(name, dimension, text)
    if dimension.type == "label":
        if not text:
            raise UsageError(f"{name} is empty", code="empty-value", remedy="write null")
        return text
    value = _number(name, text)
    fault = value_fault(dimension, value)
    if fault is not None:
        raise UsageError(f"{name}={text}: {fault}", code="bad-value")
    return value


def _number(name: str, text: str) -> int | float:
    try:
        return int(text) if text.lstrip("-").isdigit() else float(text)
    except ValueError:
        raise UsageError(f"{name}={text} is not a number", code="bad-number") from None


def canonical_term(name: str, dimension: Dimension, text: str) -> str:
    """Return the canonical term for a typed term or alias."""
    if text in dimension.terms:
        return text
    for term, aliases in dimension.terms.items():
        if text in aliases:
            return term
    known = [*dimension.terms, *dimension.shorthands]
    raise _unknown(name, text, known, "unknown-term")


def value_fault(dimension: Dimension, value: object) -> str | None:
    """Say what is wrong with a canonical value of a dimension, or ``None`` if it is legal."""
    if dimension.type == "term":
        if value in dimension.terms:
            return None
        return f"{value!r} is not a term; terms: {', '.join(sorted(dimension.terms))}"
    if dimension.type == "label":
        return None if isinstance(value, str) and value else "a non-empty text is needed"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return f"{value!r} is not a number"
    if not math.isfinite(value) or abs(value) > LARGEST_INTEGER:
        return "the number must be finite and within ±(2^53 - 1)"
    if dimension.type == "integer" and value != int(value):
        return "a whole number is needed"
    if value < 0 or (value == 0 and not dimension.zero):
        return "must be positive" if not dimension.zero else "must not be negative"
    return None


def _unknown(what: str, given: str, known: Iterable[str], code: str) -> UsageError:
    names = sorted(known)
    close = difflib.get_close_matches(given, names, n=3)
    hint = f"did you mean {' or '.join(close)}?" if close else f"known: {', '.join(names)}"
    return UsageError(f"unknown {what} {given!r}", code=code, remedy=hint)


def build_query(
    values: Mapping[str, Scalar | None],
    vocabulary: Vocabulary,
    *,
    limits: EvidencePolicy | None = None,
) -> CostQuery:
    """Sort flat values into the six groups of a query.

    Raises
    ------
    UsageError
        No operation, an unknown dimension, an illegal value or an alias, or a shape dimension
        that the operation does not have.
    """
    operation = values.get("operation")
    if not isinstance(operation, str):
        raise UsageError(
            "a query needs an operation",
            code="no-operation",
            remedy=f"operation=NAME, one of {', '.join(sorted(vocabulary.operations))}",
        )
    _checked_dimension("operation", operation, vocabulary)
    own = shape_dimensions(operation, vocabulary)
    grouped: dict[str, dict[str, Scalar | None]] = {group: {} for group in QUERY_GROUPS}
    shape: dict[str, Scalar | None] = {}
    for name, value in values.items():
        dimension = _checked_dimension(name, value, vocabulary)
        if dimension.group != "shape":
            grouped[dimension.group][name] = value
        elif name in own:
            shape[name] = value
        else:
            raise UsageError(
                f"operation {operation} has no dimension {name!r}",
                code="foreign-dimension",
                remedy=f"its shape is {', '.join(own)}",
            )
    parts = {
        group: GROUP_TYPES[group](**grouped[group]) for group in QUERY_GROUPS if group != "workload"
    }
    workload = Workload(**grouped["workload"], shape=shape)  # type: ignore[arg-type]
    query = CostQuery(
        workload=workload,
        evidence_policy=limits or EvidencePolicy(),
        **parts,
    )
    return complete_query(query, vocabulary)


def _checked_dimension(name: str, value: Scalar | None, vocabulary: Vocabulary) -> Dimension:
    dimension = vocabulary.dimensions.get(name)
    if dimension is None:
        raise _unknown("dimension", name, vocabulary.dimensions, "unknown-dimension")
    fault = None
    if name == "operation":
        if value not in vocabulary.operations:
            raise _unknown("operation", str(value), vocabulary.operations, "unknown-operation")
    elif value is not None:
        fault = value_fault(dimension, value)
    if fault is not None:
        raise UsageError(
            f"{name}: {fault}",
            code="bad-value",
            remedy="canonical values are needed; aliases are for typed input",
        )
    return dimension


def shape_dimensions(operation: str, vocabulary: Vocabulary) -> tuple[str, ...]:
    """Return the dimensions of group ``shape`` that an operation has, in the vocabulary's order."""
    entry = vocabulary.operations[operation]
    names = (*entry.shape, *entry.optional)
    return tuple(name for name in names if vocabulary.dimensions[name].group == "shape")


def complete_query(query: CostQuery, vocabulary: Vocabulary) -> CostQuery:
    """Write every shape dimension of the operation, unknown ones as ``None``."""
    own = shape_dimensions(query.operation, vocabulary)
    shape = {name: query.workload.shape.get(name) for name in own}
    return replace(query, workload=replace(query.workload, shape=shape))


def query_from_document(value: JsonValue, vocabulary: Vocabulary, *, document: str) -> CostQuery:
    """Decode a schema-validated query document and check it against the vocabulary.

    Raises
    ------
    InvalidInputError
        An unknown operation, dimension, term or an illegal value, with its JSON pointer.
    """
    query = decode(CostQuery, value, document=document)
    if query.operation not in vocabulary.operations:
        raise InvalidInputError(
            f"unknown operation {query.operation!r}",
            code="unknown-operation",
            document=document,
            pointer="/workload/operation",
            remedy=f"one of {', '.join(sorted(vocabulary.operations))}",
        )
    own = shape_dimensions(query.operation, vocabulary)
    for name in query.workload.shape:
        if name not in own:
            raise InvalidInputError(
                f"operation {query.operation} has no dimension {name!r}",
                code="foreign-dimension",
                document=document,
                pointer=f"/workload/shape/{name}",
                remedy=f"its shape is {', '.join(own)}",
            )
    _check_values(query, vocabulary, document)
    return complete_query(query, vocabulary)


def _check_values(query: CostQuery, vocabulary: Vocabulary, document: str) -> None:
    for name, value in query.coordinates().items():
        if name == "operation":
            continue
        dimension = vocabulary.dimensions.get(name)
        fault = "not in the vocabulary" if dimension is None else value_fault(dimension, value)
        if fault is not None:
            group = next((g for g in QUERY_GROUPS if name in GROUP_FIELDS[g]), "workload/shape")
            raise InvalidInputError(
                f"{name}: {fault}",
                code="bad-value",
                document=document,
                pointer=f"/{group}/{name}",
                remedy="documents use canonical terms; aliases are for typed input",
            )


def canonical_query(query: CostQuery) -> JsonValue:
    """Return the query's canonical form: every dimension written, unknown ones as null."""
    return encode(query)


def query_digest(query: CostQuery) -> str:
    """Return ``sha256:`` and the digest of the query's RFC 8785 text, ``schema`` included."""
    return canonical_digest(canonical_query(query))

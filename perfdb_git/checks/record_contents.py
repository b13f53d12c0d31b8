"""What the header and the rows of a record set say, judged by the vocabulary."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeAlias

from perfdb_git.checks.checked_snapshot import CheckedDocument, CheckedSnapshot
from perfdb_git.checks.document_checks import UNKNOWN_SCHEMA_CODES
from perfdb_git.checks.rules import Check, Rule
from perfdb_git.checks.terms import (
    UNKNOWN_DIMENSION,
    UNKNOWN_OPERATION,
    UNKNOWN_TERM,
    hint,
    pointer,
    term_fault,
)
from perfdb_git.formats.schemas import parse_schema_id
from perfdb_git.model.findings import Finding
from perfdb_git.model.records import Column, Manifest, RecordSetHeader
from perfdb_git.model.values import Scalar
from perfdb_git.model.vocabulary import Dimension, Vocabulary
from perfdb_git.operations.queries import LARGEST_INTEGER, value_fault
from perfdb_git.storage.record_columns import column_findings, row_findings

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    FloatArray: TypeAlias = NDArray[np.float64]

FOREIGN_DIMENSION = Rule(
    code="foreign-dimension",
    documentation="Shape dimensions are those of the record set's own operation.",
    remedy="leave it out, make it a source column, or add it to the operation's optional shape",
)
TEXT_DIMENSION = Rule(
    code="text-dimension",
    documentation="Terms and labels stand in the header, once for all rows.",
    remedy="split the set by this dimension and write its value into the context",
)
DIMENSION_UNIT = Rule(
    code="dimension-unit",
    documentation="Dimensions are in the vocabulary's unit, since matching compares the numbers.",
    remedy="convert the cells to the vocabulary's unit",
)
BAD_VALUE = Rule(
    code="bad-value",
    documentation="Values are legal by the vocabulary's type, sign and zero.",
    remedy="write a legal value, or null where it is unknown",
)
UNUSED_NULL_REASON = Rule(
    code="unused-null-reason",
    documentation="Reasons for null cells name metric columns of the set.",
    remedy="name a metric column, or remove the reason",
)
EXTENSION_VIOLATION = Rule(
    code="extension-violation",
    documentation="Extensions obey their own released schemas.",
    remedy="change the extension to what its schema under schemas/extensions/ says",
)


def _cell_rule(code: str, documentation: str, remedy: str) -> Rule:
    return Rule(code=code, documentation=documentation, remedy=remedy)


CELL_RULES = (
    _cell_rule("row-length", "A row has one cell a column.", "write one cell a column"),
    _cell_rule("cell-type", "Cells are of their column's type.", "write a number or null"),
    _cell_rule("no-samples", "An array of samples is not empty.", "write null"),
    _cell_rule("negative-metric", "Metrics are not negative.", "write a number or null"),
    _cell_rule("wrong-count", "Counts are positive integers.", "write a count or null"),
    _cell_rule("duplicate-column", "A column stands once.", "keep one of them"),
    _cell_rule(
        "dimension-stated-twice",
        "A dimension stands in the context or in a column.",
        "remove it from the context",
    ),
    _cell_rule("wrong-unit", "Metrics are in units of their kind.", "convert the cells"),
)
"""Codes of `column_findings` and `row_findings`, which the index uses too."""


def judge_cells(_: CheckedSnapshot, document: CheckedDocument) -> Iterator[Finding]:
    """Yield faults of columns and cells that need no vocabulary."""
    if document.header is None:
        return
    value = document.value
    yield from column_findings(value, document=document.path)
    if document.columns is None:
        yield from row_findings(value["rows"], value["columns"], document=document.path)


def judge_dimensions(snapshot: CheckedSnapshot, document: CheckedDocument) -> Iterator[Finding]:
    """Yield dimensions, terms and values that the vocabulary does not allow."""
    header, vocabulary = document.header, snapshot.vocabulary
    if header is None or vocabulary is None:
        return
    if header.operation not in vocabulary.operations:
        yield UNKNOWN_OPERATION.broken(
            document.path,
            f"unknown operation {header.operation!r}"
            + hint(header.operation, vocabulary.operations),
            pointer="/context/operation",
        )
    yield from _context(document, header, vocabulary)
    for place, column in enumerate(header.columns):
        if column.role != "dimension":
            continue
        where = pointer("columns", place, "name")
        dimension = vocabulary.dimensions.get(column.name)
        if dimension is None:
            yield _unknown_dimension(document.path, column.name, vocabulary, where)
            continue
        yield from _foreign(document, header, vocabulary, column.name, where)
        yield from _column(document, place, column, dimension)


def _context(
    document: CheckedDocument, header: RecordSetHeader, vocabulary: Vocabulary
) -> Iterator[Finding]:
    for name, value in header.context.items():
        if name == "operation":
            continue
        where = pointer("context", name)
        dimension = vocabulary.dimensions.get(name)
        if dimension is None:
            yield _unknown_dimension(document.path, name, vocabulary, where)
            continue
        yield from _foreign(document, header, vocabulary, name, where)
        yield from _value(document, name, dimension, value, where)


def _value(
    document: CheckedDocument, name: str, dimension: Dimension, value: Scalar | None, where: str
) -> Iterator[Finding]:
    if value is None:
        return
    fault = term_fault(dimension, value)
    if fault is not None:
        yield UNKNOWN_TERM.broken(document.path, f"{name}: {fault}", pointer=where)
        return
    fault = value_fault(dimension, value)
    if fault is not None:
        yield BAD_VALUE.broken(document.path, f"{name} is {value!r}: {fault}", pointer=where)


def _unknown_dimension(path: str, name: str, vocabulary: Vocabulary, where: str) -> Finding:
    return UNKNOWN_DIMENSION.broken(
        path, f"unknown dimension {name!r}{hint(name, vocabulary.dimensions)}", pointer=where
    )


def _foreign(
    document: CheckedDocument,
    header: RecordSetHeader,
    vocabulary: Vocabulary,
    name: str,
    where: str,
) -> Iterator[Finding]:
    operation = vocabulary.operations.get(header.operation)
    if operation is None or vocabulary.dimensions[name].group != "shape":
        return
    if name not in operation.shape and name not in operation.optional:
        own = ", ".join((*operation.shape, *operation.optional))
        yield FOREIGN_DIMENSION.broken(
            document.path,
            f"operation {header.operation} has no dimension {name!r}; its shape is {own}",
            pointer=where,
        )


def _column(
    document: CheckedDocument, place: int, column: Column, dimension: Dimension
) -> Iterator[Finding]:
    if dimension.type in ("term", "label"):
        yield TEXT_DIMENSION.broken(
            document.path,
            f"dimension {column.name!r} is a {dimension.type}, which no column can hold",
            pointer=pointer("columns", place, "name"),
        )
        return
    if column.unit != dimension.unit:
        yield DIMENSION_UNIT.broken(
            document.path,
            f"{column.name!r} is in {column.unit!r}, the vocabulary has {dimension.unit!r}",
            pointer=pointer("columns", place, "unit"),
        )
    data = None if document.columns is None else document.columns[place]
    if data is None:
        return
    for row in illegal_rows(data.values, dimension):
        value = document.value["rows"][row][place]
        yield BAD_VALUE.broken(
            document.path,
            f"row {row}, column {column.name!r} is {value!r}: {value_fault(dimension, value)}",
            pointer=pointer("rows", row, place),
            row=row,
        )


def illegal_rows(values: FloatArray, dimension: Dimension) -> list[int]:
    """Return the rows whose known values `value_fault` refuses.

    Parameters
    ----------
    values : array
        Shape ``(n_rows,)``, NaN where unknown.
    dimension : Dimension
        A numeric one.
    """
    import numpy as np

    # Comparisons with NaN are false, so unknown cells pass.
    illegal = (np.abs(values) > LARGEST_INTEGER) | (values < 0)
    if not dimension.zero:
        illegal |= values == 0
    if dimension.type == "integer":
        illegal |= (values != np.floor(values)) & ~np.isnan(values)
    return [int(row) for row in np.flatnonzero(illegal)]


def judge_header(snapshot: CheckedSnapshot, document: CheckedDocument) -> Iterator[Finding]:
    """Yield faults of extensions and of reasons for null cells."""
    header = document.header
    if header is None:
        return
    metrics = {column.name for column in header.columns if column.role == "metric"}
    for name in header.null_reasons:
        if name not in metrics:
            yield UNUSED_NULL_REASON.broken(
                document.path,
                f"the set has no metric {name!r}",
                pointer=pointer("null_reasons", name),
            )
    for schema_id in header.extensions:
        where = pointer("extensions", schema_id)
        violations = snapshot.schemas.iter_violations(
            document.value["extensions"][schema_id],
            document=document.path,
            default=parse_schema_id(schema_id),
        )
        for violation in violations:
            # An extension is named by its key; it has no entry `schema` to point at.
            inner = "" if violation.code in UNKNOWN_SCHEMA_CODES else violation.pointer
            yield EXTENSION_VIOLATION.broken(
                document.path, violation.message, pointer=where + inner
            )


def judge_manifest(snapshot: CheckedSnapshot, document: CheckedDocument) -> Iterator[Finding]:
    """Yield terms of a manifest that the vocabulary does not have."""
    vocabulary = snapshot.vocabulary
    manifest = document.as_model(Manifest) if document.kind == "manifest" else None
    if manifest is None or vocabulary is None:
        return
    for name, value in (("device", manifest.device), ("form_factor", manifest.form_factor)):
        dimension = vocabulary.dimensions.get(name)
        fault = None if dimension is None or value is None else term_fault(dimension, value)
        if fault is not None:
            yield UNKNOWN_TERM.broken(document.path, f"{name}: {fault}", pointer=f"/{name}")


RECORD_CONTENTS = Check(
    id="record-contents",
    documentation="Columns, cells, context, units and extensions are legal.",
    rules=(
        *CELL_RULES,
        UNKNOWN_OPERATION,
        UNKNOWN_DIMENSION,
        UNKNOWN_TERM,
        FOREIGN_DIMENSION,
        TEXT_DIMENSION,
        DIMENSION_UNIT,
        BAD_VALUE,
        UNUSED_NULL_REASON,
        EXTENSION_VIOLATION,
    ),
    judge_document=lambda snapshot, document: (
        *judge_cells(snapshot, document),
        *judge_dimensions(snapshot, document),
        *judge_header(snapshot, document),
    ),
)
MANIFESTS = Check(
    id="manifests",
    documentation="Manifests name devices by the vocabulary's terms.",
    rules=(UNKNOWN_TERM,),
    judge_document=judge_manifest,
)

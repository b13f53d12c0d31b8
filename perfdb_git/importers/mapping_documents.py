"""Mapping documents: found, read strictly, and judged before a table is touched."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import NoReturn

from perfdb_git.errors import InvalidInputError, UsageError
from perfdb_git.formats.codec import decode
from perfdb_git.formats.digests import sha256_hex
from perfdb_git.formats.schemas import SchemaStore
from perfdb_git.formats.strict_yaml import read_yaml
from perfdb_git.importers.formulas import FORMULAS, LOOKUP
from perfdb_git.importers.patterns import REVISION_VARIABLES, stray_brace, variable_names
from perfdb_git.model.mapping import (
    Derivation,
    DimensionSource,
    OperationMapping,
    TableMapping,
)
from perfdb_git.model.records import ROW_NUMBER, MappingReference
from perfdb_git.model.vocabulary import Vocabulary
from perfdb_git.operations.queries import shape_dimensions, value_fault
from perfdb_git.operations.units import METRIC_UNITS, UNITS

_SUFFIX = ".yaml"
_SHIPPED = "mappings"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedMapping:
    """A mapping, the name messages give its document, and what record sets say of it."""

    mapping: TableMapping
    document: str
    reference: MappingReference


def shipped_mappings() -> tuple[str, ...]:
    """Return the names of the mappings that come with the package, sorted."""
    folder = files("perfdb_git.importers") / _SHIPPED
    names = (entry.name for entry in folder.iterdir())
    return tuple(sorted(n.removesuffix(_SUFFIX) for n in names if n.endswith(_SUFFIX)))


def load_mapping(
    name_or_path: str, vocabulary: Vocabulary, *, schemas: SchemaStore | None = None
) -> LoadedMapping:
    """Read and check a mapping.

    Parameters
    ----------
    name_or_path : str
        A shipped mapping's name, such as ``vidur-mlp``, or the path of a document.
    vocabulary : Vocabulary
        What the mapping's dimensions and operations must be defined in.
    schemas : SchemaStore or None
        Where the schemas are; None takes the package's own.

    Raises
    ------
    UsageError
        There is no such mapping.
    InvalidInputError
        The document is not strict YAML, breaks its schema, or cannot mean anything under the
        vocabulary.
    """
    document, data = _read(name_or_path)
    value = read_yaml(data, document=document)
    (schemas or SchemaStore()).validate(value, document=document, expected_kind="mapping")
    mapping = decode(TableMapping, value, document=document)
    _Judge(mapping, document, vocabulary).judge()
    reference = MappingReference(name=mapping.name, sha256=sha256_hex(data))
    return LoadedMapping(mapping=mapping, document=document, reference=reference)


def _read(name_or_path: str) -> tuple[str, bytes]:
    if name_or_path in shipped_mappings():
        shipped = files("perfdb_git.importers") / _SHIPPED / f"{name_or_path}{_SUFFIX}"
        return f"{name_or_path}{_SUFFIX}", shipped.read_bytes()
    path = Path(name_or_path)
    try:
        return path.name, path.read_bytes()
    except OSError as error:
        raise UsageError(
            f"there is no mapping {name_or_path!r}: {error.strerror}",
            code="unknown-mapping",
            remedy=f"give the path of a mapping, or one of {', '.join(shipped_mappings())}",
        ) from error


def path_variables(mapping: TableMapping) -> tuple[str, ...]:
    """Return the variables that the mapping's path pattern gives."""
    return variable_names(mapping.source.path or "")


def dimensions_of(mapping: TableMapping, operation: OperationMapping) -> dict[str, DimensionSource]:
    """Return the sources of an operation's dimensions: the shared ones and its own."""
    return {**mapping.dimensions, **operation.dimensions}


def upstream_columns(mapping: TableMapping, operation: OperationMapping) -> set[str]:
    """Return the upstream columns that an operation needs, its metrics' included."""
    derivations = {d.name: d for d in (*mapping.derived, *operation.derived)}
    known = {*_plain_variables(mapping), *mapping.variables}
    wanted = [
        *(source.column for source in dimensions_of(mapping, operation).values() if source.column),
        *(metric.column for metric in operation.metrics),
        *operation.when,
        *operation.when_present,
    ]
    columns: set[str] = set()
    while wanted:
        name = wanted.pop()
        derivation = derivations.pop(name, None)
        if derivation is not None:
            wanted.extend(a for a in derivation.arguments if isinstance(a, str))
        elif name not in columns and name not in known:
            columns.add(name)
    # A derivation that was popped once may be named again.
    return columns - {d.name for d in (*mapping.derived, *operation.derived)}


def _plain_variables(mapping: TableMapping) -> frozenset[str]:
    return frozenset(path_variables(mapping)) | REVISION_VARIABLES


class _Judge:
    """Semantic rules that the schema cannot state; the first broken one is raised."""

    def __init__(self, mapping: TableMapping, document: str, vocabulary: Vocabulary) -> None:
        self._mapping = mapping
        self._document = document
        self._vocabulary = vocabulary

    def judge(self) -> None:
        self._judge_variables()
        self._judge_columns()
        self._judge_derivations("/derived", self._mapping.derived)
        for index, operation in enumerate(self._mapping.operations):
            self._judge_operation(f"/operations/{index}", operation)

    def _fail(self, pointer: str, message: str, code: str, remedy: str | None = None) -> NoReturn:
        raise InvalidInputError(
            message, code=code, document=self._document, pointer=pointer, remedy=remedy
        )

    def _judge_variables(self) -> None:
        pattern = self._mapping.source.path or ""
        plain = _plain_variables(self._mapping)
        if stray_brace(pattern):
            self._fail("/source/path", "has a brace outside {variable}", "bad-pattern")
        for name, lookup in self._mapping.variables.items():
            pointer = f"/variables/{name}"
            if name in plain:
                self._fail(pointer, f"{name!r} is already a variable of the path", "repeated-name")
            if lookup.of not in plain:
                self._fail(pointer, f"there is no path variable {lookup.of!r}", "unknown-variable")
        allowed = plain | self._mapping.variables.keys()
        for index, check in enumerate(self._mapping.label_checks):
            if check.variable not in allowed:
                pointer = f"/label_checks/{index}/variable"
                self._fail(pointer, f"there is no variable {check.variable!r}", "unknown-variable")
        facts = set(self._mapping.source_columns) | self._mapping.dimensions.keys()
        for operation in self._mapping.operations:
            facts |= operation.keys.keys()
        self._judge_texts(allowed | facts)

    def _judge_texts(self, allowed: Iterable[str]) -> None:
        texts = [("/session", self._mapping.session)]
        texts += [("/environment", text) for text in _texts(self._mapping.environment)]
        known = set(allowed)
        for pointer, text in texts:
            unknown = [name for name in variable_names(text) if name not in known]
            if unknown:
                self._fail(pointer, f"there is no variable {unknown[0]!r}", "unknown-variable")

    def _judge_columns(self) -> None:
        sources, ignored = self._mapping.source_columns, self._mapping.ignored_columns
        both = sorted(set(sources) & set(ignored))
        if both:
            self._fail("/ignored_columns", f"{both[0]!r} is a source column too", "repeated-name")
        if ROW_NUMBER in sources:
            message = f"{ROW_NUMBER!r} is the name of the row number"
            self._fail("/source_columns", message, "reserved-name")
        for index, check in enumerate(self._mapping.label_checks):
            if check.column not in sources:
                pointer = f"/label_checks/{index}/column"
                self._fail(pointer, f"{check.column!r} is no source column", "unknown-column")
        used = set(sources)
        for operation in self._mapping.operations:
            used |= upstream_columns(self._mapping, operation)
        for name in ignored:
            if name in used:
                self._fail("/ignored_columns", f"{name!r} is used", "repeated-name")

    def _judge_derivations(self, pointer: str, derivations: Iterable[Derivation]) -> None:
        for index, derivation in enumerate(derivations):
            where = f"{pointer}/{index}"
            if derivation.formula == LOOKUP:
                is_name = len(derivation.arguments) == 1 and isinstance(
                    derivation.arguments[0], str
                )
                if not is_name or derivation.table is None:
                    message = "lookup takes one column or variable, and a table"
                    self._fail(where, message, "bad-formula")
                continue
            formula = FORMULAS.get(derivation.formula)
            if formula is None:
                known = ", ".join(sorted([*FORMULAS, LOOKUP]))
                message = f"there is no formula {derivation.formula!r}"
                self._fail(where, message, "unknown-formula", f"known: {known}")
            if not formula.accepts(len(derivation.arguments)):
                message = (
                    f"{derivation.formula} does not take {len(derivation.arguments)} arguments"
                )
                self._fail(where, message, "bad-formula")
            if derivation.table is not None:
                self._fail(where, "only lookup takes a table", "bad-formula")

    def _judge_operation(self, pointer: str, operation: OperationMapping) -> None:
        name = operation.operation
        if name not in self._vocabulary.operations:
            known = ", ".join(sorted(self._vocabulary.operations))
            message = f"the vocabulary has no operation {name!r}"
            self._fail(f"{pointer}/operation", message, "unknown-operation", f"known: {known}")
        self._judge_derivations(f"{pointer}/derived", operation.derived)
        sources = dimensions_of(self._mapping, operation)
        required = ("device", *self._vocabulary.operations[name].shape)
        for dimension in required:
            if dimension not in sources:
                message = f"{name} needs the dimension {dimension!r}"
                remedy = "state it, or 'unknown: true'"
                self._fail(f"{pointer}/dimensions", message, "missing-dimension", remedy)
        device = sources["device"]
        if device.unknown or None in (device.table or {}).values():
            message = "the device of evidence must be known"
            self._fail(f"{pointer}/dimensions/device", message, "unknown-device")
        for dimension, source in sources.items():
            self._judge_dimension(f"{pointer}/dimensions/{dimension}", name, dimension, source)
        self._judge_metrics(pointer, operation)

    def _judge_dimension(
        self, pointer: str, operation: str, name: str, source: DimensionSource
    ) -> None:
        dimension = self._vocabulary.dimensions.get(name)
        if dimension is None or name == "operation":
            self._fail(pointer, f"{name!r} is no dimension of the vocabulary", "unknown-dimension")
        if dimension.group == "shape" and name not in shape_dimensions(operation, self._vocabulary):
            self._fail(pointer, f"{operation} has no dimension {name!r}", "foreign-dimension")
        if source.unit is not None and source.unit != dimension.unit:
            message = f"the vocabulary's unit is {dimension.unit!r}, not {source.unit!r}"
            self._fail(pointer, message, "wrong-unit", "derive it in that unit")
        if source.table is not None and source.column is None:
            self._fail(pointer, "a table translates a column", "bad-table")
        if source.variable is not None and source.variable not in (
            _plain_variables(self._mapping) | self._mapping.variables.keys()
        ):
            message = f"there is no variable {source.variable!r}"
            self._fail(pointer, message, "unknown-variable")
        values = [] if source.value is None else [source.value]
        values += [value for value in (source.table or {}).values() if value is not None]
        for value in values:
            fault = value_fault(dimension, value)
            if fault is not None:
                self._fail(pointer, fault, "bad-value")
        is_number = dimension.type in ("integer", "number")
        if is_number and source.column is not None and name in self._mapping.source_columns:
            message = f"the source column {name!r} has the name of a dimension column"
            self._fail(pointer, message, "repeated-name", "leave it out of source_columns")

    def _judge_metrics(self, pointer: str, operation: OperationMapping) -> None:
        seen: set[tuple[str, str]] = set()
        for index, metric in enumerate(operation.metrics):
            where = f"{pointer}/metrics/{index}"
            if (metric.metric, metric.statistic) in seen:
                message = f"{metric.metric} {metric.statistic} is given twice"
                self._fail(where, message, "repeated-name")
            seen.add((metric.metric, metric.statistic))
            unit = "1" if metric.statistic == "count" else METRIC_UNITS.get(metric.metric)
            if unit is not None and UNITS[metric.unit].si != unit:
                message = f"{metric.unit!r} is no unit of {metric.metric} {metric.statistic}"
                self._fail(where, message, "wrong-unit")


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)

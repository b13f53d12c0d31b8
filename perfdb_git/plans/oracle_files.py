"""An oracle's files: whose they are, told without a measured value; and the values, for later."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from perfdb_git.errors import InvalidInputError, InvalidRowsError, UsageError
from perfdb_git.formats.digests import sha256_hex
from perfdb_git.formats.strict_json import decode_utf8
from perfdb_git.importers.frames import Frame
from perfdb_git.importers.mapping_documents import load_mapping, upstream_columns
from perfdb_git.importers.observations import Observations, extract
from perfdb_git.importers.source_files import file_bytes, git_blob
from perfdb_git.importers.tables import read_table
from perfdb_git.importers.vidur import LAYOUT
from perfdb_git.model.mapping import Derivation, DimensionSource, OperationMapping, TableMapping
from perfdb_git.model.values import Scalar
from perfdb_git.model.vocabulary import Vocabulary
from perfdb_git.operations.units import UNITS
from perfdb_git.workloads.vidur_baseline import ProfiledRow

_MEASURED = "time_stats."
"""Begins the name of every column of Vidur's that holds a measurement."""

_COMPONENT = "op"
_LATENCY, _MEDIAN = "latency", "median"


@dataclass(frozen=True, slots=True, kw_only=True)
class OracleFile:
    """What tells the rows of an oracle from others, and no measured value.

    ``keys`` are upstream's identity columns; ``identities`` has the cells of each row in that
    order, as text. ``components`` are the names of what was timed.
    """

    path: Path
    sha256: str
    git_blob: str
    mapping: str
    components: tuple[str, ...]
    keys: tuple[str, ...]
    identities: frozenset[tuple[str, ...]]


def label(value: object) -> str:
    """Return a cell as text, the same for 1, 1.0, "1" and "1.0"."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return "" if value is None else str(value).removesuffix(".0")


def identify(path: Path, vocabulary: Vocabulary) -> OracleFile:
    """Return whose measurements a profile holds, from its identity columns alone.

    Parameters
    ----------
    path : Path
        One of Vidur's tables, or some rows of one; a table of medians will do.
    vocabulary : Vocabulary
        That of the snapshot.

    Raises
    ------
    UsageError
        'unreadable-file'.
    InvalidInputError
        'unknown-profile' where it is no table of Vidur's, or a table that cannot be read.
    """
    data = file_bytes(path, path.name)
    header = _header(data, path.name)
    mapping = _mapping_for(header, path.name, vocabulary)
    measured = [name for name in header if name.startswith(_MEASURED)]
    keys = tuple(
        name for name in header if name in mapping.source_columns and not name.startswith(_MEASURED)
    )
    table = read_table(data, "csv", document=path.name, ignored=measured)
    columns = [[label(cell) for cell in table.columns[name]] for name in keys]
    return OracleFile(
        path=path,
        sha256=sha256_hex(data),
        git_blob=git_blob(data),
        mapping=mapping.name,
        components=tuple(sorted(_component(item) for item in mapping.operations)),
        keys=keys,
        identities=frozenset(zip(*columns, strict=True)),
    )


def profiled_rows(
    data: bytes, document: str, mapping_name: str, vocabulary: Vocabulary
) -> list[ProfiledRow]:
    """Return the median of every component in every row of a profile.

    What upstream writes into the path (device, model) is unknown here, and so are the dimensions
    that follow from it.

    Raises
    ------
    InvalidInputError
        'bad-rows', or a table that cannot be read.
    """
    header = _header(data, document)
    mapping = _present(load_mapping(mapping_name, vocabulary).mapping, header)
    if mapping is None:
        raise _no_profile(document)
    # Labels of upstream's answer nothing here.
    needed = {
        name for operation in mapping.operations for name in upstream_columns(mapping, operation)
    }
    mapping = replace(
        mapping, source_columns=(), label_checks=(), derived=_computable(mapping, needed)
    )
    ignored = [name for name in header if name not in needed]
    table = read_table(data, mapping.format, document=document, ignored=ignored)
    unknown: dict[str, Scalar | None] = dict.fromkeys(mapping.variables)
    extraction = extract(mapping, Frame(table, unknown), vocabulary)
    if extraction.bad_rows:
        raise InvalidRowsError(
            f"{len(extraction.bad_rows)} bad rows; nothing was compared",
            code="bad-rows",
            document=document,
            rows=[str(row) for row in extraction.bad_rows],
            remedy="leave the bad rows out of the file",
        )
    return [row for part in extraction.observations for row in _rows(part, document)]


def _rows(part: Observations, document: str) -> list[ProfiledRow]:
    unit = UNITS[part.operation.metrics[0].unit]
    varying = {**part.terms, **part.dimensions}
    found = []
    for place, number in enumerate(part.row_numbers):
        stated = {**part.context, **{name: column[place] for name, column in varying.items()}}
        known: dict[str, Scalar] = {k: v for k, v in stated.items() if v is not None}
        found.append(
            ProfiledRow(
                file=document,
                row=number,
                component=_component(part.operation),
                dimensions=known,
                seconds=part.metrics[0][place] * unit.numerator / unit.denominator,
            )
        )
    return found


def _header(data: bytes, document: str) -> list[str]:
    line = decode_utf8(data.partition(b"\n")[0], document=document)
    return next(csv.reader([line]), [])


def _mapping_for(header: Sequence[str], document: str, vocabulary: Vocabulary) -> TableMapping:
    for name in dict.fromkeys(mapping for _, mapping in LAYOUT):
        mapping = _present(load_mapping(name, vocabulary).mapping, header)
        if mapping is not None:
            return mapping
    raise _no_profile(document)


def _no_profile(document: str) -> InvalidInputError:
    return InvalidInputError(
        "is no profile of Vidur's",
        code="unknown-profile",
        document=document,
        remedy="name an mlp.csv, attention.csv, all_reduce.csv or send_recv.csv of Vidur's",
    )


def _present(mapping: TableMapping, header: Sequence[str]) -> TableMapping | None:
    """Return the mapping cut to the medians that a table has, or ``None`` if it does not fit."""
    columns = set(header)
    bare = replace(
        mapping,
        dimensions={name: _from_file(source) for name, source in mapping.dimensions.items()},
    )
    operations = tuple(
        cut for operation in mapping.operations if (cut := _cut(operation, columns)) is not None
    )
    cut_mapping = replace(bare, operations=operations)
    fits = all(upstream_columns(cut_mapping, item) <= columns for item in operations)
    return cut_mapping if operations and fits else None


def _cut(operation: OperationMapping, columns: set[str]) -> OperationMapping | None:
    medians = tuple(
        metric
        for metric in operation.metrics
        if (metric.metric, metric.statistic) == (_LATENCY, _MEDIAN) and metric.column in columns
    )
    if not medians:
        return None
    dimensions = {name: _from_file(source) for name, source in operation.dimensions.items()}
    return replace(operation, metrics=medians, dimensions=dimensions)


def _computable(mapping: TableMapping, columns: set[str]) -> tuple[Derivation, ...]:
    """Return the derivations that some columns suffice for."""
    known = {*columns, *mapping.variables}
    kept = []
    for derivation in mapping.derived:
        if known.issuperset(item for item in derivation.arguments if isinstance(item, str)):
            kept.append(derivation)
            known.add(derivation.name)
    return tuple(kept)


def _from_file(source: DimensionSource) -> DimensionSource:
    return source if source.variable is None else DimensionSource(unknown=True)


def _component(operation: OperationMapping) -> str:
    return str(operation.keys.get(_COMPONENT, operation.operation))


def require_distinct(files: Sequence[OracleFile]) -> None:
    """Refuse one table under two names: each of its rows would count twice.

    Raises
    ------
    UsageError
        'repeated-file' where two are the same.
    """
    if len({file.sha256 for file in files}) < len(files):
        raise UsageError("one oracle is given twice", code="repeated-file")

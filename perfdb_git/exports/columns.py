"""The columns of an exported table: what there is about every record, under which name and type.

Types are those that every reader of Parquet has: text, 64-bit signed integers, doubles, booleans,
and lists of them. No name needs quoting in SQL, and no two differ only in case.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from perfdb_git.errors import InvalidInputError
from perfdb_git.model.records import Statistic
from perfdb_git.model.vocabulary import Dimension, Vocabulary
from perfdb_git.operations.units import METRIC_UNITS, UNITS
from perfdb_git.storage.record_sets import IndexedRecordSet

ColumnType: TypeAlias = Literal["text", "integer", "number", "boolean", "numbers", "texts"]
UnitChoice: TypeAlias = Literal["si", "stated"]
MetricKey: TypeAlias = tuple[str, Statistic, str]
"""Name, statistic, and unit in the table."""

UNIT_SUFFIXES: Mapping[str, str] = {
    "1": "",
    "s": "_s",
    "ms": "_ms",
    "us": "_us",
    "ns": "_ns",
    "B": "_bytes",
    "kB": "_kilobytes",
    "MB": "_megabytes",
    "GB": "_gigabytes",
    "KiB": "_kib",
    "MiB": "_mib",
    "GiB": "_gib",
    "bit": "_bits",
    "B/s": "_bytes_per_s",
    "MB/s": "_megabytes_per_s",
    "GB/s": "_gigabytes_per_s",
    "MiB/s": "_mib_per_s",
    "GiB/s": "_gib_per_s",
    "bit/s": "_bits_per_s",
    "Gbit/s": "_gbps",
    "J": "_joules",
    "mJ": "_millijoules",
    "W": "_watts",
    "Hz": "_hz",
    "MHz": "_mhz",
    "GHz": "_ghz",
    "K": "_kelvin",
    "ops/s": "_ops_per_s",
    "tokens/s": "_tokens_per_s",
}
"""What a unit adds to the name of a metric's column."""

_TYPES: Mapping[str, ColumnType] = {
    "integer": "integer",
    "number": "number",
    "term": "text",
    "label": "text",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportColumn:
    """One column of an exported table.

    ``of`` is the dimension or metric that the column holds, by its name in the vocabulary.
    """

    name: str
    type: ColumnType
    description: str
    role: Literal["record", "dimension", "metric"] = "record"
    of: str | None = None
    unit: str | None = None
    statistic: Statistic | None = None


def _fact(name: str, description: str, kind: ColumnType = "text") -> ExportColumn:
    return ExportColumn(name=name, type=kind, description=description)


_FIRST = (
    _fact("record_id", "Id of the record: record_set, #, row."),
    _fact("kind", "measured, profiled or simulated."),
)
_LAST = (
    _fact("retracted", "Whether a retraction says that the record is wrong.", "boolean"),
    _fact(
        "unknown_dimensions",
        "Dimensions that the record states as unknown; a null in another was not stated.",
        "texts",
    ),
    _fact("session", "The run of one tool that the record belongs to."),
    _fact("measured_at", "Date, or time with zone, of the measurement, as stated."),
    _fact("environment", "SHA-256 of the environment manifest."),
    _fact("protocol_grade", "How much of the protocol is known: stated, partial or unknown."),
    _fact("warmup", "Runs before the first one that counts.", "integer"),
    _fact("repetitions", "Runs behind each record.", "integer"),
    _fact("synchronization", "How the end of the work was observed."),
    _fact("timer_resolution", "Smallest difference that the timer shows.", "number"),
    _fact("timer_resolution_unit", "Unit of timer_resolution."),
    _fact("clock_state", "State of the device's clocks."),
    _fact("power_state", "Power limit or mode in force."),
    _fact("measurement_error", "Stated error of one measurement.", "number"),
    _fact("measurement_error_unit", "Unit of measurement_error; 1 for a relative error."),
    _fact("tool", "Program or project that produced the numbers."),
    _fact("source_revision", "Upstream commit or release."),
    _fact("source_file", "Imported file within that revision."),
    _fact("source_sha256", "SHA-256 of the imported file."),
    _fact("source_license", "SPDX expression of the upstream licence."),
    _fact("source_keys", "Upstream key columns of the record, verbatim, as a JSON object."),
    _fact("source_labels", "What the upstream path claimed against the rows, as a JSON object."),
    _fact("importer", "Importer and its version."),
    _fact("record_set", "SHA-256 of the record-set file."),
    _fact("row", "Row of the record in that file, from 0.", "integer"),
    _fact("path", "Path of the file in the repository."),
)


def table_columns(
    record_sets: Iterable[IndexedRecordSet], vocabulary: Vocabulary, units: UnitChoice
) -> tuple[ExportColumn, ...]:
    """Return the columns of a table of some record sets, in order.

    Parameters
    ----------
    record_sets : iterable of IndexedRecordSet
        All that go into the table.
    vocabulary : Vocabulary
        Gives dimensions their order, type and unit.
    units : str
        Whether metrics are converted to SI units, or stay in the units of the records.

    Raises
    ------
    InvalidInputError
        'unknown-dimension' for one that the vocabulary has not.
    """
    dimensions = {"operation", "device"}
    metrics: set[MetricKey] = set()
    for view in record_sets:
        found = _dimensions(view.entry.header)
        unknown = sorted(found - vocabulary.dimensions.keys())
        if unknown:
            raise InvalidInputError(
                f"the vocabulary has no dimension {unknown[0]!r}",
                code="unknown-dimension",
                document=view.path,
                remedy="run 'perfdb check' to see all faults",
            )
        dimensions |= found
        metrics |= {
            metric_key(column, units)
            for column in view.entry.header["columns"]
            if column["role"] == "metric"
        }
    measured = [_metric(key) for key in sorted(metrics)]
    taken = {column.name for column in (*_FIRST, *_LAST, *measured)}
    # An operation and its device come first, then the order of the vocabulary.
    order = sorted(vocabulary.dimensions, key=lambda name: name not in ("operation", "device"))
    asked = [
        _dimension(name, vocabulary.dimensions[name], taken) for name in order if name in dimensions
    ]
    return (*_FIRST, *asked, *measured, *_LAST)


def metric_key(column: Mapping[str, Any], units: UnitChoice) -> MetricKey:
    """Return which column of a table a metric column of a record set goes to."""
    unit = column["unit"]
    if units == "si" and column["statistic"] != "count":
        unit = METRIC_UNITS.get(column["name"], UNITS[unit].si)
    return column["name"], column["statistic"], unit


def _dimensions(header: Mapping[str, Any]) -> set[str]:
    columns = {column["name"] for column in header["columns"] if column["role"] == "dimension"}
    return {*columns, *header["context"]}


def _dimension(name: str, dimension: Dimension, taken: set[str]) -> ExportColumn:
    free = name
    while free in taken:
        free += "_dimension"
    taken.add(free)
    return ExportColumn(
        name=free,
        type=_TYPES[dimension.type],
        description=" ".join(dimension.description.split()),
        role="dimension",
        of=name,
        unit=dimension.unit,
    )


def _metric(key: MetricKey) -> ExportColumn:
    name, statistic, unit = key
    sampled = statistic == "sample"
    kind: ColumnType = "numbers" if sampled else "integer" if statistic == "count" else "number"
    return ExportColumn(
        name=f"{name}_{'samples' if sampled else statistic}{UNIT_SUFFIXES[unit]}",
        type=kind,
        description=f"{'Raw samples' if sampled else statistic} of {name}.",
        role="metric",
        of=name,
        unit=unit,
        statistic=statistic,
    )

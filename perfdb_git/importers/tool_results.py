"""What an importer reads from one file of its tool, before the repository comes into it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias
from zoneinfo import ZoneInfo

from perfdb_git.importers.cells import RawCell
from perfdb_git.importers.source_text import SourceText
from perfdb_git.importers.timestamps import StatedTime
from perfdb_git.model.records import MeasurementProtocol, RecordKind, Statistic
from perfdb_git.model.values import JsonValue, Scalar

MetricCell: TypeAlias = "int | float | tuple[float, ...] | None"

UNKNOWN_PROTOCOL = MeasurementProtocol(
    warmup=None,
    repetitions=None,
    synchronization=None,
    timer_resolution=None,
    clock_state=None,
    power_state=None,
    measurement_error=None,
)


@dataclass(frozen=True, slots=True)
class MetricColumn:
    """A metric with its statistic and the unit of its cells."""

    name: str
    statistic: Statistic
    unit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One observation: an operation in a context, and what the tool says of it.

    Attributes
    ----------
    place : str
        Where it stands in the file, for messages.
    dimensions : mapping
        By vocabulary name; None is an explicit unknown. Terms are canonical.
    metrics : mapping
        A number, an array of samples, or None where the tool has no value.
    null_reasons : mapping
        Why a metric is None, by its name.
    sources : mapping
        Further facts of the row, kept and never matched.
    """

    place: str
    operation: str
    dimensions: Mapping[str, Scalar | None]
    metrics: Mapping[MetricColumn, MetricCell]
    sources: Mapping[str, RawCell] = field(default_factory=dict)
    protocol: MeasurementProtocol = UNKNOWN_PROTOCOL
    null_reasons: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """What the file says of the machine; None is an explicit unknown.

    ``device_names`` are the tool's own names of the devices, ``users`` and ``hosts`` the names
    that must not be stored.
    """

    device_names: tuple[str, ...] = ()
    device_count: int | None = None
    driver: str | None = None
    runtimes: Mapping[str, str | None] = field(default_factory=dict)
    kernel: str | None = None
    operating_system: str | None = None
    processor: str | None = None
    users: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Remark:
    """Something that the user should know of what was read."""

    code: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """Everything that one file holds.

    ``skipped`` are rows that are no observation, each with its place and reason: failed
    benchmarks, for one. ``bad_rows`` cannot be read, and stop the import unless they are to be
    skipped. Both are listed in the record sets.
    """

    tool: str
    revision: str | None
    points: Sequence[Point]
    kind: RecordKind = "measured"
    time: StatedTime | None = None
    environment: Environment = field(default_factory=Environment)
    observed: Mapping[str, JsonValue] = field(default_factory=dict)
    skipped: tuple[str, ...] = ()
    bad_rows: tuple[str, ...] = ()
    remarks: tuple[Remark, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingFacts:
    """What the user states that changes how a file is read.

    ``dimensions`` are those given with ``--set``; importers use them where a unit or an operation
    depends on them, and refuse the file where they are needed and missing.
    """

    dimensions: Mapping[str, Scalar | None] = field(default_factory=dict)
    zone: ZoneInfo | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolImporter:
    """One tool's importer; packages offer theirs in the entry-point group ``perfdb.importers``.

    Attributes
    ----------
    name : str
        As on the command line, such as ``nccl-tests``.
    version : int
        Grows when the same file gives other records.
    summary : str
        One line for lists.
    recognises : callable
        Whether a file is this tool's; never raises, and is True for at most one importer.
    read : callable
        Reads a file.

        Raises ``InvalidInputError`` for a file that is broken or ambiguous.
    """

    name: str
    version: int
    summary: str
    recognises: Callable[[SourceText], bool]
    read: Callable[[SourceText, ReadingFacts], ToolResult]

    @property
    def label(self) -> str:
        """Name and version as record sets store them."""
        return f"{self.name}/{self.version}"


def finite(value: object) -> float | None:
    """Return a finite number of a tool's JSON, or None for NaN, infinities, text and null."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) else None

"""How the meaning of aiconfigurator's columns is stated.

Units stand in no file of it: times are milliseconds where the column is called ``latency`` or
``avg_ms``, and microseconds in ``*_us`` and in ``moe_a2a_perf``, whose latency equals its
``transmit_us`` to the last digit. DeepEP's ``bandwidth_gbps`` are bytes, since they equal the bytes
of the tokens over the time beside them.

Source: aiconfigurator-core 0.12.0, ``systems/data`` and ``sdk``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from perfdb_git.importers.aiconfigurator.labels import DTYPES, PHASES
from perfdb_git.model.records import Statistic
from perfdb_git.model.values import Scalar

TextTable: TypeAlias = Mapping[str, str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A text column that states a dimension.

    ``table`` translates its labels, None to an explicit unknown; without one they are taken as
    they are. Unless ``closed``, so are labels that are not in it.
    """

    dimension: str
    table: TextTable | None = None
    closed: bool = True

    def is_listed(self, label: str) -> bool:
        """Tell whether the meaning of a label is known."""
        return self.table is None or not self.closed or label in self.table

    def meaning(self, label: str) -> str | None:
        """Return what a listed label means, None for an explicit unknown."""
        return label if self.table is None else self.table.get(label, label)


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A column of measured values; ``zero`` tells that 0 is a value and no unresolved time."""

    name: str
    unit: str
    statistic: Statistic = "mean"
    zero: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """How rows become records of one operation.

    Attributes
    ----------
    name : str
        In the vocabulary.
    op_names : tuple of str
        Labels of ``op_name`` that such rows have; empty for all rows.
    where : tuple of str or None
        A further text column and the label that such rows have in it.
    texts, numbers, metrics : mapping
        Upstream columns to what they state.
    message : str or None
        A column of element counts that ``message_bytes`` is worked out from.
    constants : mapping
        Dimensions that the kind of the table itself states.
    """

    name: str
    op_names: tuple[str, ...] = ()
    where: tuple[str, str] | None = None
    texts: Mapping[str, Text] = field(default_factory=dict)
    numbers: Mapping[str, str] = field(default_factory=dict)
    metrics: Mapping[str, Metric]
    message: str | None = None
    constants: Mapping[str, Scalar | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableKind:
    """The operations whose records a table holds.

    ``runtime`` is the library that tables of a kind measure where it is not the framework that
    ran the collector.
    """

    operations: tuple[Operation, ...]
    runtime: Literal["nccl", "oneccl"] | None = None


LATENCY = Metric(name="latency", unit="ms")
TIMED: Mapping[str, Metric] = {"latency": LATENCY, "power": Metric(name="power", unit="W")}
"""Columns of most kinds of tables; power is rare."""
DTYPE = Text(dimension="dtype", table=DTYPES)
KV_DTYPE = Text(dimension="kv_cache_dtype", table=DTYPES)
PHASE = Text(dimension="inference_phase", table=PHASES)


def one(operation: Operation) -> TableKind:
    """Return the kind of a table whose rows are all of one operation."""
    return TableKind(operations=(operation,))

"""Rows that are faster than the data sheet in the same wheel allows; they are kept and counted."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from perfdb_git.importers.aiconfigurator.set_building import BuiltSet
from perfdb_git.importers.aiconfigurator.sorted_rows import SortedRows
from perfdb_git.model.values import Scalar
from perfdb_git.model.vocabulary import Vocabulary
from perfdb_git.operations.element_sizes import ELEMENT_BYTES
from perfdb_git.operations.units import UNITS
from perfdb_git.operations.work import FORMULAS_WITHOUT_DTYPE, Work, work_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    FloatArray: TypeAlias = NDArray[np.float64]

# Figures such as 14000000000000000 are beyond what strict documents may hold, and the file has
# keys that are numbers: only these lines of it are read.
_FIGURE = re.compile(r"^  (mem_bw|[a-z0-9]+_tc_flops): *([0-9]+)\b", re.MULTILINE)
_RATES: Mapping[str, str] = {
    "bfloat16": "bfloat16_tc_flops",
    "float16": "bfloat16_tc_flops",
    "int8": "int8_tc_flops",
    "float8": "fp8_tc_flops",
    "float8_block": "fp8_tc_flops",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSheet:
    """Peaks of one system: bytes per second, and operations per second by element type."""

    memory_bandwidth: float
    rates: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class BelowRoofline:
    """How many rows were judged by a data sheet, how many undercut it, and the furthest one.

    ``example`` describes the furthest of them; None without any.
    """

    judged: int = 0
    below: int = 0
    ratio: float = 1.0
    example: str | None = None

    def joined(self, other: BelowRoofline) -> BelowRoofline:
        """Return the counts of both, and the further example."""
        further = self if self.ratio <= other.ratio else other
        return BelowRoofline(
            judged=self.judged + other.judged,
            below=self.below + other.below,
            ratio=further.ratio,
            example=further.example,
        )


def data_sheet_of(text: str | None) -> DataSheet | None:
    """Read a system's data sheet, ``systems/<system>.yaml``; None where it has no bandwidth."""
    figures = {name: float(value) for name, value in _FIGURE.findall(text or "")}
    if not figures.get("mem_bw"):
        return None
    rates = {term: figures[name] for term, name in _RATES.items() if figures.get(name)}
    return DataSheet(memory_bandwidth=figures["mem_bw"], rates=rates)


def below_roofline(
    built: BuiltSet, rows: SortedRows, sheet: DataSheet | None, vocabulary: Vocabulary
) -> BelowRoofline:
    """Count the rows of a set whose time is below what its work needs at the peak rates.

    The bound is the larger of operations over the peak rate and bytes over the memory's bandwidth
    (Williams, Waterman, Patterson: Roofline, 2009), without any tolerance.

    Parameters
    ----------
    built : BuiltSet
        The set.
    rows : SortedRows
        The rows that it is a part of.
    sheet : DataSheet or None
        None judges no row.
    vocabulary : Vocabulary
        Names the formula of the work.
    """
    import numpy as np

    times = _seconds(built, rows)
    if sheet is None or times is None:
        return BelowRoofline()
    needed = _needed(built, rows, sheet, vocabulary)
    if needed is None:
        return BelowRoofline()
    ratios = np.broadcast_to(times / needed, times.shape)
    below = int((ratios < 1).sum())
    worst = int(np.argmin(ratios))
    ratio = float(ratios[worst])
    if below == 0:
        return BelowRoofline(judged=len(times))
    return BelowRoofline(
        judged=len(times), below=below, ratio=ratio, example=_example(built, rows, worst, ratio)
    )


def _seconds(built: BuiltSet, rows: SortedRows) -> FloatArray | None:
    import numpy as np

    for metric, values in rows.metrics:
        if metric.name == "latency":
            part = values[built.group.start : built.group.stop].astype(np.float64)
            if bool(np.isnan(part).any()):
                return None
            return part * UNITS[metric.unit].to_si(1.0)
    return None


def _needed(
    built: BuiltSet, rows: SortedRows, sheet: DataSheet, vocabulary: Vocabulary
) -> FloatArray | None:
    import numpy as np

    entry = vocabulary.operations[built.header.operation]
    context = {name: value for name, value in built.header.context.items() if value is not None}
    dtypes = [context[name] for name in ("dtype", "kv_cache_dtype") if name in context]
    rate = sheet.rates.get(str(context.get("dtype")))
    known = all(dtype in ELEMENT_BYTES for dtype in dtypes)
    if (
        entry.engine != "matrix"
        or entry.work in FORMULAS_WITHOUT_DTYPE
        or rate is None
        or not known
    ):
        return None
    part = slice(built.group.start, built.group.stop)
    coordinates: dict[str, Scalar | FloatArray] = {
        **context,
        **{name: values[part].astype(np.float64) for name, values in rows.dimensions.items()},
    }
    if any(name not in coordinates for name in entry.shape):
        return None
    work: Work = work_of(entry.work, coordinates)
    needed: FloatArray = np.maximum(
        work.operations / rate, work.bytes_moved / sheet.memory_bandwidth
    )
    return needed


def _example(built: BuiltSet, rows: SortedRows, row: int, ratio: float) -> str:
    place = built.group.start + row
    shape = ", ".join(f"{name}={values[place]:g}" for name, values in rows.dimensions.items())
    context = built.header.context
    return (
        f"{built.header.source.file}: {context['operation']} {context.get('dtype')} {shape} takes "
        f"{ratio:.3g} of the least time"
    )

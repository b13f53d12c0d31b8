"""Visits as a table: CSV, or Parquet where the extra is installed."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from perfdb_git.errors import MissingExtraError
from perfdb_git.reports.escaping import for_spreadsheet
from perfdb_git.simulation.lanes import VisitTable
from perfdb_git.simulation.simulate import Simulation
from perfdb_git.simulation.ticks import Tick

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_NAMES = ("job", "stage", "component", "lane")
_TIMES = ("ready", "start", "finish", "wait")

_CHUNK = 50_000


def columns_of(tick: Tick) -> tuple[str, ...]:
    """Names of the columns: those of times end in the unit of their integers."""
    return (*_NAMES, *(f"{time}_{tick.name}" for time in _TIMES))


def write_csv(simulation: Simulation, table: VisitTable, stream: TextIO) -> None:
    """Write visits as CSV with a header.

    Parameters
    ----------
    simulation : Simulation
        Where the names come from. One that a spreadsheet would take for a formula gets a leading
        apostrophe.
    table : VisitTable
        The visits.
    stream : TextIO
        Opened with ``newline=""``.
    """
    writer = csv.writer(stream, lineterminator="\n")
    header = columns_of(simulation.plan.model.tick)
    writer.writerow(header)
    stages = [for_spreadsheet(stage.stage.name) for stage in simulation.plan.stages]
    components = [for_spreadsheet(name) for name in simulation.plan.components]
    for first in range(0, len(table), _CHUNK):
        columns = (column[first : first + _CHUNK].tolist() for column in _numbers(table))
        rows = zip(*columns, strict=True)
        writer.writerows(
            (job, stages[stage], components[component], *rest)
            for job, stage, component, *rest in rows
        )


def write_parquet(simulation: Simulation, table: VisitTable, path: Path) -> None:
    """Write visits as Parquet, names as dictionary columns.

    Parameters
    ----------
    simulation : Simulation
        Where the names come from.
    table : VisitTable
        The visits.
    path : Path
        The file.

    Raises
    ------
    MissingExtraError
        If pyarrow is not installed.
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise MissingExtraError("tables", "writing Parquet") from error
    names = {
        "stage": [stage.stage.name for stage in simulation.plan.stages],
        "component": list(simulation.plan.components),
    }
    header = columns_of(simulation.plan.model.tick)
    columns = {
        name: pa.DictionaryArray.from_arrays(pa.array(column.astype("int32")), names[name])
        if name in names
        else pa.array(column)
        for name, column in zip(header, _numbers(table), strict=True)
    }
    pq.write_table(pa.table(columns), path)


def _numbers(table: VisitTable) -> tuple[NDArray[np.int64], ...]:
    """Return the columns in the order of their names."""
    names = (table.job, table.stage, table.component, table.lane)
    return (*names, table.ready, table.start, table.finish, table.start - table.ready)

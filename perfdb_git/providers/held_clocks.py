"""Records that were taken while the device held its clock down, as far as they say so themselves.

Three facts count, each as it was recorded: the clock beside the samples, the driver's reasons
beside them, and the limits that were active when the environment was captured. Nothing is concluded
from the times alone: samples that grow may grow for other causes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from perfdb_git.analysis.sample_flags import is_clock_limit, throttling, throttling_text
from perfdb_git.model.records import RecordSetHeader, record_id
from perfdb_git.operations.units import UNITS

CLOCK_UNIT = "Hz"

CLOCK_LIMITS = "clock_limits_active"
"""What a captured environment calls the driver's reasons at that time."""

_HZ_A_MHZ = 1e6

_REASONS = re.compile(r"(clocks?_)?(throttle|event)_reasons?(?:\.(?P<of>\w+))?")
_NO_REASON = frozenset({"supported", "counters"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockLog:
    """What one record states of the clock at its samples.

    Attributes
    ----------
    run : str
        The samples that belong together: a record's own, or those of all rows of a record set that
        hold one sample each.
    samples : int
        How many the record itself has; 0 for a summary.
    clocks : tuple of tuple of float
        One series a clock, in MHz, one value for each sample.
    reasons : tuple of str
        What the driver stated, for each sample or for all of them.
    """

    run: str
    samples: int
    clocks: tuple[tuple[float, ...], ...]
    reasons: tuple[str, ...]


def clock_log(
    record_set: str, row: int, header: RecordSetHeader, cells: Sequence[object]
) -> ClockLog:
    """Read what a row states of the clock.

    Parameters
    ----------
    record_set : str
        SHA-256 of its record set.
    row : int
        Number of the row.
    header : RecordSetHeader
        Header of the record set.
    cells : sequence
        The row, one cell a column.
    """
    counts = set()
    clocks = []
    reasons = [text for name, cell in header.source.keys.items() for text in _stated(name, cell)]
    for column, cell in zip(header.columns, cells, strict=True):
        if column.role == "source":
            reasons += _stated(column.name, cell)
        elif column.role == "metric" and column.statistic == "sample" and column.unit is not None:
            values = _numbers(cell)
            if UNITS[column.unit].si == CLOCK_UNIT:
                clocks.append(
                    tuple(UNITS[column.unit].to_si(value) / _HZ_A_MHZ for value in values)
                )
            elif values:
                counts.add(len(values))
    return ClockLog(
        run=record_set if counts == {1} else record_id(record_set, row),
        samples=max(counts, default=0),
        # A clock that was not read at each sample says nothing of single ones.
        clocks=tuple(series for series in clocks if len(series) in counts),
        reasons=tuple(reasons),
    )


def held_clocks(records: Sequence[tuple[RecordSetHeader, ClockLog]]) -> list[str | None]:
    """Say of each record why its clock counts as held down, or ``None``.

    Parameters
    ----------
    records : sequence of (RecordSetHeader, ClockLog)
        Of one context, in order of path and row.
    """
    runs: dict[str, list[ClockLog]] = {}
    for _, log in records:
        runs.setdefault(log.run, []).append(log)
    found = {run: _held(logs) for run, logs in runs.items()}
    return [found[log.run] or _limits_at_capture(header) for header, log in records]


def held_clocks_of_set(
    record_set: str, header: RecordSetHeader, rows: Sequence[Sequence[object]]
) -> tuple[str, ...]:
    """Say why clocks of a whole record set count as held down, each reason once.

    Parameters
    ----------
    record_set : str
        Its SHA-256.
    header : RecordSetHeader
        Its header.
    rows : sequence of rows
        Its rows, one cell a column.
    """
    if not states_clocks(header):
        return ()
    places = [place for place, item in enumerate(header.columns) if item.role == "dimension"]
    contexts: dict[tuple[object, ...], list[tuple[RecordSetHeader, ClockLog]]] = {}
    for number, cells in enumerate(rows):
        context = tuple(cells[place] for place in places)
        log = clock_log(record_set, number, header, cells)
        contexts.setdefault(context, []).append((header, log))
    found = (text for records in contexts.values() for text in held_clocks(records))
    return tuple(dict.fromkeys(text for text in found if text is not None))


def states_clocks(header: RecordSetHeader) -> bool:
    """Return whether a record set can say anything of clocks at all."""
    names = [*header.source.keys, *(c.name for c in header.columns if c.role == "source")]
    units = {column.unit for column in header.columns if column.unit is not None}
    return (
        any(_reason_column(name) for name in names)
        or any(UNITS[unit].si == CLOCK_UNIT for unit in units)
        or _limits_at_capture(header) is not None
    )


def _held(logs: Sequence[ClockLog]) -> str | None:
    """Judge the samples of one run."""
    reasons = [reason for log in logs for reason in log.reasons]
    # One reason a sample tells from which sample on; otherwise only that there is one.
    per_sample = reasons if len(reasons) == sum(log.samples for log in logs) else None
    series: list[tuple[float, ...] | None] = [*_joined(logs)]
    for clocks in series or [None]:
        flagged = throttling(clocks, per_sample)
        if flagged is not None:
            return throttling_text(flagged, "MHz")
    limits = sorted({reason for reason in reasons if is_clock_limit(reason)})
    return f"the driver stated {', '.join(limits)}" if limits else None


def _joined(logs: Sequence[ClockLog]) -> list[tuple[float, ...]]:
    """Return each clock over all samples of a run, where every record of it has that clock."""
    if len({len(log.clocks) for log in logs}) != 1:
        return []
    return [
        tuple(value for series in parts for value in series)
        for parts in zip(*(log.clocks for log in logs), strict=True)
    ]


def _limits_at_capture(header: RecordSetHeader) -> str | None:
    accelerators = header.observed.get("accelerators")
    active = {
        str(limit)
        for device in (accelerators if isinstance(accelerators, list | tuple) else ())
        if isinstance(device, Mapping)
        for limit in _list(device.get(CLOCK_LIMITS))
        if is_clock_limit(str(limit))
    }
    if not active:
        return None
    return f"the driver stated {', '.join(sorted(active))} when the environment was captured"


def _stated(name: str, cell: object) -> Iterator[str]:
    """Yield the driver's reasons that a source column states."""
    match = _reason_column(name)
    if match is None or match["of"] in _NO_REASON:
        return
    kind = match["of"]
    for value in _list(cell):
        text = str(value)
        if kind is None or kind == "active":
            yield text
        elif is_clock_limit(kind) and text.strip().lower() in ("active", "true", "1", "yes"):
            yield kind


def _reason_column(name: str) -> re.Match[str] | None:
    return _REASONS.match(name.strip().lower().replace(" ", "_"))


def _list(cell: object) -> Sequence[object]:
    if cell is None:
        return ()
    return cell if isinstance(cell, list | tuple) else (cell,)


def _numbers(cell: object) -> list[float]:
    return [
        value
        for value in _list(cell)
        if isinstance(value, int | float) and not isinstance(value, bool)
    ]

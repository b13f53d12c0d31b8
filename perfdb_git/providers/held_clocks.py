"""Records that were taken while the device held its clock down, as far as they say so themselves.

Three facts count, each as it was recorded: the clock beside the samples, the driver's reasons
beside them, and the limits that were active when the environment was captured. Nothing is concluded
from the times alone: samples that grow may grow for other causes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from perfdb_git.analysis.clock_flags import is_clock_limit, throttling, throttling_text
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


class ClockReader:
    """Reads what the rows of one record set state of the clock.

    Parameters
    ----------
    record_set : str
        SHA-256 of the record set.
    header : RecordSetHeader
        Its header.
    """

    def __init__(self, record_set: str, header: RecordSetHeader) -> None:
        self._record_set = record_set
        self._shared = tuple(
            text for name, cell in header.source.keys.items() for text in _stated(name, cell)
        )
        columns = list(enumerate(header.columns))
        self._reasons = [
            (place, column.name)
            for place, column in columns
            if column.role == "source" and _reason_column(column.name)
        ]
        samples = [
            (place, UNITS[column.unit])
            for place, column in columns
            if column.role == "metric" and column.statistic == "sample" and column.unit is not None
        ]
        self._clocks = [(place, unit) for place, unit in samples if unit.si == CLOCK_UNIT]
        self._values = [place for place, unit in samples if unit.si != CLOCK_UNIT]

    @property
    def states_nothing(self) -> bool:
        """Whether no row can say anything of the clock."""
        return not (self._shared or self._reasons or self._clocks)

    def log(self, row: int, cells: Sequence[object]) -> ClockLog:
        """Return what a row states.

        Parameters
        ----------
        row : int
            Number of the row.
        cells : sequence
            The row, one cell a column.
        """
        own = record_id(self._record_set, row)
        if self.states_nothing:
            return ClockLog(run=own, samples=0, clocks=(), reasons=())
        counts = {len(_numbers(cells[place])) for place in self._values} - {0}
        clocks = [
            tuple(unit.to_si(value) / _HZ_A_MHZ for value in _numbers(cells[place]))
            for place, unit in self._clocks
        ]
        reasons = [text for place, name in self._reasons for text in _stated(name, cells[place])]
        return ClockLog(
            run=self._record_set if counts == {1} else own,
            samples=max(counts, default=0),
            # A clock that was not read at each sample says nothing of single ones.
            clocks=tuple(series for series in clocks if len(series) in counts),
            reasons=(*self._shared, *reasons),
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


def states_clocks(header: RecordSetHeader) -> bool:
    """Return whether anything in a record set can say that a clock was held down."""
    return not ClockReader("", header).states_nothing or _limits_at_capture(header) is not None


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
    reader = ClockReader(record_set, header)
    places = [place for place, item in enumerate(header.columns) if item.role == "dimension"]
    contexts: dict[tuple[object, ...], list[tuple[RecordSetHeader, ClockLog]]] = {}
    for number, cells in enumerate(rows):
        context = tuple(cells[place] for place in places)
        contexts.setdefault(context, []).append((header, reader.log(number, cells)))
    found = (text for records in contexts.values() for text in held_clocks(records))
    return tuple(dict.fromkeys(text for text in found if text is not None))


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

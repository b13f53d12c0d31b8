"""The table that nccl-tests and rccl-tests print, read by its header."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from perfdb_git.importers.collectives import (
    CollectiveRow,
    CollectiveRun,
    collective_point,
    collective_protocol,
    library_version,
    nodes_of,
    operation_of_run,
    row_fault,
)
from perfdb_git.importers.layouts import integer, number, number_fault, without_rank_tags
from perfdb_git.importers.source_text import SourceText, refuse
from perfdb_git.importers.tool_results import (
    Environment,
    ReadingFacts,
    Remark,
    ToolResult,
)
from perfdb_git.model.records import MeasurementProtocol

_RANK = re.compile(
    r"#\s+Rank\s+(\d+)\s+(?:Group\s+(\d+)\s+)?Pid\s+\d+ on\s+(\S+) device\s+\d+ \[[^\]]*\] (.*)"
)
_PROGRAM = re.compile(r"#\s*Collective test starting: (\S+)")
_VERSION = re.compile(r"#\s*nccl-tests version (\S+)(?:.*nccl-library=(\d+))?")
_RCCL_VERSION = re.compile(r"rccl-tests: Version (\S+)")
_SETTING = re.compile(r"(warmup iters|agg iters|iters|validation|graph):\s*(\d+)")
_PREFIX = ("size", "count", "type", "redop", "root")
_ERRORS = ("#wrong", "error")
_TIMES = ("time", "cputime")
_MICROSECONDS = "(us)"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Header:
    """The columns of a table: those of the size, then one or two halves of four."""

    prefix: tuple[str, ...]
    in_place: tuple[bool, ...]
    is_cpu_time: bool
    timestamp: bool

    @property
    def width(self) -> int:
        """How many words a row has; a timestamp is two."""
        return len(self.prefix) + 4 * len(self.in_place) + 2 * self.timestamp


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rank:
    number: int
    group: str | None
    host: str
    device: str


def read_nccl_text(
    source: SourceText, facts: ReadingFacts, *, tool: str, library: str
) -> ToolResult:
    """Read one run's output.

    Raises
    ------
    InvalidInputError
        No table or several, columns or units of another layout, an unknown collective.
    """
    lines = without_rank_tags(source.lines)
    top = _header_line(lines, source.document)
    header = _header(lines, top, source.document)
    table = _Table(lines, header, top)
    ranks = _ranks(lines)
    count = _count_ranks(ranks)
    program = _first(_PROGRAM, lines)
    settings = dict(_SETTING.findall(next((ln for ln in lines if "# nThread" in ln), "")))
    operation = operation_of_run(
        None if program is None else program[1], facts, table.rows, count, source.document
    )
    version = _first(_VERSION, lines)
    rccl = _first(_RCCL_VERSION, lines)
    code = None if version is None else version[2]
    run = CollectiveRun(
        document=source.document,
        operation=operation,
        ranks=count,
        ranks_per_node=None if count is None else nodes_of([rank.host for rank in ranks]),
        protocol=_protocol(settings),
    )
    faults = {row.place: row_fault(row, run) for row in table.rows}
    return ToolResult(
        tool=tool,
        revision=version[1] if version else rccl[1] if rccl else None,
        points=[collective_point(row, run) for row in table.rows if faults[row.place] is None],
        environment=Environment(
            device_names=tuple(dict.fromkeys(rank.device for rank in ranks)),
            device_count=count,
            runtimes={library: None if code is None else library_version(int(code))},
            hosts=tuple(dict.fromkeys(rank.host for rank in ranks)),
        ),
        bad_rows=(
            *table.bad,
            *(f"{place}: {fault}" for place, fault in faults.items() if fault is not None),
        ),
        remarks=tuple(_remarks(table, settings)),
    )


def _first(pattern: re.Pattern[str], lines: Sequence[str]) -> re.Match[str] | None:
    return next((match for match in map(pattern.search, lines) if match), None)


def _header_line(lines: Sequence[str], document: str) -> int:
    tops = [place for place, line in enumerate(lines) if _is_header(line)]
    if not tops:
        refuse(document, "has no table of nccl-tests", "unknown-layout")
    if len(tops) > 1:
        refuse(
            document,
            f"holds {len(tops)} tables, at lines {', '.join(str(top + 1) for top in tops)}",
            "several-runs",
            remedy="split it into one file a run",
        )
    return tops[0]


def _is_header(line: str) -> bool:
    words = line.lstrip("# ").split()
    return line.lstrip().startswith("#") and words[:2] == ["size", "count"] and "busbw" in words


def _header(lines: Sequence[str], top: int, document: str) -> _Header:
    words = lines[top].lstrip("# ").split()
    prefix = tuple(word for word in words[:5] if word in _PREFIX)
    rest = words[len(prefix) :]
    timestamp = rest[-1:] == ["timestamp"]
    rest = rest[: len(rest) - timestamp]
    halves = [rest[place : place + 4] for place in range(0, len(rest), 4)]
    known = all(
        len(half) == 4
        and half[0] in _TIMES
        and half[1:3] == ["algbw", "busbw"]
        and half[3] in _ERRORS
        for half in halves
    )
    labels = lines[top - 1].lstrip("# ").split() if top else []
    if not known or prefix[:3] != _PREFIX[:3] or not 1 <= len(halves) <= 2:
        refuse(
            document,
            f"has columns of no known layout: {' '.join(words)}",
            "unknown-layout",
            line=top + 1,
        )
    if labels != ["out-of-place", "in-place"][: len(halves)] and labels != ["in-place"]:
        refuse(document, "does not say which half is out of place", "unknown-layout", line=top)
    if len(labels) != len(halves):
        refuse(document, "has other halves than labels", "unknown-layout", line=top)
    _require_units(lines, top, len(halves), document)
    return _Header(
        prefix=prefix,
        in_place=tuple(label == "in-place" for label in labels),
        is_cpu_time=halves[0][0] == "cputime",
        timestamp=timestamp,
    )


def _require_units(lines: Sequence[str], top: int, halves: int, document: str) -> None:
    words = lines[top + 1].lstrip("# ").split() if top + 1 < len(lines) else []
    wanted = ["(B)", "(elements)", *[_MICROSECONDS, "(GB/s)", "(GB/s)"] * halves]
    # The format of a timestamp follows the units.
    if words[: len(wanted)] != wanted:
        refuse(
            document,
            f"states the units {' '.join(words)}, not {' '.join(wanted)}",
            "unknown-units",
            line=top + 2,
        )


def _row_fault(words: Sequence[str], header: _Header) -> str | None:
    """Say why a line that holds numbers of the table cannot be read; None for rows and logs."""
    row = words[-header.width :]
    if integer(words[0]) is None:
        if len(row) < header.width or number(row[len(header.prefix)]) is None:
            return None
        if len(words) > header.width and integer(row[0]) is not None:
            return "has a row behind something else"
        return f"its size is {row[0]!r}, no number of bytes" if len(words) == len(row) else None
    if len(words) != header.width:
        return f"has {len(words)} words, the header has {header.width}"
    numbers = words[len(header.prefix) : len(words) - 2 * header.timestamp]
    return next((fault for fault in map(number_fault, numbers) if fault is not None), None)


class _Table:
    """The rows below a header; what is no row is counted."""

    def __init__(self, lines: Sequence[str], header: _Header, top: int) -> None:
        self.rows: list[CollectiveRow] = []
        self.bad: list[str] = []
        self.log_lines = 0
        for place in range(top + 2, len(lines)):
            line = lines[place].strip()
            if not line or line.startswith("#"):
                continue
            words = line.split()
            fault = _row_fault(words, header)
            if fault is not None:
                self.bad.append(f"line {place + 1}: {fault}")
            elif integer(words[0]) is None:
                self.log_lines += 1
            else:
                self._add(words, header, f"line {place + 1}")

    def _add(self, words: list[str], header: _Header, place: str) -> None:
        start = dict(zip(header.prefix, words, strict=False))
        size = integer(start["size"])
        assert size is not None
        stamp = {"timestamp": " ".join(words[-2:])} if header.timestamp else {}
        for half, in_place in enumerate(header.in_place):
            first = len(header.prefix) + 4 * half
            time, algorithm, bus, wrong = words[first : first + 4]
            reduction = start.get("redop")
            self.rows.append(
                CollectiveRow(
                    place=f"{place} {'in' if in_place else 'out of'} place",
                    size=size,
                    element_type=start["type"],
                    reduction=None if reduction == "none" else reduction,
                    root=start.get("root"),
                    in_place=in_place,
                    time=number(time),
                    is_cpu_time=header.is_cpu_time,
                    algorithm_bandwidth=number(algorithm),
                    bus_bandwidth=number(bus),
                    wrong=number(wrong),
                    sources=stamp,
                )
            )


def _ranks(lines: Sequence[str]) -> list[_Rank]:
    found = (_RANK.search(line) for line in lines)
    return [
        _Rank(number=int(match[1]), group=match[2], host=match[3], device=match[4].strip())
        for match in found
        if match
    ]


def _count_ranks(ranks: Sequence[_Rank]) -> int | None:
    """Return how many ranks take part, or None where the list is cut off or split in groups."""
    numbers = sorted(rank.number for rank in ranks)
    groups = {rank.group for rank in ranks}
    if not ranks or numbers != list(range(len(numbers))) or len(groups) > 1:
        return None
    return len(numbers)


def _protocol(settings: dict[str, str]) -> MeasurementProtocol:
    def setting(name: str) -> int | None:
        return int(settings[name]) if name in settings else None

    notes = []
    if (setting("agg iters") or 1) > 1:
        notes.append(f"{settings['agg iters']} operations in each iteration")
    if setting("graph"):
        notes.append(f"launched {settings['graph']} times as a CUDA graph")
    return collective_protocol(setting("warmup iters"), setting("iters"), notes)


def _remarks(table: _Table, settings: dict[str, str]) -> Iterator[Remark]:
    if table.log_lines:
        yield Remark(code="log-lines", text=f"skipped {table.log_lines} log lines inside the table")
    failed = [row.place for row in table.rows if row.wrong]
    for place in failed:
        yield Remark(code="failed-check", text=f"{place}: wrong results, stored without a time")
    if settings.get("validation") == "0" or all(row.wrong is None for row in table.rows):
        yield Remark(code="not-validated", text="results were not checked by the tool")

"""Visits as a Gantt chart in SVG: one row a lane, one bar a visit, coloured by job."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape

from perfdb_git.errors import UsageError
from perfdb_git.model.simulation import Picoseconds
from perfdb_git.reports.escaping import for_terminal
from perfdb_git.simulation.lanes import VisitTable
from perfdb_git.simulation.simulate import Simulation
from perfdb_git.simulation.ticks import Tick

MAX_BARS = 4000
MAX_ROWS = 200

_WIDTH = 960
_RIGHT = 24
_TOP = 64
_ROW = 26
_BAR = 18
_AXIS = 46
_CHARACTER = 6.7
_LONGEST_LABEL = 36
_TICKS = 8
# A bar narrower than this would vanish under a white frame.
_FRAMED = 3

# Okabe and Ito's colours, which most readers with colour vision deficiency can tell apart.
_COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#b59f00", "#7f7f7f")
_ON_DARK = frozenset({"#0072b2", "#009e73", "#d55e00", "#7f7f7f"})

_UNITS = ((10**12, "s"), (10**9, "ms"), (10**6, "µs"), (10**3, "ns"), (1, "ps"))

_STYLE = """\
text { font: 12px system-ui, sans-serif; fill: #24292f }
.title { font-size: 15px; font-weight: 600 }
.quiet { fill: #57606a }
.bar { font-size: 10px; text-anchor: middle }
.tick { text-anchor: middle }
.row { text-anchor: end }
.grid { stroke: #d0d7de; stroke-width: 1 }
.path { stroke: #24292f; stroke-width: 2 }"""


def gantt_jobs(simulation: Simulation) -> int:
    """Number of first jobs that a chart can hold, at least 1."""
    return max(1, min(simulation.summary.jobs, MAX_BARS // len(simulation.plan.stages)))


def gantt_svg(simulation: Simulation, table: VisitTable, *, title: str) -> str:
    """Text of the chart.

    Parameters
    ----------
    simulation : Simulation
        Where names and the critical path come from; visits on the path are outlined.
    table : VisitTable
        The visits to show.
    title : str
        Above the chart.

    Raises
    ------
    UsageError
        If there are too many bars or rows to read (``chart-too-large``).
    """
    return "\n".join(_Chart(simulation, table, title).lines()) + "\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scale:
    """Times in ticks of the run to pixels.

    ``step`` is the distance of two marks on the axis, ``unit`` what its numbers count, in ticks.
    """

    first: int
    last: int
    left: float
    step: int
    unit: int
    unit_name: str

    def x(self, time: int) -> float:
        span = max(self.last - self.first, 1)
        return self.left + (_WIDTH - _RIGHT - self.left) * (time - self.first) / span

    def ticks(self) -> Iterator[int]:
        return iter(range(-(-self.first // self.step) * self.step, self.last + 1, self.step))

    def shown(self, time: int) -> str:
        return f"{time / self.unit:.12g}"


def _scale(first: int, last: int, left: float, tick: Tick) -> _Scale:
    rough = max(last - first, 1) / _TICKS
    power = 1
    while power * 10 <= rough:
        power *= 10
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough)
    unit, name = _unit(tick.ps(step))
    unit *= tick.per_ps
    return _Scale(first=first, last=last, left=left, step=step, unit=unit, unit_name=name)


class _Chart:
    def __init__(self, simulation: Simulation, table: VisitTable, title: str) -> None:
        pairs = sorted(set(zip(table.component.tolist(), table.lane.tolist(), strict=True)))
        if len(table) > MAX_BARS or len(pairs) > MAX_ROWS:
            raise UsageError(
                f"a chart of {len(table)} visits on {len(pairs)} lanes cannot be read; it may have "
                f"{MAX_BARS} on {MAX_ROWS}",
                code="chart-too-large",
                remedy="show fewer jobs",
            )
        self._simulation = simulation
        self._table = table
        self._title = title
        self._rows = {pair: row for row, pair in enumerate(pairs)}
        self._labels = [self._label(component, lane) for component, lane in pairs]
        left = 24 + _CHARACTER * max(map(len, self._labels))
        self._tick = simulation.plan.model.tick
        first, last = int(table.ready.min()), int(table.finish.max())
        self._scale = _scale(first, last, left, self._tick)
        self._bottom = _TOP + _ROW * len(pairs)

    def _label(self, component: int, lane: int) -> str:
        name = self._simulation.plan.components[component]
        if len(name) > _LONGEST_LABEL:
            name = name[: _LONGEST_LABEL - 1] + "…"
        return name if self._simulation.plan.model.lanes[component] == 1 else f"{name} [{lane}]"

    def lines(self) -> Iterator[str]:
        height = self._bottom + _AXIS
        yield (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" '
            f'width="{_WIDTH}" height="{height}" role="img">'
        )
        yield f"<title>{_text(self._title)}</title>"
        yield f"<style>\n{_STYLE}\n</style>"
        yield f'<rect width="{_WIDTH}" height="{height}" fill="#ffffff"/>'
        yield f'<text class="title" x="16" y="26">{_text(self._title)}</text>'
        yield f'<text class="quiet" x="16" y="46">{_text(self._subtitle())}</text>'
        yield from self._row_lines()
        yield from self._axis_lines()
        yield from self._bar_lines()
        yield "</svg>"

    def _subtitle(self) -> str:
        table, summary = self._table, self._simulation.summary
        first, last = int(table.job[0]), int(table.job[-1])
        jobs = f"job {first}" if first == last else f"jobs {first} to {last}"
        parts = [f"{jobs} of {summary.jobs}", f"makespan {_duration(summary.makespan_ps)}"]
        parts.append("colour: job")
        if summary.critical_path is not None:
            parts.append("outlined: critical path")
        return " · ".join(parts)

    def _row_lines(self) -> Iterator[str]:
        left = self._scale.left
        for row, label in enumerate(self._labels):
            y = _TOP + row * _ROW
            if row % 2 == 0:
                width = _WIDTH - _RIGHT - left
                yield (
                    f'<rect x="{left:.2f}" y="{y}" width="{width:.2f}" height="{_ROW}" '
                    'fill="#f6f8fa"/>'
                )
            yield f'<text class="row" x="{left - 8:.2f}" y="{y + 17}">{_text(label)}</text>'

    def _axis_lines(self) -> Iterator[str]:
        scale, bottom = self._scale, self._bottom
        for tick in scale.ticks():
            x = scale.x(tick)
            yield f'<line class="grid" x1="{x:.2f}" y1="{_TOP}" x2="{x:.2f}" y2="{bottom + 5}"/>'
            yield f'<text class="tick" x="{x:.2f}" y="{bottom + 19}">{scale.shown(tick)}</text>'
        middle = (scale.left + _WIDTH - _RIGHT) / 2
        yield (
            f'<text class="tick quiet" x="{middle:.2f}" y="{bottom + 37}">'
            f"time in {scale.unit_name}</text>"
        )

    def _bar_lines(self) -> Iterator[str]:
        path = self._simulation.summary.critical_path or ()
        on_path = {(step.job, step.stage) for step in path}
        names = [stage.stage.name for stage in self._simulation.plan.stages]
        outlined = []
        table = self._table
        columns = (
            table.job,
            table.stage,
            table.component,
            table.lane,
            table.start,
            table.finish,
        )
        for job, stage, component, lane, start, finish in zip(
            *(column.tolist() for column in columns), strict=True
        ):
            y = _TOP + self._rows[component, lane] * _ROW + (_ROW - _BAR) // 2
            bar = self._bar(job, names[stage], start, finish, y, (job, names[stage]) in on_path)
            if (job, names[stage]) in on_path:
                outlined.append(bar)
            else:
                yield bar
        # Last, so that no neighbour covers an outline.
        yield from outlined

    def _bar(self, job: int, stage: str, start: int, finish: int, y: int, on_path: bool) -> str:
        x = self._scale.x(start)
        # A visit of no time, or one too short to see, still gets a mark.
        width = max(self._scale.x(finish) - x, 1.5)
        colour = _COLOURS[job % len(_COLOURS)]
        frame = ' class="path"' if on_path else ""
        if not on_path and width > _FRAMED:
            frame = ' stroke="#ffffff" stroke-width="0.5"'
        begin, end = self._tick.ps(start), self._tick.ps(finish)
        hint = f"job {job}, {stage}: {begin} ps to {end} ps ({_duration(end - begin)})"
        text = f"{stage} {job}"
        if _CHARACTER * len(text) > width:
            text = str(job)
        label = ""
        if _CHARACTER * len(text) <= width:
            fill = ' style="fill:#ffffff"' if colour in _ON_DARK else ""
            label = (
                f'<text class="bar" x="{x + width / 2:.2f}" y="{y + 13}"{fill}>{_text(text)}</text>'
            )
        return (
            f'<g><title>{_text(hint)}</title><rect x="{x:.2f}" y="{y}" width="{width:.2f}" '
            f'height="{_BAR}" rx="1.5" fill="{colour}"{frame}/>{label}</g>'
        )


def _unit(ps: Picoseconds) -> tuple[int, str]:
    """Return the largest unit that a time has one of, in ps, and its name."""
    return next((unit, name) for unit, name in _UNITS if unit <= max(ps, 1))


def _duration(ps: Picoseconds) -> str:
    unit, name = _unit(ps)
    return f"{float(ps / unit):.6g} {name}"


def _text(text: str) -> str:
    # First visible: control characters are illegal in XML, whether escaped or not.
    return escape(for_terminal(text))

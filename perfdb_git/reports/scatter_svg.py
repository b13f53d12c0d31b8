"""Two sets of positive points on logarithmic axes, as SVG that needs nothing from elsewhere."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from perfdb_git.reports.escaping import for_terminal

_WIDTH, _HEIGHT = 640, 420
_LEFT, _RIGHT, _TOP, _BOTTOM = 84, 20, 56, 54
_RADIUS = 3
_MOST_TICKS = 9

# Okabe and Ito's blue and orange, which readers with colour vision deficiency can tell apart.
_COLOURS = ("#9aa4ae", "#0072b2")

_STYLE = """\
.plot text { font: 12px system-ui, sans-serif; fill: #24292f }
.plot .title { font-size: 14px; font-weight: 600 }
.plot .quiet { fill: #57606a }
.plot .middle { text-anchor: middle }
.plot .end { text-anchor: end }
.plot .grid { stroke: #d0d7de; stroke-width: 1 }
.plot .equal { stroke: #57606a; stroke-width: 1; stroke-dasharray: 5 4 }"""


@dataclass(frozen=True, slots=True, kw_only=True)
class PointSet:
    """Points of one colour, each with the text that a reader sees when pointing at it."""

    name: str
    points: Sequence[tuple[float, float]]
    hints: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Scatter:
    """What to draw: titles, axes and at most two sets, the second one on top.

    ``with_equality`` draws the line on which both coordinates are equal, on equal axes.
    """

    title: str
    x_title: str
    y_title: str
    sets: Sequence[PointSet]
    with_equality: bool = False


def scatter_svg(scatter: Scatter) -> str:
    """Return the text of the plot.

    Parameters
    ----------
    scatter : Scatter
        At least one point; coordinates are positive and finite.
    """
    return "\n".join(_Plot(scatter).lines()) + "\n"


@dataclass(frozen=True, slots=True)
class _Axis:
    """Decimal logarithms to pixels."""

    low: float
    high: float
    first: float
    last: float

    def place(self, value: float) -> float:
        return self.first + (math.log10(value) - self.low) / (self.high - self.low) * (
            self.last - self.first
        )

    def ticks(self) -> list[float]:
        """Return round values within the axis: 1, 2 and 5 of a decade where there is room."""
        decades = range(math.floor(self.low), math.ceil(self.high) + 1)
        for steps in ((1, 2, 5), (1, 3), (1,)):
            # As text, so that 5e-324 and 1e308 need no power of ten beyond what a float holds.
            values = [float(f"{step}e{decade}") for decade in decades for step in steps]
            inside = [
                value
                for value in values
                if 0 < value < math.inf and self.low <= math.log10(value) <= self.high
            ]
            if len(inside) <= _MOST_TICKS:
                return inside
        return inside[:: -(-len(inside) // _MOST_TICKS)]


def _axis(values: Sequence[float], first: float, last: float) -> _Axis:
    low, high = math.log10(min(values)), math.log10(max(values))
    margin = max(0.05 * (high - low), 0.05)
    return _Axis(low - margin, high + margin, first, last)


class _Plot:
    def __init__(self, scatter: Scatter) -> None:
        self._scatter = scatter
        points = [point for item in scatter.sets for point in item.points]
        across, up = [x for x, _ in points], [y for _, y in points]
        if scatter.with_equality:
            across = up = across + up
        self._x = _axis(across, _LEFT, _WIDTH - _RIGHT)
        self._y = _axis(up, _HEIGHT - _BOTTOM, _TOP)

    def lines(self) -> Iterator[str]:
        scatter = self._scatter
        yield (
            f'<svg class="plot" xmlns="http://www.w3.org/2000/svg" '
            f'viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}" role="img">'
        )
        yield f"<title>{_text(scatter.title)}</title>"
        yield f"<style>\n{_STYLE}\n</style>"
        yield f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#ffffff"/>'
        yield f'<text class="title" x="16" y="24">{_text(scatter.title)}</text>'
        yield from self._legend()
        yield from self._grid()
        if scatter.with_equality:
            # Both axes have one range, so the line runs from corner to corner.
            ends = f'x1="{_LEFT}" y1="{_HEIGHT - _BOTTOM}" x2="{_WIDTH - _RIGHT}" y2="{_TOP}"'
            yield f'<line class="equal" {ends}/>'
        for place, item in enumerate(scatter.sets):
            yield from self._dots(item, self._colour(place))
        yield "</svg>"

    def _legend(self) -> Iterator[str]:
        x = 16
        for place, item in enumerate(self._scatter.sets):
            yield f'<circle cx="{x + 5}" cy="40" r="4" fill="{self._colour(place)}"/>'
            yield f'<text class="quiet" x="{x + 14}" y="44">{_text(item.name)}</text>'
            x += 36 + 7 * len(item.name)

    def _colour(self, place: int) -> str:
        """Return a set's colour; the last one stands out."""
        return _COLOURS[place - len(self._scatter.sets)]

    def _grid(self) -> Iterator[str]:
        bottom = _HEIGHT - _BOTTOM
        for value in self._x.ticks():
            x = self._x.place(value)
            yield f'<line class="grid" x1="{x:.1f}" y1="{_TOP}" x2="{x:.1f}" y2="{bottom}"/>'
            yield f'<text class="middle" x="{x:.1f}" y="{bottom + 18}">{value:.4g}</text>'
        for value in self._y.ticks():
            y = self._y.place(value)
            end = _WIDTH - _RIGHT
            yield f'<line class="grid" x1="{_LEFT}" y1="{y:.1f}" x2="{end}" y2="{y:.1f}"/>'
            yield f'<text class="end" x="{_LEFT - 6}" y="{y + 4:.1f}">{value:.4g}</text>'
        middle = (_LEFT + _WIDTH - _RIGHT) / 2
        yield (
            f'<text class="middle quiet" x="{middle:.0f}" y="{_HEIGHT - 14}">'
            f"{_text(self._scatter.x_title)}</text>"
        )
        height = (_TOP + bottom) / 2
        yield (
            f'<text class="middle quiet" transform="translate(16 {height:.0f}) rotate(-90)">'
            f"{_text(self._scatter.y_title)}</text>"
        )

    def _dots(self, item: PointSet, colour: str) -> Iterator[str]:
        yield f'<g fill="{colour}" fill-opacity="0.6">'
        hints = item.hints or [""] * len(item.points)
        for (x, y), hint in zip(item.points, hints, strict=True):
            title = f"<title>{_text(hint)}</title>" if hint else ""
            place = f'cx="{self._x.place(x):.1f}" cy="{self._y.place(y):.1f}"'
            yield f'<circle {place} r="{_RADIUS}">{title}</circle>'
        yield "</g>"


def _text(text: str) -> str:
    # First visible: control characters are illegal in XML, whether escaped or not.
    return escape(for_terminal(text))

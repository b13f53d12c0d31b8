"""A review as one HTML page with plots: nothing is loaded, nothing runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from perfdb_git.reports.escaping import for_terminal
from perfdb_git.reports.quantities import counted
from perfdb_git.reports.review_sections import (
    Section,
    change_text,
    query_values,
    review_sections,
    summary_facts,
)
from perfdb_git.reports.scatter_svg import PointSet, Scatter, scatter_svg
from perfdb_git.review.changes import Review
from perfdb_git.review.impact import AnswerChange
from perfdb_git.review.plot_points import SeriesPoints

MOST_PLOTS = 12
MOST_ROWS = 2000
"""Of one table; browsers become slow with more."""

# The page states itself that it loads and runs nothing.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"

_STYLE = """\
body { font: 15px/1.5 system-ui, sans-serif; color: #24292f; margin: 2rem auto; max-width: 76rem;
  padding: 0 1rem }
h1 { font-size: 1.5rem } h2 { font-size: 1.15rem; margin-top: 2rem }
dl { display: grid; grid-template-columns: max-content auto; gap: .2rem 1rem }
dt { font-weight: 600 } dd { margin: 0 }
table { border-collapse: collapse; font-size: .85rem; width: 100% }
th, td { border: 1px solid #d0d7de; padding: .3rem .5rem; text-align: left; vertical-align: top;
  overflow-wrap: anywhere }
th { background: #f6f8fa } .quiet { color: #57606a }
.plots { display: flex; flex-wrap: wrap; gap: 1rem }"""


def review_html(review: Review, points: Sequence[SeriesPoints]) -> str:
    """Return the page.

    Parameters
    ----------
    review : Review
        The review.
    points : sequence of SeriesPoints
        What came in beside what was there.
    """
    return "\n".join(_lines(review, points)) + "\n"


def _lines(review: Review, points: Sequence[SeriesPoints]) -> Iterator[str]:
    title = f"{review.base[:12]} to {review.head[:12]}"
    yield "<!DOCTYPE html>"
    yield '<html lang="en"><head><meta charset="utf-8">'
    yield f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
    yield f"<title>Review of {title}</title>"
    yield f"<style>\n{_STYLE}\n</style></head><body>"
    yield "<h1>What this change does to evidence and answers</h1>"
    yield "<dl>"
    for label, text in summary_facts(review):
        yield f"<dt>{_text(label)}</dt><dd>{_text(text)}</dd>"
    yield "</dl>"
    yield from _plots(review, points)
    if not review.impact.changes:
        yield "<p>No answer differs.</p>"
    for section in review_sections(review):
        yield from _section(section)
    yield "</body></html>"


def _plots(review: Review, points: Sequence[SeriesPoints]) -> Iterator[str]:
    plots = [*_answer_plots(review.impact.changes), *map(_series_plot, points[:MOST_PLOTS])]
    if plots:
        yield '<div class="plots">'
        yield from (scatter_svg(plot) for plot in plots)
        yield "</div>"
    if len(points) > MOST_PLOTS:
        yield f'<p class="quiet">{len(points) - MOST_PLOTS} more series are not plotted.</p>'


def _answer_plots(changes: Sequence[AnswerChange]) -> Iterator[Scatter]:
    """Yield one plot a unit: the old answer across, the new one up."""
    units: dict[str, PointSet] = {}
    for change in changes:
        old, new = change.before.main, change.after.main
        if old is None or new is None or change.log_ratio is None:
            continue
        known = units.get(old.unit, PointSet(name="", points=()))
        hint = f"{query_values(change.query)} ({change_text(change.log_ratio)})"
        units[old.unit] = PointSet(
            name="answers that differ; dashed: equal",
            points=[*known.points, (old.value, new.value)],
            hints=[*known.hints, hint],
        )
    for unit, found in sorted(units.items()):
        yield Scatter(
            title="Answers after the change against before",
            x_title=f"before, {unit}",
            y_title=f"after, {unit}",
            sets=(found,),
            with_equality=True,
        )


def _series_plot(points: SeriesPoints) -> Scatter:
    return Scatter(
        title=f"{points.kind} {points.operation} on {points.device}",
        x_title=f"size: {points.size}",
        y_title=f"{points.metric}, {points.unit}",
        sets=(
            PointSet(name=_named("before", points.known, points.known_rows), points=points.known),
            PointSet(name=_named("added", points.added, points.added_rows), points=points.added),
        ),
    )


def _named(name: str, points: Sequence[object], rows: int) -> str:
    return f"{name}: {len(points):,} of {counted(rows, 'row')}"


def _section(section: Section) -> Iterator[str]:
    yield f"<h2>{_text(section.title)} ({len(section.rows) + section.left_out:,})</h2>"
    if section.intro:
        yield f'<p class="quiet">{_text(section.intro)}</p>'
    yield "<table><thead><tr>"
    yield "".join(f"<th>{_text(title)}</th>" for title in section.columns)
    yield "</tr></thead><tbody>"
    for row in section.rows[:MOST_ROWS]:
        yield f"<tr>{''.join(f'<td>{_text(cell)}</td>' for cell in row)}</tr>"
    yield "</tbody></table>"
    missing = len(section.rows) - len(section.rows[:MOST_ROWS]) + section.left_out
    if missing:
        yield f'<p class="quiet">{counted(missing, "row")} more, left out of this page.</p>'


def _text(text: str) -> str:
    return escape(for_terminal(text))

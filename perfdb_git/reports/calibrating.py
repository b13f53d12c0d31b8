"""Calibrations for people: what a fit tried and chose, and held-out errors as tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from perfdb_git.calibration.choosing import TriedForm
from perfdb_git.calibration.fit import FitResult, TriedSlice
from perfdb_git.calibration.revision_reports import MissedRow, RevisionReport
from perfdb_git.model.calibration import Calibration
from perfdb_git.model.held_out import ErrorStatistics, HeldOutReport
from perfdb_git.operations.units import METRIC_UNITS
from perfdb_git.reports.escaping import for_markdown
from perfdb_git.reports.quantities import counted, number, quantity
from perfdb_git.reports.screen import Line, fact, table

_SHORT = 12
_TITLES = ("n", "MAPE", "median", "p90", "p95", "max", "bias", "cover", "±width")
_GROUP = "held-out rows"
_MOST_SLICES = 40


def fit_lines(
    result: FitResult, *, sha256: str, written: Sequence[str], commit: str | None
) -> list[Line]:
    """Return a fit for people: forms tried, the chosen ones, held-out errors, what to promote."""
    lines = [Line("errors of rows that the fit had not seen, inside the training rows", "strong")]
    lines += _tried_lines(result.tried)
    lines.append(Line())
    lines += report_lines(result.calibration.held_out_report)
    lines.append(Line())
    lines += fact("revision", sha256)
    for name in written or ("nothing",):
        lines += fact("written", name)
    lines += fact("commit", commit or "none")
    lines += fact("promote", "add this line to 'calibrations' of evidence/policies/default.yaml:")
    lines.append(Line(promotion_line(result.calibration, sha256)))
    return lines


def promotion_line(calibration: Calibration, sha256: str) -> str:
    """Return the policy's line that would let a revision answer."""
    return (
        f"  - {{response: {calibration.response}, operation: {calibration.operation}, "
        f"device: {calibration.device}, revision: {sha256}}}"
    )


def _tried_lines(tried: Sequence[TriedSlice]) -> list[Line]:
    rows = [
        [f"{item.records:,}", *_form_cells(form), item.name]
        for item in tried[:_MOST_SLICES]
        for form in item.forms
    ]
    lines = table(
        ["records", "form", "error", "", "slice"], rows, right=("records", "error"), wrap=True
    )
    if len(tried) > _MOST_SLICES:
        lines.append(Line(f"and {counted(len(tried) - _MOST_SLICES, 'more slice')}", "faint"))
    return lines


def _form_cells(form: TriedForm) -> list[str]:
    error = "-" if form.error_pct is None else _percent(form.error_pct)
    return [form.form, error, "chosen" if form.chosen else (form.note or "")]


def revision_lines(report: RevisionReport) -> list[Line]:
    """Return one revision for people."""
    lines = [Line(f"{report.operation} on {report.device}: {report.response}", "strong")]
    lines += fact("revision", report.sha256)
    lines += fact("spec", report.spec or "none")
    forms = (f"{form} ({counted(count, 'slice')})" for form, count in report.forms.items())
    lines += fact("forms", ", ".join(forms))
    lines += [Line(), *report_lines(report.held_out_report), Line()]
    lines.append(Line("rows missed most", "strong"))
    return [*lines, *_worst_lines(report)]


def report_lines(report: HeldOutReport) -> list[Line]:
    """Return a held-out report as a table; errors in percent of the measured value."""
    rows = [[name, *cells(errors)] for name, errors in named_errors(report)]
    lines = [Line(_held_out_text(report))]
    return [*lines, *table([_GROUP, *_TITLES], rows, right=_TITLES)]


def _held_out_text(report: HeldOutReport) -> str:
    level = "" if report.level is None else f", intervals at {100 * report.level:g} %"
    refused = "" if not report.refused else f", {report.refused:,} without an answer"
    return f"{counted(report.held_out, 'held-out record')}{refused}{level}; errors in percent"


def named_errors(report: HeldOutReport) -> Iterator[tuple[str, ErrorStatistics]]:
    """Yield the name and the errors of each part of a report that has any."""
    parts = (
        ("all", report.overall),
        ("interpolated", report.interpolated),
        ("extrapolated", report.extrapolated),
    )
    for name, errors in parts:
        if errors is not None:
            yield name, errors
    for group in report.groups:
        yield f"{group.by} {group.value}", group.errors


def cells(errors: ErrorStatistics) -> list[str]:
    """Return the figures of errors as text, in the order of the titles."""
    figures = (
        *(errors.mape_pct, errors.median_pct, errors.p90_pct, errors.p95_pct, errors.max_pct),
        errors.bias_pct,
        None if errors.coverage is None else 100 * errors.coverage,
        errors.median_half_width_pct,
    )
    return [f"{errors.n:,}", *("-" if value is None else _percent(value) for value in figures)]


def _worst_lines(report: RevisionReport) -> list[Line]:
    rows = [_worst_cells(row, report.response) for row in report.worst]
    titles = ["error", "measured", "predicted", "size", "record", "slice"]
    return table(titles, rows, right=titles[:4], wrap=True)


def _worst_cells(row: MissedRow, response: str) -> list[str]:
    unit = METRIC_UNITS.get(response, "1")
    labels = " ".join(f"{name}={value}" for name, value in row.labels.items())
    sha256, _, place = row.record.partition("#")
    return [
        f"{row.error_pct:+.1f} %",
        quantity(row.measured, unit),
        quantity(row.predicted, unit),
        number(row.size),
        f"{sha256[:_SHORT]}#{place}",
        f"{labels}{' (extrapolated)' if row.extrapolated else ''}",
    ]


def comparison_lines(first: RevisionReport, second: RevisionReport) -> list[Line]:
    """Return two revisions side by side: every part that either has."""
    lines = [Line("two revisions, the first figure of each pair is the first one's", "strong")]
    for report in (first, second):
        lines += fact("revision", f"{report.sha256} ({report.operation} on {report.device})")
    titles = [_GROUP, "n", "MAPE", "median", "p95", "max", "bias", "cover", "±width"]
    return [*lines, Line(), *table(titles, comparison_rows(first, second), right=titles[1:])]


def comparison_rows(first: RevisionReport, second: RevisionReport) -> list[list[str]]:
    """Return the pairs of figures of two revisions by part."""
    ours, theirs = (dict(named_errors(item.held_out_report)) for item in (first, second))
    rows = []
    for name in dict.fromkeys((*ours, *theirs)):
        pairs = [cells(some[name]) if name in some else ["-"] * 9 for some in (ours, theirs)]
        # p90 is left out: two figures in each column have to fit on a line.
        kept = [0, 1, 2, 4, 5, 6, 7, 8]
        rows.append([name, *(f"{pairs[0][place]} {pairs[1][place]}" for place in kept)])
    return rows


def markdown(first: RevisionReport, second: RevisionReport | None = None) -> str:
    """Return one revision, or two side by side, as Markdown."""
    reports = [first] if second is None else [first, second]
    text = [
        f"### {for_markdown(f'{item.operation} on {item.device}')}: revision "
        f"{for_markdown(item.sha256)}\n"
        for item in reports
    ]
    if second is None:
        rows = [[name, *cells(errors)] for name, errors in named_errors(first.held_out_report)]
        text.append(_markdown_table([_GROUP, *_TITLES], rows))
        text.append("Rows missed most:\n")
        titles = ["error", "measured", "predicted", "size", "record", "slice"]
        worst = [_worst_cells(row, first.response) for row in first.worst]
        text.append(_markdown_table(titles, worst, code=(4, 5)))
    else:
        titles = [_GROUP, "n", "MAPE", "median", "p95", "max", "bias", "cover", "±width"]
        text.append(_markdown_table(titles, comparison_rows(first, second)))
    return "\n".join(text)


def _markdown_table(
    titles: Sequence[str], rows: Sequence[Sequence[str]], code: Sequence[int] = (0,)
) -> str:
    lines = [titles, ["---"] * len(titles)]
    lines += [
        [
            for_markdown(cell, in_table=True) if place in code and cell else cell
            for place, cell in enumerate(row)
        ]
        for row in rows
    ]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _percent(value: float) -> str:
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"

"""Changes of measured values over time, as readable text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from perfdb_git.comparison.series_results import (
    ChangeVerdict,
    Series,
    SeriesChange,
    SeriesOutcome,
    SeriesPoint,
    SeriesReport,
)
from perfdb_git.model.values import Scalar
from perfdb_git.reports.comparing import (
    change_text,
    context_text,
    interval_text,
    shared_values,
    without_values,
)
from perfdb_git.reports.quantities import counted, quantity
from perfdb_git.reports.review_sections import SHORT_COMMIT
from perfdb_git.reports.screen import Line, Style, fact, facts, wrapped

_SHOWN_APART = 5
_JUDGED = frozenset({"changed", "no-change", "not-significant-among-many"})
_STYLES: Mapping[ChangeVerdict, Style] = {"worse": "bad", "better": "good", "no-direction": "warn"}
_WORDS: Mapping[ChangeVerdict, str] = {
    "worse": "worse",
    "better": "better",
    "no-direction": "changed, without a direction",
}


def series_lines(report: SeriesReport, *, limit: int | None) -> list[Line]:
    """Return where values changed, context by context, and why others were not judged.

    Parameters
    ----------
    report : SeriesReport
        The answer.
    limit : int or None
        How many changes to show; the counts are those of all.
    """
    lines = wrapped(_headline(report), style="strong")
    asked = " ".join(report.selection) or "all records"
    lines += fact("series", f"{asked} at {report.commit[:SHORT_COMMIT]}")
    shared = shared_values([series.context for series in report.series])
    if shared:
        lines += fact("context", context_text(shared))
    changes = [(series, change) for series in report.series for change in series.changes]
    for series, change in changes[:limit]:
        lines += [Line(), *_change_lines(series, change, shared)]
    if changes:
        lines.append(Line())
    if limit is not None and len(changes) > limit:
        lines.append(Line(f"and {len(changes) - limit} more; --limit shows more", "faint"))
    for label, text in _remarks(report):
        lines += fact(label, text)
    apart = list(_apart(report))
    if apart:
        lines += facts("apart", apart, most=_SHOWN_APART, style="warn")
    return lines


def _headline(report: SeriesReport) -> str:
    if not report.series:
        return "no records to follow"
    changes = sum(report.verdicts.values())
    judged = len(_judged(report))
    if not judged:
        return f"nothing to judge in {counted(len(report.series), 'context')}"
    if not changes:
        return f"no change in {judged:,} of {counted(len(report.series), 'context')}"
    contexts = f"{report.outcomes['changed']:,} of {counted(len(report.series), 'context')}"
    counts = ", ".join(
        f"{count} {_WORDS[verdict]}" for verdict, count in report.verdicts.items() if count
    )
    return f"{counted(changes, 'change')} in {contexts}: {counts}"


def _change_lines(series: Series, change: SeriesChange, shared: Mapping[str, Scalar]) -> list[Line]:
    label = f"{series.metric} {context_text(without_values(series.context, shared))}".rstrip()
    levels = f"{quantity(change.before, series.unit)} -> {quantity(change.after, series.unit)}"
    lines = wrapped(
        f"{change_text(change.ratio.value)} {interval_text(change.ratio)}  {levels}  {label}",
        head=f"{_WORDS[change.verdict]}  ",
        style=_STYLES[change.verdict],
    )
    first, last = series.points[change.index], series.points[change.previous]
    lines += fact("since", _point_text(first))
    lines += facts("file", first.paths, most=3)
    lines += fact("until then", _point_text(last))
    before, after = _levels(series, change)
    lines += fact("sessions", f"{len(before)} before and {len(after)} after, by {series.order}")
    fallen = sum(point.throttled for point in (*before, *after))
    if fallen:
        lines += fact("flagged", f"{counted(fallen, 'session')} under a lowered clock", "warn")
    return lines + fact("p", f"{change.p_value:.2g}")


def _levels(series: Series, change: SeriesChange) -> tuple[list[SeriesPoint], list[SeriesPoint]]:
    """Return the sessions at the level before and after a change."""
    condition = series.points[change.index].condition
    others = [
        other.index for other in series.changes if series.points[other.index].condition == condition
    ]
    start = max((other for other in others if other < change.index), default=0)
    stop = min((other for other in others if other > change.index), default=len(series.points))
    before, after = series.points[start : change.index], series.points[change.index : stop]
    return (
        [point for point in before if point.condition == condition],
        [point for point in after if point.condition == condition],
    )


def _point_text(point: SeriesPoint) -> str:
    parts = [f"session {point.session}"]
    if point.measured_at is not None:
        parts.append(f"measured {point.measured_at}")
    if point.commit is None:
        parts.append("brought before this shallow clone's history begins")
    else:
        parts.append(f"commit {point.commit[:SHORT_COMMIT]}: {point.summary}")
    return ", ".join(parts)


def _remarks(report: SeriesReport) -> Iterator[tuple[str, str]]:
    judged = _judged(report)
    orders = Counter(item.order for item in judged)
    if orders:
        texts = [f"by {order} in {count:,}" for order, count in sorted(orders.items(), key=str)]
        yield "order", ", ".join(texts)
    yield (
        "judged by",
        f"alpha {report.alpha:g} a context, false discovery rate "
        f"{report.false_discovery_rate:g} over all of them, threshold {report.threshold:.3g}",
    )
    if report.across:
        yield "may change", ", ".join(report.across)
    if report.outcomes["no-change"]:
        yield "no change", counted(report.outcomes["no-change"], "context")
    for text in _refusals(report):
        yield "cannot tell", text
    tied = sum(item.tied for item in judged)
    if tied:
        yield (
            "note",
            f"{counted(tied, 'session')} came with the same commit, or at the same time, as "
            "another one: they stand in order of their names",
        )


def _judged(report: SeriesReport) -> list[Series]:
    return [item for item in report.series if item.outcome in _JUDGED]


def _refusals(report: SeriesReport) -> Iterator[str]:
    texts: Mapping[SeriesOutcome, str] = {
        "too-few-sessions": f"fewer than {report.fewest} sessions under equal conditions, so no "
        "change could be told from noise",
        "no-order": "neither times of measurement nor commits tell the order of the sessions",
        "zero-value": "a value of zero or less stands in no ratio to anything",
        "not-significant-among-many": "a change is not clear enough among all the contexts judged",
    }
    for outcome, text in texts.items():
        count = report.outcomes[outcome]
        if count:
            yield f"{counted(count, 'context')}: {text} [{outcome}]"


def _apart(report: SeriesReport) -> Iterator[str]:
    """Name sessions that were taken under another condition, and never pooled."""
    found: Counter[tuple[str, str]] = Counter()
    for series in report.series:
        for index in series.not_comparable:
            point = series.points[index]
            facts_text = context_text(series.conditions[point.condition])
            found[point.session, facts_text or "unknown environment"] += 1
    for (session, facts_text), count in found.items():
        yield f"session {session} is not comparable in {counted(count, 'context')}: {facts_text}"

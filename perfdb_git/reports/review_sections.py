"""A review as sections of plain text cells, which each format renders in its own way."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from perfdb_git.model.values import JsonValue, Scalar
from perfdb_git.reports.escaping import without_commands
from perfdb_git.reports.quantities import counted, interval, number, percent, quantity
from perfdb_git.review.answers import Answer
from perfdb_git.review.changes import Review
from perfdb_git.review.impact import AnswerChange
from perfdb_git.review.reasons import Reason
from perfdb_git.review.series_changes import DimensionRange, SeriesChange

SHORT_COMMIT = 12
MOST_CHARACTERS = 160
"""Of one cell; evidence text has no end of its own."""

_MOST_OF_A_QUERY = 400

_DOUBLED = math.log(2)
_MOST_DOCUMENTS = 3

SectionName = Literal[
    "answers", "conflicts", "series", "contexts", "coverage", "settings", "retractions", "documents"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One table.

    Attributes
    ----------
    name : str
        What it is, for the renderer.
    title : str
        Above it.
    intro : str
        What the numbers mean; may be empty.
    columns : tuple of str
        Titles of the columns.
    rows : tuple of tuple of str
        Cells, evidence text among them; escaped by the renderer.
    left_out : int
        Rows that are counted but not listed.
    """

    name: SectionName
    title: str
    intro: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    left_out: int = 0


def summary_facts(review: Review) -> list[tuple[str, str]]:
    """Return what a change does in a few labelled lines."""
    impact = review.impact
    changed = len(impact.changes)
    lost = sum(c.before.is_resolved and not c.after.is_resolved for c in impact.changes)
    base = "merge base " if review.is_merge_base else ""
    facts = [
        ("commits", f"{base}{review.base[:SHORT_COMMIT]} to {review.head[:SHORT_COMMIT]}"),
        ("documents", _document_counts(review)),
        ("records", _record_counts(review)),
        ("answers", f"{changed} of {impact.asked} differ under policy {review.policy}"),
    ]
    if lost:
        facts.append(("lost", counted(lost, "answer") + " no longer there"))
    conflicts = sum(item.conflict_count for item in review.series)
    if conflicts:
        facts.append(("conflicts", counted(conflicts, "context") + " with disagreeing sessions"))
    return facts


def review_sections(review: Review) -> list[Section]:
    """Return the sections that have rows, most important first."""
    sections = (
        _answers(review),
        _conflicts(review.series),
        _retractions(review),
        _settings(review),
        _series(review.series),
        _contexts(review.series),
        _coverage(review.series),
        _documents(review),
    )
    return [section for section in sections if section.rows]


def answer_text(answer: Answer | None) -> str:
    """Return value, interval, method and source of an answer, or why there is none."""
    if answer is None:
        return "unknown"
    metric = answer.main
    if metric is None:
        return f"no answer ({answer.code})"
    text = quantity(metric.value, metric.unit)
    if metric.lower is not None and metric.upper is not None:
        text += f" {interval(metric.lower, metric.upper, metric.value, metric.unit)}"
    source = answer.provider or ""
    if answer.calibration is not None:
        source += f" {answer.calibration[:SHORT_COMMIT]}"
    return f"{text}, {source}, {answer.validity}"


def change_text(log_ratio: float | None) -> str:
    """Return the size of a change, such as ``+2.9 %`` or ``x 3.1``."""
    if log_ratio is None:
        return "-"
    if log_ratio == 0:
        return "0 %"
    if abs(log_ratio) >= _DOUBLED:
        factor = math.exp(abs(log_ratio))
        return f"{'x' if log_ratio > 0 else '/'} {factor:.3g}"
    return f"{math.expm1(log_ratio) * 100:+.3g} %"


def query_values(values: Mapping[str, Scalar]) -> str:
    """Return a query's known dimensions as one line."""
    text = " ".join(f"{name}={value}" for name, value in values.items())
    return shown(text, most=_MOST_OF_A_QUERY)


def reasons_text(reasons: Sequence[Reason]) -> str:
    """Return why an answer changed, with the documents behind it."""
    texts = []
    for reason in reasons:
        named = [path.rpartition("/")[2] for path in reason.documents[:_MOST_DOCUMENTS]]
        if len(reason.documents) > _MOST_DOCUMENTS:
            named.append("…")
        texts.append(f"{reason.text} ({', '.join(named)})" if named else reason.text)
    return shown("; ".join(texts) or "not explained", most=2 * MOST_CHARACTERS)


def shown(text: str, *, most: int = MOST_CHARACTERS) -> str:
    """Return evidence text as one visible line of limited length."""
    safe = without_commands(text)
    return safe if len(safe) <= most else f"{safe[: most - 1]}…"


def _document_counts(review: Review) -> str:
    counts = Counter((change.change, change.kind) for change in review.documents)
    if not counts:
        return "none differ"
    parts = []
    for verb in ("added", "changed", "removed"):
        kinds = [
            documents_text(count, kind)
            for (change, kind), count in sorted(counts.items())
            if change == verb
        ]
        if kinds:
            parts.append(f"{', '.join(kinds)} {verb}")
    return "; ".join(parts)


def documents_text(count: int, kind: str) -> str:
    """Return a number of documents of a kind, such as ``2 policies``."""
    noun = kind.replace("-", " ")
    if count != 1 and noun.endswith("y"):
        return f"{count:,} {noun[:-1]}ies"
    return counted(count, noun)


def _record_counts(review: Review) -> str:
    records = [item.records for item in review.series]
    totals = {
        "added": sum(item.added for item in records),
        "removed": sum(item.removed for item in records),
        "retracted": sum(item.retracted for item in records),
        "restored": sum(item.restored for item in records),
    }
    parts = [f"{counted(count, 'record')} {verb}" for verb, count in totals.items() if count]
    return f"{', '.join(parts)} in {len(records)} series" if parts else "none differ"


def _answers(review: Review) -> Section:
    impact = review.impact
    sampled = impact.asked - impact.from_plans
    return Section(
        name="answers",
        title="Answers that differ",
        intro=f"{impact.from_plans} queries of plans and {sampled} sampled around the change were "
        "asked before and after it; lost answers first, then the largest changes.",
        columns=("change", "query", "before", "after", "differs in", "why"),
        rows=tuple(_answer_row(change) for change in impact.changes),
    )


def _answer_row(change: AnswerChange) -> tuple[str, ...]:
    name = f"{change.name}: " if change.origin == "plan" else ""
    return (
        change_text(change.log_ratio),
        shown(name) + query_values(change.query),
        shown(answer_text(change.before)),
        shown(answer_text(change.after)),
        ", ".join(change.changed),
        reasons_text(change.reasons),
    )


def _conflicts(series: Sequence[SeriesChange]) -> Section:
    found = [conflict for item in series for conflict in item.conflicts]
    found.sort(key=lambda conflict: -conflict.disagreement)
    return Section(
        name="conflicts",
        title="New records that disagree with old ones",
        intro="Medians of one context in two sessions, further apart than the policy's threshold.",
        columns=("disagreement", "context", "new session", "new", "old session", "old"),
        rows=tuple(
            (
                percent(conflict.disagreement),
                query_values(conflict.context),
                shown(conflict.session),
                quantity(conflict.value, conflict.unit),
                shown(conflict.known_session),
                quantity(conflict.known_value, conflict.unit),
            )
            for conflict in found
        ),
        left_out=sum(item.conflict_count for item in series) - len(found),
    )


def _series(series: Sequence[SeriesChange]) -> Section:
    return Section(
        name="series",
        title="Records by series",
        intro="Noise is the median of standard deviation over typical value.",
        columns=("series", "before", "added", "removed", "retracted", "new shapes", "noise"),
        rows=tuple(
            (
                series_name(item),
                f"{item.records.known:,}",
                _sets(item.records.added, item.records.record_sets_added),
                _sets(item.records.removed, item.records.record_sets_removed),
                _retracted(item),
                f"{item.new_shapes:,} of {item.new_shapes + item.known_shapes:,}",
                "unknown" if item.noise is None else percent(item.noise.median),
            )
            for item in series
        ),
    )


def series_name(item: SeriesChange) -> str:
    """Return a series as people name it."""
    return shown(f"{item.kind} {item.operation} on {item.device}")


def _sets(records: int, record_sets: int) -> str:
    return f"{records:,} in {counted(record_sets, 'set')}" if record_sets else "0"


def _retracted(item: SeriesChange) -> str:
    text = f"{item.records.retracted:,}"
    return f"{text}, {item.records.restored:,} restored" if item.records.restored else text


def _contexts(series: Sequence[SeriesChange]) -> Section:
    return Section(
        name="contexts",
        title="Records by context",
        intro="",
        columns=("series", "record sets", "records", "context"),
        rows=tuple(
            (
                series_name(item),
                f"{context.record_sets:,}",
                f"{context.records:,}",
                query_values(context.terms) or "-",
            )
            for item in series
            for context in item.contexts
        ),
    )


def _coverage(series: Sequence[SeriesChange]) -> Section:
    return Section(
        name="coverage",
        title="Coverage of what came in",
        intro="",
        columns=("series", "dimension", "added", "before"),
        rows=tuple(
            (series_name(item), shown(limits.name), *_ranges(limits))
            for item in series
            for limits in item.coverage
        ),
    )


def _ranges(limits: DimensionRange) -> Iterator[str]:
    pairs = ((limits.minimum, limits.maximum), (limits.known_minimum, limits.known_maximum))
    for low, high in pairs:
        if low is None or high is None:
            yield "unknown"
        else:
            yield _plain(low) if low == high else f"{_plain(low)} to {_plain(high)}"


def _plain(value: float) -> str:
    return f"{int(value)}" if value.is_integer() else number(value)


def _settings(review: Review) -> Section:
    return Section(
        name="settings",
        title="Settings that changed",
        intro="",
        columns=("document", "setting", "before", "after"),
        rows=tuple(
            (
                shown(item.document),
                shown(item.place),
                _value_text(item.before),
                _value_text(item.after),
            )
            for item in review.settings
        ),
    )


def _value_text(value: JsonValue) -> str:
    if value is None:
        return "-"
    return shown(value if isinstance(value, str) else json.dumps(value, ensure_ascii=True))


def _retractions(review: Review) -> Section:
    return Section(
        name="retractions",
        title="Retractions",
        intro="",
        columns=("change", "records", "reason"),
        rows=tuple(
            (
                "added" if item.is_added else "taken back",
                _short_target(item.target),
                shown(item.reason),
            )
            for item in review.retractions
        ),
    )


def _short_target(target: str) -> str:
    sha256, mark, row = target.partition("#")
    return shown(f"{sha256[:SHORT_COMMIT]}{mark}{row}")


def _documents(review: Review) -> Section:
    return Section(
        name="documents",
        title="Documents",
        intro="",
        columns=("change", "kind", "path"),
        rows=tuple((item.change, item.kind, shown(item.path)) for item in review.documents),
    )

"""One query's outcome as one readable screen."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

from perfdb_git.model.estimate import CostEstimate, MetricEstimate, NearMiss
from perfdb_git.model.query import CostQuery
from perfdb_git.model.result import Resolution
from perfdb_git.model.values import Scalar
from perfdb_git.reports.quantities import counted, interval, percent, quantity
from perfdb_git.reports.screen import Line, Style, fact, facts, wrapped

MOST_RECORDS = 5
_MOST_REMARKS = 5
_MOST_VALUES = 8
_MOST_NEAR = 3
_SHORT_DIGEST = 12
_AMBIGUOUS = "ambiguous-context"

_METRIC_ORDER = {"latency": 0}

_KINDS = {
    "exact": "exact",
    "interpolated": "interpolated",
    "extrapolated": "extrapolated",
    "modelled": "modelled",
    "bound": "a bound, not an expectation",
}


def resolution_lines(
    resolution: Resolution, *, sessions: Mapping[str, str] | None = None
) -> list[Line]:
    """Return the outcome for people.

    Parameters
    ----------
    resolution : Resolution
        The outcome.
    sessions : mapping of str to str or None
        Session name by record-set SHA-256, where known.
    """
    estimate = resolution.estimate
    if estimate is None:
        lines = _refusal(resolution)
    else:
        lines = _answer(estimate)
        lines += fact("question", query_text(resolution.query))
        lines += fact("how", f"{estimate.provenance.provider}: {resolution.reason}")
        lines += _evidence(estimate, sessions or {})
        lines += _remarks(estimate)
    lines += _snapshot(resolution)
    lines += _alternatives(resolution)
    for explanation in resolution.explanations:
        lines += [Line(), Line(f"{explanation.provider} ({explanation.revision})", "strong")]
        lines += [line for step in explanation.steps for line in wrapped(step, head="  ")]
    return lines


def record_sets_of(resolution: Resolution) -> tuple[str, ...]:
    """Return the SHA-256 of the record sets whose sessions `resolution_lines` shows."""
    if resolution.estimate is None:
        return ()
    shown = resolution.estimate.provenance.record_ids[:MOST_RECORDS]
    return tuple(dict.fromkeys(record.partition("#")[0] for record in shown))


def query_text(query: CostQuery) -> str:
    """Return a query as it could be typed."""
    pairs = query.coordinates().items()
    return " ".join(pair(name, value) for name, value in pairs)


def pair(name: str, value: Scalar) -> str:
    """Return ``NAME=VALUE``, quoted for a shell where needed."""
    return shlex.quote(f"{name}={value}")


def _answer(estimate: CostEstimate) -> list[Line]:
    names = sorted(estimate.metrics, key=lambda name: (_METRIC_ORDER.get(name, 1), name))
    first, others = names[0], names[1:]
    metric = estimate.metrics[first]
    how = f"{first}, {estimate.method}, {_validity(estimate)}"
    lines = [Line(f"{quantity(metric.value, metric.unit)}   {how}", "good")]
    lines += fact("interval", _interval(metric))
    quantiles = metric.uncertainty.quantiles if metric.uncertainty is not None else {}
    if quantiles:
        texts = [f"{name} {quantity(value, metric.unit)}" for name, value in quantiles.items()]
        lines += fact("quantiles", ", ".join(texts))
    for name in others:
        other = estimate.metrics[name]
        text = f"{quantity(other.value, other.unit)}, {_interval(other)}"
        lines += fact(name, text)
    return lines


def _validity(estimate: CostEstimate) -> str:
    validity = estimate.validity
    text = _KINDS[validity.kind]
    if validity.distance_octaves:
        text += f", {validity.distance_octaves:.2f} octaves from the nearest record"
    return text


def _interval(metric: MetricEstimate) -> str:
    uncertainty = metric.uncertainty
    if uncertainty is None:
        return "unknown: no spread is stated"
    bounds = interval(uncertainty.lower, uncertainty.upper, metric.value, metric.unit)
    count = "unknown" if uncertainty.sample_count is None else str(uncertainty.sample_count)
    return (
        f"{bounds} ({uncertainty.kind}, {percent(uncertainty.level)}, n = {count}, "
        f"{uncertainty.rule})"
    )


def _evidence(estimate: CostEstimate, sessions: Mapping[str, str]) -> list[Line]:
    provenance, diagnostics = estimate.provenance, estimate.diagnostics
    lines: list[Line] = []
    if diagnostics.breakdown:
        parts = [f"{name} {quantity(v, 's')}" for name, v in sorted(diagnostics.breakdown.items())]
        lines += fact("parts", ", ".join(parts))
    if provenance.record_ids:
        records = [_record(record, sessions) for record in provenance.record_ids]
        lines += facts("records", records, most=MOST_RECORDS)
        lines += fact("measured", provenance.measured_at or "date unknown")
        lines += fact("protocol", diagnostics.protocol or "unknown")
    lines += facts("source", provenance.source_revisions, most=MOST_RECORDS)
    if provenance.calibration is not None:
        lines += fact("calibration", provenance.calibration)
    return lines


def _record(record: str, sessions: Mapping[str, str]) -> str:
    sha256, _, row = record.partition("#")
    session = sessions.get(sha256)
    short = f"{sha256[:_SHORT_DIGEST]}#{row}"
    return short if session is None else f"{short}  {session}"


def _remarks(estimate: CostEstimate) -> list[Line]:
    diagnostics = estimate.diagnostics
    groups: list[tuple[str, Sequence[str], Style]] = [
        ("conflict", diagnostics.conflicts, "warn"),
        ("assumed", diagnostics.assumptions, "plain"),
        ("note", diagnostics.notes, "plain"),
    ]
    lines = [
        line
        for label, texts, style in groups
        for line in facts(label, texts, most=_MOST_REMARKS, style=style)
    ]
    if diagnostics.missing_context:
        lines += fact("not stated", f"{', '.join(diagnostics.missing_context)} (by the records)")
    return lines


def _snapshot(resolution: Resolution) -> list[Line]:
    commit = resolution.snapshot.commit
    where = "none: uncommitted files of the work tree" if commit is None else commit
    policy = resolution.policy
    digest = policy.digest.removeprefix("sha256:")[:_SHORT_DIGEST]
    lines = fact("commit", where) + fact("policy", f"{policy.name} (sha256 {digest})")
    if resolution.marks:
        lines += fact("marked", ", ".join(resolution.marks), "warn")
    return lines


def _refusal(resolution: Resolution) -> list[Line]:
    lines = [Line(f"no answer   {resolution.code}", "bad")]
    lines += wrapped(resolution.reason, head="  ")
    lines += fact("question", query_text(resolution.query))
    near = [miss for item in resolution.alternatives for miss in item.near_misses]
    if near and resolution.code == _AMBIGUOUS:
        lines += [Line(), Line("one of each line would decide", "strong")]
        for name, values in near[0].changes.items():
            pairs = [pair(name, value) for value in values[:_MOST_VALUES]]
            if len(values) > _MOST_VALUES:
                pairs.append(f"and {len(values) - _MOST_VALUES} more")
            lines += wrapped("   ".join(pairs), head="  ")
        lines.append(Line())
    elif near:
        lines += [Line(), Line("nearest contexts with an answer", "strong")]
        known = resolution.query.coordinates()
        for miss in near[:_MOST_NEAR]:
            lines += wrapped(_near_miss(miss, known), head="  ")
        lines.append(Line())
    return lines


def _near_miss(miss: NearMiss, known: Mapping[str, Scalar]) -> str:
    changes = []
    for name, values in miss.changes.items():
        if not values:
            changes.append(f"leave out {name}")
        elif name in known:
            changes.append(f"{pair(name, values[0])} instead of {known[name]}")
        else:
            changes.append(pair(name, values[0]))
    where = "another context"
    if miss.distance_octaves is not None:
        where = f"{miss.distance_octaves:.2f} octaves away"
    return f"{', '.join(changes)}  ({where}, {counted(miss.records, 'record')})"


def _alternatives(resolution: Resolution) -> list[Line]:
    if not resolution.alternatives:
        return []
    title = "sources" if resolution.estimate is None else "other sources"
    lines = [Line(), Line(title, "strong")]
    known = resolution.query.coordinates()
    for item in resolution.alternatives:
        value = "-" if item.latency is None else quantity(item.latency, "s")
        head = f"  {item.provider:<19} {value:>9}  "
        # A refusal has its reason and the nearest contexts at the top already.
        same = item.reason == resolution.reason
        lines += wrapped(f"{item.code}: {'as above' if same else item.reason}", head=head)
        if item.near_misses and resolution.estimate is not None:
            nearest = f"nearest: {_near_miss(item.near_misses[0], known)}"
            lines += wrapped(nearest, head=" " * len(head))
    return lines

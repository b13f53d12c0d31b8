"""An inference estimate with everything it rests on, for programs and for people."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from perfdb_git.model.estimate import Uncertainty
from perfdb_git.model.plan import Plan
from perfdb_git.model.plan_lock import CompositionResult, LockedAnswer, LockedQuery
from perfdb_git.model.result import PolicyReference, SnapshotReference
from perfdb_git.model.transformer import TransformerModel
from perfdb_git.plans.coverage import Coverage, RefusedTask, sum_coverage
from perfdb_git.plans.lock import locked_query
from perfdb_git.plans.resolving import ResolvedPlan
from perfdb_git.reports.quantities import counted, interval, percent, quantity
from perfdb_git.reports.screen import Line, fact, table, wrapped
from perfdb_git.workloads.inference_setting import InferenceSetting

_SHORT = 12
_SHORT_RECORD = 8
_NO_ANSWER = "-"
_MOST_NAMED = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class InferenceReport:
    """One inference estimate.

    ``model_digest`` is that of the model's file. ``queries`` are the outcomes of the plan's
    queries, in its order. ``result`` has no value where a task is refused; ``coverage`` then has
    the sum of the others. ``written`` is the path of the plan's file, ``None`` if none was asked
    for.
    """

    snapshot: SnapshotReference
    policy: PolicyReference
    model: TransformerModel
    model_digest: str
    setting: InferenceSetting
    plan: Plan
    queries: tuple[LockedQuery, ...]
    result: CompositionResult
    coverage: Coverage
    written: str | None


def inference_report(
    resolved: ResolvedPlan,
    *,
    model: TransformerModel,
    model_digest: str,
    setting: InferenceSetting,
    written: str | None,
) -> InferenceReport:
    """Return the report of a resolved plan of `inference_plan`."""
    return InferenceReport(
        snapshot=SnapshotReference(commit=resolved.snapshot.commit),
        policy=resolved.policy.reference,
        model=model,
        model_digest=model_digest,
        setting=setting,
        plan=resolved.document.value,
        queries=tuple(locked_query(item) for item in resolved.answered),
        result=resolved.result,
        coverage=sum_coverage(resolved.answered),
        written=written,
    )


def inference_lines(report: InferenceReport, *, explain: bool) -> list[Line]:
    """Return the estimate for people; ``explain`` adds the query of each task."""
    head = wrapped(report.plan.description.partition(" (sha256:")[0])
    lines = [Line(line.text, "strong") for line in head]
    lines += [Line(), *_task_table(report), Line(), *_total_lines(report)]
    lines += _coverage_lines(report.coverage)
    lines += _origin_lines(report)
    if explain:
        texts = {query.name: _pairs(query.query) for query in report.plan.queries}
        rows = [[name, text] for name, text in texts.items()]
        lines += [Line(), *table(["task", "query"], rows, wrap=True)]
    return lines


def _task_table(report: InferenceReport) -> list[Line]:
    titles = ["task", "runs", "one run", "interval", "share", "method", "from"]
    rows = [_task_row(query, report.coverage.answered_s) for query in report.queries]
    return table(titles, rows, right=("runs", "one run", "interval", "share"))


def _task_row(query: LockedQuery, whole_s: float) -> list[str]:
    head, answer = [query.name, f"{query.multiplicity:,}"], query.answer
    if answer is None:
        return [*head, *[_NO_ANSWER] * 3, "refused", query.code]
    total = query.multiplicity * answer.value
    bounds = answer.uncertainty
    return [
        *head,
        quantity(answer.value, answer.unit),
        _NO_ANSWER
        if bounds is None
        else interval(bounds.lower, bounds.upper, answer.value, answer.unit),
        percent(total / whole_s) if whole_s else _NO_ANSWER,
        answer.method if answer.validity != "bound" else "bound",
        _origin(answer),
    ]


def _origin(answer: LockedAnswer) -> str:
    if answer.calibration is not None:
        return answer.calibration[:_SHORT]
    if not answer.record_ids:
        return ", ".join(answer.source_revisions) or answer.provider
    record_set, _, row = answer.record_ids[0].partition("#")
    more = len(answer.record_ids) - 1
    return f"{record_set[:_SHORT_RECORD]}#{row}" + (f" +{more}" if more else "")


def _total_lines(report: InferenceReport) -> list[Line]:
    coverage, result = report.coverage, report.result
    if result.value is None:
        text = f"no total   {counted(len(coverage.refused), 'task')} of {coverage.tasks} refused"
        answered = quantity(coverage.answered_s, result.unit)
        lines = [Line(text, "bad"), *fact("answered", f"{answered} for the others together")]
    else:
        bounds = f", {percent(coverage.bounds_share)} of it bounds" if coverage.bounds_share else ""
        lines = [Line(f"{quantity(result.value, result.unit)}   total{bounds}", "good")]
        lines += fact("evidence", f"{result.evidence}, the weakest of its parts")
    lines += _interval_lines(report)
    for task in coverage.refused:
        lines += fact("refused", _refusal(task), "bad")
    return lines


def _refusal(task: RefusedTask) -> str:
    return f"{task.name} ({counted(task.multiplicity, 'run')}): {task.code}: {task.reason}"


def _interval_lines(report: InferenceReport) -> list[Line]:
    """Say both intervals, and of how much of the time they are."""
    coverage = report.coverage
    whole = report.result.value is not None and not coverage.without_spread
    lines = []
    if not whole:
        names = _named((*coverage.without_spread, *(task.name for task in coverage.refused)))
        text = f"unknown for the whole, as is the spread of {names}"
        if coverage.comonotone is not None:
            known = f"{quantity(coverage.spread_s, 's')}, {percent(coverage.spread_share)}"
            text += f"; for the other {known} of what is answered:"
        lines += fact("interval", text, "warn")
    for bounds, meaning in (
        (coverage.comonotone, "all parts slow or fast together"),
        (coverage.independent, "errors of different queries independent"),
    ):
        if bounds is not None:
            text = f"{_bounds(bounds, coverage.spread_s)}, {meaning}"
            lines += fact("interval" if whole and not lines else "", text)
    if coverage.spread_s and coverage.comonotone is None:
        lines += fact("interval", "unknown: some parts state confidence, others prediction", "warn")
    return lines


def _bounds(bounds: Uncertainty, value: float) -> str:
    text = interval(bounds.lower, bounds.upper, value, "s")
    return f"{text} ({bounds.kind}, {percent(bounds.level)}, {bounds.rule})"


def _coverage_lines(coverage: Coverage) -> list[Line]:
    parts = [
        f"{item.method} {item.tasks} ({percent(item.share)} of the time)"
        for item in coverage.methods
    ]
    if coverage.refused:
        parts.append(f"refused {len(coverage.refused)} (time unknown)")
    lines = fact("coverage", f"{counted(coverage.tasks, 'task')}: {', '.join(parts)}")
    for kind, names in (("lower", coverage.lower_bounds), ("upper", coverage.upper_bounds)):
        if names:
            text = f"{kind} ones, no expectations: {_named(names)}"
            lines += fact("bounds", text, "warn")
    return lines


def _origin_lines(report: InferenceReport) -> list[Line]:
    model = f"{report.model.name}, {report.model_digest}"
    if report.model.source is not None:
        model += f" ({report.model.source})"
    lines = fact("model", model)
    commit = report.snapshot.commit or "none: uncommitted files of the work tree"
    digest = report.policy.digest.removeprefix("sha256:")[:_SHORT]
    lines += fact("commit", commit)
    lines += fact("policy", f"{report.policy.name} (sha256 {digest})")
    if report.written is not None:
        lines += fact("plan", f"{report.written}; commit it to show, lock and verify it")
    return lines


def _named(names: Sequence[str]) -> str:
    shown = list(names[:_MOST_NAMED])
    if len(names) > _MOST_NAMED:
        shown.append(f"{len(names) - _MOST_NAMED} more")
    return ", ".join(shown)


def _pairs(values: Mapping[str, object]) -> str:
    texts: Sequence[str] = [shlex.quote(f"{name}={value}") for name, value in values.items()]
    return " ".join(texts)

"""Plans for people: what answers each query, what the plan costs, and what became of a lock."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from perfdb_git.model.estimate import Uncertainty
from perfdb_git.model.plan_lock import CompositionResult, LockedAnswer, LockedQuery, PlanLock
from perfdb_git.model.values import JsonValue
from perfdb_git.plans.compare import PlanDifference, QueryChange
from perfdb_git.plans.differences import Difference
from perfdb_git.plans.lock import locked_query
from perfdb_git.plans.resolving import ResolvedPlan
from perfdb_git.plans.verify import QueryVerdict, Verdict, Verification
from perfdb_git.reports.quantities import counted, interval, percent, quantity
from perfdb_git.reports.screen import Line, Style, fact, table, wrapped

_SHORT = 12
_MOST_DIFFERENCES = 6
_MOST_EQUAL = 50
"""Queries up to which a verification lists the equal ones too."""
_NO_ANSWER = "-"

_NO_INTERVAL = {
    "incomplete": "unknown: not every query has an answer",
    "kinds-differ": "unknown: some parts state confidence, others prediction",
    "not-propagated": "unknown: bounds of the parts give no bounds of a makespan",
}
_VERDICTS: Mapping[Verdict, Style] = {"equal": "good", "differs": "bad", "unavailable": "warn"}


def plan_lines(resolved: ResolvedPlan) -> list[Line]:
    """Return a resolved plan: a line for each query, and the composed number."""
    plan = resolved.document.value
    queries = [locked_query(item) for item in resolved.answered]
    lines = [Line(plan.name, "strong"), *wrapped(plan.description.strip(), head="  "), Line()]
    if queries:
        lines += [*_query_table(queries, resolved.result), Line()]
    lines += _result_lines(resolved.result, queries)
    for item in resolved.answered:
        if item.latency is None:
            text = f"no answer ({locked_query(item).code}): {item.resolution.reason}"
            lines += fact(item.tracked.name, text, "bad" if item.tracked.required else "warn")
    reference = resolved.policy.reference
    commit = resolved.snapshot.commit or "none: uncommitted files of the work tree"
    lines += fact("plan", f"{resolved.document.path} (sha256 {resolved.document.sha256[:_SHORT]})")
    lines += fact("commit", commit)
    digest = reference.digest.removeprefix("sha256:")[:_SHORT]
    return lines + fact("policy", f"{reference.name} (sha256 {digest})")


def _query_table(queries: Sequence[LockedQuery], result: CompositionResult) -> list[Line]:
    titles = ["query", "times", "latency", "interval", "total", "share", "method", "source"]
    rows = [
        [
            query.name,
            f"{query.multiplicity:,}",
            _latency(query.answer),
            _bounds(query.answer),
            _total(query),
            _share(query, result),
            query.code if query.answer is None else query.answer.method,
            _source(query.answer),
        ]
        for query in queries
    ]
    return table(titles, rows, right=("times", "latency", "interval", "total", "share"))


def _latency(answer: LockedAnswer | None) -> str:
    return _NO_ANSWER if answer is None else quantity(answer.value, answer.unit)


def _bounds(answer: LockedAnswer | None) -> str:
    if answer is None or answer.uncertainty is None:
        return _NO_ANSWER
    bounds = answer.uncertainty
    return interval(bounds.lower, bounds.upper, answer.value, answer.unit)


def _total(query: LockedQuery) -> str:
    if query.answer is None:
        return _NO_ANSWER
    return quantity(query.multiplicity * query.answer.value, query.answer.unit)


def _share(query: LockedQuery, result: CompositionResult) -> str:
    if result.kind != "sum" or query.answer is None or not result.value:
        return _NO_ANSWER
    return percent(query.multiplicity * query.answer.value / result.value)


def _source(answer: LockedAnswer | None) -> str:
    if answer is None:
        return _NO_ANSWER
    if answer.calibration is not None:
        return answer.calibration[:_SHORT]
    sources = ", ".join(answer.source_revisions)
    return sources or answer.provider


def _result_lines(result: CompositionResult, queries: Sequence[LockedQuery]) -> list[Line]:
    name = "total" if result.kind == "sum" else "makespan"
    if result.value is None:
        lines = [Line(f"no {name}   not every required query has an answer", "bad")]
    else:
        lines = [Line(f"{quantity(result.value, result.unit)}   {name}", "good")]
        lines += fact("interval", _result_interval(result, queries))
        lines += fact("evidence", f"{result.evidence}, the weakest of its parts")
    if result.left_out:
        text = f"{', '.join(result.left_out)}: without an answer, so the {name} is too low"
        lines += fact("left out", text, "warn")
    return lines


def _result_interval(result: CompositionResult, queries: Sequence[LockedQuery]) -> str:
    bounds = result.uncertainty
    if result.uncertainty_code == "spread-unknown":
        answers = [(query.name, query.answer) for query in queries]
        names = [name for name, answer in answers if answer and answer.uncertainty is None]
        return f"unknown, as is the spread of {', '.join(names)}"
    if bounds is None or result.value is None:
        assert result.uncertainty_code is not None
        return _NO_INTERVAL[result.uncertainty_code]
    text = interval(bounds.lower, bounds.upper, result.value, result.unit)
    return f"{text} ({bounds.kind}, {percent(bounds.level)}, {bounds.rule})"


def lock_lines(lock: PlanLock, *, path: str, written: bool) -> list[Line]:
    """Return what was locked, and where it stands."""
    lines = [Line(f"{path}   {'written' if written else 'unchanged'}", "good")]
    lines += fact("plan", f"{lock.plan.name}, {counted(len(lock.queries), 'answer')}")
    value = lock.result.value
    if value is not None:
        lines += fact("result", f"{quantity(value, lock.result.unit)} ({lock.result.kind})")
    lines += fact("commit", lock.commit)
    lines += fact("digest", lock.digest)
    return lines + fact("next", f"perfdb plan verify {path}")


def verification_lines(found: Verification) -> list[Line]:
    """Return a verification: its verdict, then what is not equal."""
    verdict = found.verdict
    counts = {name: sum(q.verdict == name for q in found.queries) for name in _VERDICTS}
    lines = [Line(f"{found.plan}   {verdict}", _VERDICTS[verdict])]
    told = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
    lines += fact("queries", told or "none")
    for difference in found.fingerprint:
        lines += fact("fingerprint", _difference_text(difference), "bad")
    lines += _verified_result(found)
    lines += fact("largest", f"{found.largest_difference:.1e} relative, of calculated values")
    lines += fact("commit", found.commit)
    lines += fact("versions", _versions_text(found))
    shown = [query for query in found.queries if query.verdict != "equal"]
    if len(found.queries) <= _MOST_EQUAL:
        shown = list(found.queries)
    if shown:
        lines += [Line(), *_verdict_table(shown)]
    return lines + [line for query in shown for line in _verdict_lines(query)]


def _verdict_table(queries: Sequence[QueryVerdict]) -> list[Line]:
    titles = ["query", "verdict", "locked", "by"]
    rows = [[query.name, query.verdict, *_outcome(query.locked)] for query in queries]
    return table(titles, rows, right=("locked",))


def _verdict_lines(query: QueryVerdict) -> list[Line]:
    if query.verdict == "equal":
        return []
    lines = [Line(f"{query.name}   {query.verdict}", _VERDICTS[query.verdict])]
    if query.reason is not None:
        return lines + wrapped(f"{query.code}: {query.reason}", head="  ")
    return lines + _difference_lines(query.differences)


def _difference_lines(differences: Sequence[Difference]) -> list[Line]:
    lines = []
    for difference in differences[:_MOST_DIFFERENCES]:
        lines += wrapped(_difference_text(difference), head="  ")
    if len(differences) > _MOST_DIFFERENCES:
        lines += wrapped(f"and {len(differences) - _MOST_DIFFERENCES} more", head="  ")
    return lines


def _difference_text(difference: Difference) -> str:
    old, new = _plain(difference.locked), _plain(difference.current)
    relative = "" if difference.relative is None else f" (relative {difference.relative:.1e})"
    return f"{difference.field}: {old} locked, {new} answered{relative}"


def _plain(value: JsonValue) -> str:
    if value is None:
        return "none"
    if isinstance(value, list):
        return ", ".join(_plain(item) for item in value[:2]) + (", ..." if len(value) > 2 else "")
    return repr(value) if isinstance(value, float) else str(value)


def _verified_result(found: Verification) -> list[Line]:
    if found.result is None:
        return fact("result", "not composed: an answer is not available", "warn")
    if found.result:
        lines = [Line("  result   differs", "bad")]
        return lines + _difference_lines(found.result)
    value = found.locked_result.value
    return fact("result", "none" if value is None else quantity(value, found.locked_result.unit))


def _versions_text(found: Verification) -> str:
    names = ("perfdb", "python", "numpy")
    pairs = [
        (name, getattr(found.locked_versions, name), getattr(found.versions, name))
        for name in names
    ]
    return ", ".join(
        f"{name} {old}" if old == new else f"{name} {old} then, {new} here"
        for name, old, new in pairs
    )


def difference_lines(found: PlanDifference) -> list[Line]:
    """Return what other evidence would change, the largest change first."""
    where = found.commit or "uncommitted files of the work tree"
    count = len(found.changes)
    verdict = "no answer changes" if not count else f"{count} of {found.queries} answers change"
    lines = [Line(f"{found.plan}   {verdict}", "good" if found.is_equal else "warn")]
    lines += fact("locked at", found.locked_commit)
    lines += fact("compared", where)
    lines += fact("result", _result_change(found))
    if count:
        lines += [Line(), *_change_table(found.changes)]
        lines += [line for change in found.changes for line in _change_lines(change)]
    return lines


def _result_change(found: PlanDifference) -> str:
    old, new = found.locked_result, found.current_result
    texts = [
        "none" if one.value is None else f"{quantity(one.value, one.unit)}" for one in (old, new)
    ]
    if not found.result:
        return f"{texts[0]}, unchanged"
    if not old.value or new.value is None:
        return f"{texts[0]} becomes {texts[1]}"
    return f"{texts[0]} becomes {texts[1]} ({_signed(new.value / old.value)})"


def _signed(ratio: float) -> str:
    return f"{(ratio - 1) * 100:+.3g} %"


def _change_table(changes: Sequence[QueryChange]) -> list[Line]:
    titles = ["query", "locked", "by", "becomes", "by", "change", "reason"]
    rows = [
        [
            change.name,
            *_outcome(change.locked),
            *_outcome(change.current),
            _change_size(change),
            ", ".join(change.reasons),
        ]
        for change in changes
    ]
    return table(titles, rows, right=("locked", "becomes", "change"), wrap=True)


def _outcome(query: LockedQuery | None) -> tuple[str, str]:
    if query is None:
        return _NO_ANSWER, "not asked"
    if query.answer is None:
        return _NO_ANSWER, query.code
    return quantity(query.answer.value, query.answer.unit), query.answer.method


def _change_size(change: QueryChange) -> str:
    old = None if change.locked is None else change.locked.answer
    new = None if change.current is None else change.current.answer
    if old is None or new is None or not old.value:
        return _NO_ANSWER
    return _signed(new.value / old.value)


def _change_lines(change: QueryChange) -> Iterator[Line]:
    """Yield both intervals and sources of a change."""
    for label, query in (("locked", change.locked), ("becomes", change.current)):
        if query is None or query.answer is None:
            continue
        answer = query.answer
        parts = [f"{_bounds_text(answer.uncertainty, answer)}, {answer.validity}", _origin(answer)]
        yield from wrapped("; ".join(parts), head=f"  {change.name} {label}: ")


def _bounds_text(bounds: Uncertainty | None, answer: LockedAnswer) -> str:
    if bounds is None:
        return "spread unknown"
    return interval(bounds.lower, bounds.upper, answer.value, answer.unit)


def _origin(answer: LockedAnswer) -> str:
    if answer.calibration is not None:
        return f"calibration {answer.calibration[:_SHORT]}"
    if answer.record_ids:
        first, _, row = answer.record_ids[0].partition("#")
        more = f" and {len(answer.record_ids) - 1} more" if len(answer.record_ids) > 1 else ""
        return f"record {first[:_SHORT]}#{row}{more}"
    return _source(answer)

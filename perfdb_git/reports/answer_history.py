"""The history of an answer as readable text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime

from perfdb_git.model.query import CostQuery
from perfdb_git.reports.quantities import counted
from perfdb_git.reports.review_sections import (
    SHORT_COMMIT,
    answer_text,
    change_text,
    documents_text,
    query_values,
    reasons_text,
    shown,
)
from perfdb_git.reports.screen import Line, Style, fact, wrapped
from perfdb_git.review.documents import DocumentChange
from perfdb_git.review.history import AnswerHistory, HistoryStep
from perfdb_git.review.origins import EvidenceOrigin

_ENDINGS = {
    "root": "history begins here",
    "shallow": "this shallow clone's history ends here",
    "limit": "there may be more: --limit was reached",
}


def history_lines(
    history: AnswerHistory, query: CostQuery, origins: Sequence[EvidenceOrigin] | None
) -> list[Line]:
    """Return where the answer changed, newest first, and who brought what it rests on.

    Parameters
    ----------
    history : AnswerHistory
        The history.
    query : CostQuery
        The question.
    origins : sequence of EvidenceOrigin or None
        Files behind the answer, where asked for.
    """
    style: Style = "good" if history.answer.is_resolved else "bad"
    lines = wrapped(shown(answer_text(history.answer)), style=style)
    lines += fact("question", query_values(query.coordinates()))
    lines += fact("commit", history.head)
    walked = f"{counted(history.commits, 'commit')}, asked at {history.evaluated:,} of them"
    lines += fact("walked", f"{walked}; {_ENDINGS[history.ends]}")
    for step in history.steps:
        lines += [Line(), *_step_lines(step)]
    if not history.steps:
        lines += [Line(), Line("the answer did not change on the way")]
    if origins is not None:
        lines += [Line(), Line("where the evidence came from", "strong")]
        for origin in origins:
            lines += _origin_lines(origin)
        if not origins:
            lines += wrapped("no file of the repository is behind the answer", head="  ")
    return lines


def _step_lines(step: HistoryStep) -> list[Line]:
    merge = " (merge)" if step.is_merge else ""
    head = f"{step.commit[:SHORT_COMMIT]}  {_date(step.committer_time)}  "
    lines = wrapped(f"{shown(step.author)}: {shown(step.summary)}{merge}", head=head)
    if step.before is None:
        lines += fact("first", shown(answer_text(step.after)))
    else:
        lines += fact("before", shown(answer_text(step.before)))
        lines += fact("after", shown(answer_text(step.after)))
        lines += fact("change", f"{change_text(step.log_ratio)} ({', '.join(step.changed)})")
        lines += fact("why", reasons_text(step.reasons))
    return lines + fact("evidence", _documents(step.documents))


def _documents(changes: Sequence[DocumentChange]) -> str:
    counts = Counter((change.kind, change.change) for change in changes)
    texts = [
        f"{documents_text(count, kind)} {verb}" for (kind, verb), count in sorted(counts.items())
    ]
    return ", ".join(texts) or "none changed"


def _origin_lines(origin: EvidenceOrigin) -> list[Line]:
    lines = fact(origin.kind.replace("-", " "), shown(origin.path))
    if origin.session is not None:
        rows = counted(len(origin.record_ids), "record")
        lines += fact("", f"{rows} of session {shown(origin.session)}")
    if origin.commit is None or origin.committer_time is None:
        return lines + fact("", "brought before this shallow clone's history begins")
    who = f"{origin.commit[:SHORT_COMMIT]}  {_date(origin.committer_time)}  "
    return lines + fact("", f"{who}{shown(origin.author or '')}: {shown(origin.summary or '')}")


def _date(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).date().isoformat()

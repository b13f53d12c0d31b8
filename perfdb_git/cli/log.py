"""``perfdb log``: the history of one answer, or of measured values."""

from __future__ import annotations

from pathlib import Path

import click

from perfdb_git.cli.console import Console
from perfdb_git.cli.log_series import SeriesOptions, log_series, series_options
from perfdb_git.cli.options import (
    json_option,
    repository_option,
    snapshot_messages,
)
from perfdb_git.cli.questions import Question, question_options
from perfdb_git.database import (
    DEFAULT_POLICY,
    DEFAULT_REVISION,
    PerformanceDatabase,
    PolicyInForce,
)
from perfdb_git.errors import UsageError
from perfdb_git.model.policy import Policy
from perfdb_git.model.query import CostQuery
from perfdb_git.model.result import Message
from perfdb_git.model.values import JsonValue
from perfdb_git.reports.answer_history import history_lines
from perfdb_git.reports.envelope import encoded
from perfdb_git.resolution.admission import Admission
from perfdb_git.review.history import AnswerHistorian, AnswerHistory
from perfdb_git.review.origins import EvidenceOrigin, answer_origins
from perfdb_git.review.tracked import TrackedQuery

_EXTERNAL = "external-policy"
"""Name that a policy from outside is asked for under; its own is none of a snapshot's."""

_HELP = """Show at which commits the answer to a question changed, and through what.

The question is asked as with `perfdb resolve`. History is followed along first parents, so a
merge counts as one step; only commits at which the evidence behind the answer differs are asked.
Each commit answers with its own policy and vocabulary.

--sources adds, for every file behind the answer, the commit and the author that brought it, in a
merged branch too. In a shallow clone history ends where the clone's does.

With --series the pairs select records, as in `perfdb compare`, and the history is that of their
measured values: in each context the sessions are put in order, by date where all have one, else by
the commit that brought them, and lasting changes of level are shown, up or down. What --across
names may change along a series.

The exit status is 4 where there is no answer and never was, or no record; 1 only with --exit-code.

\b
Examples:
  perfdb log operation=gemm device=a100 dtype=fp16 m=128 n=10240 k=8192
  perfdb log operation=gemm device=a100 dtype=fp16 m=128 n=10240 k=8192 --sources
  perfdb log --query question.yaml --at v1.0 --limit 3 --json
  perfdb log --series operation=gemm device=a100 --across implementation_revision --exit-code
"""


@click.command("log", help=_HELP, short_help="Show when an answer changed, and through what.")
@question_options
@series_options
@repository_option
@click.option("--at", "revision", metavar="REV", help="Begin at this commit; by default HEAD.")
@click.option("--limit", type=click.IntRange(min=1), help="Show at most this many changes.")
@click.option("--sources", is_flag=True, help="Add who brought each file behind the answer.")
@json_option
@click.pass_obj
def log(
    console: Console,
    /,
    question: Question,
    series: SeriesOptions | None,
    repository: Path,
    revision: str | None,
    limit: int | None,
    sources: bool,
) -> int:
    """Walk the history and render it."""
    if series is not None:
        if sources:
            raise UsageError(
                "--sources is about an answer",
                code="conflicting-options",
                remedy="leave it out: a series names its files and commits",
            )
        return log_series(
            console, question, series, repository=repository, revision=revision, limit=limit
        )
    return _log_answer(console, question, repository, revision, limit, sources=sources)


def _log_answer(
    console: Console,
    question: Question,
    repository: Path,
    revision: str | None,
    limit: int | None,
    *,
    sources: bool,
) -> int:
    with console.progress("indexing") as indexing, console.progress("walking") as walking:
        database = PerformanceDatabase.open(repository, progress=indexing)
        snapshot = database.at(revision or DEFAULT_REVISION)
        query, policy = question.query(snapshot), question.policy(snapshot)
        tracked = TrackedQuery(name="question", origin="plan", query=query)
        external = _external(policy)
        historian = AnswerHistorian(
            database,
            tracked,
            policy=_EXTERNAL if external else question.policy_name or DEFAULT_POLICY,
            external=external,
            ages_matter=_ages_matter(policy, query),
            progress=walking,
        )
        assert snapshot.commit is not None
        history = historian.history(snapshot.commit, limit=limit)
        origins: tuple[EvidenceOrigin, ...] | None = None
        if sources:
            device = query.deployment.device
            origins = answer_origins(
                database.store, snapshot, history.answer, policy.policy, device
            )
    never = not history.answer.is_resolved and not history.steps
    return console.answer(
        data=_data(history, query, origins),
        lines=() if console.json else history_lines(history, query, origins),
        status="no-evidence" if never else "ok",
        messages=(*snapshot_messages(snapshot), *_ending(history)),
    )


def _external(policy: PolicyInForce) -> dict[str, Policy]:
    """Return a policy from outside, which judges every commit alike."""
    if policy.reference.origin == "snapshot":
        return {}
    return {_EXTERNAL: policy.policy}


def _ages_matter(policy: PolicyInForce, query: CostQuery) -> bool:
    limits = query.evidence_policy
    admission = Admission(policy=policy.policy, limits=limits, reference_time=None)
    return admission.freshness_limited


def _data(
    history: AnswerHistory, query: CostQuery, origins: tuple[EvidenceOrigin, ...] | None
) -> dict[str, JsonValue]:
    data = {"query": dict(query.coordinates()), **encoded(history)}
    if origins is not None:
        data["sources"] = [encoded(origin) for origin in origins]
    return data


def _ending(history: AnswerHistory) -> tuple[Message, ...]:
    if history.ends != "shallow":
        return ()
    text = f"this clone is shallow: its history ends after {history.commits} commits"
    return (Message(level="note", code="shallow-history", text=text),)

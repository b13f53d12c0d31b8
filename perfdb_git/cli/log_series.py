"""``perfdb log --series``: where measured values changed over time."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar, get_args

import click

from perfdb_git.analysis.change_points import ALPHA, THRESHOLD
from perfdb_git.cli.console import Console
from perfdb_git.cli.judging import parse_directions, parse_share
from perfdb_git.cli.options import snapshot_messages
from perfdb_git.cli.questions import Question
from perfdb_git.comparison.selections import parse_selection
from perfdb_git.comparison.series import SeriesRequest, follow_series
from perfdb_git.comparison.series_points import OrderChoice
from perfdb_git.comparison.series_results import SeriesReport
from perfdb_git.database import DEFAULT_REVISION, PerformanceDatabase
from perfdb_git.errors import UsageError
from perfdb_git.model.result import Message
from perfdb_git.reports.envelope import Status, encoded
from perfdb_git.reports.series import series_lines

R = TypeVar("R")

_SMALLEST_ALPHA = 0.001
"""Well above the smallest p-value that the permutations can give."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesOptions:
    """What was typed beside ``--series``; a field that was not given has its default."""

    across: tuple[str, ...]
    metrics: tuple[str, ...]
    order: OrderChoice
    threshold: str
    alpha: float
    directions: tuple[str, ...]
    exit_code: bool


def series_options(command: Callable[..., R]) -> Callable[..., R]:
    """Add ``--series`` and the options about it, passed on as ``series``, None without it."""

    @click.option(
        "--series",
        "is_series",
        is_flag=True,
        help="Follow the measured values of these records instead.",
    )
    @click.option("--across", multiple=True, metavar="DIM", help="Let a series change in this.")
    @click.option("--metric", "metrics", multiple=True, metavar="NAME", help="Follow only this.")
    @click.option(
        "--by",
        "order",
        type=click.Choice(get_args(OrderChoice)),
        default="auto",
        show_default=True,
        help="Order of a series; auto is by date where every session has one.",
    )
    @click.option(
        "--threshold",
        default=f"{THRESHOLD:.0%}",
        show_default=True,
        metavar="SHARE",
        help="Smallest change of a series that matters.",
    )
    @click.option(
        "--alpha",
        type=click.FloatRange(_SMALLEST_ALPHA, 0.5),
        default=ALPHA,
        show_default=True,
        help="Probability of an alarm in a series without a change.",
    )
    @click.option(
        "--direction",
        "directions",
        multiple=True,
        metavar="METRIC=lower|higher",
        help="State which way a metric of a series is better, where its name does not.",
    )
    @click.option("--exit-code", is_flag=True, help="End in status 1 if a series got worse.")
    @functools.wraps(command)
    def with_series(*arguments: object, is_series: bool, **given: Any) -> R:
        stated = {field.name: given.pop(field.name) for field in fields(SeriesOptions)}
        if not is_series:
            _refuse_alone(stated)
        given["series"] = SeriesOptions(**stated) if is_series else None
        return command(*arguments, **given)

    return with_series


def _refuse_alone(stated: dict[str, Any]) -> None:
    context = click.get_current_context()
    given = [name for name in stated if _is_given(context, name)]
    if given:
        raise UsageError(
            f"{_option(context, given[0])} is about series",
            code="conflicting-options",
            remedy="add --series, or leave it out",
        )


def _is_given(context: click.Context, name: str) -> bool:
    return context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE


def _option(context: click.Context, name: str) -> str:
    return next(item.opts[0] for item in context.command.params if item.name == name)


def log_series(
    console: Console,
    question: Question,
    options: SeriesOptions,
    *,
    repository: Path,
    revision: str | None,
    limit: int | None,
) -> int:
    """Build the request, follow the series, and render."""
    _require_selection(question)
    threshold = parse_share("--threshold", options.threshold)
    with console.progress("indexing") as indexing, console.progress("reading") as reading:
        database = PerformanceDatabase.open(repository, progress=indexing)
        snapshot = database.at(revision or DEFAULT_REVISION)
        request = SeriesRequest(
            selection=parse_selection(question.pairs, snapshot.vocabulary),
            texts=question.pairs,
            across=options.across,
            metrics=options.metrics,
            order=options.order,
            alpha=options.alpha,
            threshold=threshold,
            directions=parse_directions(options.directions),
        )
        report = follow_series(database.store, snapshot, request, reading)
    return console.answer(
        data=encoded(report) if console.json else {},
        lines=() if console.json else series_lines(report, limit=limit),
        status=_status(report, options),
        messages=(*snapshot_messages(snapshot), *_messages(report)),
    )


def _require_selection(question: Question) -> None:
    policies = question.policy_name or question.policy_file or question.accept_throttled
    if question.query_file is not None or policies or question.limits:
        raise UsageError(
            "a series is of records, and no answer to a question: it has no query document, "
            "policy or limits",
            code="conflicting-options",
            remedy="select records by KEY=VALUE, session=NAME and kind=KIND",
        )


def _status(report: SeriesReport, options: SeriesOptions) -> Status:
    if not report.series:
        return "no-evidence"
    return "findings" if options.exit_code and report.verdicts["worse"] else "ok"


def _messages(report: SeriesReport) -> list[Message]:
    found = []
    if not report.series:
        text = "no record of this commit fits the selection"
        found.append(Message(level="warning", code="nothing-selected", text=text))
    if not report.complete_history:
        text = "this clone is shallow: the commits that brought some sessions are not in it"
        found.append(Message(level="note", code="shallow-history", text=text))
    return found

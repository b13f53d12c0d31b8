"""One question on the command line: its dimensions, its limits and the policy it is asked under."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar, get_args

import click

from perfdb_git.database import (
    DEFAULT_POLICY,
    DatabaseSnapshot,
    PolicyInForce,
    policy_from_file,
)
from perfdb_git.errors import UsageError
from perfdb_git.model.estimate import Method
from perfdb_git.model.query import CostQuery
from perfdb_git.operations.queries import parse_pairs

R = TypeVar("R")

_existing = click.Path(exists=True, dir_okay=False, path_type=Path)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What was typed, before any snapshot is opened.

    ``limits`` has the fields of `EvidencePolicy` that were given.
    """

    pairs: tuple[str, ...]
    query_file: Path | None
    policy_name: str | None
    policy_file: Path | None
    accept_throttled: bool
    limits: dict[str, Any]

    def query(self, snapshot: DatabaseSnapshot) -> CostQuery:
        """Build the query in the terms of a snapshot.

        Raises
        ------
        UsageError, InvalidInputError
            For a question that cannot be asked, or a wrong document.
        """
        if self.query_file is not None:
            query = snapshot.query_from_file(self.query_file)
        else:
            query = snapshot.query(parse_pairs(self.pairs, snapshot.vocabulary))
        # Limits of the command line take the place of those that a query document states.
        return replace(query, evidence_policy=replace(query.evidence_policy, **self.limits))

    def policy(self, snapshot: DatabaseSnapshot) -> PolicyInForce:
        """Return the policy that the question is asked under."""
        if self.policy_file is None:
            policy = snapshot.policy(self.policy_name or DEFAULT_POLICY)
        else:
            policy = policy_from_file(self.policy_file)
        return policy.accepting_throttled() if self.accept_throttled else policy


def question_options(command: Callable[..., R]) -> Callable[..., R]:
    """Add ``KEY=VALUE...`` and the options about limits and policy, passed on as ``question``."""

    @click.argument("pairs", nargs=-1, metavar="KEY=VALUE...")
    @click.option(
        "--query",
        "query_file",
        type=_existing,
        metavar="FILE",
        help="Read the question from a query document, JSON or YAML.",
    )
    @click.option(
        "--policy", "policy_name", metavar="NAME", help="Resolver policy of the snapshot."
    )
    @click.option(
        "--policy-file",
        type=_existing,
        metavar="FILE",
        help="Resolver policy from outside the snapshot; the answer is marked.",
    )
    @click.option(
        "--accept-throttled",
        is_flag=True,
        help="Admit records taken under a lowered clock; the answer is marked.",
    )
    @_limit_options
    @functools.wraps(command)
    def with_question(*arguments: object, **given: Any) -> R:
        names = ("pairs", "query_file", "policy_name", "policy_file", "accept_throttled")
        stated = {name: given.pop(name) for name in names}
        question = Question(**stated, limits=_limits(given))
        if question.query_file is not None and question.pairs:
            raise UsageError("--query and KEY=VALUE exclude each other", code="conflicting-options")
        if question.policy_file is not None and question.policy_name is not None:
            raise UsageError(
                "--policy and --policy-file exclude each other", code="conflicting-options"
            )
        return command(*arguments, question=question, **given)

    return with_question


def _limit_options(command: Callable[..., R]) -> Callable[..., R]:
    options = (
        click.option(
            "--provider",
            "providers",
            multiple=True,
            metavar="NAME",
            help="Ask only this one, such as recorded.",
        ),
        click.option(
            "--method",
            "methods",
            multiple=True,
            type=click.Choice(get_args(Method)),
            help="Accept only this kind of answer; may be repeated, like --provider.",
        ),
        click.option(
            "--max-age-days", type=click.FloatRange(min=0), help="Oldest evidence to accept."
        ),
        click.option(
            "--max-relative-uncertainty",
            type=click.FloatRange(min=0),
            help="Greatest half width of the interval, relative to the value.",
        ),
        click.option(
            "--max-extrapolation-octaves",
            type=click.FloatRange(min=0),
            help="Greatest distance from the evidence.",
        ),
        click.option("--no-fallback", is_flag=True, help="Accept no declared fallback bound."),
    )
    for option in reversed(options):
        command = option(command)
    return command


def _limits(given: dict[str, Any]) -> dict[str, Any]:
    """Take the limits out of a command's parameters; those not given are left out."""
    bounds = ("max_age_days", "max_relative_uncertainty", "max_extrapolation_octaves")
    values = {name: given.pop(name) for name in bounds}
    limits = {name: bound for name, bound in values.items() if bound is not None}
    for name in ("providers", "methods"):
        stated = given.pop(name)
        if stated:
            limits[name] = tuple(dict.fromkeys(stated))
    if given.pop("no_fallback"):
        limits["fallback_allowed"] = False
    return limits

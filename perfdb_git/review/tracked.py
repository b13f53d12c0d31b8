"""Queries whose answers a review watches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from perfdb_git.model.query import CostQuery

Origin: TypeAlias = Literal["plan", "sample"]


class PlanQuery(Protocol):
    """What a plan says of one of its queries."""

    @property
    def plan(self) -> str:
        """Name of the plan."""

    @property
    def name(self) -> str:
        """Name of the query within it."""

    @property
    def query(self) -> CostQuery:
        """The question."""

    @property
    def policy(self) -> str | None:
        """Policy that the plan asks for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackedQuery:
    """One query to answer before and after a change.

    Attributes
    ----------
    name : str
        What people know it by: a plan and its query, or the place of a sampled point.
    origin : str
        ``plan`` for queries that plans ask, ``sample`` for points taken from a changed series.
    query : CostQuery
        The question, in the terms of the vocabulary after the change.
    policy : str or None
        Policy that it is asked under; ``None`` is the one the review was asked for.
    """

    name: str
    origin: Origin
    query: CostQuery
    policy: str | None = None

    @classmethod
    def from_plan(cls, item: PlanQuery) -> TrackedQuery:
        """Return the query of a plan, named by both."""
        name = f"{item.plan}/{item.name}"
        return cls(name=name, origin="plan", query=item.query, policy=item.policy)

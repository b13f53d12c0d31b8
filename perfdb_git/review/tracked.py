"""Queries whose answers a review watches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from perfdb_git.model.query import CostQuery

Origin: TypeAlias = Literal["plan", "sample"]


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

"""Plans: named queries with multiplicities, and how their answers become one number."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from perfdb_git.model.values import Scalar

PLAN_SCHEMA = "perfdb/plan/v1"

CompositionKind: TypeAlias = Literal["sum", "pipeline"]

MAX_QUERIES = 10_000
"""Queries of one plan; schema and code hold the same limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanQuery:
    """One question of a plan, by flat dimension name in canonical terms.

    ``multiplicity`` is how often the plan does this work. A ``required`` query without an answer
    stops the plan; one that is not required is left out of a sum, which the sum then says.
    """

    name: str
    query: Mapping[str, Scalar]
    multiplicity: int = 1
    required: bool = True
    notes: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Composition:
    """How the answers become one number.

    ``sum``: multiplicity times latency, summed over the queries. ``pipeline``: the makespan of a
    pipeline on a timing profile, both of the same snapshot; ``jobs`` replaces the pipeline's own
    number of jobs.
    """

    kind: CompositionKind
    pipeline: str | None = None
    profile: str | None = None
    jobs: int | None = None

    def __post_init__(self) -> None:
        named = {"pipeline": self.pipeline, "profile": self.profile}
        for name, value in named.items():
            if (value is not None) != (self.kind == "pipeline"):
                raise ValueError(f"{name} belongs to the kind 'pipeline', which needs it")
        if self.jobs is not None and self.kind != "pipeline":
            raise ValueError("jobs belongs to the kind 'pipeline'")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Named queries, unique by name, and their composition.

    ``policy`` is the resolver policy of the snapshot that answers; ``None`` takes the default one.
    """

    schema: str
    name: str
    description: str
    policy: str | None = None
    queries: tuple[PlanQuery, ...]
    composition: Composition

    def __post_init__(self) -> None:
        if len(self.queries) > MAX_QUERIES:
            raise ValueError(f"{len(self.queries)} queries; a plan may have {MAX_QUERIES}")
        if not self.queries and self.composition.kind == "sum":
            raise ValueError("a sum needs queries")
        seen: set[str] = set()
        for query in self.queries:
            if query.name in seen:
                raise ValueError(f"two queries are called {query.name!r}")
            seen.add(query.name)

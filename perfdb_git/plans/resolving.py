"""A plan resolved at one snapshot: every answer, and the composed number."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from perfdb_git.database import DEFAULT_POLICY, DatabaseSnapshot, PolicyInForce
from perfdb_git.model.plan import Plan
from perfdb_git.model.plan_lock import CompositionResult
from perfdb_git.model.query import CostQuery
from perfdb_git.model.result import Resolution
from perfdb_git.operations.queries import query_digest
from perfdb_git.plans.composing import AnsweredQuery, compose_pipeline, compose_sum
from perfdb_git.plans.tracked import STAGE_PREFIX, Question, TrackedQuery, plan_questions
from perfdb_git.resolution.stage_answers import answer_stages
from perfdb_git.storage.documents import StoredDocument
from perfdb_git.storage.plan_documents import PlanDocuments

if TYPE_CHECKING:
    from perfdb_git.simulation.simulate import Simulation

Progress: TypeAlias = Callable[[int, int, str], None]
"""Called with the queries done, their number, and the name of the last one."""


class PlanResolver:
    """Answers the queries of one plan at one snapshot; equal queries are resolved once.

    Parameters
    ----------
    snapshot : DatabaseSnapshot
        The evidence.
    plan : Plan
        What to ask.
    document : str
        Where the plan stands, for messages.
    policy : PolicyInForce or None
        Another policy than the plan's.

    Raises
    ------
    InvalidInputError
        'unknown-policy' where the snapshot lacks the policy that the plan names.
    """

    def __init__(
        self,
        snapshot: DatabaseSnapshot,
        plan: Plan,
        *,
        document: str,
        policy: PolicyInForce | None = None,
    ) -> None:
        self.snapshot = snapshot
        self.plan = plan
        self.policy: PolicyInForce = policy or snapshot.policy(plan.policy or DEFAULT_POLICY)
        self._document = document
        self._resolved: dict[str, Resolution] = {}

    def questions(self) -> list[Question]:
        """Return what the plan asks, its pipeline's stages included; see `plan_questions`."""
        return plan_questions(self.snapshot, self.plan, document=self._document)

    def answer(self, tracked: TrackedQuery) -> AnsweredQuery:
        """Resolve one query.

        Raises
        ------
        UsageError, InvalidInputError, RepositoryUnavailableError
            What `DatabaseSnapshot.resolve` raises.
        """
        return AnsweredQuery(tracked, self._resolve(tracked.query))

    def compose(self, answered: Sequence[AnsweredQuery]) -> CompositionResult:
        """Return the composed number of all answers.

        Raises
        ------
        UsageError, InvalidInputError
            Where a pipeline cannot be simulated.
        """
        if self.plan.composition.kind == "sum":
            return compose_sum(answered)
        stages = [item for item in answered if item.tracked.name.startswith(STAGE_PREFIX)]
        if any(item.latency is None for item in stages):
            return compose_pipeline(None)
        return compose_pipeline(self._simulate())

    def _simulate(self) -> Simulation:
        # Late: a sum needs none of it.
        from perfdb_git.simulation.simulate import simulate, with_jobs

        composition = self.plan.composition
        assert composition.pipeline is not None and composition.profile is not None
        profile = self.snapshot.timing_profile(composition.profile)
        pipeline = with_jobs(self.snapshot.pipeline(composition.pipeline), count=composition.jobs)
        answers = answer_stages(pipeline, self.snapshot.vocabulary, self._resolve)
        return simulate(profile, pipeline, answers=answers)

    def _resolve(self, query: CostQuery) -> Resolution:
        digest = query_digest(query)
        if digest not in self._resolved:
            self._resolved[digest] = self.snapshot.resolve(query, policy=self.policy)
        return self._resolved[digest]


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedPlan:
    """A plan of a snapshot with every outcome."""

    snapshot: DatabaseSnapshot
    document: StoredDocument[Plan]
    policy: PolicyInForce
    answered: tuple[AnsweredQuery, ...]
    result: CompositionResult

    @property
    def missing(self) -> tuple[AnsweredQuery, ...]:
        """Queries without an answer that the plan requires."""
        return tuple(
            item for item in self.answered if item.latency is None and item.tracked.required
        )


def resolve_plan(
    snapshot: DatabaseSnapshot,
    name: str,
    *,
    policy: PolicyInForce | None = None,
    progress: Progress | None = None,
) -> ResolvedPlan:
    """Resolve a plan of a snapshot.

    Parameters
    ----------
    snapshot : DatabaseSnapshot
        The evidence, with the plan in it.
    name : str
        Name of the plan, or its path in the repository.
    policy : PolicyInForce or None
        Another policy than the plan's.
    progress : callable or None
        See `Progress`.

    Raises
    ------
    UsageError, InvalidInputError, RepositoryUnavailableError
        For a plan that is not there or wrong, wrong evidence, or evidence that is not here.
    """
    document = PlanDocuments(snapshot.evidence).plan(name)
    return resolve_document(snapshot, document, policy=policy, progress=progress)


def resolve_document(
    snapshot: DatabaseSnapshot,
    document: StoredDocument[Plan],
    *,
    policy: PolicyInForce | None = None,
    progress: Progress | None = None,
) -> ResolvedPlan:
    """Resolve a plan that need not stand in the snapshot; else as `resolve_plan`."""
    resolver = PlanResolver(snapshot, document.value, document=document.path, policy=policy)
    tracked = [question.track(snapshot.vocabulary) for question in resolver.questions()]
    answered = []
    for done, query in enumerate(tracked, start=1):
        answered.append(resolver.answer(query))
        if progress is not None:
            progress(done, len(tracked), query.name)
    return ResolvedPlan(
        snapshot=snapshot,
        document=document,
        policy=resolver.policy,
        answered=tuple(answered),
        result=resolver.compose(answered),
    )

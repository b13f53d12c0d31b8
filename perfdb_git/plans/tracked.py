"""The queries that plans ask: what a reviewer wants to see change, and what a lock freezes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from perfdb_git.database import DatabaseSnapshot
from perfdb_git.errors import InvalidInputError
from perfdb_git.formats.json_value import pointer_of
from perfdb_git.model.plan import Plan
from perfdb_git.model.query import CostQuery
from perfdb_git.model.values import Scalar
from perfdb_git.model.vocabulary import Vocabulary
from perfdb_git.operations.queries import build_query
from perfdb_git.operations.stage_queries import query_faults
from perfdb_git.storage.plan_documents import PlanDocuments

STAGE_PREFIX = "stage:"
"""Begins the name of a query that a pipeline's stage asks; no name in a plan has a colon."""

BAD_PLAN_QUERY = "bad-plan-query"
BAD_STAGE_QUERY = "bad-stage-query"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackedQuery:
    """One query of a plan.

    ``policy`` is the policy that the plan asks for, ``None`` for the default one. ``multiplicity``
    of a stage's query is the number of jobs. ``required`` is false where the plan may lack the
    answer.
    """

    plan: str
    name: str
    query: CostQuery
    multiplicity: int
    required: bool
    policy: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A query as a plan or a stage states it, not yet judged by a vocabulary.

    ``document`` and ``pointer`` say where it stands.
    """

    plan: str
    name: str
    values: Mapping[str, Scalar]
    multiplicity: int
    required: bool
    policy: str | None
    document: str
    pointer: tuple[str | int, ...]

    def track(self, vocabulary: Vocabulary) -> TrackedQuery:
        """Return the query in its canonical form.

        Raises
        ------
        InvalidInputError
            'bad-plan-query' or 'bad-stage-query' where it cannot be asked.
        """
        of_stage = self.name.startswith(STAGE_PREFIX)
        for fault in query_faults(self.values, vocabulary):
            place = self.pointer if fault.name is None else (*self.pointer, fault.name)
            raise InvalidInputError(
                f"the query {self.name!r} cannot be asked: {fault.message}",
                code=BAD_STAGE_QUERY if of_stage else BAD_PLAN_QUERY,
                document=self.document,
                pointer=pointer_of(place),
            )
        return TrackedQuery(
            plan=self.plan,
            name=self.name,
            query=build_query(self.values, vocabulary),
            multiplicity=self.multiplicity,
            required=self.required,
            policy=self.policy,
        )


def plan_questions(snapshot: DatabaseSnapshot, plan: Plan, *, document: str) -> list[Question]:
    """Return what a plan asks: its own queries, then those of its pipeline's stages.

    Parameters
    ----------
    snapshot : DatabaseSnapshot
        Where the pipeline stands.
    plan : Plan
        The plan.
    document : str
        Its path, for messages.

    Raises
    ------
    InvalidInputError
        'unknown-pipeline', or what is wrong with the pipeline.
    """
    questions = [
        Question(
            plan=plan.name,
            name=query.name,
            values=query.query,
            multiplicity=query.multiplicity,
            required=query.required,
            policy=plan.policy,
            document=document,
            pointer=("queries", place, "query"),
        )
        for place, query in enumerate(plan.queries)
    ]
    return questions + _stage_questions(snapshot, plan)


def _stage_questions(snapshot: DatabaseSnapshot, plan: Plan) -> list[Question]:
    composition = plan.composition
    if composition.pipeline is None:
        return []
    pipeline = snapshot.pipeline(composition.pipeline)
    jobs = pipeline.value.jobs.number if composition.jobs is None else composition.jobs
    return [
        Question(
            plan=plan.name,
            name=f"{STAGE_PREFIX}{stage.name}",
            values=stage.query,
            multiplicity=jobs,
            required=True,
            policy=plan.policy,
            document=pipeline.document,
            pointer=("stages", place, "query"),
        )
        for place, stage in enumerate(pipeline.value.stages)
        if stage.query is not None
    ]


def tracked_queries(snapshot: DatabaseSnapshot, name: str) -> tuple[TrackedQuery, ...]:
    """Return every query of one plan of a snapshot, in the plan's order.

    Raises
    ------
    InvalidInputError
        Where the plan, its pipeline or one of its queries is wrong; `perfdb check` names them all.
    """
    document = PlanDocuments(snapshot.evidence).plan(name)
    questions = plan_questions(snapshot, document.value, document=document.path)
    return tuple(question.track(snapshot.vocabulary) for question in questions)


def plan_names(snapshot: DatabaseSnapshot) -> tuple[str, ...]:
    """Return the names of a snapshot's plans, sorted."""
    return tuple(PlanDocuments(snapshot.evidence).plans())

"""The evidence at one commit, ready to answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfdb_git.database.policies import DEFAULT_POLICY, PolicyInForce, read_document
from perfdb_git.formats.schemas import SchemaStore
from perfdb_git.model.exclusion import EVIDENCE_EXCLUDED, Exclusion
from perfdb_git.model.policy import Policy
from perfdb_git.model.query import CostQuery, EvidencePolicy
from perfdb_git.model.result import PolicyReference, Resolution, SnapshotReference
from perfdb_git.model.values import Scalar
from perfdb_git.model.vocabulary import Vocabulary
from perfdb_git.operations.queries import (
    build_query,
    query_digest,
    query_from_document,
)
from perfdb_git.resolution.cache_identity import cache_key
from perfdb_git.resolution.composition import ResolverParts, compose_resolver
from perfdb_git.resolution.excluded_evidence import exclusion_digest
from perfdb_git.resolution.resolver import CostResolver
from perfdb_git.storage.git import ResolvedRevision
from perfdb_git.storage.index import IndexRebuiltError
from perfdb_git.storage.snapshot import EvidenceSnapshot
from perfdb_git.storage.validation_documents import SnapshotValidations

if TYPE_CHECKING:
    # Imported where they are called: a resolution needs none of it.
    from perfdb_git.model.pipeline import Arrivals, Pipeline
    from perfdb_git.model.simulation import ResolvedService, TickName
    from perfdb_git.model.timing_profile import TimingProfile
    from perfdb_git.operations.query_columns import Cells
    from perfdb_git.providers.calibration_models import CalibrationModels
    from perfdb_git.resolution.answer_table import AnswerTable
    from perfdb_git.resolution.batch_session import BatchSession
    from perfdb_git.simulation.documents import ReadDocument
    from perfdb_git.simulation.simulate import Simulation
    from perfdb_git.storage.timing_documents import TimingDocuments


class DatabaseSnapshot:
    """The evidence at one commit (or in the work tree), ready to answer."""

    def __init__(
        self,
        evidence: EvidenceSnapshot,
        *,
        revision: ResolvedRevision | None,
        exclusion: Exclusion | None = None,
    ) -> None:
        self.evidence = evidence
        self.revision = revision
        self.exclusion = exclusion or None
        self._resolvers: dict[int, tuple[Policy, CostResolver]] = {}

    def without(self, exclusion: Exclusion) -> DatabaseSnapshot:
        """Return the snapshot with some evidence left aside; every answer of it is marked."""
        return DatabaseSnapshot(self.evidence, revision=self.revision, exclusion=exclusion)

    @property
    def commit(self) -> str | None:
        """Full commit id; ``None`` for uncommitted files."""
        return self.evidence.commit

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """Dimensions and operations in force at this snapshot."""
        return self.evidence.vocabulary()

    def policy(self, name: str = DEFAULT_POLICY) -> PolicyInForce:
        """Return a policy of the snapshot by name."""
        policy, digest = self.evidence.policy(name)
        return PolicyInForce(
            policy=policy,
            reference=PolicyReference(name=policy.name, digest=digest, origin="snapshot"),
        )

    def query(
        self, values: Mapping[str, Scalar | None], *, limits: EvidencePolicy | None = None
    ) -> CostQuery:
        """Build a query from canonical values by flat dimension name."""
        return build_query(values, self.vocabulary, limits=limits)

    def query_from_file(self, path: Path) -> CostQuery:
        """Read a query document (JSON or YAML)."""
        value = read_document(path, path.read_bytes())
        SchemaStore().validate(value, document=str(path), expected_kind="query")
        return query_from_document(value, self.vocabulary, document=str(path))

    def resolve(
        self,
        query: CostQuery | None = None,
        *,
        policy: PolicyInForce | str = DEFAULT_POLICY,
        explain: bool = False,
        **dimensions: Scalar | None,
    ) -> Resolution:
        """Answer one query with its proof.

        Parameters
        ----------
        query : CostQuery or None
            The query; ``None`` builds one from ``dimensions``.
        policy : PolicyInForce or str
            The policy in force, or its name in the snapshot.
        explain : bool
            Whether to collect every provider's own account.
        **dimensions : Scalar or None
            Canonical values by flat dimension name, when no query is given.

        Returns
        -------
        Resolution
            With ``estimate`` ``None`` when nothing admissible was found.

        Raises
        ------
        UsageError, InvalidInputError, RepositoryUnavailableError
            For a wrong request, wrong evidence, or evidence that is not here.
        """
        asked = query if query is not None else self.query(dimensions)
        in_force = policy if isinstance(policy, PolicyInForce) else self.policy(policy)
        try:
            return self._resolve(asked, in_force, explain=explain)
        except IndexRebuiltError:
            # The index said something else than Git and has been made anew; Git's word stands.
            self._resolvers.clear()
            return self._resolve(asked, in_force, explain=explain)

    def batch(
        self,
        *,
        policy: PolicyInForce | str = DEFAULT_POLICY,
        limits: EvidencePolicy | None = None,
        metric: str = "latency",
        alternative_values: bool = False,
    ) -> BatchSession:
        """Return what answers tables of questions, many at once.

        Parameters
        ----------
        policy : PolicyInForce or str
            The policy in force, or its name in the snapshot.
        limits : EvidencePolicy or None
            Limits of every question.
        metric : str
            The metric whose values are wanted.
        alternative_values : bool
            Whether to compute what the sources that lose would answer.
        """
        from perfdb_git.resolution.batch_composition import compose_batch_resolver
        from perfdb_git.resolution.batch_session import BatchSession

        in_force = policy if isinstance(policy, PolicyInForce) else self.policy(policy)
        return BatchSession(
            lambda: compose_batch_resolver(
                self.parts(in_force.policy),
                limits=limits or EvidencePolicy(),
                metric=metric,
                wants_values=alternative_values,
            ),
            self.vocabulary,
            metric,
        )

    def resolve_table(
        self, questions: Mapping[str, Cells | Scalar | None], **options: Any
    ) -> AnswerTable:
        """Answer a table of questions, each as `resolve` would by itself.

        Parameters
        ----------
        questions : Mapping[str, sequence or scalar]
            Cells by dimension, one a question; None and NaN state nothing, a scalar holds for all
            questions. Terms may be typed by their aliases.
        **options
            As for `batch`, which keeps what it has learned for the next table.

        Raises
        ------
        UsageError, InvalidInputError, RepositoryUnavailableError
            As `BatchSession.table`.
        """
        return self.batch(**options).table(questions)

    def provider_revisions(self, policy: PolicyInForce) -> dict[str, str]:
        """Return the revision of every provider that a policy asks, by tier."""
        return self._resolver(policy.policy).revisions

    def marks(self, in_force: PolicyInForce) -> tuple[str, ...]:
        """Return what sets answers under a policy apart from those of the commit's own."""
        marks = ["uncommitted"] if self.commit is None else []
        if in_force.reference.origin == "external-policy":
            marks.append("external-policy")
        if self.exclusion:
            marks.append(EVIDENCE_EXCLUDED)
        return tuple(marks)

    def parts(self, policy: Policy) -> ResolverParts:
        """Return everything that answers under a policy of this snapshot depend on."""
        return ResolverParts(
            records=self.evidence,
            profiles=self.evidence,
            validations=self._validations,
            calibrations=lambda: self.calibration_models,
            vocabulary=self.vocabulary,
            policy=policy,
            reference_time=self.evidence.committer_time,
            exclusion=self.exclusion,
        )

    @cached_property
    def _validations(self) -> SnapshotValidations:
        return SnapshotValidations(self.evidence)

    @cached_property
    def calibration_models(self) -> CalibrationModels:
        """Calibration revisions of the snapshot, ready to predict."""
        from perfdb_git.providers.calibration_models import CalibrationModels
        from perfdb_git.storage.calibration_documents import CalibrationDocuments

        return CalibrationModels(CalibrationDocuments(self.evidence))

    @cached_property
    def timing_documents(self) -> TimingDocuments:
        """Timing profiles and pipelines of the snapshot."""
        from perfdb_git.storage.timing_documents import TimingDocuments

        return TimingDocuments(self.evidence.source)

    def timing_profile(self, name: str) -> ReadDocument[TimingProfile]:
        """Return a timing profile by name or path."""
        return self.timing_documents.timing_profile(name)

    def pipeline(self, name: str) -> ReadDocument[Pipeline]:
        """Return a pipeline by name or path."""
        return self.timing_documents.pipeline(name)

    def stage_answers(
        self,
        pipeline: ReadDocument[Pipeline],
        *,
        policy: PolicyInForce | str = DEFAULT_POLICY,
    ) -> dict[str, ResolvedService]:
        """Resolve the queries of a pipeline's stages at this snapshot, by stage name.

        Raises
        ------
        InvalidInputError, NoEvidenceError
            See `answer_stages`.
        """
        from perfdb_git.resolution.stage_answers import answer_stages

        if all(stage.query is None for stage in pipeline.value.stages):
            return {}
        in_force = policy if isinstance(policy, PolicyInForce) else self.policy(policy)
        return answer_stages(
            pipeline, self.vocabulary, lambda query: self.resolve(query, policy=in_force)
        )

    def simulate(
        self,
        pipeline: str,
        profile: str,
        *,
        jobs: int | None = None,
        arrivals: Arrivals | None = None,
        policy: PolicyInForce | str = DEFAULT_POLICY,
        tick: TickName = "ps",
    ) -> Simulation:
        """Run a pipeline on a timing profile, both of this snapshot, until it is drained.

        Parameters
        ----------
        pipeline, profile : str
            Names, or paths in the repository.
        jobs : int or None
            The number of jobs; ``None`` keeps the pipeline's.
        arrivals : Arrivals or None
            When they arrive; ``None`` keeps the pipeline's.
        policy : PolicyInForce or str
            The policy under which stages with a query are answered.
        tick : str
            The grid of time: ``ps``, or the finer ``fs``.

        Raises
        ------
        UsageError, InvalidInputError, NoEvidenceError, RepositoryUnavailableError
            For a wrong request, wrong documents, a query without an answer, or a document that is
            not here.
        """
        from perfdb_git.simulation.simulate import simulate, with_jobs

        components = self.timing_profile(profile)
        asked = with_jobs(self.pipeline(pipeline), count=jobs, arrivals=arrivals)
        answers = self.stage_answers(asked, policy=policy)
        return simulate(components, asked, answers=answers, tick=tick)

    def _resolve(self, asked: CostQuery, in_force: PolicyInForce, *, explain: bool) -> Resolution:
        resolver = self._resolver(in_force.policy)
        outcome = resolver.resolve(asked)
        estimate = outcome.estimate
        if estimate is not None:
            provenance = replace(estimate.provenance, commit=self.commit)
            estimate = replace(estimate, provenance=provenance)
        return Resolution(
            query=asked,
            query_digest=query_digest(asked),
            cache_key=self._cache_key(asked, in_force, resolver),
            snapshot=SnapshotReference(commit=self.commit),
            policy=in_force.reference,
            estimate=estimate,
            alternatives=outcome.alternatives,
            code=outcome.code,
            reason=outcome.reason,
            explanations=resolver.explain(asked) if explain else (),
            marks=self.marks(in_force),
        )

    def _resolver(self, policy: Policy) -> CostResolver:
        """Return the policy's resolver, which is made once for all queries of a process."""
        known = self._resolvers.get(id(policy))
        if known is None or known[0] is not policy:
            known = (policy, compose_resolver(self.parts(policy)))
            self._resolvers[id(policy)] = known
        return known[1]

    def _cache_key(self, query: CostQuery, in_force: PolicyInForce, resolver: CostResolver) -> str:
        limited = resolver.admission(query).freshness_limited
        return cache_key(
            query_digest=query_digest(query),
            trees=self.evidence.tree_ids(),
            revisions=resolver.revisions,
            policy_digest=in_force.reference.digest,
            committer_time=self.evidence.committer_time if limited else None,
            exclusion=exclusion_digest(self.exclusion) if self.exclusion else None,
        )
